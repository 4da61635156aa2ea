"""The sections of a site of many computers: `[backbone]`, `[forward]`, `[replica]`, `[ledger]`."""

import re
from collections.abc import Callable, Iterator
from typing import Annotated, Literal, Protocol

from msgspec import Meta, Struct

__all__ = ["Backbone", "BackboneUser", "Forward", "Ledger", "Replica", "mistakes_of_backbone"]

SERVER = re.compile(r"(nats|tls)://(?P<host>\[[0-9a-fA-F:]+]|[A-Za-z0-9_.-]+)(:\d{1,5})?")
MONITOR = re.compile(r"https?://(?P<host>\[[0-9a-fA-F:]+]|[A-Za-z0-9_.-]+)(:\d{1,5})?/?")


class Backbone(Struct, frozen=True, kw_only=True):
    """`[backbone]`: the NATS JetStream cluster of the site. Without `servers` there is none.

    `servers` are the addresses of all nodes, `monitors` those of their monitoring ports, which `feltd doctor` reads.
    `ca_file` turns TLS on. `one_machine` accepts three nodes on one computer, for a demo. `insecure` accepts other
    computers without TLS.
    """

    servers: tuple[str, ...] = ()
    monitors: tuple[str, ...] = ()
    ca_file: str = ""
    one_machine: bool = False
    insecure: bool = False


class BackboneUser(Struct, frozen=True, kw_only=True):
    """A user of the backbone: `username` with `password_file`, or the name of the `certificate` with its `key`."""

    username: str = ""
    password_file: str = ""
    certificate: str = ""
    key: str = ""


class Forward(BackboneUser, frozen=True, kw_only=True):
    """`[forward]`: sends the rows of this computer's journals to the backbone.

    Its user there is `username` with `password_file`, or the name of the `certificate` with its `key`. `folder` holds
    its position; the journals keep rows until it passed them. `cards`: also send events that name cards, for rules at
    the site.
    """

    folder: Annotated[str, Meta(min_length=1)] = "/var/lib/feltd/forward"
    cards: bool = False


class Replica(BackboneUser, frozen=True, kw_only=True):
    """`[replica]`: the rules of this computer are one of two that resolve the same tables.

    With `events` "backbone" they read their events from the backbone; gaps are filled by the edges over the broker. Of
    the rules processes that are online, the first by name retains states and answers wagers. The user at the backbone
    is as in [forward].
    """

    events: Literal["broker", "backbone"] = "broker"


class Ledger(BackboneUser, frozen=True, kw_only=True):
    """`[ledger]`: writes results, books of jackpots and faults from the backbone to PostgreSQL.

    `database` is libpq's connection string of the writer, `reports` that of `feltd report` and of the console's
    page /reports, which may only read. The user at the backbone is as in [forward].
    """

    database: str = ""
    reports: str = ""


class Sections(Protocol):
    """The part of a configuration with these sections."""

    @property
    def backbone(self) -> Backbone: ...
    @property
    def forward(self) -> Forward: ...
    @property
    def replica(self) -> Replica: ...
    @property
    def ledger(self) -> Ledger: ...


def mistakes_of_backbone(config: Sections, is_loopback: Callable[[str], bool]) -> Iterator[tuple[tuple[str, str], str]]:
    """The mistakes in these sections: section and key, and the text."""
    backbone, forward, replica, ledger = config.backbone, config.forward, config.replica, config.ledger
    for key, pattern, example in (
        ("servers", SERVER, "tls://nats-1.lisboa.example:4222"),
        ("monitors", MONITOR, "http://nats-1.lisboa.example:8222"),
    ):
        for address in getattr(backbone, key):
            if pattern.fullmatch(address) is None:
                yield (
                    ("backbone", key),
                    f"backbone.{key}: {address!r} is no address of a node, for example {example}",
                )
    for address in backbone.servers:
        found = SERVER.fullmatch(address)
        if found and not (backbone.ca_file or backbone.insecure or is_loopback(found["host"].strip("[]"))):
            text = (
                f"backbone.servers: {address} is another computer: without TLS passwords and results pass in clear;"
                " name the ca_file, or write insecure = true if that network is private"
            )
            yield ("backbone", "servers"), text
    if replica.events == "backbone" and not backbone.servers:
        yield ("replica", "events"), "replica.events: no servers are named under [backbone], from which to read"
    parts: tuple[BackboneUser, ...] = (forward, replica, ledger)
    for part in parts:
        name = type(part).__name__.lower()
        if bool(part.certificate) != bool(part.key):
            one = "certificate" if part.certificate else "key"
            yield (name, one), f"{name}.certificate and {name}.key: one without the other"
        if bool(part.username) != bool(part.password_file):
            one = "username" if part.username else "password_file"
            yield (name, one), f"{name}.username and {name}.password_file: one without the other"
        if part.certificate and not backbone.ca_file:
            yield (name, "certificate"), f"{name}.certificate is used by TLS alone: name backbone.ca_file, too"
