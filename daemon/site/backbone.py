"""The connection to the backbone: NATS JetStream, by nats-py. It is loaded only where a site is configured."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

from daemon import logs
from daemon.config.backbone import Backbone, BackboneUser
from daemon.tls import client_context

try:
    import nats
    import nats.errors
    import nats.js.errors
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "nats-py is not installed: pip install --require-hashes -r requirements/backbone.txt, in feltd's environment"
    ) from error

__all__ = ["ACK_S", "Connection", "NotConfirmed", "options_of"]

ACK_S = 5.0
"""Seconds for a confirmation. An election takes 3 to 6; the message is repeated with its id."""
AGAIN_S = 1.0


class NotConfirmed(Exception):
    """The backbone did not confirm a message. `answered`: the backbone refused it; the message gives the reason."""

    def __init__(self, reason: str, *, answered: bool) -> None:
        """`reason` is for people."""
        self.answered = answered
        super().__init__(reason)


def options_of(backbone: Backbone, user: BackboneUser, name: str) -> dict[str, Any]:
    """The options for nats.connect. Raises OSError or ValueError where one of our files cannot be read or used."""
    options: dict[str, Any] = {"servers": list(backbone.servers), "name": name, "inbox_prefix": f"_INBOX_{name}"}
    if backbone.ca_file:
        options["tls"] = client_context(backbone.ca_file, user.certificate, user.key)
    if user.username:
        options["user"] = user.username
        options["password"] = Path(user.password_file).read_text(encoding="utf-8").strip()
    return options


class Connection:
    """One connection, which is made again whenever it is lost. `reason`: why there is none, for people."""

    def __init__(self, backbone: Backbone, user: BackboneUser, name: str) -> None:
        """`run` connects."""
        self._backbone, self._user, self._name = backbone, user, name
        self._log = logs.get(backbone=name)
        self._nats: Any = None
        self._up = asyncio.Event()
        self.reason = "not connected yet"

    async def run(self) -> None:
        """Stay connected until cancelled."""
        while True:
            closed = asyncio.Event()

            async def on_closed(closed: asyncio.Event = closed) -> None:
                closed.set()

            try:
                options = options_of(self._backbone, self._user, self._name)
                one = await nats.connect(
                    **options,
                    error_cb=self._on_error,
                    closed_cb=on_closed,
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=AGAIN_S / 4,
                    connect_timeout=2,
                    ping_interval=5,
                    max_outstanding_pings=2,
                )
            except (OSError, ValueError, nats.errors.Error) as error:
                self._failed(error)
            else:
                self._nats, self.reason = one, ""
                self._up.set()
                self._log.info("backbone.connected", node=str(one.connected_url.netloc if one.connected_url else ""))
                try:
                    await closed.wait()
                finally:
                    self._up.clear()
                    with contextlib.suppress(nats.errors.Error):
                        await one.close()
            await asyncio.sleep(AGAIN_S)

    async def _on_error(self, error: Exception) -> None:
        """Log an error once until the next success; callers that wait for a confirmation get it, too."""
        self._failed(error)

    def _failed(self, error: Exception) -> None:
        reason = str(error) or type(error).__name__
        if reason != self.reason:
            self._log.warning("backbone.error", reason=reason)
        self.reason = reason

    @property
    def jetstream(self) -> Any:
        """The JetStream context. Raises NotConfirmed where there is no connection."""
        if not self._up.is_set():
            raise NotConfirmed(self.reason, answered=False)
        return self._nats.jetstream(timeout=ACK_S)

    async def until_up(self) -> None:
        """Wait for a connection."""
        await self._up.wait()

    async def publish(self, subject: str, id_: str, payload: bytes) -> bool:
        """Return when a quorum has the message on its disks; whether it was stored before. Raises NotConfirmed."""
        try:
            async with asyncio.timeout(ACK_S):
                await self._up.wait()
            answer = await self.jetstream.publish(subject, payload, headers={"Nats-Msg-Id": id_})
        except nats.js.errors.APIError as error:
            raise NotConfirmed(f"stream of {subject}: {error.description or error}", answered=True) from error
        except nats.errors.MaxPayloadError as error:
            text = f"a message of {len(payload)} bytes is longer than the nodes accept: write max_payload: 2MB there"
            raise NotConfirmed(text, answered=True) from error
        except (
            nats.errors.Error,
            TimeoutError,
            OSError,
        ) as error:  # the reason is that of the connection, if it has one
            raise NotConfirmed(self.reason or str(error) or type(error).__name__, answered=False) from error
        self.reason = ""
        return bool(answer.duplicate)

    async def nodes_of(self, stream: str) -> tuple[int, int]:
        """The number of nodes with a complete copy of a stream, and the intended number. Raises NotConfirmed."""
        try:
            found = await self.jetstream.stream_info(stream)
        except (nats.errors.Error, TimeoutError, OSError) as error:
            raise NotConfirmed(str(error) or self.reason or type(error).__name__, answered=False) from error
        others = (found.cluster.replicas if found.cluster else None) or []
        current = 1 + sum(bool(one.current) and not one.offline for one in others)
        return current, int(found.config.num_replicas or 1)
