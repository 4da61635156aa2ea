"""A SAS machine that answers every poll with any bytes, well sealed: the driver neither fails nor grows."""

import asyncio
from random import Random

import msgspec
import pytest
from helpers import at_length, virtual_time

from drivers.sas_machine import SEEN
from drivers.sas_machine_memory import Memory
from protocols.contract.events import EVENT_TYPES, decode_data, encode_data, type_of
from protocols.sas.messages import (
    Ack,
    Answer,
    LongPoll,
    Nack,
    RealTime,
    Unknown,
)
from simulators.devices.sas_machine import Machine
from tests.drivers.test_sas_machine import Cable

LONGEST = 20_000  # bytes of what outlives a session


class Strange(Machine):
    """It answers a part of all long polls with noise that has a good checksum, and says any exception."""

    chance = 0.9

    def _answer(self, poll: LongPoll, now: float) -> Answer | None:
        rng = self._rng
        if rng.random() > self.chance:
            return super()._answer(poll, now)
        truly = super()._answer(poll, now)
        size = len(truly.data) if isinstance(truly, Unknown) and rng.random() < 0.7 else rng.randrange(1, 250)
        data = bytearray(
            rng.randbytes(size) if rng.random() < 0.5 else bytes.fromhex(f"{rng.randrange(100):02d}" * size)
        )
        if isinstance(truly, Unknown) and rng.random() < 0.5:
            data[:1] = truly.data[:1]  # a length, or an index, that fits
        command = poll.command if rng.random() < 0.9 else rng.randrange(1, 255)
        match rng.randrange(20):
            case 0:
                return Nack(self._address)
            case 1:
                return Ack(self._address)
            case 2:
                return RealTime(self._address, rng.randrange(256), bytes(data[:20]))
            case _:
                return Unknown(self._address, command, bytes(data))


@pytest.mark.parametrize("seed", range(at_length(4, 200)))
@virtual_time
async def test_a_machine_that_answers_anything_harms_nobody(seed: int) -> None:
    rng = Random(seed)
    cable = Cable(seed=seed)
    machine = cable.machine = Strange(rng)
    machine.chance = (0.5, 0.9, 1.0)[seed % 3]
    for _ in range(40):
        machine._tell(rng.randrange(256), cable.now)
        cable._stirred.set()
        await asyncio.sleep(rng.uniform(1, 10))
    for reason in cable.offline:  # a lost link, or a line that echoes: nothing else ends a session
        assert reason.startswith(("no answer", "the line echoes", "hung up")), reason
    for event in cable.events:
        kind = type_of(event)
        assert kind in EVENT_TYPES
        assert decode_data(kind, encode_data(event)) == event
    assert cable.notes.memory is not None
    assert len(cable.notes.memory) < LONGEST
    assert len(msgspec.json.decode(cable.notes.memory, type=Memory).seen) <= SEEN
    for task in cable._tasks:
        assert not task.done(), "the driver failed"
    await cable.close()
