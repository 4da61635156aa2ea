"""Measures what `feltd doctor` checks. It opens no device and writes no journal."""

import asyncio
import contextlib
import ctypes
import os
import pwd
import shutil
import sqlite3
import stat
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec

from daemon.broker.connection import connect
from daemon.broker.retained import read_standing
from daemon.broker.session import BrokerLost, UnreadableFile
from daemon.broker.stale_topics import METAS
from daemon.cli.configuration_check import credulous
from daemon.cli.doctor import Broker, Certificate, Clock, Device, Disk, End, Facts, File, Kind, Port, Wrong
from daemon.cli.forget import QUIET_S
from daemon.cli.granted import edited_settings, old_list
from daemon.config.model import (
    Config,
    Console,
    Edge,
    Jackpots,
    Mqtt,
    Rules,
    broker_of,
    brokers_of,
    encrypted_credential,
    files_of,
    signing_as,
)
from protocols.contract.documents import DeviceMeta
from protocols.contract.topics import device_topic, table_topic

__all__ = ["measured"]

SYNCS = 21
CONNECT_TIMEOUT_S = 5.0
_TIME_ERROR = 5
"""adjtimex(2) returns it if the clock is not synchronized."""
_COUNTED = ("ttyUSB", "ttyACM")
"""Names of ports that the kernel numbers in the order of plugging in."""
_PUBLIC = ("ca_file", "certificate", "order_public_key", "broker_certificate")


def measured(config: Config, path: Path, *, with_console: bool) -> Facts:
    """Everything that the checks need. `with_console`: the configuration has the section."""
    parts: dict[str, Edge | Rules | Console | Jackpots] = {"edge": config.edge, "rules": config.rules}
    if with_console:
        parts["console"] = config.console
    if config.jackpot:
        parts["jackpots"] = config.jackpots
    journals = {name: Path(part.journal) for name, part in parts.items()}
    brokers, metas = asyncio.run(_brokers({name: broker_of(config, part) for name, part in parts.items()}, config))
    return Facts(
        now=datetime.now(UTC),
        clock=_clock(),
        limit_mb=config.journal.limit_mb,
        file_mb=config.journal.file_mb,
        disks=tuple(_disk(one, journals.values()) for one in dict.fromkeys(path.parent for path in journals.values())),
        files=tuple(_files(config, path, journals)),
        brokers=tuple(brokers),
        unlisted=tuple(old_list(config, path)),
        edited=edited_settings(),
        certificates=tuple(_certificates(config)),
        ends=tuple(_end(name, journals[name], signing_as(config, part).journal.key) for name, part in parts.items()),
        ports=tuple(_ports(config)),
        credulous=tuple(credulous(config)),
        backbone=_backbone(config),
        devices=tuple(_devices(config, metas) if metas is not None else ()),
    )


def _backbone(config: Config) -> tuple[Wrong, ...] | None:
    """The faults of the backbone, where one is configured."""
    if not config.backbone.servers:
        return None
    try:
        from daemon.site import health
    except ModuleNotFoundError as error:
        return (Wrong("backbone", str(error), "then run feltd doctor again"),)
    found = health.findings(asyncio.run(health.measured(config)))
    return tuple(Wrong(one.where, one.text, one.remedy) for one in found)


def _clock() -> Clock:
    """The kernel's report of its clock. All modes are zero, so nothing is changed."""
    state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(512))
    return Clock(None if state < 0 else state != _TIME_ERROR)


def _disk(folder: Path, journals: Iterable[Path]) -> Disk:
    """Room and speed of a folder of journals, by a file of its own that is removed."""
    here = [path.name for path in journals if path.parent == folder]
    try:
        used = sum(one.stat().st_size for name in here for one in folder.glob(f"{name}*"))
        with tempfile.TemporaryFile(dir=folder) as file:
            took = []
            for _ in range(SYNCS):
                file.write(bytes(4096))
                file.flush()
                began = time.perf_counter()
                os.fdatasync(file.fileno())
                took.append(time.perf_counter() - began)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Disk(str(folder), error=error.strerror or str(error))
    return Disk(str(folder), free, used, statistics.median(took) * 1000)


def _files(config: Config, path: Path, journals: dict[str, Path]) -> Iterator[File]:
    if os.path.lexists(path):
        yield _file("feltd.toml", path, Kind.CONFIGURATION)
    for name, named in files_of(config):
        if not named:
            continue
        public = name.rpartition(".")[2] in _PUBLIC
        there = Path(named)
        if name.endswith("_folder") and there.is_dir():
            yield from (_file(f"{name} {one.name}", one, Kind.SECRET) for one in sorted(there.iterdir()))
        else:
            yield _file(name, there, Kind.PUBLIC if public else Kind.SECRET)
    for name, journal in journals.items():
        if journal.exists():
            yield _file(name, journal, Kind.JOURNAL)


def _file(name: str, path: Path, kind: Kind) -> File:
    encrypted = encrypted_credential(path)
    try:
        found = (encrypted or path).stat()
    except OSError as error:
        return File(name, str(path), kind, error=error.strerror or str(error))
    try:
        owner = pwd.getpwuid(found.st_uid).pw_name
    except KeyError:
        owner = str(found.st_uid)
    mode = found.st_mode & 0o7777
    if encrypted:  # systemd decrypts it as root, so its rights do not matter
        return File(name, str(encrypted), Kind.PUBLIC, mode, owner)
    return File(name, str(path), kind, mode, owner, _unreadable_for(name, found))


def _unreadable_for(name: str, found: os.stat_result) -> str:
    """The user of the service whose section names the file, if that user exists and may not read it."""
    user = f"feltd-{name.partition('.')[0]}"
    try:
        one = pwd.getpwnam(user)
    except KeyError:
        return ""
    if one.pw_uid == found.st_uid:
        may = found.st_mode & stat.S_IRUSR
    elif found.st_gid in os.getgrouplist(user, one.pw_gid):
        may = found.st_mode & stat.S_IRGRP
    else:
        may = found.st_mode & stat.S_IROTH
    return "" if may else user


async def _brokers(settings: dict[str, Mqtt], config: Config) -> tuple[list[Broker], dict[str, bytes] | None]:
    """Each part's user once, under a client id that the broker chooses: running services keep their sessions.

    Also the retained topics of the devices, read as the edge; None where it could not connect.
    """
    found, metas = [], None
    for part, one in ((part, one) for part, broker in settings.items() for one in brokers_of(broker)):
        place = f"{one.host}:{one.port}"
        encrypted = encrypted_credential(Path(one.password_file)) or encrypted_credential(Path(one.key))
        if encrypted is not None:
            found.append(Broker(part, place, encrypted=str(encrypted)))
            continue
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S), connect(one, "") as session:
                if part == "edge":
                    metas = await read_standing(session, table_topic(config.site.name, "+", METAS), quiet_s=QUIET_S)
                found.append(Broker(part, place))
        except BrokerLost as error:
            found.append(Broker(part, place, str(error), unreadable=isinstance(error, UnreadableFile)))
        except TimeoutError:
            found.append(Broker(part, place, f"no answer in {CONNECT_TIMEOUT_S:g} s"))
    return found, metas


def _devices(config: Config, metas: dict[str, bytes]) -> Iterator[Device]:
    for table in config.table:
        for device in table.device:
            meta = DeviceMeta()
            with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
                raw = metas.get(device_topic(config.site.name, table.name, device.name, "meta"), b"{}")
                meta = msgspec.json.decode(raw, type=DeviceMeta)
            yield Device(f"{table.name}/{device.name}", meta.model, meta.serial, meta.firmware)


def _certificates(config: Config) -> Iterator[Certificate]:
    named = {
        "mqtt.ca_file": config.mqtt.ca_file,
        "mqtt.certificate": config.mqtt.certificate,
        "console.certificate": config.console.certificate,
    }
    parts = (config.edge, config.rules, config.maintenance, config.console, config.jackpots)
    named |= {f"{type(part).__name__.lower()}.broker_certificate": part.broker_certificate for part in parts}
    for name, path in named.items():
        if path:
            yield _certificate(name, path)


def _certificate(name: str, path: str) -> Certificate:
    """The certificate in the file that expires first."""
    from cryptography import x509

    try:
        found = x509.load_pem_x509_certificates(Path(path).read_bytes())
    except OSError as error:
        return Certificate(name, path, error=error.strerror or str(error))
    except ValueError:
        return Certificate(name, path, error="no PEM certificate")
    return Certificate(name, path, min(one.not_valid_after_utc for one in found))


def _end(part: str, path: Path, key: str) -> End:
    from daemon.journal.signing import BadKey, PublicKey, public_path
    from daemon.journal.verified import verified_at
    from daemon.journal.verify import verify_recent

    try:
        if not path.exists():
            return End(part, str(path), exists=False)
        beside = public_path(Path(key)) if key else None
        verified = verified_at(path)
        report = verify_recent(path, [PublicKey.load(beside)] if beside is not None and beside.exists() else [])
    except (OSError, sqlite3.Error, BadKey) as error:
        return End(part, str(path), finding=f"{path}: {getattr(error, 'strerror', None) or error}")
    findings = [str(one) for one in report.findings if not one.about_key and not one.unreadable]
    return End(
        part,
        str(path),
        rows=report.rows,
        signed=bool(key),
        finding=findings[0] if findings else "",
        verified=verified,
    )


def _ports(config: Config) -> Iterator[Port]:
    """Serial and USB ports. Network links are not opened: a device serves one host at a time."""
    for table in config.table:
        for device in table.device:
            name = f"{table.name}/{device.name}"
            parts = urlsplit(device.url)
            if parts.scheme == "serial" and parts.path:
                port = Path(parts.path)
                yield Port(name, device.url, port.exists(), renamed=port.name.startswith(_COUNTED))
            elif parts.scheme in {"serial", "usb"}:
                wanted = {key: values[-1] for key, values in parse_qs(parts.query).items()}
                yield Port(name, device.url, _plugged_in(parts.scheme, wanted))


def _plugged_in(scheme: str, wanted: dict[str, str]) -> bool:
    from daemon.edge.links import usb
    from daemon.edge.links.link import plugged_in

    if scheme == "usb":
        found = [(one.vid, one.pid, one.serial) for one in usb.plugged_in()]
    else:
        found = [(one.vid, one.pid, one.serial_number) for one in plugged_in()]
    numbers = [int(wanted[key], 16) if key in wanted else None for key in ("vid", "pid")]
    asked = (*numbers, wanted.get("serial"))
    return any(all(ask in (None, have) for ask, have in zip(asked, one, strict=True)) for one in found)
