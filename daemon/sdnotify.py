"""Notifications to systemd (sd_notify(3)): ready, running, stopping. None is sent without systemd."""

import asyncio
import os
import socket
import time

__all__ = ["notify", "reloading", "watchdog"]


def notify(state: str) -> None:
    """Send `state`, e.g. "READY=1"."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
        sock.sendto(state.encode(), address)


def reloading() -> None:
    """Notify that the configuration is read again; READY=1 ends this state."""
    notify(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")


async def watchdog() -> None:
    """Notify that the loop runs, twice in each watchdog period, until cancelled."""
    usec = int(os.environ.get("WATCHDOG_USEC", "0"))
    if not usec:
        return
    while True:
        notify("WATCHDOG=1")
        await asyncio.sleep(usec / 2_000_000)
