"""Validation errors of msgspec in plain words, for a person's configuration, options and commands."""

import re

__all__ = ["plain"]

_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": 'a text in quotes, like "this"',
    "bool": "true or false",
    "array": "a list in [ ]",
    "object": "a table of names and values",
    "null": "nothing",
    "datetime": "a date with a time",
}
_SENT = _KINDS | {"str": "a text", "array": "a list", "object": "a table", "bool": "true or false"}
_PLACE = re.compile(r" - at `(?:key` in `)?\$?\.?([^`]*)`$")
_EXPECTED = re.compile(r"Expected `(\w+(?: \| \w+)*)`(?:, got `(\w+)`)?")
_LIMIT = re.compile(r"Expected `\w+` (>=|<=|>|<) (\S+)")
_LENGTH = re.compile(r"Expected `(str|array|object)` of (?:at (?:least|most) )?length ?(>=|<=)? ?(\d+)")
_LIMITS = {">=": "at least {}", "<=": "at most {}", ">": "more than {}", "<": "less than {}"}
_PARTS = {"str": "characters", "array": "entries", "object": "entries"}


def plain(error: Exception | str) -> str:
    """The message of a `msgspec.ValidationError` in plain words, and where in the value it is."""
    text = str(error)
    place = _PLACE.search(text)
    said = _said(text[: place.start()] if place else text)
    return f"{place[1]}: {said}" if place and place[1] else said


def _said(text: str) -> str:
    if found := _LENGTH.fullmatch(text):
        if found[1] == "str" and found[2] == ">=" and found[3] == "1":
            return "must not be empty"
        return f"must have {_LIMITS.get(found[2], '{}').format(found[3])} {_PARTS[found[1]]}"
    if found := _LIMIT.fullmatch(text):
        return f"must be {_LIMITS[found[1]].format(found[2])}"
    if found := _EXPECTED.fullmatch(text):
        wanted = " or ".join(_KINDS.get(kind, kind) for kind in found[1].split(" | ") if kind != "null")
        return f"must be {wanted}" + (f", and is {_SENT.get(found[2], found[2])}" if found[2] else "")
    if found := re.fullmatch(r"Expected `array` of length (\d+), got (\d+)", text):
        return f"must have {found[1]} entries, and has {found[2]}"
    if found := re.fullmatch(r"Object contains unknown field `(.*)`", text):
        return f"there is no {found[1]!r}"
    if found := re.fullmatch(r"Object missing required field `(.*)`", text):
        return f"{found[1]!r} is missing"
    if found := re.fullmatch(r"Invalid enum value (.*)", text):
        return f"{found[1]} cannot be chosen"
    return text
