"""The format of a capture: a head line, then a line for each piece of bytes on a wire."""

from datetime import datetime

from msgspec import Struct

__all__ = ["CAPTURE_HEAD", "Frame", "capture_line"]

CAPTURE_HEAD = "# feltd capture 1"


class Frame(Struct, frozen=True):
    """Bytes of a capture with their time and direction (`from_device`)."""

    at: datetime
    from_device: bool
    data: bytes


def capture_line(frame: Frame) -> str:
    """One line of a capture file."""
    return f"{frame.at.isoformat()} {'<' if frame.from_device else '>'} {frame.data.hex()}"
