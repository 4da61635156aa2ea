"""Devices that speak by messages (MQTT): one message is one line, so that their codecs are line codecs like all others.

The link makes a line of each payload it hears and a payload of each line it is given; see daemon/edge/links/mqtt.py.
"""

__all__ = ["Lines"]


class Lines:
    """Bytes, split and merged in any way, to lines without their ends; empty lines are left out."""

    def __init__(self, longest: int) -> None:
        """Fewer than `longest` bytes of an unfinished line are held."""
        self._longest = longest
        self._held = b""
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` ends.

        A line too long to be held comes out at once, `longest` bytes or more of it, and the rest of it never: its tail
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
