"""The configuration: one TOML file for all processes of a site's edge. Every mistake is named with its line.

Unknown keys are errors: a misspelt option would otherwise be ignored silently.
"""

import contextlib
import hashlib
import ipaddress
import os
import re
import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints
from urllib.parse import parse_qs, urlsplit

import msgspec
from msgspec import Meta, Struct

from daemon.config.backbone import Backbone, Forward, Ledger, Replica, mistakes_of_backbone
from daemon.config.lines import Lines, dotted
from protocols.contract.jackpots import Minor, PoolTerms, Prize, Rate, Seconds
from protocols.contract.topics import Id, is_id
from protocols.plain_errors import plain

Path_ = Annotated[str, Meta(min_length=1)]
TimeOfDay = Annotated[str, Meta(pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$(?!\\n)", description="like 07:30")]


LONGEST = 1024 * 1024
"""Maximum bytes of a configuration, enough for thousands of devices."""
_MOST_PARTS = 16
"""Maximum parts of a dotted key: the parser stores every prefix."""
_TEXT = re.compile(r"""(?:"(?:[^"\\]|\\.)*+"?|'[^']*+'?)""")
_LONG_KEY = re.compile(rf"(?<![\w-])[\w-]++(?:[ \t]*+\.[ \t]*+[\w-]++){{{_MOST_PARTS}}}")

RATES = 'a part of a bet is 0, 1, a decimal or a fraction, for example "0.015" or "3/200"'
NAMES = "a name is small letters, digits and hyphens, for example bac-12"


class Site(Struct, frozen=True, kw_only=True):
    """`[site]`: the casino. `timezone` is that of the console's times; default: this computer's.

    `currency` and its `decimals`: the minor units of all amounts of the tables. Without a currency a table has
    that of the law of its game.
    """

    name: Id
    timezone: Annotated[str, Meta(max_length=64)] = ""
    currency: Annotated[str, Meta(pattern="^([A-Z]{3})?$(?!\\n)", description="three letters")] = ""
    decimals: Annotated[int, Meta(ge=0, le=4)] = 2

    def currency_of(self, ruleset: str) -> str:
        """The currency at a table with these rules; "" where neither the house nor the law names one."""
        return self.currency or _CURRENCIES.get(ruleset.partition(".")[0], "")


_CURRENCIES = {"macau": "MOP", "angola": "AOA"}
"""By the law of a game."""


class Edge(Struct, frozen=True, kw_only=True):
    """`[edge]`: this computer. `journal` is the SQLite file of every event.

    `username` and `password_file`: its user on the broker, where that is not [mqtt]'s. A password without a username is
    that of the user with the name of the edge. `mac_key_file`: the key of the MACs of its events;
    default: `edge-mac.key` in the folder of the configuration, if there is one.
    `journal_key` signs its journal, where that is not [journal]'s. `home_assistant`: describe all devices and tables
    to Home Assistant by its MQTT discovery.
    """

    name: Id
    journal: Path_ = "/var/lib/feltd/edge/journal.db"
    journal_key: str = ""
    username: str = ""
    password_file: str = ""
    broker_certificate: str = ""
    broker_key: str = ""
    mac_key_file: str = ""
    home_assistant: bool = False


class Mqtt(Struct, frozen=True, kw_only=True):
    """`[mqtt]`: the broker, and the default user, e.g. for `feltd watch` and `feltd command`.

    Loopback unless configured; the password is in a separate file. `ca_file`, the certificate authority of the broker,
    turns TLS on; `certificate` and `key` are our client certificate. A broker on another computer without TLS is
    refused unless `insecure` states that the network is private.

    `others`: further brokers of the site, HOST or HOST:PORT, that have the same states. A process that loses one
    connects to the next, and to the first again when that is back. The edge uses the first alone, which has a bridge to
    each.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=1, le=65535)] = 1883
    others: tuple[str, ...] = ()
    version: Literal["5", "3.1.1"] = "5"
    username: str = ""
    password_file: str = ""
    ca_file: str = ""
    certificate: str = ""
    key: str = ""
    insecure: bool = False


class Rules(Struct, frozen=True, kw_only=True):
    """`[rules]`: the consumer. `journal` is the SQLite file of positions, open rounds and results.

    `username` and `password_file`: its user on the broker, where that is not [mqtt]'s. A password without a username is
    that of the user with the name of the rules. `mac_key_folder` holds a file `<edge>.key` for each edge:
    an event without the MAC of its edge is not used; default: the folder `mac` in the folder of the configuration, if
    there is one. `insecure`: begin without such keys and accept every event. `mac_key_file`: the key of the MACs of the
    verdicts, default: `rules-mac.key` in the folder of the configuration. `journal_key` signs its journal, where that
    is not [journal]'s.
    """

    name: Id = "rules"
    journal: Path_ = "/var/lib/feltd/rules/journal.db"
    journal_key: str = ""
    username: str = ""
    password_file: str = ""
    broker_certificate: str = ""
    broker_key: str = ""
    mac_key_folder: str = ""
    mac_key_file: str = ""
    insecure: bool = False


class Maintenance(Struct, frozen=True, kw_only=True):
    """`[maintenance]`: the broker user of `feltd forget` and `feltd site settle`; it may clear the topics of all."""

    username: str = ""
    password_file: str = ""
    broker_certificate: str = ""
    broker_key: str = ""


class Keeping(Struct, frozen=True, kw_only=True):
    """`[journal]`: how the journals of edge, rules, console and jackpots are signed and kept, each by itself.

    `key` is a PEM file for its owner only; empty: nothing is signed. Processes with a user each have a key each, as
    `journal_key` in their own section. Signatures are written every `sign_rows` rows, after `sign_seconds`, and at the
    end. A file of `file_mb` is closed and the next begun. Closed files are kept `keep_days` and longer while there is
    room: all together take no more than `limit_mb`.
    """

    key: str = ""
    sign_rows: Annotated[int, Meta(ge=1, le=1_000_000)] = 1000
    sign_seconds: Annotated[int, Meta(ge=1, le=86_400)] = 60
    file_mb: Annotated[int, Meta(ge=1, le=100_000)] = 256
    keep_days: Annotated[int, Meta(ge=90, le=36_500)] = 90
    limit_mb: Annotated[int, Meta(ge=1, le=1_000_000_000)] = 20_000


class OpenId(Struct, frozen=True, kw_only=True):
    """`[console.openid]`: login by an OpenID provider, if it has an `issuer`. `role_claim`: the claim with the role."""

    issuer: str = ""
    client: str = ""
    secret_file: str = ""
    role_claim: str = "feltd_role"


class Webhook(Struct, frozen=True, kw_only=True):
    """`[[console.webhook]]`: a receiver of incidents. `secret_file` holds the key that signs the messages."""

    url: str
    secret_file: str = ""
    severities: tuple[Literal["warning", "error"], ...] = ("warning", "error")


class Console(Struct, frozen=True, kw_only=True):
    """`[console]`: the technicians' pages. Loopback unless configured; with `certificate` and `key` it speaks TLS.

    Without TLS other computers are refused unless `insecure` is true.

    `store` is the SQLite file of users, sessions, incidents and statistics, `journal` that of every action, signed with
    `journal_key` if it differs from [journal]'s. `url` is the public address behind a proxy. `proxies` are addresses or
    networks of proxies whose X-Forwarded-For is accepted. `metrics` "open" shows /metrics without a token.
    `username` and `password_file`: its broker user, if it differs from [mqtt]'s. `order_key` signs its orders about
    jackpots, which are refused without. `dealer` are the sockets of the dealer pages, one per table, to which the edge
    connects as `unix://` consoles; only `edge_user` and the user of the console itself may connect.
    `styleguide` serves /styleguide, the components of the pages, to developers. `shifts` are times of day in the site's
    zone. `rounds_kept` ended rounds of each table can be looked up by date; older ones are in the journal of the rules.
    `par`: rounds an hour that the house expects, by ruleset. `service`: rounds until a device is due for it, by driver.
    """

    listen: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8080
    url: str = ""
    proxies: tuple[str, ...] = ()
    certificate: str = ""
    key: str = ""
    store: Path_ = "/var/lib/feltd/console/console.db"
    journal: Path_ = "/var/lib/feltd/console/journal.db"
    journal_key: str = ""
    order_key: str = ""
    insecure: bool = False
    metrics: Literal["token", "open"] = "token"
    idle_minutes: Annotated[int, Meta(ge=1, le=1440)] = 30
    session_hours: Annotated[int, Meta(ge=1, le=24)] = 12
    username: str = ""
    password_file: str = ""
    broker_certificate: str = ""
    broker_key: str = ""
    openid: OpenId = OpenId()
    webhook: tuple[Webhook, ...] = ()
    dealer: dict[Id, str] = {}
    edge_user: Annotated[str, Meta(min_length=1, max_length=64)] = "feltd-edge"
    styleguide: bool = False
    shifts: Annotated[tuple[TimeOfDay, ...], Meta(min_length=1, max_length=12)] = ("07:00", "15:00", "23:00")
    rounds_kept: Annotated[int, Meta(ge=100, le=1_000_000)] = 10_000
    par: dict[str, Annotated[float, Meta(gt=0, le=10_000)]] = {}
    service: dict[str, Annotated[int, Meta(ge=1)]] = {}


class Device(Struct, frozen=True, kw_only=True):
    """`[[table.device]]`: one device, its driver and its link."""

    name: Id
    driver: str
    url: str
    options: dict[str, Any] = {}

    def __post_init__(self) -> None:
        """A bare path is a serial port."""
        if self.url.startswith("/dev/"):
            msgspec.structs.force_setattr(self, "url", f"serial://{self.url}")


class Table(Struct, frozen=True, kw_only=True):
    """`[[table]]`: one table, its game and its devices. `area` groups tables on the console's pit.

    `chips` are the amounts of the chip keys on its dealer's page.
    """

    name: Id
    ruleset: str = ""
    area: Annotated[str, Meta(max_length=40)] = ""
    chips: Annotated[tuple[Annotated[int, Meta(ge=1, le=2**32 - 1)], ...], Meta(max_length=12)] = ()
    options: dict[str, Any] = {}
    device: tuple[Device, ...] = ()


class Jackpots(Struct, frozen=True, kw_only=True):
    """`[jackpots]`: the process that keeps the books of all pools. `journal` is the SQLite file of the books.

    `username` and `password_file`: its user on the broker, where that is not [mqtt]'s. A password without a username is
    that of the user with the name of the process. `mac_key_folder` as in [rules], for pools that count by
    devices, and `verdict_key_folder` with a file `<site>.key` for the rules of each site; default: `jackpots-mac` and
    `jackpots-verdict-mac` in the folder of the configuration, if they exist. `journal_key` signs its journal, where
    that is not [journal]'s. `order_public_key` is the public half of the console's `order_key`: an order without its
    signature is refused. `insecure` accepts every order, event and verdict where no key is named: for simulations.
    """

    name: Id = "jackpots"
    journal: Path_ = "/var/lib/feltd/jackpots/journal.db"
    journal_key: str = ""
    username: str = ""
    password_file: str = ""
    broker_certificate: str = ""
    broker_key: str = ""
    mac_key_folder: str = ""
    verdict_key_folder: str = ""
    order_public_key: str = ""
    insecure: bool = False


_NAME = "[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?"
Place = Annotated[str, Meta(pattern=f"^({_NAME}/)?{_NAME}$(?!\\n)", description="a table, or site/table")]


class Jackpot(Struct, frozen=True, kw_only=True):
    """`[[jackpot]]`: one pool and the tables that feed it, of another site as site/table.

    `bet`: the rulesets' id of its bet; `award`: the name of the jackpot in results, empty for any. `counts`: the
    source of the bets, the rules at the end of a round or devices (`jackpot.contributed` of this pool) when they are
    taken; `wins`: the source of its wins. `currency` and its `decimals`: the minor units of all amounts.
    `chip`: the one chip of a bet, where the law fixes the seed by it. `signs`: displays, as table/device, and
    `machines`: slot machines that show the amount; of another site as site/table/device. `sign_level`: the amount on
    them. The other keys are the first terms of the pool (`PoolTerms`); later ones are set by two people. With a
    `table_limit` the process reads the payment keys of the tables, too.
    """

    name: Id
    tables: tuple[Place, ...]
    bet: str = "jackpot"
    award: str = ""
    counts: Literal["rules", "devices"] = "rules"
    wins: Literal["rules", "devices"] = "rules"
    currency: Annotated[str, Meta(pattern="^[A-Z]{3}$(?!\\n)", description="three letters")] = "MOP"
    decimals: Annotated[int, Meta(ge=0, le=4)] = 2
    chip: Minor = 0
    signs: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    sign_level: Annotated[int, Meta(ge=1, le=32)] = 1
    seed: Minor
    visible: Rate
    hidden: Rate = "0"
    limit: Minor = 0
    reseed: Literal["empty", "below_seed"] = "empty"
    odd: Literal["pool", "first"] = "pool"
    prizes: dict[str, Prize] = {}
    simultaneous_s: Seconds = 2
    simultaneous: Literal["first_by_time", "share_equally"] = "first_by_time"
    table_limit: Minor = 0

    @property
    def reads_events(self) -> bool:
        """Whether the process reads the events of the tables: bets and wins of devices, and payment keys."""
        return "devices" in (self.counts, self.wins) or self.table_limit > 0

    @property
    def displays(self) -> tuple[str, ...]:
        """The signs and machines that show the amount."""
        return (*self.signs, *self.machines)

    def terms(self) -> PoolTerms:
        """Raises ValueError for invalid terms."""
        return PoolTerms(**{name: getattr(self, name) for name in PoolTerms.__struct_fields__})


class Config(Struct, frozen=True, kw_only=True):
    """The whole file."""

    site: Site
    edge: Edge
    mqtt: Mqtt = Mqtt()
    rules: Rules = Rules()
    maintenance: Maintenance = Maintenance()
    journal: Keeping = Keeping()
    console: Console = Console()
    jackpots: Jackpots = Jackpots()
    backbone: Backbone = Backbone()
    forward: Forward = Forward()
    replica: Replica = Replica()
    ledger: Ledger = Ledger()
    table: tuple[Table, ...] = ()
    jackpot: tuple[Jackpot, ...] = ()
    digest: str = ""


def broker_of(config: Config, part: Edge | Rules | Maintenance | Console | Jackpots) -> Mqtt:
    """The broker settings of `part`: its own user, or that of [mqtt].

    Parts with a name need only a password or a certificate, which names the user.
    """
    username = part.username
    if isinstance(part, Edge | Rules | Jackpots) and (part.password_file or part.broker_certificate):
        username = username or part.name
    broker = msgspec.structs.replace(config.mqtt, others=()) if isinstance(part, Edge) else config.mqtt
    if part.broker_certificate:
        broker = msgspec.structs.replace(broker, certificate=part.broker_certificate, key=part.broker_key)
    if not username:
        return broker
    return msgspec.structs.replace(broker, username=username, password_file=part.password_file)


def brokers_of(broker: Mqtt) -> tuple[Mqtt, ...]:
    """The broker and the others of the site, in the order in which they are tried."""
    found = [_ADDRESS.fullmatch(address) for address in broker.others]
    others = [(one["host"].strip("[]"), int((one["port"] or str(broker.port))[:6])) for one in found if one is not None]
    return broker, *(msgspec.structs.replace(broker, host=host, port=port, others=()) for host, port in others)


def signing_as(config: Config, part: Edge | Rules | Console | Jackpots) -> Config:
    """The configuration for the process of `part`: `journal.key` is the key of its own journal."""
    key = part.journal_key or config.journal.key
    return msgspec.structs.replace(config, journal=msgspec.structs.replace(config.journal, key=key))


def is_loopback(host: str) -> bool:
    """Whether the address is loopback, unreachable from other computers."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def files_of(config: Config) -> list[tuple[str, str]]:
    """The named files that the processes do not make themselves, secrets included: key and path."""
    files = [(f"mqtt.{leaf}", getattr(config.mqtt, leaf)) for leaf in ("ca_file", "certificate", "key")]
    users = (config.mqtt, config.edge, config.rules, config.maintenance, config.console, config.jackpots)
    files += [(f"{type(part).__name__.lower()}.password_file", part.password_file) for part in users]
    files += [
        (f"{type(part).__name__.lower()}.{leaf}", getattr(part, leaf))
        for part in users[1:]
        for leaf in ("broker_certificate", "broker_key")
    ]
    files += [("journal.key", config.journal.key)]
    parts: tuple[Edge | Rules | Console | Jackpots, ...] = (config.edge, config.rules, config.console, config.jackpots)
    files += [(f"{type(part).__name__.lower()}.journal_key", part.journal_key) for part in parts]
    files += [("edge.mac_key_file", config.edge.mac_key_file), ("rules.mac_key_folder", config.rules.mac_key_folder)]
    files += [("rules.mac_key_file", config.rules.mac_key_file)]
    files += [(f"jackpots.{leaf}", getattr(config.jackpots, leaf)) for leaf in ("mac_key_folder", "verdict_key_folder")]
    files += [("jackpots.order_public_key", config.jackpots.order_public_key)]
    files += [("console.order_key", config.console.order_key)]
    files += [(f"console.{leaf}", getattr(config.console, leaf)) for leaf in ("certificate", "key")]
    files += [("console.openid.secret_file", config.console.openid.secret_file)]
    files += [("backbone.ca_file", config.backbone.ca_file)]
    leaves = ("password_file", "certificate", "key")
    for user in (config.forward, config.replica, config.ledger):
        files += [(f"{type(user).__name__.lower()}.{leaf}", getattr(user, leaf)) for leaf in leaves]
    hooks = enumerate(config.console.webhook)
    return files + [(f"console.webhook.{n}.secret_file", one.secret_file) for n, one in hooks]


class Mistake(Struct, frozen=True):
    """One mistake, its line (0: the whole file), and its remedy."""

    line: int
    text: str


class BadConfig(Exception):
    """All mistakes of one file."""

    def __init__(self, path: str, mistakes: list[Mistake]) -> None:
        """Each becomes one line, "file:line: text"."""
        self.mistakes = sorted(mistakes, key=lambda mistake: mistake.line)
        places = [f"{path}:{mistake.line}" if mistake.line else path for mistake in self.mistakes]
        super().__init__("\n".join(f"{at}: {one.text}" for at, one in zip(places, self.mistakes, strict=True)))


def load(path: Path) -> Config:
    """The configuration in `path`. Raises BadConfig."""
    try:
        with path.open("rb") as file:
            text = file.read(LONGEST + 1).decode("utf-8")
    except OSError as error:
        raise BadConfig(str(path), [Mistake(0, f"cannot be read: {error.strerror}")]) from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise BadConfig(str(path), [Mistake(line, f"is not UTF-8 text: {error.reason}")]) from error
    return with_keys_beside(parse(text, str(path)), path.parent)


KEYS_BESIDE = (
    ("edge", "mac_key_file", "edge-mac.key"),
    ("rules", "mac_key_folder", "mac"),
    ("rules", "mac_key_file", "rules-mac.key"),
    ("jackpots", "mac_key_folder", "jackpots-mac"),
    ("jackpots", "verdict_key_folder", "jackpots-verdict-mac"),
)
"""The MAC keys that a configuration need not name: section, key, and their name in its folder."""


def with_keys_beside(config: Config, folder: Path) -> Config:
    """With the MAC keys in the folder of the configuration, where it names no others."""
    for section, key, name in KEYS_BESIDE:
        with contextlib.suppress(OSError):  # this user may not read the folder, and then needs no key
            if not getattr(part := getattr(config, section), key) and (folder / name).exists():
                part = msgspec.structs.replace(part, **{key: str(folder / name)})
                config = msgspec.structs.replace(config, **{section: part})
    return config


def parse(text: str, path: str = "configuration") -> Config:
    """The configuration in `text`. Raises BadConfig."""
    if beyond := _beyond_bounds(text):
        raise BadConfig(path, [beyond])
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, or a number or nesting beyond the parser's limits
        found = re.search(r"\(at line (\d+), column \d+\)$", str(error))
        end = text.rstrip("\n").count("\n") + 1
        line = int(found[1]) if found else end if isinstance(error, tomllib.TOMLDecodeError) else _line_of(text, error)
        raise BadConfig(path, [Mistake(line, f"not TOML: {error}")]) from error
    lines = Lines(text)
    mistakes: list[Mistake] = []
    _check_struct(raw, Config, (), lines, mistakes)
    _check_texts(raw, (), lines, mistakes)
    if mistakes:
        raise BadConfig(path, mistakes)
    raw["mqtt"] = _with_broker_address(raw.get("mqtt", {}), lines, mistakes)
    if mistakes:
        raise BadConfig(path, mistakes)
    config = msgspec.convert(_with_credentials(raw), Config)
    _check_sense(config, lines, mistakes)
    if mistakes:
        raise BadConfig(path, mistakes)
    return msgspec.structs.replace(config, digest=hashlib.sha256(text.encode()).hexdigest()[:16])


_ADDRESS = re.compile(r"(?:(?P<scheme>[\w+.-]+)://)?(?P<host>\[[^]@/]+]|[^]\[@:/\s]+)(?::(?P<port>\d+))?/?")
_BROKER_PORTS = {"mqtt": 1883, "mqtts": 8883}
"""The schemes of a broker's address, each with its usual port."""


def _with_broker_address(mqtt: dict[str, Any], lines: Lines, out: list[Mistake]) -> dict[str, Any]:
    """`[mqtt]` with the host and port of an address such as mqtt://127.0.0.1:1883 in their places."""
    address = mqtt.get("host", "")
    found = _ADDRESS.fullmatch(address)
    at = lines.of(("mqtt", "host"))
    if found is None:
        if "://" in address:
            out.append(
                Mistake(at, 'mqtt.host: write host = "mqtt://127.0.0.1" or "mqtt://HOST:PORT", and nothing else')
            )
        return mqtt
    scheme, host, port = found["scheme"], found["host"].strip("[]"), found["port"]
    if scheme is not None and scheme not in _BROKER_PORTS:
        said = likely(scheme, _BROKER_PORTS)
        out.append(Mistake(at, f"mqtt.host: {scheme}:// is no address of a broker; {said}"))
    if scheme == "mqtts" and not mqtt.get("ca_file"):
        out.append(Mistake(at, "mqtt.host: mqtts:// is TLS: name the ca_file, too"))
    if port is not None and not 1 <= int(port[:6]) <= 65535:
        out.append(Mistake(at, f"mqtt.host: {port} is no port; a port is 1 to 65535"))
    if port is not None and mqtt.get("port", int(port[:6])) != int(port[:6]):
        out.append(Mistake(at, f"mqtt.host has port {port} and mqtt.port is {mqtt['port']}; leave one of them out"))
    usual = int(port[:6]) if port else _BROKER_PORTS.get(scheme or "mqtt", 1883)
    return {**mqtt, "host": host, "port": mqtt.get("port", usual)}


def _with_credentials(value: Any) -> Any:
    """The values of a file, with a path in place of each `credential:NAME`.

    systemd passes a service its credentials in a folder of its own (systemd.exec(5), LoadCredential=); the commands of
    root read the same names in /etc/credstore.
    """
    match value:
        case dict():
            return {key: _with_credentials(one) for key, one in value.items()}
        case list():
            return [_with_credentials(one) for one in value]
        case str() if found := _CREDENTIAL.fullmatch(value):
            return str(Path(os.environ.get("CREDENTIALS_DIRECTORY", CREDSTORE), found[1]))
        case _:
            return value


def encrypted_credential(path: Path) -> Path | None:
    """The file of a credential that is there in encrypted form only: systemd alone decrypts it, for a service."""
    encrypted = Path(f"{CREDSTORE}.encrypted", path.name)
    if path.parent != Path(CREDSTORE):
        return None
    try:
        return encrypted if encrypted.exists() and not path.exists() else None
    except OSError:  # this user may not read the folder
        return None


def _beyond_bounds(text: str) -> Mistake | None:
    """Refuse input before parsing that would take unbounded memory or is no TOML text."""
    if len(text) > LONGEST:
        return Mistake(0, f"has more than {LONGEST} bytes: a configuration has some hundred lines")
    if text.startswith("\ufeff"):
        return Mistake(1, "begins with a byte order mark; save it as UTF-8 without one (in Notepad: not UTF-8-BOM)")
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") >= _MOST_PARTS and _LONG_KEY.search(_TEXT.sub("x", line)):
            return Mistake(number, f"a key of more than {_MOST_PARTS} parts: is a text without quotes?")
    return None


def _line_of(text: str, error: Exception) -> int:
    """The line of an error without one in the parser's message: a number too long, a nesting too deep."""
    lines = text.split("\n")
    good, bad = 0, len(lines)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            tomllib.loads("\n".join(lines[:middle]))
        except tomllib.TOMLDecodeError:
            good = middle  # a value that continues after this line
        except (ValueError, RecursionError) as found:
            good, bad = (good, middle) if type(found) is type(error) else (middle, bad)
        else:
            good = middle
    return bad


CREDSTORE = "/etc/credstore"
_CREDENTIAL = re.compile(r"credential:([A-Za-z0-9_][A-Za-z0-9._-]*)")
_HIDDEN = {"digest"}
# Size of SQLite's log beside each journal, from its first start on: daemon/journal/store.py makes it that large.
_LOG_MB = 17
FILES = (
    ("edge", "journal"),
    ("rules", "journal"),
    ("console", "journal"),
    ("console", "store"),
    ("jackpots", "journal"),
)
"""The files that the processes make themselves: section and key."""


def likely(word: str, known: Collection[str], title: str = "known") -> str:
    """Suggestions for an unknown word: the nearest known one, or else all."""
    import difflib  # this and zoneinfo take 3 ms of a start that has neither a mistake nor a zone

    near = difflib.get_close_matches(word, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"{title}: {', '.join(known)}"


def _check_struct(value: Any, kind: type[Struct], at: tuple[Any, ...], lines: Lines, out: list[Mistake]) -> None:
    """All unknown keys, missing keys and invalid values, not only the first."""
    if not isinstance(value, dict):
        out.append(Mistake(lines.of(at), f"{dotted(at)} must be a table"))
        return
    hints = get_type_hints(kind, include_extras=True)
    known = [name for name in hints if name not in _HIDDEN]
    for key in value:
        if key not in known:
            hint = likely(key, known, "known here")
            out.append(Mistake(lines.of((*at, key)), f"unknown key {dotted((*at, key))!r}; {hint}"))
    required = {field.encode_name for field in msgspec.structs.fields(kind) if field.required}
    for name in known:
        hint = hints[name]
        where = (*at, name)
        if name not in value:
            if name in required:
                out.append(Mistake(lines.of(at), f"{dotted(where)!r} is missing"))
        elif _is_struct(hint):
            _check_struct(value[name], hint, where, lines, out)
        elif get_origin(hint) is tuple and _is_struct(get_args(hint)[0]):
            if not isinstance(value[name], list):
                out.append(Mistake(lines.of(where), f"{dotted(where)!r} must be written [[{dotted(where)}]]"))
                continue
            for index, item in enumerate(value[name]):
                _check_struct(item, get_args(hint)[0], (*where, index), lines, out)
        else:
            try:
                msgspec.convert(value[name], hint)
            except msgspec.ValidationError as error:
                what = NAMES if hint == Id else RATES if hint == Rate else _choices(hint) or plain(error)
                out.append(Mistake(lines.of(where), f"{dotted(where)!r}: {what}"))


def _choices(hint: Any) -> str:
    """What can be chosen, where the type of a key is a list of texts."""
    return f"write one of {', '.join(map(repr, get_args(hint)))}" if get_origin(hint) is Literal else ""


def _check_texts(value: Any, at: tuple[Any, ...], lines: Lines, out: list[Mistake]) -> None:
    """Refuse zero characters: the system would cut a path there."""
    match value:
        case dict():
            for key, one in value.items():
                _check_texts(one, (*at, key), lines, out)
        case list():
            for index, one in enumerate(value):
                _check_texts(one, (*at, index), lines, out)
        case str() if "\0" in value:
            out.append(Mistake(lines.of(at), f"{dotted(at)!r}: a text cannot hold the character \\u0000"))
        case _:
            pass


def _is_struct(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Struct)


def _check_sense(config: Config, lines: Lines, out: list[Mistake]) -> None:
    """Checks beyond the types."""
    _check_journal_and_names(config, lines, out)
    _check_broker(config, lines, out)
    _check_console(config, lines, out)
    _check_files(config, lines, out)
    _check_tables(config, lines, out)
    _check_jackpots(config, lines, out)
    out += [Mistake(lines.of(where), text) for where, text in mistakes_of_backbone(config, is_loopback)]


def _check_journal_and_names(config: Config, lines: Lines, out: list[Mistake]) -> None:
    least = 4 * config.journal.file_mb + _LOG_MB
    if config.journal.limit_mb < least:
        text = f"journal.limit_mb must be at least {least}: four files of journal.file_mb and their log ({_LOG_MB})"
        out.append(Mistake(lines.of(("journal", "limit_mb")), text))
    users: tuple[Mqtt | Maintenance | Console, ...] = (config.mqtt, config.maintenance, config.console)
    for part in users:  # edge, rules and jackpots have a user name
        if part.password_file and not part.username:
            name = type(part).__name__.lower()
            text = f"{name}.password_file needs a username, too"
            out.append(Mistake(lines.of((name, "password_file")), text))
    if config.edge.name == config.rules.name:
        text = f"edge.name {config.edge.name!r} is that of the rules, too; give one of them another"
        out.append(Mistake(lines.of(("edge", "name")), text))


def _check_broker(config: Config, lines: Lines, out: list[Mistake]) -> None:
    if bool(config.mqtt.certificate) != bool(config.mqtt.key):
        one = "certificate" if config.mqtt.certificate else "key"
        out.append(Mistake(lines.of(("mqtt", one)), "mqtt.certificate and mqtt.key: one without the other"))
    if config.mqtt.certificate and not config.mqtt.ca_file:
        out.append(
            Mistake(lines.of(("mqtt", "certificate")), "mqtt.certificate is used by TLS alone: name the ca_file, too")
        )
    parts: tuple[Edge | Rules | Maintenance | Console | Jackpots, ...]
    parts = (config.edge, config.rules, config.maintenance, config.console, config.jackpots)
    for part in parts:
        name = type(part).__name__.lower()
        if bool(part.broker_certificate) != bool(part.broker_key):
            one = "broker_certificate" if part.broker_certificate else "broker_key"
            text = f"{name}.broker_certificate and {name}.broker_key: one without the other"
            out.append(Mistake(lines.of((name, one)), text))
        if part.broker_certificate and not config.mqtt.ca_file:
            text = f"{name}.broker_certificate is used by TLS alone: name mqtt.ca_file, too"
            out.append(Mistake(lines.of((name, "broker_certificate")), text))
    for address in config.mqtt.others:
        found = _ADDRESS.fullmatch(address)
        if found is None or found["scheme"] or not 1 <= int((found["port"] or "1")[:6]) <= 65535:
            text = f"mqtt.others: {address!r} is no address of a broker; write HOST or HOST:PORT"
            out.append(Mistake(lines.of(("mqtt", "others")), text))
    hosts = (
        [one.host for one in brokers_of(config.mqtt)] if not config.mqtt.ca_file and not config.mqtt.insecure else []
    )
    open_ = [host for host in hosts if host.strip() and not is_loopback(host)]
    if open_:
        text = (
            f"mqtt.host: {open_[0]} is another computer: without TLS passwords and cards pass in clear; name"
            " the ca_file, or write insecure = true if that network is private"
        )
        out.append(Mistake(lines.of(("mqtt", "host")), text))
    if not config.mqtt.host.strip():
        text = "mqtt.host is empty: write the broker's address, for example 127.0.0.1"
        out.append(Mistake(lines.of(("mqtt", "host")), text))


def _check_console(config: Config, lines: Lines, out: list[Mistake]) -> None:
    if config.site.timezone:
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

        try:
            ZoneInfo(config.site.timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            text = f"site.timezone: {config.site.timezone!r} is no zone of this computer; write one like Asia/Macau"
            out.append(Mistake(lines.of(("site", "timezone")), text))
    openid = config.console.openid
    if openid.issuer and not (openid.client and openid.secret_file):
        out.append(Mistake(lines.of(("console", "openid")), "console.openid needs client and secret_file, too"))
    if bool(config.console.certificate) != bool(config.console.key):
        out.append(Mistake(lines.of(("console",)), "console.certificate and console.key: one without the other"))
    if not _is_host(config.console.listen):
        text = (
            f"{config.console.listen!r} is no address and no name of a computer;"
            " write 127.0.0.1 or an address of this computer"
        )
        out.append(Mistake(lines.of(("console", "listen")), f"console.listen: {text}"))
    elif not (config.console.certificate or config.console.insecure or is_loopback(config.console.listen)):
        text = (
            f"console.listen: {config.console.listen} is reached from other computers: without TLS passwords pass in"
            " clear; name certificate and key, or listen at 127.0.0.1 behind a proxy with TLS, or write insecure = true"
        )
        out.append(Mistake(lines.of(("console", "listen")), text))
    for proxy in config.console.proxies:
        try:
            ipaddress.ip_network(proxy)
        except ValueError:
            text = f"{proxy!r} is no address of a computer or network, for example 127.0.0.1 or 10.0.7.0/24"
            out.append(Mistake(lines.of(("console", "proxies")), f"console.proxies: {text}"))


def _check_files(config: Config, lines: Lines, out: list[Mistake]) -> None:
    """Paths must be absolute, and each be named once."""
    files: dict[str, str] = {}
    for section, key in FILES:
        file = getattr(getattr(config, section), key)
        if not file.startswith("/"):
            text = f"{section}.{key}: {file} depends on where a process was started; write the whole path, from /"
            out.append(Mistake(lines.of((section, key)), text))
        elif file.endswith(("/", "/.", "/..")):
            text = f"{section}.{key}: {file} is a folder; name a file in it"
            out.append(Mistake(lines.of((section, key)), text))
        if (other := files.setdefault(os.path.normpath(file), f"{section}.{key}")) != f"{section}.{key}":
            text = f"{section}.{key}: {file} already belongs to {other}; give it a file of its own"
            out.append(Mistake(lines.of((section, key)), text))


def _check_tables(config: Config, lines: Lines, out: list[Mistake]) -> None:
    """Duplicate names and links, chips out of order."""
    tables: set[str] = set()
    urls: dict[tuple[str, ...], tuple[str, str]] = {}
    for t, table in enumerate(config.table):
        at = ("table", t)
        if table.name in tables:
            out.append(Mistake(lines.of((*at, "name")), f"table {table.name!r} is there twice; names must differ"))
        tables.add(table.name)
        if list(table.chips) != sorted(set(table.chips)):
            text = "chips: write each amount once, the smallest first"
            out.append(Mistake(lines.of((*at, "chips")), text))
        names: set[str] = set()
        for d, device in enumerate(table.device):
            where = (*at, "device", d)
            if device.name in names or device.name == "round":
                text = f"device {device.name!r} is there twice on table {table.name!r}, or a reserved name"
                out.append(Mistake(lines.of((*where, "name")), text))
            names.add(device.name)
            port = _port_of(device.url)
            if port in urls:
                owner, url = urls[port]
                text = f"{device.url} already belongs to {owner}" + (f", as {url}" if url != device.url else "")
                out.append(Mistake(lines.of((*where, "url")), text))
            urls[port] = f"{table.name}/{device.name}", device.url


def _check_jackpots(config: Config, lines: Lines, out: list[Mistake]) -> None:
    """Duplicate pools, unknown tables and signs, a bet that would count for two pools, terms that cannot be."""
    if config.jackpots.name in (config.edge.name, config.rules.name):
        text = f"jackpots.name {config.jackpots.name!r} is that of the edge or the rules, too; give it another"
        out.append(Mistake(lines.of(("jackpots", "name")), text))
    tables = [table.name for table in config.table]
    devices = [f"{table.name}/{device.name}" for table in config.table for device in table.device]
    names: set[str] = set()
    bets: dict[tuple[str, str], str] = {}
    for number, pool in enumerate(config.jackpot):
        at = ("jackpot", number)
        if pool.name in names:
            out.append(Mistake(lines.of((*at, "name")), f"jackpot {pool.name!r} is there twice; names must differ"))
        names.add(pool.name)
        if not pool.tables:
            out.append(Mistake(lines.of((*at, "tables")), f"jackpot {pool.name!r}: tables: name at least one"))
        for table in pool.tables:
            site, slash, _ = table.rpartition("/")
            if slash and site == config.site.name:
                text = f"jackpot {pool.name!r}: {table} is of this site: write {table[len(site) + 1 :]!r}"
                out.append(Mistake(lines.of((*at, "tables")), text))
            elif not slash and table not in tables:
                text = f"jackpot {pool.name!r}: no table {table!r}; {likely(table, tables)}"
                out.append(Mistake(lines.of((*at, "tables")), text))
            if pool.counts == "rules" and bets.setdefault((table, pool.bet), pool.name) != pool.name:
                text = (
                    f"jackpot {pool.name!r}: bet {pool.bet!r} of {table} counts for {bets[table, pool.bet]!r} already"
                )
                out.append(Mistake(lines.of((*at, "tables")), text))
        for key, sign in [("signs", one) for one in pool.signs] + [("machines", one) for one in pool.machines]:
            parts = sign.split("/")
            elsewhere = len(parts) == 3 and parts[0] != config.site.name and all(map(is_id, parts))
            if not elsewhere and sign not in devices:
                text = f"jackpot {pool.name!r}: no device {sign!r}; write table/device; {likely(sign, devices)}"
                out.append(Mistake(lines.of((*at, key)), text))
        try:
            pool.terms()
        except ValueError as error:
            out.append(Mistake(lines.of(at), f"jackpot {pool.name!r}: {error}"))


def _is_host(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return re.fullmatch(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?", text) is not None
    return True


def _port_of(url: str) -> tuple[str, ...]:
    """The physical port of a link, independent of spelling; the URL itself where it is unknown."""
    try:
        parts = urlsplit(url)
        query = {key: value[-1] for key, value in parse_qs(parts.query).items()}
        ids = {key: query[key].lower() for key in ("vid", "pid") if key in query}
        host = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname or ""
        with contextlib.suppress(ValueError):
            host = str(ipaddress.ip_address(host))
        match parts.scheme:
            case "tcp" | "socket" | "rfc2217":  # with or without RFC 2217 it is the same port of the server
                return "tcp", host, str(parts.port)
            case "mqtt" if "hear" in query:  # a second link would count each message again
                return "mqtt", host, str(parts.port or 1883), *sorted(parse_qs(parts.query)["hear"])
            case "unix":
                return "unix", os.path.normpath(parts.path)
            case "serial" | "sas" if parts.path:  # speed and parity are settings of one and the same port
                return "tty", os.path.normpath(parts.path)
            case "serial" | "sas" if ids:
                return "tty", ids.get("vid", ""), ids.get("pid", ""), query.get("serial", "")
            case "usb" if ids:
                which = query.get("serial", ""), query.get("interface", "")
                return "usb", ids.get("vid", ""), ids.get("pid", ""), *which
    except ValueError:
        pass
    return (url,)
