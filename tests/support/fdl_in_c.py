"""The FDL devices in C of docs/examples/fdl, compiled and run in this process with the clock of the test."""

import asyncio
import ctypes
import itertools
import random
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from helpers import MemoryLink

from daemon.conformance import Act
from protocols.fdl import console, frame as fdl, shaker
from simulators.devices.fdl_console import Console
from simulators.devices.fdl_device import FdlDevice
from simulators.devices.fdl_shaker import Shaker

SOURCES = Path(__file__).parents[2] / "docs/examples/fdl"
MEMORY_BYTES = 64 * 1024
OFF_S = 2.0

_SEND = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint8), ctypes.c_size_t)

EVERY = {
    "shaker": (
        *("cover", "lever", "lever 3", "uncover", "read 2 5 5", "read 6 6 1 stacked 2 leaning 0", "cover"),
        *("clasp", "clasp-over"),
    ),
    "console": ("open", "bell", "paid", "void 1", "key 1", "void 5", "key 0", "dice 2 5 5", "dice 2 5 5", "relieved"),
}
"""What hands can do at each device."""
ONE = {"shaker": "cover", "console": "bell"}
"""One event."""


def compiled(device: str, folder: Path, mistakes: Mapping[str, tuple[str, str]] | None = None) -> Path:
    """A library of the device; `mistakes` are texts of a source and what stands there instead, each found once."""
    if shutil.which("cc") is None:
        raise FileNotFoundError("cc")
    folder.mkdir(parents=True, exist_ok=True)
    for path in SOURCES.glob("*.[ch]"):
        text = path.read_text(encoding="utf-8")
        if mistakes and path.name in mistakes:
            right, wrong = mistakes[path.name]
            assert text.count(right) == 1, f"{path.name}: {right!r} stands {text.count(right)} times"
            text = text.replace(right, wrong)
        (folder / path.name).write_text(text, encoding="utf-8")
    library = folder / f"{device}.so"
    subprocess.run(
        ["cc", "-std=c99", "-O1", "-shared", "-fPIC", "-o", library, "fdl.c", f"{device}.c"],
        cwd=folder,
        check=True,
        timeout=120,
    )
    return library


class DeviceInC(MemoryLink):
    """The device at the other end of a link in memory, and the hands at it."""

    def __init__(self, library: Path, device: str) -> None:
        super().__init__()
        self._name = device
        self._library = ctypes.CDLL(str(library))
        self._memory = ctypes.create_string_buffer(MEMORY_BYTES)
        self._send = _SEND(lambda _, data, length: self.feed(ctypes.string_at(data, length)))
        self._on = False
        self._starts = 0
        self.on_write = self._hear
        self.skipped: set[Act] = set()

    def _now(self) -> ctypes.c_uint32:
        return ctypes.c_uint32(int(asyncio.get_running_loop().time() * 1000) & 0xFFFF_FFFF)

    def start(self) -> None:
        """Its power is switched on."""
        self._starts += 1
        self._library.device_start(
            self._memory, self._send, None, ctypes.c_uint32(0x1A2B_3C00 + self._starts), self._now()
        )
        self._on = True

    async def live(self) -> None:
        """Poll it each 5 ms."""
        while True:
            if self._on:
                self._library.device_poll(self._now())
            await asyncio.sleep(0.005)

    def _hear(self, data: bytes) -> None:
        if self._on:
            self._library.device_hear(data, ctypes.c_size_t(len(data)), self._now())

    def hand(self, line: str) -> None:
        """What hands do."""
        self._library.device_hand.restype = ctypes.c_bool
        assert self._library.device_hand(line.encode(), self._now()), line

    async def do(self, act: Act) -> bool:
        """The hands that the conformance test asks for."""
        if act in self.skipped:
            return False
        match act:
            case "event":
                self.hand(ONE[self._name])
            case "events":
                for _ in range(300):
                    self.hand(ONE[self._name])
            case "every":
                for line in EVERY[self._name]:
                    self.hand(line)
                    await asyncio.sleep(1.2)
            case "power":
                self._on = False
                await asyncio.sleep(OFF_S)
                self.start()
        return True


_NUMBERS = itertools.count()


class _InC(FdlDevice):
    """A simulated device whose sensors are Python and whose session is the C program."""

    library: ClassVar[Path]

    def __init__(self, rng: random.Random, serial: str) -> None:
        super().__init__(rng, serial)
        own = self.library.with_name(f"{next(_NUMBERS)}.so")  # a copy: its state is static
        shutil.copy(self.library, own)
        self._c = ctypes.CDLL(str(own))
        self._c.device_hand.restype = ctypes.c_bool
        self._memory = ctypes.create_string_buffer(MEMORY_BYTES)
        self._said = bytearray()
        self._put = _SEND(lambda _, data, length: self._said.extend(ctypes.string_at(data, length)))
        self._polled = 0.0
        self._c.device_start(self._memory, self._put, None, ctypes.c_uint32(rng.randint(1, 0xFFFF_FFFF)), self._ms(0.0))

    def _ms(self, now: float) -> ctypes.c_uint32:
        return ctypes.c_uint32(int(now / self.hurry * 1000) & 0xFFFF_FFFF)

    def _taken(self) -> bytes:
        said, self._said[:] = bytes(self._said), b""
        return said

    def due(self) -> float:
        """Each 10 ms of the host."""
        return self._polled + 0.01 * self.hurry

    def wake(self, now: float) -> bytes:
        """Poll the C program."""
        self._polled = now
        self._c.device_poll(self._ms(now))
        return self._taken()

    def hear(self, data: bytes, now: float) -> bytes:
        """Bytes for the C program."""
        self._c.device_hear(data, ctypes.c_size_t(len(data)), self._ms(now))
        return self._taken()

    def record(self, happening: fdl.Happening, now: float) -> None:
        """What happened, as hands at the C program."""
        for line in self.lines(happening):
            assert self._c.device_hand(line.encode(), self._ms(now)), line

    def lines(self, happening: fdl.Happening) -> tuple[str, ...]:
        """The hands that make it report this."""
        raise NotImplementedError


class ShakerInC(_InC, Shaker):
    """The shaker of docs/examples/fdl."""

    def lines(self, happening: fdl.Happening) -> tuple[str, ...]:
        """By the lever and the reader."""
        match happening:
            case shaker.Covered():
                return ("cover",)
            case shaker.Uncovered():
                return ("uncover",)
            case shaker.Agitated(shaker.LEVER, cycles):
                return (f"lever {cycles}",)
            case shaker.Read(faces, stacked, leaning):
                return (f"read {' '.join(map(str, faces))} stacked {stacked} leaning {leaning}",)
            case _:
                raise NotImplementedError(happening)


class ConsoleInC(_InC, Console):
    """The console of docs/examples/fdl."""

    def lines(self, happening: fdl.Happening) -> tuple[str, ...]:
        """By its keys."""
        match happening:
            case console.BetsOpened():
                return ("open",)
            case console.BetsClosed():
                return ("bell",)
            case console.Paid(""):
                return ("paid",)
            case console.RoundVoid(reason, ""):
                return (f"void {reason}",)
            case console.SupervisorKey(on):
                return (f"key {int(on)}",)
            case console.DiceEntered(faces):
                return (f"dice {' '.join(map(str, faces))}",) * 2
            case _:
                raise NotImplementedError(happening)
