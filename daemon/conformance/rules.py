"""The demands of docs/reference/protocols/fdl.md on a device, rule by rule, and the findings."""

from typing import Literal, Protocol, TypeAlias

import msgspec

__all__ = ["ACTS", "RULES", "Act", "EventKind", "Finding", "Hands", "Report", "Rule", "Verdict"]

Act: TypeAlias = Literal["event", "events", "every", "power"]

ACTS: dict[Act, str] = {
    "event": "make the device report one event: a key, a cover",
    "events": "make the device report more than 256 events, or skip this",
    "every": "do everything that the device can report, each thing once",
    "power": "switch the device off, and on again after two seconds",
}
"""The acts that a person or program does at the device."""


class Rule(msgspec.Struct, frozen=True):
    """One demand of the document: its section and its text."""

    section: str
    text: str


RULES: dict[str, Rule] = {
    "frame.readable": Rule("Frame", "all that the device sends is frames: COBS, length and CRC are right"),
    "frame.direction": Rule("Types", "the highest bit of the type is set in all that it sends"),
    "frame.known": Rule("Types", "it sends no type that is reserved for later versions"),
    "frame.malformed": Rule("Types", "the payload of each frame is as its type demands"),
    "frame.noise": Rule("Frame", "noise before a frame is ignored"),
    "frame.crc": Rule("Frame", "a frame with a wrong CRC is thrown away"),
    "frame.length": Rule("Frame", "a frame whose `len` does not match is thrown away"),
    "frame.stuffing": Rule("Frame", "a frame whose COBS pieces do not fit is thrown away"),
    "frame.long": Rule("Frame", "more than 206 bytes between two 00 are thrown away, and the next frame is read"),
    "frame.shared": Rule("Frame", "one 00 may be between two frames"),
    "frame.slow": Rule("Frame", "a frame may come byte by byte"),
    "frame.later": Rule("Types", "unknown types are ignored, and those of its own direction"),
    "frame.more": Rule("Types", "bytes after the known fields are ignored"),
    "hello.answered": Rule("A session, 2", "every HELLO is answered with IDENTITY"),
    "hello.seq": Rule("Frame", "an answer repeats the `seq` of what it answers"),
    "hello.version": Rule("A session, 2", "a HELLO of another version is answered too"),
    "hello.first": Rule("A session, 2", "a HELLO of epoch 0, or of another epoch, closes the session: position 0"),
    "hello.ahead": Rule("A session, 2", "a HELLO with `last` not before `next` closes the session: position 0"),
    "hello.opens": Rule("A session, 2", "a HELLO with its epoch opens the session: position is `last` + 1"),
    "identity.unit": Rule("What a device keeps", "vendor, model and serial are given and never change"),
    "identity.kind": Rule("What a device keeps", "the kind is one of the document, or 80 to FF"),
    "identity.counters": Rule("What a device keeps", "`next` never goes back within an epoch, `oldest` neither"),
    "ring.size": Rule("What a device keeps", "the ring holds at least the 256 last events"),
    "ring.gone": Rule("A session, 6", "an event that is no longer in the ring: IDENTITY in its place, each 200 ms"),
    "heartbeat.period": Rule("A session, 7", "HEARTBEAT goes out each second, in a session or not"),
    "heartbeat.uptime": Rule("Types", "the uptime counts milliseconds"),
    "heartbeat.next": Rule("Types", "the heartbeat's `next` is the counter of the next event"),
    "heartbeat.closed": Rule("A session, 7", "bit 0 of the flags is set while the session is closed, and only then"),
    "heartbeat.fault": Rule("A session, 7", "bit 1 of the flags is set while a reported fault lasts, and only then"),
    "heartbeat.flags": Rule("A session, 7", "the other bits of the flags are 0"),
    "event.closed": Rule("A session, 2", "no event is sent while the session is closed"),
    "event.sent": Rule("A session, 3", "the event at the position is sent, and again until it is acknowledged"),
    "event.rhythm": Rule("A session, 3", "an event is repeated each 200 ms"),
    "event.single": Rule("A session, 3", "one event at a time, in the order of the counter"),
    "event.same": Rule("What a device keeps", "an event that is sent again has the same kind and data"),
    "event.age": Rule("A session", "the age of an event grows with time, or is FFFFFFFF"),
    "event.quiet": Rule("A session, 3", "nothing is sent when all is acknowledged"),
    "event.data": Rule("Events", "kind and data of each event are those of such a device, or of a vendor (80 to FF)"),
    "ack.moves": Rule("A session, 4", "ACK: every event up to and with the counter is on the host's disk"),
    "ack.epoch": Rule("A session, 4", "an ACK of another epoch is ignored"),
    "ack.before": Rule("A session, 4", "an ACK for an event before the position is ignored"),
    "ack.ahead": Rule("A session, 4", "an ACK for an event that is not yet recorded is ignored"),
    "nak.moves": Rule("A session, 5", "NAK: the position becomes `expected`, and the events from there are sent again"),
    "nak.reasons": Rule("A session, 5", "all three reasons of a NAK have the same effect"),
    "nak.ignored": Rule("A session, 5", "a NAK of another epoch, or beyond `next`, is ignored"),
    "nak.at_once": Rule("A session, 5", "after a NAK the event is sent at once"),
    "command.answered": Rule("Commands", "a command is answered, with its ticket and the `seq` of the COMMAND"),
    "command.at_once": Rule("Commands", "a command is answered within 200 ms"),
    "command.self_test": Rule("Commands", "every device accepts the command 01, self-test"),
    "command.unknown": Rule("Commands", "an unknown command is answered with status 2"),
    "command.once": Rule("Commands", "the same ticket gets the same answer and is not run again"),
    "command.eight": Rule("Commands", "it keeps its last 8 answers"),
    "command.closed": Rule("Commands", "in a closed session a command is not answered"),
    "command.range": Rule("Commands", "values out of range are refused with reason 04"),
    "power.closed": Rule("A session, 7", "after a start the session is closed"),
    "power.uptime": Rule("Types", "after a start the uptime begins at 0"),
    "power.counters": Rule("What a device keeps", "after a start: the same epoch goes on counting, or another begins"),
    "power.kept": Rule("What a device keeps", "an event that was not acknowledged comes again after a start"),
    "power.started": Rule("Events", "`started` is the first event after a start"),
}

Verdict: TypeAlias = Literal["holds", "broken", "not tried"]


class Finding(msgspec.Struct, frozen=True):
    """The result for one rule; `seen`: the observation that broke it, or why it was not tried."""

    rule: str
    section: str
    text: str
    verdict: Verdict
    seen: str = ""


class EventKind(msgspec.Struct, frozen=True):
    """An event that such a device may report, as two hex digits, and how often it was received."""

    kind: str
    name: str
    seen: int


class Report(msgspec.Struct, frozen=True):
    """All findings. `device` is empty where none answered."""

    device: str
    findings: tuple[Finding, ...]
    kinds: tuple[EventKind, ...] = ()

    def count(self, verdict: Verdict) -> int:
        """The number of rules with this verdict."""
        return sum(finding.verdict == verdict for finding in self.findings)


class Hands(Protocol):
    """A person or program at the device."""

    async def do(self, act: Act) -> bool:
        """Do the act; False where that is impossible here."""
        ...
