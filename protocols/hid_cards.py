"""Barcodes of cards, as a scanner types them: 8-byte boot-keyboard reports to codes, codes to cards.

Source: the HID specification 1.11 (appendix B.1 the report, the usage tables' page 07 the keys) and public code of live
studios, which reads such scanners. A report is modifiers, a zero byte, six keys that are down now, packed to the left.
A key types when it goes down; an equal character twice needs a report between in which it is up. Enter ends a code. The
keys are those of an US layout, the factory setting of every scanner.

Card codes are suit then rank in that public code (`SA`, `H10`, `DT`); the other order and a table of any codes are
settings, because the house decides what is printed on its cards.

A report has no checksum, but the USB bus has: a report arrives complete and right, or not at all. The decoder
resynchronises a stream by the form of the reports, and a code in which that was needed is Broken. So is a code with a
key held from before its beginning, with two keys at one moment (their order is unknown), longer than LONGEST, or with
nothing before its Enter: a scanner must be set to end its codes with one Enter. Accepts any bytes without an exception.
"""

import re
from typing import Literal, TypeAlias

from msgspec import Struct

REPORT = 8
LONGEST = 64  # characters of a code
MOST = 4 * LONGEST * REPORT  # bytes reported in one piece where no code ends
RELEASED = bytes(REPORT)
ENTER = 0x28
KEYPAD_ENTER = 0x58
SHIFTS = 0x22  # left and right

_PLAIN = {0x2C: " ", 0x2D: "-", 0x2E: "=", 0x2F: "[", 0x30: "]", 0x31: "\\", 0x33: ";", 0x34: "'", 0x35: "`"}
_PLAIN |= {0x36: ",", 0x37: ".", 0x38: "/"}
_PLAIN |= {0x04 + n: letter for n, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}
_PLAIN |= {0x1E + n: digit for n, digit in enumerate("1234567890")}
_KEYPAD = {0x54: "/", 0x55: "*", 0x56: "-", 0x57: "+", 0x63: "."}
_KEYPAD |= {0x59 + n: digit for n, digit in enumerate("1234567890")}
_SHIFT = dict(zip("-=[]\\;'`,./1234567890", '_+{}|:"~<>?!@#$%^&*()', strict=True))
_SHIFTED = {key: _SHIFT.get(char, char.upper()) for key, char in _PLAIN.items()}
_TYPED = {char: (0, key) for key, char in _PLAIN.items()}
_TYPED |= {char: (2, key) for key, char in _SHIFTED.items() if char not in _TYPED}

# Every report of the usual kind, one key and at most shift, with the character it types; Enter types "\n".
_USUAL: dict[bytes, tuple[int, str]] = {}
for _modifier, _chars in ((0x00, _PLAIN), (0x02, _SHIFTED), (0x20, _SHIFTED), (0x22, _SHIFTED)):
    for _key, _char in {**_chars, **_KEYPAD, ENTER: "\n", KEYPAD_ENTER: "\n"}.items():
        _USUAL[bytes((_modifier, 0, _key)) + bytes(5)] = (_key, _char)

# What a report can look like: keys packed to the left, or all six with the code "too many at once".
_KEYS = b"|".join(b"[\\x04-\\xe7]{%d}\\x00{%d}" % (down, 6 - down) for down in range(7))
_REPORT = re.compile(b"(?s:.)\\x00(?:" + _KEYS + b"|\\x01{6})")

Why: TypeAlias = Literal["unfinished", "garbage", "held", "long"]


class Code(Struct, frozen=True):
    """A whole code, as typed, without its Enter."""

    text: str
    raw: bytes = b""


class Broken(Struct, frozen=True):
    """Reports that may have been a code. `text` is the readable part.

    `why`: it never ended, it contains bytes that are no report or no typing or is an Enter alone, a key was held from
    before, or it is longer than LONGEST.
    """

    why: Why
    text: str
    raw: bytes


Message: TypeAlias = Code | Broken


class Decoder:
    """Turns reports in any pieces into codes. Holds one code and one report."""

    def __init__(self) -> None:
        """No key is down."""
        self._bytes = b""
        self._down: frozenset[int] = frozenset()
        self._old: frozenset[int] = frozenset()  # down since before the code under way
        self._text: list[str] = []
        self._raw = bytearray()
        self._why: Why | None = None

    @property
    def waiting(self) -> bool:
        """Something has begun and is not finished: after a pause call `quiet`."""
        return bool(self._bytes) or self._begun

    @property
    def _begun(self) -> bool:
        return bool(self._text or self._why)

    @property
    def held(self) -> str:
        """The names of the keys that are down; empty: none."""
        return " ".join(_name(key) for key in sorted(self._down))

    def feed(self, data: bytes) -> list[Message]:
        """The codes completed by `data`."""
        messages: list[Message] = []
        data = self._bytes + data
        start, end = 0, len(data) - REPORT
        while start <= end:
            report = data[start : start + REPORT]
            if report == RELEASED:
                if self._down and self._begun:
                    self._raw += report
                self._down = self._old = frozenset()
            elif (usual := _USUAL.get(report)) is not None:
                self._one(*usual, report, messages)
            elif _REPORT.match(report):
                self._many(report, messages)
            else:
                found = _REPORT.search(data, start)
                until = found.start() if found else end + 1
                self._spoil("garbage", data[start:until], messages)
                start = until
                continue
            start += REPORT
        self._bytes = data[start:]
        return messages

    def quiet(self) -> list[Message]:
        """The scanner paused: the held reports are complete."""
        messages: list[Message] = []
        if self._bytes:
            self._spoil("garbage", self._bytes, messages)
            self._bytes = b""
        if self._begun:
            if self._why:
                self._down = self._old = frozenset()  # the keys in noise are ignored
            messages.append(self._broken(self._why or "unfinished"))
        return messages

    def _one(self, key: int, char: str, report: bytes, messages: list[Message]) -> None:
        """A report with one key down."""
        if key in self._down:
            if len(self._down) > 1:
                self._down = frozenset((key,))
                self._old &= self._down
                if self._begun:
                    self._raw += report
            return
        self._down = frozenset((key,))
        self._old = frozenset()
        self._type(char, report, messages)

    def _many(self, report: bytes, messages: list[Message]) -> None:
        """A report with several keys at once, with modifiers, or with keys that type nothing."""
        keys = [key for key in report[2:] if key]
        down = frozenset(keys)
        new, changed = down - self._down, down != self._down
        if not self._begun:
            self._old = self._down
        self._down = down
        self._old &= down
        if len(down) != len(keys) or 1 in down or len(new) > 1:
            self._spoil("garbage", report, messages)
        elif not new:
            if report[0] & ~SHIFTS:
                self._spoil("garbage", report, messages)
            elif changed and self._begun:
                self._raw += report
        else:
            (key,) = new
            usual = _USUAL.get(bytes((report[0], 0, key)) + bytes(5))
            if usual is None:
                self._spoil("garbage", report, messages)
            elif not self._old:
                self._type(usual[1], report, messages)
            elif usual[1] != "\n":
                self._spoil("held", report, messages, usual[1])
            else:  # also where the held key is all that the code has
                self._why = self._why or "held"
                self._type("\n", report, messages)

    def _type(self, char: str, report: bytes, messages: list[Message]) -> None:
        if char != "\n":
            if len(self._text) < LONGEST:
                self._raw += report
                self._text.append(char)
            else:
                self._spoil("long", report, messages)
        elif self._why or not self._text:  # an Enter alone may be what is left of a code
            self._raw += report
            messages.append(self._broken(self._why or "garbage"))
        else:
            messages.append(Code("".join(self._text), bytes(self._raw) + report))
            self._forget()

    def _spoil(self, why: Why, raw: bytes, messages: list[Message], char: str = "") -> None:
        """The present code, or the next one, is unreliable; a long one is reported in pieces."""
        self._why = self._why or why
        self._text.append(char)
        self._raw += raw
        if len(self._raw) >= MOST:
            messages.append(self._broken(self._why))
            self._why = why  # until an Enter or a pause

    def _broken(self, why: Why) -> Broken:
        message = Broken(why, "".join(self._text), bytes(self._raw))
        self._forget()
        return message

    def _forget(self) -> None:
        self._text.clear()
        self._raw.clear()
        self._why = None


def _name(key: int) -> str:
    if key in {ENTER, KEYPAD_ENTER}:
        return "Enter"
    return (
        _SHIFTED[key] if key in _SHIFTED and _PLAIN[key].isalpha() else {**_PLAIN, **_KEYPAD}.get(key, f"key {key:02X}")
    )


def encode(message: Code) -> bytes:
    """The reports that type the code, each key down and up, and Enter. Raises ValueError for characters without a
    key.
    """
    if not 0 < len(message.text) <= LONGEST or not set(message.text) <= set(_TYPED):
        raise ValueError(f"no scanner can type {message.text!r}")
    strokes = [_TYPED[char] for char in message.text]
    return b"".join(press(key, modifiers) + RELEASED for modifiers, key in [*strokes, (0, ENTER)])


def press(key: int, modifiers: int = 0, *held: int) -> bytes:
    """The report in which `key` is down, and the keys that are `held` at the same time."""
    return bytes((modifiers, 0, *held, key)) + bytes(5 - len(held))


def strokes_of(text: str) -> list[tuple[int, int]]:
    """The modifiers and the key of each character. Raises KeyError for a character without a key."""
    return [_TYPED[char] for char in text]


# ---- meaning of the codes

Order: TypeAlias = Literal["suit-rank", "rank-suit"]
_RANK, _SUIT = "(?P<rank>[2-9TJQKA]|10)", "(?P<suit>[HDCS])"
_ORDERS: dict[Order, re.Pattern[str]] = {
    "suit-rank": re.compile(_SUIT + _RANK),
    "rank-suit": re.compile(_RANK + _SUIT),
}


def card_in(code: str, order: Order = "suit-rank") -> str | None:
    """The card that `code` names, as rank then suit, `TH`; None if it names none."""
    found = _ORDERS[order].fullmatch(code)
    return None if found is None else found["rank"].replace("10", "T") + found["suit"]


def code_of(card: str, order: Order = "suit-rank", *, ten: Literal["10", "T"] = "10") -> str:
    """The code that names `card`."""
    rank, suit = card[0].replace("T", ten), card[1]
    return suit + rank if order == "suit-rank" else rank + suit
