"""The seconds of a simulation: those of the running loop, at any speed."""

import asyncio

__all__ = ["Pace"]


class Pace:
    """The seconds of a simulation, `speed` of them to each second of the running loop."""

    def __init__(self, speed: float = 1.0) -> None:
        self._speed = speed
        self._time = asyncio.get_running_loop().time
        self._began = self._time()

    def now(self) -> float:
        """Simulated seconds since the beginning."""
        return (self._time() - self._began) * self._speed

    def real(self, seconds: float) -> float:
        """Simulated seconds as seconds of the loop."""
        return seconds / self._speed

    async def sleep(self, seconds: float) -> None:
        """Let `seconds` of simulated time pass."""
        await asyncio.sleep(self.real(seconds))
