"""`feltd broker`: mosquitto's configuration for the broker of a site, or for the bridge to it from another computer.

The topics of a bridge are those of the computer's own tables: events, states and results go out, orders and requests
for a replay come in. A table that feeds a pool here and has neither devices nor rules here is one of another computer:
its topics for the pool come in. No topic goes both ways, so no message can circle. The user of a bridge is
`<edge>-bridge`; the access list of the site's broker grants it the same topics (`feltd acl --bridged`).
"""

from collections.abc import Sequence
from pathlib import Path

from daemon.config.model import Config
from daemon.jackpots.sites import carried
from daemon.read_model import SHOWN
from protocols.contract.jackpots import jackpot_topic
from protocols.contract.topics import ROOT, device_topic, edge_topic, table_topic

__all__ = ["POOL_LEAVES", "bridge", "bridge_in", "bridge_out", "bridge_user", "listener", "tables_here"]

POOL_LEAVES = ("level", "books", "owner", "event/+", "cmd/+/result")
"""What the jackpots process publishes of a pool."""

_DEVICE_OUT = ("availability", "meta", "state", "trace", "cmd/+/result")
_TABLE_OUT = ("alert/+", "cmd/replay/result", "round/state", "round/result", "round/event/+", "round/cmd/replay/result")
_TABLE_IN = ("cmd/replay", "round/cmd/replay", "device/+/cmd/+")


def bridge_user(config: Config) -> str:
    """The user of this computer's bridge on the site's broker, the common name of its certificate."""
    return f"{config.edge.name}-bridge"


def _names(config: Config) -> list[str]:
    """The names of this computer's processes, whose state the bridge carries."""
    names = [config.edge.name]
    names += [config.rules.name] if any(table.ruleset for table in config.table) else []
    return names + ([config.jackpots.name] if config.jackpot else [])


def tables_here(config: Config) -> list[str]:
    """The tables of this computer, without those of another one that feed its pools."""
    fed = {table for pool in config.jackpot for table in pool.tables}
    return [one.name for one in config.table if one.device or one.ruleset or one.name not in fed]


def _elsewhere(config: Config) -> tuple[list[str], list[str]]:
    """The topics that come in and go out for the tables of other computers that feed the pools."""
    site, here = config.site.name, tables_here(config)
    come: dict[str, None] = {}
    go: dict[str, None] = {}
    for pool in config.jackpot:
        for table in pool.tables:
            if "/" not in table and table not in here:
                events, replays = carried(site, pool, table)
                come |= dict.fromkeys(events)
                go |= dict.fromkeys([*replays, table_topic(site, table, "alert/+")])
    return list(come), list(go)


def bridge_out(config: Config, tables: Sequence[str], *, cards: bool) -> list[str]:
    """The topics that leave this computer. Without `cards` events that may name a card or a wager are left out."""
    site = config.site.name
    events = ["event/+"] if cards else [f"event/{kind}" for kind in sorted(SHOWN)]
    topics = [edge_topic(site, name, "+") for name in _names(config)]
    for table in tables:
        topics += [device_topic(site, table, "+", leaf) for leaf in (*_DEVICE_OUT, *events)]
        topics += [table_topic(site, table, leaf) for leaf in _TABLE_OUT]
    topics += [jackpot_topic(site, pool.name, leaf) for pool in config.jackpot for leaf in POOL_LEAVES]
    return topics + _elsewhere(config)[1]


def bridge_in(config: Config, tables: Sequence[str]) -> list[str]:
    """The topics that come to this computer.

    A pool's level and owner, and the owner's heartbeat, come from the computer that keeps its books.
    """
    site = config.site.name
    topics = [table_topic(site, table, leaf) for table in tables for leaf in _TABLE_IN]
    topics += [jackpot_topic(site, pool.name, "cmd/+") for pool in config.jackpot]
    if config.jackpot:
        return topics + _elsewhere(config)[0]
    pools = [jackpot_topic(site, "+", leaf) for leaf in ("level", "owner")]
    return [*topics, *pools, edge_topic(site, config.jackpots.name, "alive")]


def listener(listen: str, port: int, certificates: Path) -> str:
    """A listener at the address `listen` ("": every one) for clients with a certificate, whose name is the user."""
    place = f"listener {port} {listen}".rstrip()
    return f"""\
# Where other computers of the site reach this broker. `feltd broker` makes it; goes to /etc/mosquitto/conf.d/.
# The certificates come from `feltd pki`; key and folder belong to the user mosquitto, mode 600 and 700.
{place}
cafile {certificates / "ca.crt"}
crlfile {certificates / "ca.crl"}
certfile {certificates / "broker.crt"}
keyfile {certificates / "broker.key"}
tls_version tlsv1.2
# Only clients with a certificate of ours are accepted; its common name is the user, without a password.
require_certificate true
use_identity_as_username true
"""


def bridge(config: Config, hosts: Sequence[str], port: int, certificates: Path, *, cards: bool) -> str:
    """The bridges from this computer's broker to those of the site, each HOST or HOST:PORT.

    Every broker of the site always gets all messages: if one fails, the others have all retained states.
    """
    user = bridge_user(config)
    prefix = f"{ROOT}/{config.site.name}/"
    here = tables_here(config)
    tables = ["+"] if len(here) == len(config.table) else here
    ways = (bridge_out(config, tables, cards=cards), "out"), (bridge_in(config, tables), "in")
    topics = [f"topic {one.removeprefix(prefix)} {way} 1 {prefix} {prefix}" for all_, way in ways for one in all_]
    lines = [
        "# The bridge to the broker of the site. `feltd broker` makes it; goes to /etc/mosquitto/conf.d/.",
        "# A broker that was offline then receives all retained states; other messages are requested again from the",
        "# journals. None is queued here: mosquitto would add all states each time it tries to connect.",
    ]
    for number, host in enumerate(hosts, 1):
        name = user if number == 1 else f"{user}-{number}"
        lines += [
            f"connection {name}",
            f"address {host if host.rpartition(':')[2].isdecimal() and ':' in host else f'{host}:{port}'}",
            f"remote_clientid {name}",
            "bridge_protocol_version mqttv311",
            "cleansession false",
            "local_cleansession true",
            "notifications false",
            "start_type automatic",
            "restart_timeout 1 30",
            "keepalive_interval 15",
            "bridge_attempt_unsubscribe false",
            f"bridge_cafile {certificates / 'ca.crt'}",
            f"bridge_certfile {certificates / f'{user}.crt'}",
            f"bridge_keyfile {certificates / f'{user}.key'}",
            *topics,
        ]
    return "\n".join(lines) + "\n"
