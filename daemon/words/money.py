"""Amounts of money as each language writes them, and as people write them into forms."""

import re
from decimal import Decimal

from daemon.words.numbers import Lang, number

__all__ = ["BadAmount", "exact", "minor_units", "money"]

_LONGEST = 13
"""Digits before the point in a form: amounts are at most 2^53 - 1 minor units."""
MOST = 2**53 - 1


class BadAmount(ValueError):
    """The text is no amount."""


def money(lang: Lang, minor: int, decimals: int, currency: str = "") -> str:
    """An amount of minor units, with all decimals; the currency where the language has it."""
    text = str(number(lang, Decimal(minor).scaleb(-decimals), decimals))
    if not currency:
        return text
    return f"{text}\u00a0{currency}" if lang == "pt" else f"{currency}\u00a0{text}"


def exact(units: int, unit: int) -> tuple[int, str]:
    """Whole minor units, rounded towards zero, and the remaining fraction as text ("": none)."""
    whole, rest = divmod(abs(units), unit)
    return (whole if units >= 0 else -whole), (f"{rest}/{unit}" if rest else "")


def minor_units(text: str, decimals: int) -> int:
    """A person's text in minor units: digits, then all decimals or none after a point or a comma.

    Grouped digits are refused, because the meaning of a comma depends on the language. Raises BadAmount.
    """
    found = re.fullmatch(rf"([-\u2212]?)([0-9]{{1,{_LONGEST}}})(?:[.,]([0-9]{{{max(decimals, 1)}}}))?", text.strip())
    if found is None or (found[3] and not decimals):
        raise BadAmount(text)
    minor: int = int(found[2]) * 10**decimals + int(found[3] or 0)
    if minor > MOST:
        raise BadAmount(text)
    return -minor if found[1] else minor
