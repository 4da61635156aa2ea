"""The checks of `feltd doctor`: measurements become lines with a state and a remedy. Pure; doctor_facts measures."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec
from msgspec import Struct

from daemon.broker.suspensions import LIST_REMEDY
from protocols.contract.documents import EdgeExamination
from protocols.contract.topics import LATEST

__all__ = [
    "Broker",
    "Certificate",
    "Clock",
    "Device",
    "Disk",
    "End",
    "Facts",
    "File",
    "Kind",
    "Line",
    "Port",
    "State",
    "Wrong",
    "examination",
    "exit_code",
    "json_of",
    "lines",
    "text_of",
]

SLOW_SYNC_MS, TOO_SLOW_SYNC_MS = 20.0, 200.0
"""Median fdatasync. Each event waits for one: above the first play slows, above the second devices time out."""
SOON = timedelta(days=30)
LATELY = timedelta(days=8)
"""A nightly `feltd backup` or a weekly `feltd journal verify` reads all rows of a journal in this time."""
_MB = 1_000_000


class State(StrEnum):
    """How serious a line is."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


class Line(Struct, frozen=True):
    """One result. `remedy` is empty if the state is ok."""

    check: str
    state: State
    text: str
    remedy: str = ""


class Clock(Struct, frozen=True):
    """Whether the kernel's clock is synchronized; None where the kernel does not report it."""

    synchronized: bool | None


class Disk(Struct, frozen=True):
    """The file system below a journal's folder. `error` is set where it could not be measured."""

    folder: str
    free: int = 0
    used: int = 0
    sync_ms: float = 0.0
    error: str = ""


class Kind(StrEnum):
    """The kind of a file, which determines its allowed readers."""

    CONFIGURATION = "configuration"
    SECRET = "secret"  # noqa: S105 - a word, no secret
    PUBLIC = "public"
    JOURNAL = "journal"


class File(Struct, frozen=True):
    """A file, its permission bits and its owner's name. `error` is set where it could not be examined.

    `unreadable_for`: the user of the service that needs the file and may not read it.
    """

    name: str
    path: str
    kind: Kind
    mode: int = 0
    owner: str = ""
    unreadable_for: str = ""
    error: str = ""


class Broker(Struct, frozen=True):
    """A connection to the broker as the user of one part. `error` is empty if the broker accepted it.

    `encrypted`: the password or key that only the service can decrypt, so that no connection was tried. `unreadable`:
    the error is of one of our files, so that no connection was tried.
    """

    part: str
    place: str
    error: str = ""
    encrypted: str = ""
    unreadable: bool = False


class Certificate(Struct, frozen=True):
    """When a certificate ends."""

    name: str
    path: str
    ends: datetime | None = None
    error: str = ""


class End(Struct, frozen=True):
    """The end of a journal, verified now. `rows`: checked now; `verified`: the last verification of all rows, or
    None.
    """

    part: str
    path: str
    exists: bool = True
    rows: int = 0
    signed: bool = False
    finding: str = ""
    verified: datetime | None = None


class Port(Struct, frozen=True):
    """A device's port on this computer."""

    device: str
    url: str
    found: bool
    error: str = ""
    renamed: bool = False
    """Whether its name may belong to another adapter after the next start."""


class Device(Struct, frozen=True):
    """A device's last report when it came online. `model` is empty if it never did with its present driver."""

    name: str
    model: str = ""
    serial: str = ""
    firmware: str = ""


class Wrong(Struct, frozen=True):
    """A fault of a part of the backbone, and its remedy."""

    where: str
    text: str
    remedy: str


class Facts(Struct, frozen=True, kw_only=True):
    """All that was measured."""

    now: datetime
    clock: Clock
    limit_mb: int
    file_mb: int
    disks: tuple[Disk, ...] = ()
    files: tuple[File, ...] = ()
    brokers: tuple[Broker, ...] = ()
    unlisted: tuple[str, ...] = ()
    """The grants that the broker's access list on this computer lacks."""
    edited: bool = False
    """Whether the package's settings of the broker were edited."""
    certificates: tuple[Certificate, ...] = ()
    ends: tuple[End, ...] = ()
    ports: tuple[Port, ...] = ()
    devices: tuple[Device, ...] = ()
    backbone: tuple[Wrong, ...] | None = None
    """The faults of the site's backbone; None where none is configured."""
    credulous: tuple[str, ...] = ()
    """The sections of processes that accept messages without keys."""


def lines(facts: Facts) -> list[Line]:
    """The result of every check, in the order in which a person would look."""
    found = [_clock(facts.clock)]
    for disk in facts.disks:
        found += _disk(disk, facts.limit_mb, facts.file_mb)
    found += [_file(one) for one in facts.files]
    found += [_broker(one) for one in facts.brokers]
    found += [_credulous(one) for one in facts.credulous]
    found += [Line("access list", State.PROBLEM, one, LIST_REMEDY) for one in facts.unlisted]
    if facts.edited:
        text = "/etc/mosquitto/conf.d/feltd.conf was edited: an upgrade leaves it as it is"
        found.append(
            Line("broker settings", State.WARNING, text, "move your lines to site.conf: docs/how-to/install.md")
        )
    found += [_certificate(one, facts.now) for one in facts.certificates]
    for end in facts.ends:
        found += [_end(end), *_verified(end, facts.now)]
    found += [_port(one) for one in facts.ports]
    found += [_device(one) for one in facts.devices]
    if facts.backbone is not None:
        wrong = [Line(one.where, State.PROBLEM, one.text, one.remedy) for one in facts.backbone]
        found += wrong or [Line("backbone", State.OK, "its nodes sync, and have all streams three times")]
    return found


def _clock(clock: Clock) -> Line:
    match clock.synchronized:
        case True:
            return Line("clock", State.OK, "synchronized")
        case False:
            remedy = "point chrony at the time server of the house: docs/how-to/prepare-the-computer.md"
            return Line("clock", State.WARNING, "nothing synchronizes it: events carry its error", remedy)
        case None:
            return Line("clock", State.WARNING, "the kernel does not report whether it is synchronized", "run as root")


def _disk(disk: Disk, limit_mb: int, file_mb: int) -> list[Line]:
    check = f"disk {disk.folder}"
    if disk.error:
        remedy = "run as root; the folder is made when its service starts first"
        return [Line(check, State.WARNING, f"cannot be measured: {disk.error}", remedy)]
    free_mb, wanted_mb = disk.free // _MB, max(limit_mb - disk.used // _MB, 0)
    room = f"{free_mb} MB free"
    if free_mb < 4 * file_mb:
        remedy = "make room now: when it is full the process stops, and play with it"
        space = Line(check, State.PROBLEM, room, remedy)
    elif free_mb < wanted_mb:
        remedy = f"the journal may grow by {wanted_mb} MB: make room, or lower journal.limit_mb"
        space = Line(check, State.WARNING, room, remedy)
    else:
        space = Line(check, State.OK, room)
    sync = f"fdatasync takes {disk.sync_ms:.1f} ms (median)"
    if disk.sync_ms >= TOO_SLOW_SYNC_MS:
        speed = Line(check, State.PROBLEM, sync, "every event waits for one: replace the disk, or stop other writers")
    elif disk.sync_ms >= SLOW_SYNC_MS:
        speed = Line(check, State.WARNING, sync, "every event waits for one: an SSD with a power-safe cache is faster")
    else:
        speed = Line(check, State.OK, sync)
    return [space, speed]


_OTHERS_READ, _OTHERS_WRITE = 0o004, 0o022


def _file(file: File) -> Line:
    check = f"permissions {file.name}"
    if file.error:
        return Line(check, State.PROBLEM, f"{file.path}: {file.error}", "make it as in docs/how-to/install.md")
    shown = f"{file.path}: {file.owner} {file.mode:o}"
    writable = file.mode & _OTHERS_WRITE
    readable = file.mode & _OTHERS_READ
    if writable:
        return Line(check, State.PROBLEM, f"{shown}: others may write it", f"chmod go-w {file.path}")
    if readable and file.kind in {Kind.SECRET, Kind.JOURNAL}:
        return Line(check, State.PROBLEM, f"{shown}: everybody may read it", f"chmod o= {file.path}")
    if file.unreadable_for:
        text = f"{shown}: {file.unreadable_for} may not read it"
        return Line(check, State.PROBLEM, text, "owner and mode: docs/how-to/install.md")
    if readable and file.kind is Kind.CONFIGURATION:
        return Line(check, State.WARNING, f"{shown}: everybody may read it", f"chmod o= {file.path}")
    return Line(check, State.OK, shown)


def _broker(broker: Broker) -> Line:
    check = f"broker as {broker.part}"
    if broker.encrypted:
        text = f"not tried: {broker.encrypted} is decrypted for its service alone"
        return Line(check, State.WARNING, text, f"journalctl -u feltd-{broker.part}: broker.connected or broker.lost")
    if broker.unreadable:
        remedy = "run as root; if it is not there: dpkg-reconfigure feltd makes passwords that are missing"
        return Line(check, State.PROBLEM, f"not tried: {broker.error}", remedy)
    if broker.error:
        remedy = "systemctl status mosquitto; a refused password: docs/how-to/read-a-fault.md"
        return Line(check, State.PROBLEM, f"{broker.place}: {broker.error}", remedy)
    return Line(check, State.OK, f"{broker.place} accepts it")


def _credulous(section: str) -> Line:
    remedy = f"make the keys (feltd mac-keys), take insecure out of [{section}], restart feltd-{section}"
    return Line(
        f"keys of the {section}",
        State.WARNING,
        "insecure = true and no keys: messages of every broker user are accepted",
        remedy,
    )


def _certificate(one: Certificate, now: datetime) -> Line:
    check = f"certificate {one.name}"
    if one.ends is None:
        return Line(check, State.PROBLEM, f"{one.path}: {one.error}", "put a certificate there, as PEM")
    day = f"{one.path}: until {one.ends:%Y-%m-%d}"
    if one.ends <= now:
        return Line(
            check, State.PROBLEM, f"{day}: it has expired", "feltd pki renew; copy it here, then restart the services"
        )
    if one.ends - now < SOON:
        return Line(
            check, State.WARNING, f"{day}: {(one.ends - now).days} days left", "feltd pki renew, and copy it here"
        )
    return Line(check, State.OK, day)


def _end(end: End) -> Line:
    check = f"journal {end.part}"
    if not end.exists:
        return Line(check, State.WARNING, f"{end.path}: is not there yet", f"start feltd-{end.part}")
    if end.finding:
        return Line(check, State.PROBLEM, end.finding, "keep all files; docs/how-to/verify-and-export-a-journal.md")
    if not end.signed:
        text = f"{end.path}: the last {end.rows} rows are whole; nothing is signed"
        return Line(check, State.WARNING, text, "make a key: feltd journal key; name it as journal_key")
    return Line(check, State.OK, f"{end.path}: the last {end.rows} rows are whole; feltd journal verify reads all")


def _verified(end: End, now: datetime) -> list[Line]:
    if not end.exists or end.finding:
        return []
    check = f"verification {end.part}"
    remedy = "feltd journal verify, every week; a nightly feltd backup does it too"
    if end.verified is None:
        return [Line(check, State.WARNING, f"{end.path}: all rows were never verified here", remedy)]
    day = f"{end.path}: all rows were verified on {end.verified:%Y-%m-%d}"
    if now - end.verified > LATELY:
        return [Line(check, State.WARNING, f"{day}, {(now - end.verified).days} days ago", remedy)]
    return [Line(check, State.OK, day)]


def _device(device: Device) -> Line:
    check = f"device {device.name}"
    if not device.model:
        text = "its model and firmware are not known: it was never online with its present driver"
        return Line(check, State.WARNING, text, "start feltd-edge; check cable and power; its alert names the cause")
    serial = f", serial number {device.serial}" if device.serial else ""
    firmware = f"firmware {device.firmware}" if device.firmware else "it reports no firmware"
    return Line(check, State.OK, f"{device.model}{serial}, {firmware}")


def _port(port: Port) -> Line:
    check = f"port {port.device}"
    if port.error:
        return Line(check, State.WARNING, f"{port.url}: {port.error}", "run as root")
    if not port.found:
        return Line(check, State.PROBLEM, f"{port.url}: is not there", "check cable and power; feltd detect")
    if port.renamed:
        text = f"{port.url}: may be another adapter after the next start"
        return Line(check, State.WARNING, text, "name it as ls -l /dev/serial/by-id/ does")
    return Line(check, State.OK, port.url)


def examination(facts: Facts, found: Iterable[Line], clock_ms: float | None) -> EdgeExamination:
    """The result of the examination as the edge publishes it."""
    verified = [end.verified for end in facts.ends if end.verified]
    return EdgeExamination(
        time=facts.now,
        problems=tuple(dict.fromkeys(line.check[:64] for line in found if line.state is State.PROBLEM)),
        clock_ms=clock_ms,
        sync_ms=max((disk.sync_ms for disk in facts.disks if not disk.error), default=None),
        certificate_ends=min((one.ends for one in facts.certificates if one.ends and one.ends < LATEST), default=None),
        verified=min(verified) if verified and len(verified) == len(facts.ends) else None,
    )


def exit_code(found: Iterable[Line]) -> int:
    """1 if there is a problem."""
    return int(any(line.state is State.PROBLEM for line in found))


def text_of(found: Iterable[Line]) -> str:
    """For people: a line each, its remedy below it."""
    text = []
    for line in found:
        text.append(f"{line.state:<7}  {line.check}: {line.text}")
        if line.remedy:
            text.append(f"         {line.remedy}")
    return "\n".join(text)


def json_of(found: list[Line]) -> str:
    """For programs."""
    return msgspec.json.format(msgspec.json.encode(found)).decode()
