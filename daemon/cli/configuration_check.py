"""The checks of `feltd check` beyond parsing: drivers, links, games, dealer pages, jackpots, webhooks, keys, probes."""

import asyncio
import contextlib
import os
import re
import sqlite3
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from daemon.broker.mac_keys import BadMacKey, load_mac_key, load_mac_keys
from daemon.config.lines import line_of
from daemon.config.model import (
    FILES,
    KEYS_BESIDE,
    Config,
    Mqtt,
    broker_of,
    encrypted_credential,
    files_of,
    is_loopback,
    likely,
)
from daemon.edge.links.link import BadUrl, check_url, open_link
from drivers import DRIVERS
from drivers.driver import DeviceRefused, LinkLost, Sighting
from protocols.contract.commands import Announce, ShowAmount
from protocols.contract.events import DeviceOnline
from protocols.contract.topics import table_topic
from protocols.plain_errors import plain

__all__ = [
    "Probed",
    "credulous",
    "dealer_mistakes",
    "device_mistakes",
    "facts",
    "file_mistakes",
    "has_console",
    "jackpot_mistakes",
    "mac_key_mistakes",
    "order_key_mistakes",
    "probe_devices",
    "ruleset_mistakes",
    "summary",
    "unproven_mistakes",
    "webhook_mistakes",
]

PROBE_TIMEOUT = 8.0
CHECK_LINE = "check the driver's name, power, cable and line settings"
PLAIN_PORT = 1883
LEAVES = ("ca_file", "password_file")


def has_console(path: Path) -> bool:
    """Whether the file has a [console] section. Without one the console runs with the defaults."""
    return "console" in tomllib.loads(path.read_text(encoding="utf-8"))


def device_mistakes(config: Config, path: Path) -> list[str]:
    """Unknown drivers, invalid options and invalid links, each as "file:line: text"."""
    mistakes = []
    for t, table in enumerate(config.table):
        for d, device in enumerate(table.device):
            at: tuple[Any, ...] = ("table", t, "device", d)
            driver = DRIVERS.get(device.driver)
            if driver is None:
                text = f"no driver {device.driver!r}; {likely(device.driver, DRIVERS)}"
                mistakes.append(f"{path}:{line_of(path, (*at, 'driver'))}: {text}")
            else:
                try:
                    msgspec.convert(device.options, driver.Options)
                except msgspec.ValidationError as error:
                    named = next((n for n in device.options if re.search(rf"[`.]{re.escape(n)}\b", str(error))), "")
                    text = f"options of {device.driver}: {plain(error)}"
                    mistakes.append(f"{path}:{line_of(path, (*at, 'options', named))}: {text}")
            needs_wakeup_bit = device.driver == "sas_machine" and device.options.get("adapter") is not True
            refused = _refused_by_sas(device.url) if needs_wakeup_bit else ""
            try:
                if not refused:
                    check_url(device.url)
                    topic = table_topic(config.site.name, table.name, "wager")
                    refused = _without_terminals(device.driver, device.url, topic)
            except BadUrl as error:
                refused = str(error)
            if refused:
                mistakes.append(f"{path}:{line_of(path, (*at, 'url'))}: {refused}")
    return mistakes


def _without_terminals(driver: str, url: str, topic: str) -> str:
    """Why a link to betting terminals does not identify the terminal; empty where it does."""
    from daemon.edge.links import mqtt as links_mqtt

    if driver != "bet_terminals" or not url.startswith("mqtt:") or links_mqtt.has_names(url):
        return ""
    return f"each betting terminal has a topic of its own: write hear={topic}/*&say={topic}/*/result in the url"


def _refused_by_sas(url: str) -> str:
    from daemon.edge.links import sas  # as check_url, which loads the file of a scheme with the first link of it

    return sas.refusal(url)


def ruleset_mistakes(config: Config, path: Path) -> list[str]:
    """Unknown rulesets and invalid options, each as "file:line: text"."""
    from rules import RULESETS
    from rules.engine.ruleset import BadOption, options_from

    mistakes = []
    for number, table in enumerate(config.table):
        at: tuple[Any, ...] = ("table", number)
        if not table.ruleset:
            continue
        if table.ruleset not in RULESETS:
            text = f"no ruleset {table.ruleset!r}; {likely(table.ruleset, RULESETS)}"
            mistakes.append(f"{path}:{line_of(path, (*at, 'ruleset'))}: {text}")
            continue
        try:
            options_from(RULESETS[table.ruleset], table.options)
        except BadOption as error:
            named = next(
                (name for name in table.options if re.search(rf"'{name}'|: {name}\b|\$\.{name}\b", str(error))), ""
            )
            mistakes.append(f"{path}:{line_of(path, (*at, 'options', named))}: {error}")
    return mistakes


def file_mistakes(config: Config, path: Path) -> list[str]:
    """Folders in the place of a journal or a store file, each as "file:line: text"."""
    mistakes = []
    for section, key in FILES:
        file = getattr(getattr(config, section), key)
        with contextlib.suppress(OSError):  # this user may not read the folder
            if Path(file).is_dir():
                text = f"{section}.{key}: {file} is a folder; name a file in it"
                mistakes.append(f"{path}:{line_of(path, (section, key))}: {text}")
    return mistakes


def dealer_mistakes(config: Config, path: Path) -> list[str]:
    """Dealer pages of unknown tables, on invalid or taken sockets, or without exactly their own device.

    Each as "file:line: text".
    """
    from daemon.console.dealer.unit import BadDealer, socket_of

    mistakes: list[str] = []
    tables = {table.name: table for table in config.table}
    pages: dict[Path, str] = {}
    for name, text in config.console.dealer.items():
        where = f"{path}:{line_of(path, ('console', 'dealer', name))}: dealer's page of {name}: "
        if name not in tables:
            mistakes.append(where + f"no table {name!r}; {likely(name, tables)}")
            continue
        try:
            place = socket_of(text)
        except BadDealer as error:
            mistakes.append(where + str(error))
            continue
        if place in pages:
            mistakes.append(where + f"{text} already belongs to the dealer's page of {pages[place]}")
            continue
        pages[place] = name
        mistakes += _meeting(config, path, name, text, place)
    return mistakes


LEAST_SEED = 10_000
"""The least ratio of seed to bet (Decreto Executivo 261/22, arts. 7(7), 9(12))."""


def jackpot_mistakes(config: Config, path: Path) -> list[str]:
    """Jackpots whose bet their tables do not offer, seeds below the law's, signs that show no amount.

    Each as "file:line: text". Tables and options that are wrong themselves are named by `ruleset_mistakes`.
    """
    from rules import RULESETS
    from rules.engine.ruleset import BadOption, options_from

    mistakes = []
    tables = {table.name: table for table in config.table}
    drivers = {f"{table.name}/{one.name}": one.driver for table in config.table for one in table.device}
    for number, pool in enumerate(config.jackpot):
        at: tuple[Any, ...] = ("jackpot", number)
        ruled = [tables[name] for name in pool.tables if name in tables and tables[name].ruleset in RULESETS]
        for table in ruled:
            with contextlib.suppress(BadOption):
                ruleset = RULESETS[table.ruleset]
                offered = [one.id for one in ruleset(options_from(ruleset, table.options)).bets()]
                if pool.bet not in offered and "rules" in (pool.counts, pool.wins):
                    text = f"jackpot {pool.name!r}: {table.name} offers no bet {pool.bet!r} with its options"
                    mistakes.append(f"{path}:{line_of(path, (*at, 'bet'))}: {text}; {likely(pool.bet, offered)}")
        if pool.seed < LEAST_SEED * pool.chip and any(table.ruleset.startswith("angola.") for table in ruled):
            text = f"jackpot {pool.name!r}: seed must be at least {LEAST_SEED * pool.chip}, {LEAST_SEED} times the chip"
            mistakes.append(f"{path}:{line_of(path, (*at, 'seed'))}: {text}")
        if "rules" in (pool.counts, pool.wins):
            for name in pool.tables:
                if name in tables and not tables[name].ruleset:
                    text = f"jackpot {pool.name!r}: {name} has no ruleset, which reports bets; let devices report them"
                    mistakes.append(f"{path}:{line_of(path, (*at, 'tables'))}: {text}")
        for sign in pool.displays:
            driver = DRIVERS.get(drivers.get(sign, ""))
            if driver is not None and ShowAmount not in driver.commands:
                text = f"jackpot {pool.name!r}: {sign} is {driver.name}, which shows no amount"
                key = "signs" if sign in pool.signs else "machines"
                mistakes.append(f"{path}:{line_of(path, (*at, key))}: {text}")
            elif driver is not None and sign in pool.signs and Announce not in driver.commands:
                text = f"jackpot {pool.name!r}: {sign} is {driver.name}, which announces nothing; name it in machines"
                mistakes.append(f"{path}:{line_of(path, (*at, 'signs'))}: {text}")
    return mistakes


def webhook_mistakes(config: Config, path: Path) -> list[str]:
    """Invalid webhooks, each as "file:line: text". Key files may be on another computer."""
    from daemon.console.alerts.webhooks import BadWebhook, host_of

    mistakes = []
    for number, hook in enumerate(config.console.webhook):
        try:
            host_of(number, hook.url)
        except BadWebhook as error:
            mistakes.append(f"{path}:{line_of(path, ('console', 'webhook', number, 'url'))}: {error}")
    return mistakes


def mac_key_mistakes(config: Config, path: Path, of: Sequence[str] = ("edge", "rules", "jackpots")) -> list[str]:
    """Unreadable or invalid MAC keys of these processes, each as "file:line: text"."""
    mistakes = []
    for section, key, _ in KEYS_BESIDE:
        place = getattr(getattr(config, section), key)
        if not place or section not in of:
            continue
        where = f"{path}:{line_of(path, (section, key))}: {section}.{key}"
        folder = key.endswith("_folder")
        try:
            keys = load_mac_keys(Path(place)) if folder else {"": load_mac_key(Path(place))}
        except BadMacKey as error:
            mistakes.append(f"{where}: {error}")
            continue
        devices = any(table.device for table in config.table)
        if (section, folder) == ("rules", True) and devices and config.edge.name not in keys:
            text = f"has no {config.edge.name}.key, so no event of this edge would be used; copy its key there"
            mistakes.append(f"{where}: {place} {text}")
    return mistakes


def credulous(config: Config) -> list[str]:
    """The sections of processes without keys and with `insecure = true`, which accept every message."""
    rules, ours = config.rules, config.jackpots
    found = ["rules"] if rules.insecure and not rules.mac_key_folder else []
    return found + (["jackpots"] if config.jackpot and ours.insecure and not ours.verdict_key_folder else [])


def unproven_mistakes(config: Config, path: Path, of: Sequence[str] = ("rules", "jackpots")) -> list[str]:
    """Processes without keys and without `insecure = true`, each as "file:line: text": they must not start."""
    remedy = "make the keys with `feltd mac-keys`, or write insecure = true"
    mistakes = []
    rules = config.rules
    if "rules" in of and any(one.ruleset for one in config.table) and not (rules.mac_key_folder or rules.insecure):
        text = "rules.mac_key_folder: without keys the password of an edge is enough to invent a result"
        mistakes.append(f"{path}:{line_of(path, ('rules', 'mac_key_folder'))}: {text}; {remedy} in [rules]")
    ours = config.jackpots
    if "jackpots" not in of or not config.jackpot or ours.insecure:
        return mistakes
    told = {by for pool in config.jackpot for by in (pool.counts, pool.wins)}
    if "devices" in told and not ours.mac_key_folder:
        text = "jackpots.mac_key_folder: without keys the password of an edge is enough to invent bets and wins"
        mistakes.append(f"{path}:{line_of(path, ('jackpots', 'mac_key_folder'))}: {text}; {remedy} in [jackpots]")
    if not ours.verdict_key_folder:
        text = "jackpots.verdict_key_folder: without keys the password of the rules is enough to invent bets and wins"
        mistakes.append(f"{path}:{line_of(path, ('jackpots', 'verdict_key_folder'))}: {text}; {remedy} in [jackpots]")
    return mistakes


def order_key_mistakes(config: Config, path: Path) -> list[str]:
    """Why every order about a pool would be refused: the public key is missing or bad. As "file:line: text"."""
    if not config.jackpot or (config.jackpots.insecure and not config.jackpots.order_public_key):
        return []
    at = f"{path}:{line_of(path, ('jackpots', 'order_public_key'))}"
    if not config.jackpots.order_public_key:
        text = "every order about a pool is refused without a key: make one (`feltd journal key`), and name it"
        return [f"{at}: {text} as [console] order_key and its public half as [jackpots] order_public_key"]
    from daemon.journal.signing import BadKey, PublicKey

    if not _may_be_there(config.jackpots.order_public_key):  # a note reports it
        return []
    try:
        PublicKey.load(Path(config.jackpots.order_public_key))
    except BadKey as error:
        return [f"{at}: jackpots.order_public_key: {error}"]
    return []


def _meeting(config: Config, path: Path, page: str, text: str, place: Path) -> list[str]:
    """Mistakes in the devices that connect to a dealer's page: it needs exactly one `fdl_console`, of its table."""
    mistakes = []
    first = ""
    found = [
        (("table", t, "device", d), table.name, device)
        for t, table in enumerate(config.table)
        for d, device in enumerate(table.device)
        if _socket(device.url) == place
    ]
    for at, table_name, device in found:
        name = f"{table_name}/{device.name}"
        if table_name != page:
            said = f"the dealer's page of {page} is there; give {name} its own place"
            mistakes.append(f"{path}:{line_of(path, (*at, 'url'))}: {said}")
            continue
        first = name
        if device.driver != "fdl_console":
            said = f"{name} is {device.driver}; the dealer's page needs fdl_console"
            mistakes.append(f"{path}:{line_of(path, (*at, 'driver'))}: {said}")
    if not first and any(table.device for table in config.table):  # without devices the edge has another file
        said = f'no device connects to it; {page} needs a device with driver = "fdl_console" and url = "unix://{text}"'
        mistakes.append(f"{path}:{line_of(path, ('console', 'dealer', page))}: dealer's page of {page}: {said}")
    return mistakes


def _socket(url: str) -> Path | None:
    """The socket of a link to this computer's console; None for other links."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return Path(os.path.normpath(parts.path)) if parts.scheme == "unix" else None


def facts(config: Config) -> dict[str, Any]:
    """The content of the configuration, for programs."""
    return {
        "site": config.site.name,
        "edge": config.edge.name,
        "broker": f"{config.mqtt.host}:{config.mqtt.port}",
        "tables": [
            {
                "name": table.name,
                "ruleset": table.ruleset,
                "dealer": config.console.dealer.get(table.name, ""),
                "devices": [{"name": one.name, "driver": one.driver, "url": one.url} for one in table.device],
            }
            for table in config.table
        ],
        "jackpots": [{"name": pool.name, "tables": pool.tables} for pool in config.jackpot],
        "notes": _notes(config),
    }


def summary(config: Config, path: Path) -> str:
    """The content of the configuration, for comparison with the real table."""
    lines = [
        f"{path}: good. Site {config.site.name}, edge {config.edge.name}, broker {config.mqtt.host}:{config.mqtt.port}"
    ]
    for table in config.table:
        lines.append(f"  {table.name}: {table.ruleset or 'no game'}")
        lines += [f"    {device.name}: {device.driver} at {device.url}" for device in table.device]
        if table.name in config.console.dealer:
            lines.append(f"    dealer's page at {config.console.dealer[table.name]}")
    lines += [f"  jackpot {pool.name}: {', '.join(pool.tables)}" for pool in config.jackpot]
    return "\n".join(lines + [f"  note: {one}" for one in _notes(config)])


def _notes(config: Config) -> list[str]:
    """Notes on possible mistakes that depend on this computer."""
    found = [
        f"[{name}]: insecure = true and no keys: messages of every broker user are accepted"
        for name in credulous(config)
    ]
    parts = [part for part in (config.edge, config.rules) if part.broker_certificate]
    users = [(f"[{type(part).__name__.lower()}]", broker_of(config, part)) for part in parts]
    brokers = [*(users or [("[mqtt]", config.mqtt)]), *_of_devices(config)]
    for name, broker in brokers:
        if not broker.ca_file and not is_loopback(broker.host):
            found.append(
                f"{name}: the broker is on another computer: passwords and messages pass in clear without a ca_file"
            )
        if broker.ca_file and not broker.certificate and not is_loopback(broker.host):
            found.append(
                f"{name}: passwords alone authenticate users at a remote broker; `feltd pki` makes certificates"
            )
        if broker.ca_file and broker.port == PLAIN_PORT:
            found.append(f"{name}: TLS at port {PLAIN_PORT}, which brokers usually serve without TLS; 8883?")
    if config.jackpot and config.jackpots.order_public_key and not config.console.order_key:
        text = (
            "a console with this file signs no order about a pool, and the jackpots refuse orders without a signature"
        )
        found.append(f"console.order_key is not named: {text}")
    found += _of_ports(config)
    files = files_of(config)
    files += [(f"{name}, {leaf}", getattr(one, leaf)) for name, one in brokers[1:] for leaf in LEAVES]
    found += [f"{name}: {path} is not there" for name, path in files if path and not _may_be_there(path)]
    return found


_UNSTABLE = re.compile(r"/dev/tty(?:USB|ACM)\d+")
_USUAL_BAUDS = re.compile(r"(3|6|12|24|48|96|144|192|288|384|576|1152|2304|2500|4608|9216)00")


def _of_ports(config: Config) -> list[str]:
    """Names that change with the order of plugging in, and speeds that may be typing errors."""
    found = []
    for table in config.table:
        for device in table.device:
            name = f"{table.name}/{device.name}"
            if unstable := _UNSTABLE.search(device.url):
                text = "may be another device after the next power cut; `feltd detect` lists the names that stay"
                found.append(f"{name}: {unstable[0]} {text}")
            baud = re.search(r"[?&]baud=(\d+)", device.url)
            if baud and not _USUAL_BAUDS.fullmatch(baud[1]):
                found.append(f"{name}: {baud[1]} baud is unusual; a port that cannot do it refuses when it is opened")
    return found + _of_people(config)


def _of_people(config: Config) -> list[str]:
    """Duties for which the console has too few users, if this user may read its store: after an update, for example."""
    found = []
    try:
        with contextlib.closing(sqlite3.connect(f"file:{quote(config.console.store)}?mode=ro", uri=True)) as db:
            roles = [role for (role,) in db.execute("SELECT role FROM user")]
            if roles and "administrator" not in roles and not config.console.openid.issuer:
                how = "feltd console user add NAME --role administrator"
                found.append(f"[console]: nobody manages its users, supervisors no longer do: {how}")
            confirmed = "SELECT count(*) FROM user JOIN confirmed USING (name) WHERE role = 'supervisor'"
            if (
                roles
                and config.jackpot
                and not config.console.openid.issuer
                and db.execute(confirmed).fetchone()[0] < 2
            ):
                how = "they set up second factors, and a third person confirms them: docs/how-to/operate-the-console.md"
                found.append(f"[console]: fewer than two supervisors can pay and change jackpots: {how}")
    except sqlite3.Error:  # there is no store yet, or this user may not read it
        pass
    return found


def _of_devices(config: Config) -> list[tuple[str, Mqtt]]:
    """The brokers of devices that speak MQTT."""
    from daemon.edge.links import mqtt as links_mqtt

    devices = ((f"{table.name}/{device.name}", device.url) for table in config.table for device in table.device)
    return [(name, links_mqtt.broker_of(url)) for name, url in devices if url.startswith("mqtt:")]


def _may_be_there(path: str) -> bool:
    try:
        return Path(path).exists() or encrypted_credential(Path(path)) is not None
    except OSError:  # this user may not read the folder
        return True


class Probed(msgspec.Struct, frozen=True):
    """A device and its answer: model and firmware, or why there was none."""

    device: str
    answers: bool
    text: str


async def probe_devices(config: Config) -> list[Probed]:
    """Open every device and wait for it to come online."""
    results = await asyncio.gather(
        *(_probe(device.driver, device.url, device.options) for table in config.table for device in table.device)
    )
    places = [(f"{table.name}/{device.name}", device.url) for table in config.table for device in table.device]
    return [
        Probed(name, good, text if good else f"{url}: {text}")
        for (name, url), (good, text) in zip(places, results, strict=True)
    ]


class _Answered(Exception):
    """The device came online; the probe is over."""


async def _probe(driver: str, url: str, options: dict[str, Any]) -> tuple[bool, str]:
    kind = DRIVERS[driver]
    opened = False

    async def emit(sightings: Sequence[Sighting], memory: bytes | None = None) -> None:  # noqa: ARG001 - nothing is kept
        for one in sightings:
            if isinstance(one.event, DeviceOnline):
                raise _Answered(f"{one.event.model} {one.event.firmware}".strip())

    try:
        async with asyncio.timeout(PROBE_TIMEOUT), open_link(url) as link:
            opened = True
            await kind(msgspec.convert(options, kind.Options)).run(link, emit)
    except _Answered as answer:
        return True, str(answer) or driver
    except TimeoutError:
        return False, f"no answer in {PROBE_TIMEOUT:g} s; {CHECK_LINE}"
    except LinkLost as error:
        return False, f"{error}; {CHECK_LINE}" if opened else str(error)
    except DeviceRefused as error:
        return False, str(error)
    return False, "the driver ended; send this and the configuration to the maintainers"
