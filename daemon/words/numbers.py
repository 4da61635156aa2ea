"""The languages of the console, and CLDR's rules for each (by babel): plural forms and the format of numbers.

babel is imported when the first number is written, because most sentences of the rules have no number.
"""

from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    from babel import Locale

__all__ = ["LANGS", "Lang", "Numeral", "locale", "number", "plural", "plural_forms"]

Lang: TypeAlias = Literal["en", "pt", "zh-Hant"]
LANGS: tuple[Lang, ...] = get_args(Lang)
_LOCALES: Final[Mapping[Lang, str]] = {"en": "en_GB", "pt": "pt_PT", "zh-Hant": "zh_Hant_MO"}


class Numeral(str):
    """The text of a number, with the `value` that determines the plural form."""

    __slots__ = ("value",)
    value: float | Decimal


@cache
def locale(lang: Lang) -> "Locale":
    """The data of CLDR for a language, read at first use."""
    from babel import Locale

    return Locale.parse(_LOCALES[lang])


def plural(lang: Lang, count: float | Decimal) -> str:
    """The plural form that goes with a number: "one" or "other"; each language has its own rule."""
    form: str = locale(lang).plural_form(count)
    return form if form in plural_forms(lang) else "other"


@cache
def plural_forms(lang: Lang) -> frozenset[str]:
    """The plural forms of a catalogue. "many" is left out: it is the form of whole millions."""
    return frozenset({"other", *locale(lang).plural_form.tags} - {"many"})


def number(lang: Lang, value: float | Decimal, digits: int = 0) -> Numeral:
    """A number in groups of three digits, with `digits` decimals."""
    from babel.numbers import format_decimal

    pattern = "#,##0" + ("." + "0" * digits if digits else "")
    text = format_decimal(-value if value < 0 else value, format=pattern, locale=locale(lang))
    made = Numeral("\u2212" + text if value < 0 and text.strip("0,.") else text)
    made.value = value
    return made
