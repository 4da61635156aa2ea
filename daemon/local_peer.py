"""The user at the other end of a local socket, as the kernel reports it: a peer cannot forge it."""

import os
import pwd
import socket
import struct
from typing import Protocol

__all__ = ["is_trusted", "name_of", "uid_at_the_other_end"]

# struct ucred: process, user, group
_CREDENTIALS = struct.Struct("3i")


class _Socket(Protocol):
    def getsockopt(self, level: int, name: int, size: int, /) -> bytes:
        """As `socket.socket.getsockopt`."""
        ...


def uid_at_the_other_end(sock: _Socket) -> int:
    """The user that connected, or on the connecting side the user that listens."""
    _, uid, _ = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return int(uid)


def is_trusted(uid: int, expected: str) -> bool:
    """Whether `uid` is the user called `expected`, or our own user, who can read all our data anyway."""
    if uid == os.geteuid():
        return True
    try:
        return uid == pwd.getpwnam(expected).pw_uid
    except KeyError:  # this computer has no such user
        return False


def name_of(uid: int) -> str:
    """The user's name, or its number."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"number {uid}"
