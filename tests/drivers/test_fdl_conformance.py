"""The conformance test of FDL: right devices pass it, and each mistake planted in a device is found by its rule."""

import asyncio
import random
from pathlib import Path

import pytest
from fdl_in_c import DeviceInC, compiled
from helpers import MemoryLink, virtual_time

from daemon.conformance import Act, Report, conform
from protocols.fdl import frame as fdl
from simulators import SIMULATORS
from simulators.devices.fdl_device import FdlDevice


async def tried(device: "DeviceInC | Simulated") -> Report:
    device.start()
    life = asyncio.create_task(device.live())
    try:
        return await conform(device, device, seed=1)
    finally:
        life.cancel()
        await asyncio.wait([life])


def broken(report: Report) -> dict[str, str]:
    return {finding.rule: finding.seen for finding in report.findings if finding.verdict == "broken"}


@pytest.mark.parametrize("device", ["shaker", "console"])
@virtual_time
async def test_the_devices_in_c_conform(device: str, tmp_path: Path) -> None:
    report = await tried(DeviceInC(compiled(device, tmp_path), device))
    assert broken(report) == {}
    untried = {finding.rule for finding in report.findings if finding.verdict == "not tried"}
    assert untried == ({"command.range"} if device == "console" else set())


# What is planted: the file, what stands there, what is written in its place, and the rules that must find it.
MISTAKES = {
    "the CRC is not checked": (
        "fdl.c",
        "if (crc16(bytes, to - CRC) != (uint16_t)(bytes[to - 2] << 8 | bytes[to - 1]))",
        "if (0)",
        {"frame.crc"},
    ),
    "len is not checked": ("fdl.c", "(size_t)bytes[0] + HEAD + CRC != to", "0", {"frame.length"}),
    "pieces may reach beyond the frame": (
        "fdl.c",
        "if (piece == 0 || from + piece - 1 > length)\n            return 0;",
        "if (from + piece - 1 > length)\n            piece = length - from + 1;",
        {"frame.stuffing"},
    ),
    "bytes after the fields are not allowed": ("fdl.c", "if (length >= 9 &&", "if (length == 9 &&", {"frame.more"}),
    "a frame that is too long is never over": (
        "fdl.c",
        "device->too_long = false;\n        } else",
        "} else",
        {"frame.long"},
    ),
    "a first 00 is needed for each frame": (
        "fdl.c",
        "            device->heard_length = 0;\n            device->too_long = false;",
        (
            "            device->too_long = device->heard_length && !device->too_long;\n"
            "            device->heard_length = 0;"
        ),
        {"frame.shared"},
    ),
    "an answer has a seq of its own": (
        "fdl.c",
        "send_identity(device, seq);",
        "send_identity(device, ++device->seq);",
        {"hello.seq"},
    ),
    "any epoch opens the session": ("fdl.c", "epoch == device->memory->epoch && last <", "last <", {"hello.first"}),
    "a host that is ahead opens the session": (
        "fdl.c",
        "epoch == device->memory->epoch && last < device->memory->next",
        "epoch == device->memory->epoch",
        {"frame.malformed"},  # its IDENTITY has a position that cannot be
    ),
    "another version is not answered": (
        "fdl.c",
        "    if (length >= 9 && payload[0] == FDL_VERSION) {",
        "    if (payload[0] != FDL_VERSION)\n        return;\n    if (length >= 9) {",
        {"hello.version"},
    ),
    "heartbeats each two seconds": ("fdl.c", "BEAT_MS = 1000", "BEAT_MS = 2000", {"heartbeat.period"}),
    "uptime in seconds": (
        "fdl.c",
        "put32(payload, now - device->started_at);",
        "put32(payload, (now - device->started_at) / 1000);",
        {"heartbeat.uptime"},
    ),
    "the heartbeat never says that the session is closed": (
        "fdl.c",
        "(device->open ? 0 : NEEDS_HELLO)",
        "0",
        {"heartbeat.closed", "power.closed"},
    ),
    "the heartbeat never says that a fault stands": (
        "fdl.c",
        "(device->standing ? FAULTY : 0)",
        "0",
        {"heartbeat.fault"},
    ),
    "the heartbeat names the last event": (
        "fdl.c",
        "put32(payload + 4, device->memory->next);\n    payload[8]",
        "put32(payload + 4, device->memory->next - 1);\n    payload[8]",
        {"heartbeat.next"},
    ),
    "events are sent in a closed session": (
        "fdl.c",
        "    if (device->open && device->position < device->memory->next",
        "    if (device->position && device->position < device->memory->next",
        {"event.closed"},
    ),
    "an event is sent once": (
        "fdl.c",
        "device->send_at = now + REPEAT_MS;",
        "device->send_at = now + 0x7FFFFFFF;",
        {"event.sent"},
    ),
    "events are repeated each second": ("fdl.c", "REPEAT_MS = 200", "REPEAT_MS = 1000", {"event.rhythm"}),
    "the age stands still": ("fdl.c", "now - device->happened[event->counter % SLOTS]", "1", {"event.age"}),
    "two events at once": (
        "fdl.c",
        "due(device->send_at, now))\n        send_event(device, now);",
        (
            "due(device->send_at, now)) {\n        send_event(device, now);\n"
            "        if (++device->position < device->memory->next)\n            send_event(device, now);\n"
            "        device->position--;\n    }"
        ),
        {"event.single"},
    ),
    "an ACK of another epoch counts": (
        "fdl.c",
        "get32(payload) != device->memory->epoch || counter < device->position",
        "counter < device->position",
        {"ack.epoch"},
    ),
    "an ACK ahead counts": (
        "fdl.c",
        " || counter >= device->memory->next)\n        return;",
        ")\n        return;",
        {"ack.ahead"},
    ),
    "an ACK goes back": ("fdl.c", "counter < device->position || ", "", {"ack.before"}),
    "an ACK moves by one event": ("fdl.c", "device->position = counter + 1;", "device->position++;", {"ack.moves"}),
    "a NAK is ignored": ("fdl.c", "device->position = expected;", "", {"nak.moves", "nak.reasons"}),
    "only a gap is a reason": (
        "fdl.c",
        "expected == 0 || expected > device->memory->next)",
        "expected == 0 || expected > device->memory->next || payload[0] != 2)",
        {"nak.reasons"},
    ),
    "a NAK of another epoch counts": ("fdl.c", "get32(payload + 1) != device->memory->epoch || ", "", {"nak.ignored"}),
    "commands are taken in a closed session": (
        "fdl.c",
        "if (device->open && size >= 5)",
        "if (size >= 5)",
        {"command.closed"},
    ),
    "a ticket is run again": (
        "fdl.c",
        "device->answers[at].ticket == ticket && ticket",
        "0",
        {"command.once", "command.eight"},
    ),
    "one answer is kept": ("fdl.c", "(device->next_answer + 1) % FDL_ANSWERS", "0", {"command.eight"}),
    "every command is taken": (
        "fdl.c",
        "answer->status = FDL_NOT_KNOWN;",
        "answer->status = FDL_TAKEN;",
        {"command.unknown"},
    ),
    "no self-test": ("fdl.c", "payload[4] == SELF_TEST && length == 5", "0", {"command.self_test"}),
    "eleven cycles are taken": ("shaker.c", "MAX_CYCLES = 10", "MAX_CYCLES = 11", {"command.range"}),
    "a reading without its count": (
        "shaker.c",
        "{(uint8_t)stacked, (uint8_t)leaning, DICE}",
        "{(uint8_t)stacked, (uint8_t)leaning, 0}",
        {"event.data"},
    ),
    "a short ring": (
        "fdl.c",
        "return next > FDL_RING ? next - FDL_RING : 1;",
        "return next > 100 ? next - 100 : 1;",
        {"ring.size"},
    ),
    "silence for an event that is gone": (
        "fdl.c",
        "        send_identity(device, ++device->seq);\n        return;",
        "        return;",
        {"ring.gone"},
    ),
    "the counter goes back": (
        "fdl.c",
        "    device->first_known = memory->next;\n",
        "    device->first_known = memory->next = 1;\n",
        {"power.counters", "identity.counters", "heartbeat.next"},
    ),
    "an event is lost with the power": (
        "fdl.c",
        "    device->first_known = memory->next;\n",
        "    memory->next -= memory->next > 1;\n    device->first_known = memory->next;\n",
        {"power.counters", "power.kept", "event.same", "power.started"},
    ),
    "a start is no event": ("fdl.c", "    fdl_record(device, FDL_STARTED, NULL, 0, now);\n", "", {"power.started"}),
    "the session outlives a start": (
        "fdl.c",
        "    device->started_at = device->beat_at = now;",
        (
            "    device->open = memory->next > 1;\n    device->position = memory->next;\n"
            "    device->started_at = device->beat_at = now;"
        ),
        {"power.closed"},
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@virtual_time
async def test_a_mistake_in_the_device_is_found_by_its_rule(mistake: str, tmp_path: Path) -> None:
    file, right, wrong, rules = MISTAKES[mistake]
    report = await tried(DeviceInC(compiled("shaker", tmp_path, {file: (right, wrong)}), "shaker"))
    found = broken(report)
    assert rules & set(found), found


class Simulated(MemoryLink):
    """A simulated device at the other end of a link in memory, and the hands at it."""

    def __init__(self, name: str) -> None:
        super().__init__()
        device = SIMULATORS[name](random.Random(1))
        assert isinstance(device, FdlDevice)
        self._device = device
        self.on_write = self._hear

    def start(self) -> None:
        """It runs from the beginning."""

    async def live(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            self._tell(self._device.wake(clock()))
            await asyncio.sleep(0.005)

    def _hear(self, data: bytes) -> None:
        self._tell(self._device.hear(data, asyncio.get_running_loop().time()))

    def _tell(self, said: bytes) -> None:
        if said:
            self.feed(said)

    async def do(self, act: Act) -> bool:
        now = asyncio.get_running_loop().time()
        match act:
            case "event":
                self._device.record(fdl.Recovered(0x06), now)
            case "events":
                for _ in range(300):
                    self._device.record(fdl.Recovered(0x06), now)
            case "every":
                for name, pause in self._device.routine:
                    self._device.acts()[name](asyncio.get_running_loop().time())
                    await asyncio.sleep(pause)
                self._device.inject("door_open", asyncio.get_running_loop().time())
                await asyncio.sleep(2)
                self._device.repair(asyncio.get_running_loop().time())
            case "power":
                self._device.power_cycle(now, lose_memory=False)
                await asyncio.sleep(2)
        return True


FDL_SIMULATORS = [name for name, kind in SIMULATORS.items() if issubclass(kind, FdlDevice)]


@pytest.mark.parametrize("name", FDL_SIMULATORS)
@virtual_time
async def test_the_simulated_devices_conform(name: str) -> None:
    report = await tried(Simulated(name))
    assert broken(report) == {}
