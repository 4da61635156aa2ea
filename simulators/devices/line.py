"""Faults of the line between a device and its host: cables, adapters and settings.

They are the same for every device. A device lists in its `line` what the host must report of each.
"""

import random
from typing import ClassVar

__all__ = ["Line"]

SILENCE = 8.0
DRIP, DRIPPING = 0.005, 10.0
SCRAMBLE = 6.0
REPEATS = 5
NOISE = 40
UNPLUGGED = 5.0
WAITING = 4096


class Line:
    """The line in both directions. Slow bytes wait inside."""

    FAULTS: ClassVar[tuple[str, ...]] = (
        "garbage",
        "half_frame",
        "repeated",
        "silence",
        "slow_drip",
        "wrong_baud",
        "unplugged",
    )

    def __init__(self, rng: random.Random) -> None:
        """A good line."""
        self._rng = rng
        self._noise = False
        self._half = False
        self._repeats = 0
        self._mute_until = 0.0
        self._scrambled_until = 0.0
        self._drip_until = 0.0
        self._drops: list[tuple[float, int]] = []
        self.plug_at = float("inf")
        """When a pulled cable is put back; infinity while it is in."""

    def inject(self, fault: str, now: float) -> None:
        """Begin one of FAULTS. Raises ValueError for another."""
        match fault:
            case "garbage":
                self._noise = True
            case "half_frame":
                self._half = True
            case "repeated":
                self._repeats = REPEATS
            case "silence":
                self._mute_until = now + SILENCE
            case "slow_drip":
                self._drip_until = now + DRIPPING
            case "wrong_baud":
                self._scrambled_until = now + SCRAMBLE
            case "unplugged":
                self.plug_at = now + UNPLUGGED
            case _:
                raise ValueError(f"a line has no fault {fault!r}; it has: {', '.join(self.FAULTS)}")

    def due(self) -> float:
        """When the line next delivers bytes by itself, or a pulled cable is put back."""
        return min(self._drops[0][0], self.plug_at) if self._drops else self.plug_at

    def to_host(self, data: bytes, now: float) -> bytes:
        """The bytes that reach the host now."""
        if not data and not self._drops:
            return b""
        if data and self._half:
            self._half = False
            data = data[: max(len(data) // 2, 1)]
        if data and self._repeats:
            self._repeats -= 1
            data += data
        if data and self._noise:
            self._noise = False
            data = self._rng.randbytes(NOISE) + data
        if data and now < self._drip_until:
            start = self._drops[-1][0] if self._drops else now
            room = WAITING - len(self._drops)
            self._drops += [(start + n * DRIP, byte) for n, byte in enumerate(data[:room], 1)]
            data = b""
        if self._drops:
            dripped = [byte for at, byte in self._drops if at <= now]
            del self._drops[: len(dripped)]
            if data and self._drops:  # later bytes stay behind the slow ones
                self._drops += [(self._drops[-1][0], byte) for byte in data]
                data = b""
            data = bytes(dripped) + data
        return self._through(data, now)

    def to_device(self, data: bytes, now: float) -> bytes:
        """The host's bytes as they reach the device."""
        return self._through(data, now)

    def _through(self, data: bytes, now: float) -> bytes:
        if now < self._mute_until:
            return b""
        if now < self._scrambled_until:
            return bytes(byte ^ self._rng.randrange(1, 256) for byte in data)
        return data
