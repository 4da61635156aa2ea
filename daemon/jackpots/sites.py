"""Tables and displays of other sites, and the bridge between the brokers of two sites.

One process owns a pool. A table or display of the pool in another site has that site's name before its own
("porto/slot-3"); its topics are those of its site, and mosquitto carries them between the two brokers.
"""

from daemon.config.model import Config, Jackpot
from protocols.contract.commands import Announce, ShowAmount, name_of
from protocols.contract.jackpots import jackpot_topic
from protocols.contract.topics import device_topic, edge_topic, table_topic

__all__ = ["bridge", "carried", "display_topic", "id_at", "place_of", "sites_of", "topic_at"]


def _split(own: str, place: str, parts: int) -> tuple[str, list[str]]:
    """The site of a place, and the rest of its name in `parts`."""
    names = place.split("/")
    return (own, names) if len(names) == parts else (names[0], names[1:])


def topic_at(own: str, table: str, leaf: str) -> str:
    """A topic of a table, which may be in another site."""
    site, (name,) = _split(own, table, 1)
    return table_topic(site, name, leaf)


def display_topic(own: str, display: str, leaf: str) -> str:
    """A topic of a display, site/table/device or table/device."""
    site, (table, device) = _split(own, display, 2)
    return device_topic(site, table, device, leaf)


def place_of(own: str, topic: str) -> list[str]:
    """The levels of a topic after the site; the name of another site is put before its tables."""
    _, _, site, *levels = topic.split("/") if topic.count("/") > 3 else [""] * 4
    if site != own and levels[0] == "table":
        levels[1] = f"{site}/{levels[1]}"
    return levels


def id_at(table: str, id_: str) -> str:
    """The id of an event or round, made unique by the table's site: sites may have equal names of edges and tables."""
    site, slash, _ = table.rpartition("/")
    return f"{site}{slash}{id_}" if id_ else ""


def sites_of(config: Config) -> list[str]:
    """The other sites whose tables feed pools of this one, or whose displays show them."""
    tables = [table.split("/")[0] for pool in config.jackpot for table in pool.tables if "/" in table]
    displays = [one.split("/")[0] for pool in config.jackpot for one in pool.displays if one.count("/") == 2]
    return list(dict.fromkeys(tables + displays))


def carried(own: str, pool: Jackpot, table: str) -> tuple[list[str], list[str]]:
    """The topics of a table at another broker: those that the owner of its pool reads, and those it writes."""
    events, replays = (["device/+/event/+", "cmd/replay/result"], ["cmd/replay"]) if pool.reads_events else ([], [])
    here = [topic_at(own, table, leaf) for leaf in ("round/event/+", "round/cmd/replay/result", *events)]
    return here, [topic_at(own, table, leaf) for leaf in ("round/cmd/replay", *replays)]


def bridge(config: Config, site: str) -> str:
    """The configuration of mosquitto with which the broker of this site connects to that of `site`."""
    own, name = config.site.name, config.jackpots.name
    here: list[str] = []
    there = [edge_topic(own, name, "availability")]
    for pool in config.jackpot:
        tables = [table for table in pool.tables if table.startswith(f"{site}/")]
        displays = [one for one in pool.displays if one.count("/") == 2 and one.startswith(f"{site}/")]
        if tables or displays:
            there += [jackpot_topic(own, pool.name, leaf) for leaf in ("level", "books", "event/+")]
        for table in tables:
            come, go = carried(own, pool, table)
            here += come
            there += go
        for display in displays:
            orders = [f"cmd/{name_of(kind)}" for kind in (ShowAmount, Announce)]
            there += [display_topic(own, display, order) for order in orders]
            here += [display_topic(own, display, f"{order}/result") for order in orders]
    here.append(edge_topic(site, "+", "availability"))  # last: then the owner requests the missed messages
    here, there = list(dict.fromkeys(here)), list(dict.fromkeys(there))
    head = f"""\
# The bridge of the brokers of {own} and {site}, for the jackpots that {own} keeps. Goes to the broker of {own}, as
# /etc/mosquitto/conf.d/feltd-{site}.conf. Set the address, the certificate and the password. `feltd jackpot --bridge`
# makes it: make it again when tables or displays of {site} are added or removed.
connection feltd-{site}
address broker.{site}.example:8883
bridge_cafile /etc/mosquitto/ca_certificates/{site}.crt
remote_username feltd-{own}
remote_password change-me
remote_clientid feltd-{own}
# Messages that a broker could not send yet wait in its queue; those that do not fit are replayed from the journals.
cleansession false
bridge_protocol_version mqttv311
restart_timeout 1 30
notifications false"""
    grants = [f"# topic read {topic}" for topic in here] + [f"# topic write {topic}" for topic in there]
    return "\n".join(
        [
            head,
            *(f"topic {topic} in 1" for topic in here),
            *(f"topic {topic} out 1" for topic in there),
            f"# The access list of the broker of {site} needs:",
            f"# user feltd-{own}",
            *grants,
            "",
        ]
    )
