"""How SAS writes values: BCD, text, dates, single bytes, and the checksum."""

import binascii
import re

REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def crc(data: bytes) -> bytes:
    """CRC-16/KERMIT over `data`, as it is sent. It is the library's CRC with the bits of each byte reversed."""
    mirrored = binascii.crc_hqx(data.translate(REVERSED), 0)
    return bytes((REVERSED[mirrored >> 8], REVERSED[mirrored & 0xFF]))


def whole(frame: bytes) -> bool:
    return crc(frame[:-2]) == frame[-2:]


def bcd_digits(data: bytes) -> str:
    """Raises ValueError for a half byte that is no decimal digit."""
    digits = data.hex()
    if not digits.isdecimal():
        raise ValueError("no BCD")
    return digits


def from_bcd(data: bytes) -> int:
    """Raises ValueError for a half byte that is no decimal digit."""
    return int(bcd_digits(data))


def to_bcd(value: int, width: int) -> bytes:
    if not 0 <= value < 100**width:
        raise ValueError(f"{value} does not fit into {width} bytes of BCD")
    return bytes.fromhex(f"{value:0{2 * width}d}")


_PRINTABLE = re.compile(rb"[\x20-\x7e]*")
_PADDING = b"\0 \xff"


def from_text(data: bytes) -> str:
    """The text without its padding; unprintable bytes become \\xNN."""
    return "".join(chr(byte) if 0x20 <= byte <= 0x7E else f"\\x{byte:02x}" for byte in data.strip(_PADDING))


def to_text(text: str, width: int) -> bytes:
    data = text.encode()
    if len(data) > width or _PRINTABLE.fullmatch(data) is None:
        raise ValueError(f"{text!r} is not {width} printable characters")
    return data.ljust(width, b"\0")


def to_at(data: bytes) -> str:
    """MMDDYYYY, then HHMMSS."""
    digits = bcd_digits(data)
    return f"{digits[4:8]}-{digits[:2]}-{digits[2:4]}T{digits[8:10]}:{digits[10:12]}:{digits[12:]}"


def from_at(at: str) -> bytes:
    digits = re.sub("[-T:]", "", at)
    return bytes.fromhex(digits[4:8] + digits[:4] + digits[8:])


def to_byte(value: int) -> bytes:
    if not 0 <= value <= 0xFF:
        raise ValueError(f"{value} does not fit into a byte")
    return bytes((value,))
