"""The trial of a device that speaks FDL, part by part; each part judges its rules by the device's frames."""

import asyncio
import itertools
import random
from collections.abc import Callable

from daemon.conformance.host import (
    LATE_S,
    NO_COMMAND,
    QUIET_S,
    Host,
    NoAnswer,
    Received,
    answer_of,
    event,
    events,
    happenings,
    identity_of,
)
from daemon.conformance.rules import RULES, EventKind, Finding, Hands, Report
from protocols.fdl import frame as fdl, shaker
from protocols.link import Link, LinkLost

__all__ = ["conform"]

_OUT_OF_RANGE = {fdl.SHAKER: ((shaker.AGITATE, b"\0"), (shaker.AGITATE, b"\x0b"), (shaker.LIGHT, b"\x02"))}
REPEAT_S, BEAT_S = 0.2, 1.0
TOLERANCE = 0.3
"""The fraction by which a period may be longer or shorter."""


async def _meet(host: Host) -> None:
    """HELLO and IDENTITY: the device answers."""
    for _ in range(20):
        start = len(host.received)
        seq = await host.send(fdl.Hello(0, 0))
        found = await host.until(lambda one: one if isinstance(one.message, fdl.Identity) else None, start, 0.5)
        if found is not None:
            host.judge("hello.seq", found.seq == seq, f"seq {found.seq:02X} for {seq:02X}")
            break
    await host.hello(0, 0)


async def _heartbeats(host: Host) -> None:
    """A closed session: a heartbeat each second and nothing else."""
    assert host.identity is not None
    host.judge("hello.first", not host.identity.position, f"position {host.identity.position}")
    began = asyncio.get_running_loop().time()
    beats = [(one.at, one.message) for one in await host.listen(4.5) if isinstance(one.message, fdl.Heartbeat)]
    host.judge("heartbeat.period", beats, "none in 4.5 s")
    if not host.on_time(began):
        return
    for (at, beat), (then, later) in itertools.pairwise(beats):
        low, high = BEAT_S * (1 - TOLERANCE), BEAT_S * (1 + TOLERANCE)
        host.judge("heartbeat.period", low <= then - at <= high, f"{then - at:.2f} s")
        passed = ((later.uptime - beat.uptime) & fdl.MAX_COUNTER) / 1000
        text = f"{passed:.2f} s in {then - at:.2f} s"
        host.judge("heartbeat.uptime", abs(passed - (then - at)) < BEAT_S * TOLERANCE, text)


async def _frames(host: Host) -> None:
    """Noise is ignored, and wrong frames are thrown away."""
    hello = fdl.Hello(0, 0)

    async def answered(rule: str, data: bytes, seq: int) -> None:
        """Send these bytes, at most three times; they must be answered."""
        for _ in range(3):
            start = len(host.received)
            await host.send(data)
            if await host.until(identity_of(seq), start, 1.0):
                return host.judge(rule, True, "")
        return host.judge(rule, False, "a right frame was not answered")

    async def ignored(rule: str, data: bytes, seq: int) -> None:
        """Send these bytes, which must not be answered, and then a right frame, which must."""
        start = len(host.received)
        right, right_seq = host.frame(hello)
        await host.send(data + right)
        after = await host.until(identity_of(right_seq), start)
        host.judge(rule, after is not None, "the right frame after it was not answered")
        wrong = any(identity_of(seq)(one) for one in host.received[start:])
        host.judge(rule, not wrong, f"answered: {data[:24].hex(' ')}")

    whole, seq = host.frame(hello)
    await answered("frame.noise", b"\x11noise\xfe" + whole, seq)
    body = bytes((9, fdl.Hello.TYPE, 0)) + hello.to_bytes()
    crc_seq, length_seq, piece_seq = (host.frame(hello)[1] for _ in range(3))
    await ignored("frame.crc", _stuffed(_sealed(body, crc_seq, flip=1)), crc_seq)
    await ignored("frame.length", _stuffed(_sealed(bytes((8,)) + body[1:], length_seq)), length_seq)
    await ignored("frame.stuffing", _overreaching(_stuffed(_sealed(body, piece_seq))), piece_seq)
    whole, seq = host.frame(hello)
    await answered("frame.long", b"\0" + b"\x55" * 300 + whole, seq)
    first, one = host.frame(hello)
    second, two = host.frame(hello)
    start = len(host.received)
    await host.send(first + second[1:])
    both = [await host.until(identity_of(number), start) for number in (one, two)]
    host.judge("frame.shared", all(both), "one of two frames that share a 00 was not answered")
    whole, seq = host.frame(hello)
    start = len(host.received)
    for byte in whole:
        await host.send(bytes((byte,)))
        await asyncio.sleep(0.002)
    host.judge("frame.slow", await host.until(identity_of(seq), start), "a frame sent byte by byte was not answered")
    for type_ in (0x04, 0x3F, 0x40, 0x81, 0x90):
        seq = host.frame(hello)[1]
        await ignored("frame.later", fdl.encode_frame(type_, seq, hello.to_bytes()), seq)


def _sealed(body: bytes, seq: int, flip: int = 0) -> bytes:
    """A body with its `seq` and CRC; `flip` makes the CRC wrong."""
    body = body[:2] + bytes((seq,)) + body[3:]
    return body + (fdl.crc(body) ^ flip).to_bytes(2)


def _stuffed(body: bytes) -> bytes:
    return b"\0" + b"".join(bytes((len(piece) + 1,)) + piece for piece in body.split(b"\0")) + b"\0"


def _overreaching(frame: bytes) -> bytes:
    """The same frame with too large a length in its last COBS piece."""
    at, last = 1, 1
    while frame[at]:
        last, at = at, at + frame[at]
    return frame[:last] + bytes((frame[last] + 3,)) + frame[last + 1 :]


async def _hellos(host: Host) -> None:
    """When a session opens, and when it does not."""
    known = await host.hello(0, 0)
    start = len(host.received)
    raw, seq = host.frame(fdl.Hello(known.epoch, known.next - 1, version=2))
    await host.send(raw)
    host.judge("hello.version", await host.until(identity_of(seq), start), "a HELLO of version 2 was not answered")
    other = known.epoch % fdl.MAX_COUNTER + 1
    answer = await host.hello(other, 0)
    host.judge("hello.first", not answer.position, f"position {answer.position} for another epoch")
    known = await host.opened()
    answer = await host.hello(known.epoch, min(answer.next + 1000, fdl.MAX_COUNTER))
    host.judge("hello.ahead", not answer.position, f"position {answer.position} for `last` beyond `next`")
    known = await host.hello(0, 0)
    start = len(host.received)
    host.open = None
    payload = fdl.Hello(known.epoch, known.next - 1).to_bytes() + b"\x01\x02\x03"
    seq = host.frame(fdl.Hello(0, 0))[1]
    await host.send(fdl.encode_frame(fdl.Hello.TYPE, seq, payload))
    more = await host.until(identity_of(seq), start)
    host.judge("frame.more", more is not None and more.position, "a HELLO with three bytes more opened no session")
    await host.opened()
    await host.drain()
    received = await host.listen(QUIET_S)
    talk = [one.message for one in received if not isinstance(one.message, fdl.Heartbeat)]
    host.judge("event.quiet", not talk, f"{type(talk[0]).__name__}" if talk else "")


async def _one_event(host: Host) -> None:
    """One event, not acknowledged: its repetition, its age, and the ACKs and NAKs to ignore."""
    await host.opened()
    await host.drain()
    start = len(host.received)
    if not await host.hands.do("event"):
        return
    report = await host.until(event, start, 30.0)
    host.judge("event.sent", report, "none came after the act at the device")
    if report is None:
        return
    began = asyncio.get_running_loop().time()
    await host.listen(6 * REPEAT_S)
    reported = events(host.received[start:])
    host.judge("event.sent", len(reported) > 1 or await host.take(), "it was not repeated")
    others = {one.counter for _, one in reported} - {report.counter}
    host.judge("event.single", not others, f"{report.counter} is not acknowledged, and {others} came")
    if host.on_time(began):
        host.judge("event.rhythm", len(reported) > 3, f"{len(reported)} times in {6 * REPEAT_S:.1f} s")
    for (at, one), (then, later) in itertools.pairwise(reported):
        low, high = REPEAT_S * (1 - TOLERANCE), REPEAT_S * (1 + TOLERANCE)
        if host.on_time(began):
            host.judge("event.rhythm", low <= then - at <= high, f"{(then - at) * 1000:.0f} ms")
            grown = (later.age - one.age) / 1000
            known = fdl.AGE_UNKNOWN not in {one.age, later.age}
            text = f"{grown:.2f} s in {then - at:.2f} s"
            host.judge("event.age", not known or abs(grown - (then - at)) < 0.1, text)
    await _wrong_answers(host, report.counter)
    await host.acknowledge(report.counter)
    after = await host.fence()
    again = [one for _, one in events([*host.received[after:], *await host.listen(QUIET_S)])]
    host.judge("ack.moves", report.counter not in {one.counter for one in again}, "it was repeated after its ACK")
    await host.drain()


async def _wrong_answers(host: Host, counter: int) -> None:
    """ACKs and NAKs that must be ignored: the event stays at the position."""
    assert host.identity is not None
    epoch, beyond = host.identity.epoch, min(host.next + 500, fdl.MAX_COUNTER)
    other = epoch % fdl.MAX_COUNTER + 1
    cases: list[tuple[str, fdl.Message]] = [
        ("ack.epoch", fdl.Ack(other, counter)),
        ("ack.ahead", fdl.Ack(epoch, beyond)),
        ("nak.ignored", fdl.Nak(fdl.GAP, other, counter + 1)),
        ("nak.ignored", fdl.Nak(fdl.GAP, epoch, beyond)),
    ]
    for rule, message in cases:
        await host.send(message)
        after = await host.fence()
        still = await host.until(event, after)
        text = f"event {counter} was at the position, and {still.counter if still else 'none'} came"
        host.judge(rule, still is not None and still.counter == counter, text)
        await host.hello(epoch, counter - 1)


async def _again(host: Host) -> None:
    """Acknowledged events are sent again when a NAK requests them."""
    for _ in range(3):
        if not await host.hands.do("event"):
            return
    await host.drain()
    known = await host.hello(0, 0)
    first = max(known.oldest, known.next - 3)
    if first >= known.next:
        return
    expected = list(range(first, known.next))
    await host.opened()
    for reason in (fdl.UNREADABLE, fdl.GAP, fdl.MALFORMED):
        start = len(host.received)
        began = asyncio.get_running_loop().time()
        await host.send(fdl.Nak(reason, known.epoch, first))
        found = await host.until(lambda one: one if event(one) else None, start, QUIET_S)
        if found is not None:
            host.judge_time("nak.at_once", began, found.at - began, 0, 0.1 + LATE_S)
            others = {one.counter for _, one in events(await host.listen(2 * REPEAT_S))} - {first}
            host.judge("event.single", not others, f"{first} is not acknowledged, and {others} came")
        counters = sorted({_event_counter(found)} | {one.counter for one in await host.drain()}) if found else []
        text = f"after NAK {reason} for {first} came {counters}"
        host.judge("nak.moves" if reason == fdl.GAP else "nak.reasons", counters == expected, text)
    await host.opened(first - 1)
    counters = [one.counter for one in await host.drain()]
    host.judge("hello.opens", counters == expected, f"from {first} on came {counters}")
    if len(expected) > 2:
        await host.opened(known.next - 2)
        await host.acknowledge(first)
        after = await host.fence()
        still = await host.until(event, after)
        holds = still is not None and still.counter == known.next - 1
        host.judge("ack.before", holds, f"event {known.next - 1} was at the position, and {still} came")
    await host.opened(first - 1)
    await host.acknowledge(known.next - 1)
    after = await host.fence()
    late = [one.counter for _, one in events([*host.received[after:], *await host.listen(QUIET_S)])]
    host.judge("ack.moves", not late, f"after an ACK for {known.next - 1} came {late}")


def _event_counter(one: Received) -> int:
    report = event(one)
    return report.counter if report else 0


async def _closed(host: Host) -> None:
    """What happens in a closed session is kept, and sent when it opens."""
    await host.opened()
    await host.drain()
    known = await host.hello(0, 0)
    ticket = 0x7FFF_FFFF
    start = len(host.received)
    await host.send(fdl.Command(ticket, fdl.SELF_TEST))
    if not await host.hands.do("event"):
        return
    await host.listen(QUIET_S)
    answered = any(answer_of(ticket)(one) for one in host.received[start:])
    host.judge("command.closed", not answered, "a command was answered in a closed session")
    last = known.next - 1
    opened = await host.opened(last)
    if opened.next > last + 1:
        reported = [one.counter for one in await host.drain()]
        text = f"events {last + 1} to {opened.next - 1} happened, and {reported} came"
        host.judge("event.sent", reported[: opened.next - 1 - last] == list(range(last + 1, opened.next)), text)


async def _commands(host: Host) -> None:
    """Each ticket once."""
    await host.opened()
    await host.drain()
    assert host.identity is not None
    first = host.tickets(8)
    answer = await host.order(fdl.SELF_TEST, ticket=first)
    host.judge("command.self_test", answer is not None and answer.status == fdl.DONE, f"{answer}")
    again = await host.order(NO_COMMAND, ticket=first)
    host.judge("command.once", again == answer, f"{answer}, then {again}")
    for ticket in range(first + 1, first + 8):
        unknown = await host.order(NO_COMMAND, ticket=ticket)
        host.judge("command.unknown", unknown is not None and unknown.status == fdl.NOT_KNOWN, f"{unknown}")
    again = await host.order(NO_COMMAND, ticket=first)
    host.judge("command.eight", again == answer, f"{answer}, then, seven tickets later, {again}")
    for code, data in _OUT_OF_RANGE.get(host.identity.kind, ()):
        refused = await host.order(code, data)
        holds = refused is not None and (refused.status, refused.reason) == (fdl.REFUSED, 0x04)
        host.judge("command.range", holds, f"command {code:02X} {data.hex()}: {refused}")
    await host.drain()


async def _everything(host: Host) -> None:
    """Each event of its kind."""
    await host.opened()
    acting = asyncio.ensure_future(host.hands.do("every"))
    while not acting.done():
        await host.drain()
    if await acting:
        await host.drain()


async def _ring(host: Host) -> None:
    """More events than the ring holds."""
    known = await host.opened()
    if known.oldest < 3 and not await host.hands.do("events"):
        return
    await host.drain()
    known = await host.hello(0, 0)
    if known.oldest < 3:
        return
    gone = await host.hello(known.epoch, known.oldest - 2)
    host.judge("hello.opens", gone.position == known.oldest - 1, f"position {gone.position}")
    received = await host.listen(QUIET_S)
    identities = [one.message for one in received if isinstance(one.message, fdl.Identity)]
    host.judge("ring.gone", identities, "no IDENTITY came in the place of the event")
    host.judge("ring.gone", not events(received), "an event came that is not the one at the position")
    await host.opened()


async def _power(host: Host) -> None:
    """Off, with an event that was not acknowledged, and on again."""
    known = await host.opened()
    await host.drain()
    start = len(host.received)
    pending = await host.until(event, start, 30.0) if await host.hands.do("event") else None
    start = len(host.received)
    host.open = None
    if not await host.hands.do("power"):
        return
    beat = await host.until(_young_beat, start, 60.0)
    host.judge("power.uptime", beat, "no heartbeat with an uptime below 5 s within a minute")
    if beat is None:
        return
    host.judge("power.closed", beat.waits, f"flags {beat.flags:02X}")
    host.open, host.faults_known = False, True
    host.standing.clear()
    await host.listen(QUIET_S)
    before = known.next - 1
    answer = await host.hello(known.epoch, before)
    if answer.epoch == known.epoch:
        counted = answer.position == before + 1 and answer.next > max(before, pending.counter if pending else 0)
        host.judge("power.counters", counted, f"next {answer.next} after {host.next}, position {answer.position}")
        reported = await host.drain()
        if pending is not None:
            same = [(one.kind, one.data) for one in reported if one.counter == pending.counter]
            text = f"event {pending.counter} {pending.kind:02X}, then {same}"
            host.judge("power.kept", same == [(pending.kind, pending.data)], text)
            reported = [one for one in reported if one.counter > pending.counter]
    else:
        host.judge("power.counters", not answer.position, f"position {answer.position} in another epoch")
        await host.opened(answer.oldest - 1)
        reported = await host.drain()
    kinds = [one.kind for one in reported]
    host.judge("power.started", fdl.Started.KIND in kinds[:1], f"the events after the start are {kinds}")


def _young_beat(one: Received) -> fdl.Heartbeat | None:
    return one.message if isinstance(one.message, fdl.Heartbeat) and one.message.uptime < 5000 else None


_NEEDS_HANDS = "the act at the device that it needs was not done"


async def conform(
    link: Link, hands: Hands, *, seed: int | None = None, on_part: Callable[[str], object] = id
) -> Report:
    """Test the device, part by part. `on_part` gets the name of each part as it begins."""
    host = Host(link, hands, random.Random(seed))
    watching = asyncio.create_task(host.watch_lateness())
    parts = (_meet, _heartbeats, _frames, _hellos, _commands, _one_event, _again, _closed, _everything, _ring, _power)
    stopped = ""
    try:
        for part in parts:
            on_part((part.__doc__ or "").partition("\n")[0])
            try:
                await part(host)
            except NoAnswer:
                stopped = f"the device did not answer any more in: {part.__doc__}"
                if host.identity is None:
                    break
    except LinkLost as lost:
        stopped = f"the link was lost: {lost}"
    finally:
        watching.cancel()
        await asyncio.wait([watching])
    return _report(host, stopped)


def _report(host: Host, stopped: str) -> Report:
    findings = []
    for name, rule in RULES.items():
        if name in host.broken:
            found = Finding(name, rule.section, rule.text, "broken", host.broken[name])
        elif name in host.held:
            found = Finding(name, rule.section, rule.text, "holds")
        else:
            found = Finding(name, rule.section, rule.text, "not tried", stopped or _NEEDS_HANDS)
        findings.append(found)
    unit = host.identity
    if unit is None:
        return Report("", tuple(findings))
    own = happenings(unit.kind)
    kinds = tuple(EventKind(f"{kind:02X}", one.__name__, host.seen.get(kind, 0)) for kind, one in sorted(own.items()))
    title = fdl.KINDS.get(unit.kind, f"kind {unit.kind:02X}")
    text = f"{unit.vendor} {unit.model} {unit.serial}, firmware {unit.firmware}: {title}"
    return Report(text, tuple(findings), kinds)
