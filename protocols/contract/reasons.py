"""Why something happened, as a code with values. A reader matches the code; sentences come from catalogues by code.

The catalogues of `daemon/words` have a sentence for each code (`reason.<code>`; of an alert `alert.<alert>.<code>`, of
fairness `fair.<code>`) in English, Portuguese and Traditional Chinese. `tests/console/test_console_rules.py` compares
the codes and the names of their values with those that the rules use.
"""

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

Code: TypeAlias = Annotated[str, Meta(max_length=64, pattern="^[a-z][a-z0-9_]*$(?!\\n)", description="a-z 0-9 _")]
Value: TypeAlias = str | int


class Reason(Struct, frozen=True, omit_defaults=True):
    """`code` names the reason, `values` fill its sentence: names, numbers, cards, or codes of their own."""

    code: Code
    values: dict[str, Value] = {}


def say(code: str, /, **values: Value) -> Reason:
    """The reason with these values."""
    return Reason(code, values)
