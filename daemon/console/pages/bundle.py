"""The support bundle: one file with what a maintainer needs of a site, without secrets and hidden cards.

`make` writes it, for the console's page (support.py) and for the command.

The console's page adds the console's state, but cannot read the journals of edge and rules. The command `feltd bundle`,
run by root, adds the ends of the journals, but not the console's state.

Secrets are removed in three ways: files that hold them are not opened, secrets of the configuration are removed
wherever they appear, and so is any text that looks like a secret. Cards of a round that may be open are removed from
journals and logs; of a game that keeps cards hidden after a round, all cards; and the journals' hashes, from which a
card could be guessed.
"""

import contextlib
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import sqlite3
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
from msgspec import Struct

from daemon.config.model import Config, files_of
from daemon.journal.findings import report_text
from daemon.journal.reader import Files
from daemon.journal.rows import id_and_journal, instant, no_time
from daemon.journal.verify import verify_recent
from daemon.views import utc
from drivers import DRIVERS
from protocols.contract.topics import EARLIEST, LATEST
from rules import RULESETS
from rules.engine.ruleset import keeps_its_cards

__all__ = ["STEPS", "Cancelled", "Given", "Progress", "Scrubber", "known_logs", "make"]

ROWS = 1000
LOG_LINES = 5000
LOG_BYTES = 4 * 1024 * 1024
CAPTURES = 200
COMMAND_TIMEOUT_S = 20.0
POLL_S = 0.2
EVERY = 50  # lines between two reports of progress
ASKING = 0.5  # the part of journald's step until `journalctl` has ended
# The steps in their order, and the part of the time that each takes on a large site.
STEPS: Mapping[str, float] = {"configuration": 1, "states": 4, "journals": 40, "journald": 45, "files": 45}
ORDER: Mapping[str, int] = {name: n for n, name in enumerate(STEPS)}
Progress: TypeAlias = Callable[[str, float], None]
UNITS = "feltd-*"
FIELDS = "MESSAGE,UNIT,_SYSTEMD_UNIT"
LONGEST_STAMP = 17  # digits: microseconds up to the year 5138
LOGS = Path("/var/log/feltd")
WITHHELD = "(withheld)"
CARD = "(card)"
SHORTEST = 4
T = TypeVar("T")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_NAMED = re.compile(
    r"pass(?:word|wd|phrase)|passcode|secret|token|credential|authori[sz]ation|cookie|api[-_]?key|private[-_]?key",
    re.IGNORECASE,
)
# Secrets in running text: a name like these with its value; credentials in a header; users in a URL; keys.
_SECRET_VALUE = re.compile(
    rf"""((?:{_NAMED.pattern})[\w.-]{{0,64}}["']?\s*[:=]\s*)("[^"]*"|'[^']*'|[^\s,;}}]+)""", re.IGNORECASE
)
_HEADER = re.compile(r"\b(bearer|basic|digest)\s+[^\s,;\"']+", re.IGNORECASE)
_USERINFO = re.compile(r"([a-z][a-z0-9+.-]{0,15}://)[^\s/\"'<>]*@", re.IGNORECASE)
_PEM = re.compile(r"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?(?:-----END \1-----|\Z)", re.DOTALL)
_CARD = re.compile(r"\b(?:10|[2-9TJQKA])[SHDC]\b")
# A log line of a table whose round may be open keeps these words and no other.
_PLAIN = ("event", "level", "timestamp", "table", "device", "edge", "rules")


class Cancelled(Exception):
    """A user cancelled the bundle."""


class Scrubber:
    """Takes secrets out of text and of values."""

    def __init__(self, config: Config) -> None:
        """Secrets of the configuration are removed wherever they appear."""
        found: set[str] = set()
        for text in _texts(msgspec.to_builtins(config)):
            found |= _secrets_of(text)
        for hook in config.console.webhook:
            found |= {hook.url, *_parts(hook.url)}
        known = {form for one in found for form in (one, unquote(one)) if len(form) >= SHORTEST}
        words = sorted(known, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, words))) if words else None

    def text(self, text: str) -> str:
        """`text` without secrets."""
        if self._known is not None:
            text = self._known.sub(WITHHELD, text)
        text = _PEM.sub(WITHHELD, text)
        text = _USERINFO.sub(rf"\1{WITHHELD}@", text)
        text = _HEADER.sub(rf"\1 {WITHHELD}", text)
        return _SECRET_VALUE.sub(rf"\1{WITHHELD}", text)

    def value(self, value: Any) -> Any:
        """Numbers, texts, lists and objects without secrets."""
        match value:
            case str():
                return self.text(value)
            case dict():
                named = value.get("name")
                return {
                    self.text(str(key)): WITHHELD
                    if one not in ("", None, False, True, [], {})
                    and (
                        _NAMED.search(str(key)) or (key == "value" and isinstance(named, str) and _NAMED.search(named))
                    )
                    else self.value(one)
                    for key, one in value.items()
                }
            case list() | tuple():
                return [self.value(one) for one in value]
            case _:
                return value


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for one in value.values():
                yield from _texts(one)
        case list() | tuple():
            for one in value:
                yield from _texts(one)


def _secrets_of(text: str) -> set[str]:
    """Passwords and secret query values in `text`, if it is a URL."""
    try:
        parts = urlsplit(text)
        found = {parts.netloc.rpartition("@")[0], parts.password or ""}
        found |= {value for name, value in parse_qsl(parts.query) if _NAMED.search(name) and not name.endswith("_file")}
    except ValueError:
        return set()
    return found - {""}


def _parts(url: str) -> set[str]:
    """The part of a webhook's URL after the host, which may be a secret."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return {url}
    pieces = {piece for piece in parts.path.split("/") if len(piece) >= 12}
    return {parts.path if len(parts.path) >= 12 else "", parts.query, parts.fragment, *pieces} - {""}


class Given(Struct, frozen=True):
    """What the bundle is made from: the console's state, the log files, and whether to read journald and the journals.

    `journals`: the user may read them. Otherwise no round is known to have ended.
    """

    made: datetime
    devices: tuple[dict[str, Any], ...] = ()
    edges: tuple[dict[str, Any], ...] = ()
    incidents: tuple[dict[str, Any], ...] = ()
    logs: tuple[Path, ...] = ()
    journald: bool = True
    journals: bool = True


class _Open(Struct, frozen=True):
    """The end of the last round of a table that reports cards: event of the edge, row of the rules, instant."""

    seq: int = 0
    row: int = 0
    time: datetime = _EPOCH


class _Bundle:
    def __init__(self, out: zipfile.ZipFile, config: Config, given: Given, progress: Progress) -> None:
        self._out = out
        self._progress = progress
        self._steps = {name: parts for name, parts in STEPS.items() if given.journals or name != "journals"}
        self._config = config
        self._given = given
        self._scrub = Scrubber(config)
        self._files: dict[str, dict[str, Any]] = {}
        self._notes: list[str] = []
        devices = {(table.name, device.name): device.driver for table in config.table for device in table.device}
        self._with_cards = {
            key for key, driver in devices.items() if driver not in DRIVERS or DRIVERS[driver].tells_cards
        }
        self._no_cards = devices.keys() - self._with_cards
        games = {table.name: RULESETS.get(table.ruleset) for table in config.table}
        self._keeps = {table for table, game in games.items() if keeps_its_cards(game)}
        self._open = self._rounds()

    def _note(self, text: str) -> None:
        self._notes.append(self._scrub.text(text))

    def _add(self, name: str, data: bytes) -> None:
        self._add_all(name, (data,))

    def _add_all(self, name: str, pieces: Iterable[bytes]) -> None:
        """Add a file piece by piece; if the pieces end with an error, the part so far is kept."""
        info = zipfile.ZipInfo(name, self._given.made.timetuple()[:6])
        info.compress_type = zipfile.ZIP_DEFLATED
        digest, size = hashlib.sha256(), 0
        with self._out.open(info, "w") as file:
            try:
                for piece in pieces:
                    file.write(piece)
                    digest.update(piece)
                    size += len(piece)
            finally:
                self._files[name] = {"sha256": digest.hexdigest(), "bytes": size}

    def _json(self, name: str, value: Any) -> None:
        self._add(
            name, msgspec.json.format(msgspec.json.encode(self._scrub.value(msgspec.to_builtins(value))), indent=1)
        )

    def _at(self, step: str, part: float = 0.0) -> None:
        """Report the progress: `part` of a step, 0 to 1. Raises Cancelled."""
        before = sum(parts for name, parts in self._steps.items() if ORDER[name] < ORDER[step])
        self._progress(step, (before + part * self._steps[step]) / sum(self._steps.values()))

    def _each(self, step: str, found: Sequence[T], begin: float = 0.0, end: float = 1.0) -> Iterator[T]:
        """Each of `found`, which take the step from `begin` to `end`. Raises Cancelled."""
        for n, one in enumerate(found):
            if not n % EVERY:
                self._at(step, begin + (end - begin) * n / len(found))
            yield one

    def write(self) -> None:
        """Write the bundle. Raises Cancelled."""
        self._at("configuration")
        self._json("configuration.json", _plain(self._config))
        self._json("versions.json", _versions())
        self._at("states")
        for name in ("devices", "edges", "incidents"):
            self._json(f"{name}.json", _without_cards(msgspec.to_builtins(getattr(self._given, name))))
        if self._given.journals:
            journals = (("edge", self._config.edge.journal), ("rules", self._config.rules.journal))
            for n, (name, path) in enumerate(journals):
                self._at("journals", n / len(journals))
                self._journal(name, Path(path))
            self._json("captures.json", self._captures())
        else:
            self._note("this process may not read the journals and captures: `sudo feltd bundle` includes them")
        self._logs()
        manifest = {
            "made": self._given.made,
            "site": self._config.site.name,
            "files": self._files,
            "notes": self._notes,
        }
        self._out.writestr("manifest.json", msgspec.json.format(msgspec.json.encode(manifest), indent=1))

    # ---- journals

    def _rounds(self) -> dict[str, _Open]:
        """The end of each table's last round; without the rules' journal no round counts as ended."""
        tables = {table for table, _ in self._with_cards}
        found = dict.fromkeys(tables, _Open())
        if not self._given.journals:
            return found
        try:
            with Files(Path(self._config.rules.journal)) as rules:
                used = self._used(rules)
                for table in tables:
                    ended = rules.newest(1, "place = ? AND type IN ('resolved', 'voided')", table)
                    for _n, _place, row, _device, _type, time, _data, _wire, cause, _hash in ended:
                        seq = re.fullmatch(rf"[^:/]+:{re.escape(table)}:(\d{{1,15}})/\d+", id_and_journal(cause)[0])
                        if seq is None:
                            continue
                        known = int(seq[1]) <= used.get(table, 0) and table not in self._keeps
                        at = instant(time) or EARLIEST
                        found[table] = _Open(int(seq[1]), row, at) if known else _Open(row=row)
        except (sqlite3.Error, OSError) as error:
            self._note(f"the rules' journal: {error}; what may be a card is left out")
        return found

    def _used(self, rules: Files) -> dict[str, int]:
        """The last event of the edge's journal that the rules used, by table.

        An end names an event by its number alone. In another journal that the edge began meanwhile, or in this one put
        back from an older copy, another event has that number.
        """
        with contextlib.suppress(sqlite3.Error, OSError), Files(Path(self._config.edge.journal)) as edge:
            query = "SELECT key, value FROM memory WHERE key GLOB ?"
            found = rules.live.execute(query, (f"stream/*/{edge.name}/*",)).fetchall()
            positions = sorted((_position(value), key.rpartition("/")[2]) for key, value in found)
            return {table: position for position, table in positions}
        return {}

    def _journal(self, name: str, path: Path) -> None:
        try:
            with Files(path) as files:
                self._add_all(f"journal-{name}.ndjson", self._lines(name, files))
            report = verify_recent(path)
            self._add(f"journal-{name}-verify.txt", self._scrub.text(report_text(name, report) + "\n").encode())
        except (sqlite3.Error, OSError) as error:
            self._note(f"{name}'s journal: {error}")

    def _lines(self, journal: str, files: Files) -> Iterator[bytes]:
        for table in self._config.table:
            for row in reversed(files.newest(ROWS, "place = ?", table.name)):
                yield msgspec.json.encode(self._row(journal, row)) + b"\n"

    def _row(self, journal: str, row: tuple[Any, ...]) -> dict[str, Any]:
        n, table, seq, device, type_, time, data, wire, cause, _hash = row
        at = instant(time)
        record: dict[str, Any] = {"n": n, "table": table, "seq": seq, "device": device, "type": type_, "time": at}
        if self._hidden(journal, table, device, seq, at or LATEST):
            return self._scrub.value(msgspec.to_builtins(record)) | {"withheld": "it may reveal a card"}  # type: ignore[no-any-return]
        try:
            record["data"] = json.loads(data)
        except (ValueError, RecursionError):
            record["data"] = None
        if type_ == "device.commanded":  # its wire is the command: JSON
            with contextlib.suppress(ValueError, RecursionError):
                record["order"] = json.loads(wire)
        else:
            text = bytes(wire).decode("latin-1")
            record["wire"] = wire.hex() if self._scrub.text(text) == text else WITHHELD
        record["cause"] = cause
        if at is None:
            record["unreadable"] = no_time(time)
        scrubbed: dict[str, Any] = self._scrub.value(msgspec.to_builtins(record))
        return scrubbed

    def _hidden(self, journal: str, table: str, device: str, seq: int, at: datetime) -> bool:
        opened = self._open.get(table)
        if journal == "rules":
            return opened is not None and seq > opened.row
        if (table, device) in self._no_cards:
            return False
        return opened is None or seq > opened.seq or at > opened.time

    # ---- logs

    def _logs(self) -> None:
        self._at("journald")
        if self._given.journald and (lines := self._units(self._journald())):
            self._add("log-journald.ndjson", lines)
        for n, path in enumerate(self._given.logs):
            try:
                begin, end = n / len(self._given.logs), (n + 1) / len(self._given.logs)
                with path.open("rb") as file:
                    file.seek(max(path.stat().st_size - LOG_BYTES - 1, 0))
                    self._add(f"log-{path.name}.txt", self._log(_end(file.read(LOG_BYTES + 1)), begin, end))
            except OSError as error:
                self._note(f"{path}: {error.strerror}")

    def _journald(self) -> bytes:
        """The last lines of our units, each a JSON object; nothing, and a note, where they are unavailable."""
        program = shutil.which("journalctl")
        if program is None:
            self._note("no journald on this computer")
            return b""
        words = [program, "--no-pager", "-o", "json", f"--output-fields={FIELDS}", "-n", str(LOG_LINES), "-u", UNITS]
        try:
            out, err = self._asked(words)
        except (OSError, subprocess.TimeoutExpired) as error:
            self._note(f"journalctl: {error}")
            return b""
        if said := err.decode(errors="replace").strip():  # for example that it shows only some lines
            self._note(f"journalctl: {said}")
        if b'"MESSAGE"' not in out:
            self._note(
                f"journald shows no line of {UNITS}: it may have none, or this service may not read it"
                " (SupplementaryGroups=systemd-journal in its unit)"
            )
        return _end(out)

    def _asked(self, words: list[str]) -> tuple[bytes, bytes]:
        """Standard output and standard error of a program. Raises OSError, TimeoutExpired, Cancelled."""
        began = time.monotonic()
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as asked:  # noqa: S603 - our own words
            try:
                while True:
                    try:
                        return asked.communicate(timeout=POLL_S)
                    except subprocess.TimeoutExpired:
                        taken = (time.monotonic() - began) / COMMAND_TIMEOUT_S
                        if taken >= 1:
                            raise
                        self._at("journald", ASKING * taken)
            finally:
                asked.kill()

    def _units(self, text: bytes) -> bytes:
        """The lines of journald by time."""
        lines = (
            _object(line.decode(errors="replace")) for line in self._each("journald", text.splitlines(), ASKING, 0.6)
        )
        own = [one for one in lines if one is not None and "MESSAGE" in one]
        entries = [(_instant(one), str(one.get("UNIT") or one.get("_SYSTEMD_UNIT", "")), _message(one)) for one in own]
        out = [
            {"at": at, "unit": unit, "message": said}
            for at, unit, said in self._grouped(self._each("journald", entries, 0.6))
        ]
        out.sort(key=lambda one: str(one["at"]))
        return "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in out).encode(errors="replace")

    def _log(self, text: bytes, begin: float, end: float) -> bytes:
        """The last lines of a file, which takes the step of the files from `begin` to `end`."""
        lines = [("", "", line) for line in text.decode(errors="replace").splitlines()[-LOG_LINES:]]
        out = (
            said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
            for _, _, said in self._grouped(self._each("files", lines, begin, end))
        )
        return "".join(f"{one}\n" for one in out).encode(errors="replace")

    def _grouped(self, lines: Iterable[tuple[str, str, str]]) -> Iterator[tuple[str, str, Any]]:
        """Time, unit and line without secrets. Our own lines are JSON, one object each.

        Other lines between them count as one text: a key or a traceback has many lines.
        """
        between: dict[str, tuple[str, list[str]]] = {}

        def one_text(unit: str) -> Iterator[tuple[str, str, str]]:
            if unit in between:
                at, lines = between.pop(unit)
                yield at, unit, _CARD.sub(CARD, self._scrub.text("\n".join(lines)))

        for at, unit, line in lines:
            said = _object(line)
            if said is None:
                between.setdefault(unit, (at, []))[1].append(line)
                continue
            yield from one_text(unit)
            yield at, unit, self._said({"timestamp": at, **said} if at else said)
        for unit in list(between):
            yield from one_text(unit)

    def _said(self, said: dict[str, Any]) -> Any:
        """One line of a log."""
        table, device = str(said.get("table", "")), str(said.get("device", ""))
        opened = None if (table, device) in self._no_cards else self._open.get(table)
        if opened is not None and not _before(said.get("timestamp"), opened.time):
            said = {key: one for key, one in said.items() if key in _PLAIN} | {"withheld": "a round may be open"}
        scrubbed = self._scrub.value(said)
        return scrubbed if said.get("table") else _without_cards(scrubbed)

    # ---- the rest

    def _captures(self) -> list[dict[str, Any]]:
        folders = {Path(one).parent for one in (self._config.edge.journal, self._config.console.journal)}
        found: list[dict[str, Any]] = []
        for folder in sorted(folders):
            with contextlib.suppress(OSError):
                paths = sorted(folder.glob("*.capture"))[:CAPTURES]
                found += [{"name": path.name, "bytes": path.stat().st_size} for path in paths]
        return found


def _position(value: bytes) -> int:
    """The offset of the rules in a journal; 0 if unreadable."""
    try:
        said = json.loads(bytes(value).removesuffix(b" left"))
    except ValueError:
        return 0
    seq = said.get("seq", 0) if isinstance(said, dict) else said
    return seq if isinstance(seq, int) else 0


def _end(text: bytes) -> bytes:
    """The last complete lines: half a line may end with a secret whose name was in the other half."""
    return text if len(text) <= LOG_BYTES else text[-LOG_BYTES:].partition(b"\n")[2]


def _object(line: str) -> dict[str, Any] | None:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _message(line: Mapping[str, Any]) -> str:
    """Of a line of journald: text, or its bytes where they are no text; nothing where it is too long."""
    match line["MESSAGE"]:
        case str(text):
            return text
        case list(numbers):
            return bytes(one for one in numbers if isinstance(one, int) and 0 <= one < 256).decode(errors="replace")
        case _:
            return ""


def _instant(line: Mapping[str, Any]) -> str:
    """The time at which journald received a line; "" if unknown."""
    word = str(line.get("__REALTIME_TIMESTAMP", ""))
    if not word.isdecimal() or len(word) > LONGEST_STAMP:
        return ""
    return utc(_EPOCH + timedelta(microseconds=int(word)))


def _before(stamp: Any, time: datetime) -> bool:
    """Whether a log line is older than `time`; one without a time is not."""
    try:
        return datetime.fromisoformat(str(stamp)) <= time
    except (ValueError, TypeError):
        return False


def _without_cards(value: Any) -> Any:
    match value:
        case str():
            return _CARD.sub(CARD, value)
        case dict():
            return {key: _without_cards(one) for key, one in value.items()}
        case list() | tuple():
            return [_without_cards(one) for one in value]
        case _:
            return value


def _plain(config: Config) -> dict[str, Any]:
    """The configuration; for files with secrets only whether they exist."""
    said: dict[str, Any] = msgspec.to_builtins(config)
    for hook in said["console"]["webhook"]:
        parts = urlsplit(hook["url"])
        hook["url"] = f"{parts.scheme}://{parts.hostname or ''}/{WITHHELD}"
    files: list[tuple[str, str]] = []
    for name, path in files_of(config):
        *way, key = name.split(".")
        place: Any = said
        for step in way:
            place = place[int(step)] if step.isdigit() else place[step]
        del place[key]
        files.append((name, "not set" if not path else "there" if _is_there(path) else "missing"))
    return said | {"files": files}


def _is_there(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def _versions() -> dict[str, Any]:
    packages = {one.metadata["Name"]: one.version for one in importlib.metadata.distributions() if one.metadata["Name"]}
    system: Mapping[str, str] = {}
    with contextlib.suppress(OSError):
        system = platform.freedesktop_os_release()
    return {
        "python": sys.version,
        "system": system.get("PRETTY_NAME", platform.platform()),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "mosquitto": _mosquitto(),
        "packages": dict(sorted(packages.items())),
    }


def _mosquitto() -> str:
    program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
    if program is None:
        return "not on this computer"
    try:
        done = subprocess.run([program, "-h"], capture_output=True, timeout=COMMAND_TIMEOUT_S, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stdout.decode(errors="replace").partition("\n")[0]


def _silent(_step: str, _part: float) -> None:
    pass


def make(path: Path, config: Config, given: Given, progress: Progress = _silent) -> None:
    """Write the bundle to `path`, for its owner alone, or nothing. Raises OSError, and whatever `progress` raises.

    Made for a thread: it reads files and runs programs. `progress` gets the name of each step, and the part of the
    whole that is done.
    """
    try:
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b") as file:
            os.fchmod(file.fileno(), 0o600)
            file.truncate()
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
                _Bundle(out, config, given, progress).write()
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def known_logs(*journals: str, folder: Path = LOGS) -> tuple[Path, ...]:
    """Log files where ours may be: in the folder for them, and beside these journals."""
    folders = {folder, *(Path(one).parent for one in journals)}
    return tuple(path for one in sorted(folders) for path in sorted(one.glob("*.log")) if path.is_file())
