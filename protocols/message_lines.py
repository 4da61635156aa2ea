"""Devices that speak MQTT: one message is one line, so their codecs are line codecs like all others.

`daemon/edge/links/mqtt.py` turns each received payload into a line, and each line into a payload.
"""

__all__ = ["Lines"]


class Lines:
    """Splits bytes that arrive in any pieces into lines without their ends. Empty lines are dropped."""

    def __init__(self, longest: int) -> None:
        """Holds fewer than `longest` bytes of an unfinished line."""
        self._longest = longest
        self._held = b""
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes.

        A line that is too long is returned at once, with `longest` bytes or more of it. Its rest is dropped, because it
        might look like a message.
        """
        *lines, rest = (self._held + data).split(b"\n")
        if self._skipping and lines:
            del lines[0]
            self._skipping = False
        elif self._skipping:
            rest = b""
        if len(rest) >= self._longest:
            lines.append(rest)
            self._skipping = True
            rest = b""
        self._held = rest
        return [stripped for line in lines if (stripped := line.strip())]
