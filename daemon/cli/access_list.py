"""`feltd acl`: the access list of mosquitto for the computers of a site, made from their configurations.

All other topics are refused. An edge writes its own topics and those of its tables, and so do rules; other readers get
neither cards nor wagers. Each betting terminal writes its own requests and reads its own answers; other devices that
speak MQTT at this broker write the topics that their link reads, and read the one that it writes.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from daemon.broker.stale_topics import alerts_of_edge, alerts_of_rules
from daemon.cli.broker_config import POOL_LEAVES, bridge_in, bridge_out, bridge_user, tables_here
from daemon.config.lines import line_of
from daemon.config.model import Config, Edge, Jackpots, Mqtt, Rules, broker_of
from daemon.edge import home_assistant
from daemon.edge.links import mqtt as links_mqtt
from daemon.jackpots.alerts import alert_codes
from daemon.jackpots.sites import display_topic, sites_of, topic_at
from daemon.journal.retention import room_topic
from daemon.read_model import SHOWN
from drivers.bet_terminals import TerminalOptions
from protocols.contract.commands import Announce, ShowAmount, name_of
from protocols.contract.jackpots import jackpot_topic
from protocols.contract.topics import device_topic, edge_topic, table_topic

__all__ = ["BadSite", "access_list"]

READER, DISPLAY = "reader", "display"
TERMINALS = "bet_terminals"
OURS = frozenset({"felt", "reply", "homeassistant", "$SYS"})
"""The first words of topics that no device of another maker may use at our broker."""
DEVICE_LEAVES = ("availability", "meta", "state", "event/+", "trace", "cmd/+/result")

HEAD = """\
# The access list of mosquitto for site {site}: each user of the broker, with the topics that it may read and write.
# `feltd acl` prints it from the configurations of all computers of the site. Install it as /etc/mosquitto/feltd.acl.
# Print it again after a table, an edge or rules were added or removed. docs/how-to/install.md describes how the
# users and passwords are made.
#
# Mosquitto refuses every topic that is not listed here. An edge publishes events of its own tables only, and rules
# publish results of their own tables only. A client without a user reads nothing.
#
# Events of a shoe name each card, also the bank's second card, which lies face down; a reader of the hole card reports
# whether the bank has blackjack. The rules read these events and the wagers; so do jackpots, at tables whose devices
# report the bets. The edge's link to betting terminals reads their requests. Other users read the listed types of
# events: a new type of a newer edge is refused until a new list names it. They also read round/result and round/state,
# which name no card that lies face down. At baccarat round/state names a card as soon as the shoe reported it; where
# players handle the cards, as soon as each side has two.
#
# The console's user may send any command to any device; jackpots only show amounts and texts on their own signs."""


class BadSite(Exception):
    """Configurations that give no access list. The message names them and the remedy."""


class _Edge(Struct):
    """An edge: its devices by table, and the tables of its configuration where it has none."""

    user: str
    place: str
    devices: dict[str, list[str]]
    others: list[str]


class _Rules(Struct):
    """Rules: the tables whose rounds they resolve, and the other tables of their configuration."""

    user: str
    tables: dict[str, None]
    others: dict[str, None]


class _MqttDevice(Struct):
    """A device that speaks MQTT at the broker of the site: the user of the edge's link to it, and their topics."""

    link: str
    hear: tuple[str, ...]
    say: str


class _Site(Struct):
    """All computers of a site. `jackpots`: user and configuration of the process, by its name."""

    name: str
    edges: dict[str, _Edge]
    rules: dict[str, _Rules]
    consoles: dict[str, bool]
    """The users of consoles, and whether each may send jackpot orders: the console's own user may, [mqtt]'s may
    not.
    """
    maintenance: dict[str, None]
    jackpots: dict[str, tuple[str, Config]]
    bets: dict[str, tuple[str, list[str]]]
    """By table with betting terminals, the user of the edge's link to them, and their names."""
    mqtt: dict[str, _MqttDevice]
    """By table/device."""


def access_list(configs: Sequence[tuple[Path, Config]], *, bridged: bool = False) -> str:
    """The list for the computers that have these configurations. Raises BadSite.

    `bridged`: for the broker of the site, to which the brokers of these computers are bridged.
    """
    site = _site(configs)
    blocks = [HEAD.format(site=site.name)]
    if bridged:
        blocks += [_of_bridge(config) for _, config in configs if config.table or config.jackpot]
    else:
        blocks += [_of_edge(site, name, edge) for name, edge in site.edges.items()]
        blocks += [_of_rules(site, name, rules) for name, rules in site.rules.items()]
        blocks += [_of_jackpots(site.name, name, user, config) for name, (user, config) in site.jackpots.items()]
        blocks += [block for table in site.bets for block in _of_bets(site, table)]
        blocks += _of_mqtt(site.mqtt)
    looking = "feltd console, feltd command, feltd watch: reads all but cards and wagers, sends commands to devices"
    blocks += [_of_reader(site, looking, user, commands=True, orders=own) for user, own in site.consoles.items()]
    others = "other readers: as the console, without commands"
    blocks += [_of_reader(site, others, READER, commands=False, orders=False)]
    blocks += [_of_display(site.name)]
    blocks += [_of_maintenance(site.name, user) for user in site.maintenance]
    return "\n\n".join(blocks) + "\n"


def _site(configs: Sequence[tuple[Path, Config]]) -> _Site:
    """The programs that use the broker, with their users. Raises BadSite."""
    site = _Site(configs[0][1].site.name, {}, {}, {}, {}, {}, {}, {})
    mistakes: list[str] = []
    for path, config in configs:
        if config.site.name != site.name:
            text = f"site {config.site.name!r}, but {site.name!r} in {configs[0][0]}; a list is for one site"
            mistakes.append(f"{path}:{line_of(path, ('site', 'name'))}: {text}")
            continue
        common = config.mqtt.username
        console = broker_of(config, config.console).username
        site.consoles |= {user: user == console or site.consoles.get(user, False) for user in (common, console) if user}
        if config.maintenance.username:
            site.maintenance[config.maintenance.username] = None
        devices = {table.name: [device.name for device in table.device] for table in config.table if table.device}
        if devices:
            _add_edge(site, path, config, devices, mistakes)
            _add_mqtt(site, path, config, mistakes)
        if any(table.ruleset for table in config.table):
            _add_rules(site, path, config, mistakes)
        if config.jackpot:
            _add_jackpots(site, path, config, mistakes)
    site.consoles = site.consoles or {"console": True}
    for name, rules in site.rules.items():
        if not rules.user:
            text = (
                f"rules {name!r} have no user of their own on the broker; give [rules] a username and a password_file"
            )
            mistakes.append(f"{configs[0][0]}: {text}")
        if name in site.edges:
            text = f"edge {name!r} has the name of rules of the site; give one of them another name"
            mistakes.append(f"{site.edges[name].place}: {text}")
    mistakes += _users_in_common(site, configs[0][0])
    if mistakes:
        raise BadSite("\n".join(mistakes))
    return site


def _has_user(part: Edge | Rules | Jackpots) -> bool:
    return bool(part.username or part.password_file or part.broker_certificate)


def _add_edge(site: _Site, path: Path, config: Config, devices: dict[str, list[str]], mistakes: list[str]) -> None:
    name = config.edge.name
    place = f"{path}:{line_of(path, ('edge', 'name'))}"
    user = broker_of(config, config.edge).username
    if name in site.edges:
        mistakes.append(f"{place}: edge {name!r} is in {site.edges[name].place}, too; the names of edges must differ")
    elif not _has_user(config.edge):
        text = f"edge {name!r} has no user of its own on the broker; give [edge] a username and a password_file"
        mistakes.append(f"{place}: {text}")
    else:
        site.edges[name] = _Edge(user, place, devices, [one.name for one in config.table if one.name not in devices])


def _add_mqtt(site: _Site, path: Path, config: Config, mistakes: list[str]) -> None:
    """The links to betting terminals and other devices that use the broker of the site."""
    ours = broker_of(config, config.edge)
    for number, table in enumerate(config.table):
        for d, device in enumerate(table.device):
            if not device.url.startswith("mqtt:"):
                continue
            link = links_mqtt.broker_of(device.url)
            if _broker(link) != _broker(ours):
                continue
            terminals, name = device.driver == TERMINALS, f"{table.name}/{device.name}"
            whom = f"the terminals of {table.name!r}" if terminals else f"{name!r}"
            place = f"{path}:{line_of(path, ('table', number, 'device', d, 'url'))}"
            if not link.username:
                text = f"the link to {whom} has no user; add username=… and password_file=…"
                mistakes.append(f"{place}: {text}")
            if terminals:
                options = msgspec.convert(device.options, TerminalOptions)
                site.bets[table.name] = link.username, list(options.seats_by_terminal)
                continue
            hear, say = links_mqtt.topics_of(device.url)
            if own := [topic for topic in (*hear, say) if topic.split("/")[0] in OURS]:
                text = f"{own[0]} is a topic of ours; give {name} topics of its own"
                mistakes.append(f"{place}: {text}")
            site.mqtt[name] = _MqttDevice(link.username, hear, say)


def _broker(mqtt: Mqtt) -> tuple[str, int]:
    """The address of the broker's listener; this computer has several names."""
    return "127.0.0.1" if mqtt.host in ("localhost", "::1") else mqtt.host, mqtt.port


def _device_user(name: str) -> str:
    """The user of a device that speaks MQTT itself, of `table/device`."""
    return f"device-{name.replace('/', '-')}"


def _bettor(table: str, terminal: str) -> str:
    """The user of a betting terminal."""
    return f"bets-{table}-{terminal}"


def _add_jackpots(site: _Site, path: Path, config: Config, mistakes: list[str]) -> None:
    """Add the jackpots of a configuration. One process owns all pools, so only one configuration may have them."""
    name = config.jackpots.name
    place = f"{path}:{line_of(path, ('jackpot', 0, 'name'))}"
    if site.jackpots:
        mistakes.append(f"{place}: another configuration of the site has jackpots, too; one process keeps all of them")
    elif not _has_user(config.jackpots):
        text = f"jackpots {name!r} have no user of their own; give [jackpots] a username and a password_file"
        mistakes.append(f"{place}: {text}")
    else:
        site.jackpots[name] = broker_of(config, config.jackpots).username, config


def _add_rules(site: _Site, path: Path, config: Config, mistakes: list[str]) -> None:
    """Add the rules of a configuration. That of a computer with only an edge names the rules, but not their user."""
    name = config.rules.name
    user = broker_of(config, config.rules).username if _has_user(config.rules) else ""
    rules = site.rules.setdefault(name, _Rules(user, {}, {}))
    if user and rules.user not in ("", user):
        text = f"rules {name!r} are user {user!r} here and {rules.user!r} elsewhere; one name has one user"
        mistakes.append(f"{path}:{line_of(path, ('rules', 'username'))}: {text}")
    rules.user = rules.user or user
    for table in config.table:
        (rules.tables if table.ruleset else rules.others)[table.name] = None


def _users_in_common(site: _Site, path: Path) -> list[str]:
    """Mistakes where two parties share a user: each would have the rights of the other."""
    parties = [(edge.user, f"edge {name!r}") for name, edge in site.edges.items()]
    parties += [(rules.user, f"rules {name!r}") for name, rules in site.rules.items() if rules.user]
    parties += [(user, f"jackpots {name!r}") for name, (user, _) in site.jackpots.items()]
    parties += [(user, "the console") for user in site.consoles]
    parties += [(user, "maintenance") for user in site.maintenance]
    parties += [(READER, "a reader"), (DISPLAY, "a display")]
    parties += [(user, f"the link to the terminals of {table!r}") for table, (user, _) in site.bets.items() if user]
    for table, (_, terminals) in site.bets.items():
        parties += [(_bettor(table, one), f"terminal {one!r} of {table!r}") for one in terminals]
    parties += [(one.link, "the link to devices that speak MQTT") for one in site.mqtt.values() if one.link]
    parties += [(_device_user(name), f"the device {name!r}") for name in site.mqtt]
    found: dict[str, str] = {}
    mistakes = []
    for user, party in parties:
        if not user.isprintable() or user != user.strip():
            mistakes.append(f"{path}: {user!r} of {party} cannot be a user of an access list; take letters and digits")
        elif (other := found.setdefault(user, party)) != party:
            text = f"user {user!r} of the broker is {other} and {party}; each needs a username of its own"
            mistakes.append(f"{path}: {text}")
    return mistakes


def _block(title: str, user: str, write: Iterable[str], read: Iterable[str], deny: Iterable[str] = ()) -> str:
    """The lines of one user. Denied topics are listed first, as mosquitto reads them first."""
    lines = [f"# ---- {title}", "", f"user {user}"]
    lines += [f"topic deny {topic}" for topic in deny]
    lines += [f"topic write {topic}" for topic in write]
    lines += [f"topic read {topic}" for topic in read]
    return "\n".join(lines)


def _of_bets(site: _Site, table: str) -> list[str]:
    """The lists of a table's betting terminals: each writes and reads its own topics only."""
    user, terminals = site.bets[table]

    def topics(terminal: str) -> tuple[list[str], list[str]]:
        asks = table_topic(site.name, table, f"wager/{terminal}")
        return [asks], [f"{asks}/result"]

    requests, answers = topics("+")
    blocks = [_block(f"the edge's link to the betting terminals of {table}", user, answers, requests)]
    return blocks + [
        _block(f"betting terminal {one} of {table}", _bettor(table, one), *topics(one)) for one in terminals
    ]


def _of_mqtt(devices: dict[str, _MqttDevice]) -> list[str]:
    """The lists of MQTT devices. One user of a link may serve several devices; each device has its own user."""
    blocks = []
    for user in dict.fromkeys(one.link for one in devices.values()):
        served = {name: one for name, one in devices.items() if one.link == user}
        write = dict.fromkeys(one.say for one in served.values())
        read = dict.fromkeys(topic for one in served.values() for topic in one.hear)
        blocks.append(_block(f"the edge's link to {', '.join(served)}", user, write, read))
    for name, one in devices.items():
        blocks.append(_block(f"the device {name}", _device_user(name), one.hear, [one.say]))
    return blocks


def _of_bridge(config: Config) -> str:
    """The list of a bridge: the topics of its own tables; events that name cards only by configuration."""
    tables = tables_here(config)
    title = f"the bridge of {config.edge.name}"
    return _block(title, bridge_user(config), bridge_out(config, tables, cards=True), bridge_in(config, tables))


def _of_edge(site: _Site, name: str, edge: _Edge) -> str:
    """The topics of an edge. At a table that it shares it writes its own devices only, and the table's alerts."""
    write = [edge_topic(site.name, name, "+")]
    # its own topics, too, to restore them
    read = [edge_topic(site.name, "+", "availability"), edge_topic(site.name, name, "+")]
    for table, devices in edge.devices.items():
        shared = any(table in other.devices for other in site.edges.values() if other is not edge)
        for device in devices if shared else ["+"]:
            write += [device_topic(site.name, table, device, leaf) for leaf in DEVICE_LEAVES]
            read += [device_topic(site.name, table, device, leaf) for leaf in ("availability", "state")]
        write += [table_topic(site.name, table, leaf) for leaf in ("cmd/replay/result", "alert/+")]
        leaves = ("round/state", "cmd/replay", "device/+/cmd/+", "alert/+")
        read += [table_topic(site.name, table, leaf) for leaf in leaves]
    for table in edge.others:  # tables with devices at another edge, or none
        write += alerts_of_edge(site.name, table, name)
        read += [table_topic(site.name, table, "round/state"), *alerts_of_edge(site.name, table, name)]
    if site.jackpots:  # the owner of its tables' pools, and its heartbeat
        read.append(jackpot_topic(site.name, "+", "owner"))
        read += [edge_topic(site.name, owner, "alive") for owner in site.jackpots]
    # its retained topics of removed devices
    read.append(table_topic(site.name, "+", "device/+/meta"))
    # the allowed MQTT 5 response topics of commands
    write.append("reply/#")
    # also while discovery is off: it then clears its earlier messages
    write.append(home_assistant.writes(site.name, name))
    deny = dict.fromkeys(topic for rules in site.rules for topic in alerts_of_rules(site.name, "+", rules))
    return _block(f"feltd edge: {name}", edge.user, write, read, deny)


def _of_rules(site: _Site, name: str, rules: _Rules) -> str:
    write = [edge_topic(site.name, name, "+")]
    read = [edge_topic(site.name, "+", "+")]
    for table in rules.tables:
        written = ("round/state", "round/result", "round/event/+", "round/cmd/replay/result", "cmd/replay")
        write += [table_topic(site.name, table, leaf) for leaf in (*written, "wager/+/result")]
        write += alerts_of_rules(site.name, table, name)
        read += [table_topic(site.name, table, "round/result"), *alerts_of_rules(site.name, table, name)]
        subscribed = ("device/+/event/+", "cmd/replay/result", "round/cmd/replay", "wager/+")
        read += [table_topic(site.name, table, leaf) for leaf in subscribed]
    write += [room_topic(site.name, table, name) for table in rules.others if table not in rules.tables]
    # their retained topics of removed tables
    read.append(table_topic(site.name, "+", "round/state"))
    return _block(f"feltd rules: {name}", rules.user, write, read)


def _of_jackpots(site: str, name: str, user: str, config: Config) -> str:
    """The list of jackpots. Where devices report the bets, the process reads all their events, to find gaps."""
    write = [edge_topic(site, name, "+")]
    read = [edge_topic(one, "+", "availability") for one in (site, *sites_of(config))]
    read.append(edge_topic(site, name, "+"))
    displays = {one: None for pool in config.jackpot for one in pool.displays}
    for pool in config.jackpot:
        write += [jackpot_topic(site, pool.name, leaf) for leaf in POOL_LEAVES]
        read += [jackpot_topic(site, pool.name, leaf) for leaf in ("owner", "level", "books", "cmd/+")]
    for table in dict.fromkeys(table for pool in config.jackpot for table in pool.tables):
        by_devices = any(table in one.tables and one.reads_events for one in config.jackpot)
        leaves = ["cmd/replay"] if by_devices else []
        write += [topic_at(site, table, leaf) for leaf in ("round/cmd/replay", *leaves)]
        alerts = [topic_at(site, table, f"alert/{name}-{code}") for code in alert_codes()]
        write += alerts
        read += alerts
        leaves = ["device/+/event/+", "cmd/replay/result"] if by_devices else []
        read += [topic_at(site, table, leaf) for leaf in ("round/event/+", "round/cmd/replay/result", *leaves)]
    write += [room_topic(site, table.name, name) for table in config.table]
    for display in displays:
        table, _, device = display.rpartition("/")
        orders = [display_topic(site, display, f"cmd/{name_of(kind)}") for kind in (ShowAmount, Announce)]
        write += [*orders, topic_at(site, table, f"alert/{name}-sign-{device}")]
        read += [f"{order}/result" for order in orders]
    return _block(f"feltd jackpots: {name}", user, write, read)


def _of_reader(of: _Site, title: str, user: str, *, commands: bool, orders: bool) -> str:
    site = of.name
    read = [edge_topic(site, "+", "+"), table_topic(site, "+", "round/#"), table_topic(site, "+", "alert/+")]
    leaves = ["availability", "meta", "state", *(["trace"] if commands else []), "cmd/#"]
    leaves += [f"event/{type_}" for type_ in sorted(SHOWN)]
    read += [device_topic(site, "+", "+", leaf) for leaf in leaves]
    write = [table_topic(site, "+", "round/cmd/replay")]
    if commands:
        read += ["reply/#", table_topic(site, "+", "wager/+/result")]
        write.append(device_topic(site, "+", "+", "cmd/+"))
    if of.jackpots:
        read += [jackpot_topic(site, "+", leaf) for leaf in POOL_LEAVES]
        write += [jackpot_topic(site, "+", "cmd/+")] if orders else []
    return _block(title, user, write, read)


def _of_display(site: str) -> str:
    read = [edge_topic(site, "+", "availability")]
    read += [
        table_topic(site, "+", leaf) for leaf in ("round/state", "round/result", "alert/+", "device/+/availability")
    ]
    return _block("the display of a table: its state, last result and alerts, no events", DISPLAY, (), read)


def _of_maintenance(site: str, user: str) -> str:
    device = [table_topic(site, "+", f"device/+/{leaf}") for leaf in ("availability", "meta", "state")]
    table = [table_topic(site, "+", leaf) for leaf in ("round/state", "round/result", "alert/+")]
    every = edge_topic(site, "+", "+")
    return _block(
        "feltd forget: clears topics of edges and rules that were removed for good",
        user,
        [every, *device, *table],
        [every, device[1], table[0]],
    )
