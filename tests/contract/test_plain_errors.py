"""What a person typed wrong is said without the words of a programming language."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from protocols.plain_errors import plain


class Typed(Struct, forbid_unknown_fields=True):
    whole: int
    limited: Annotated[int, Meta(ge=1, le=9)] = 1
    choice: Literal["x", "y"] = "x"
    texts: tuple[str, ...] = ()
    short: Annotated[str, Meta(min_length=1, max_length=3)] = "a"
    pair: tuple[int, int] = (1, 2)
    maybe: float | None = None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "'whole' is missing"),
        ([], "must be a table of names and values, and is a list"),
        ({"whole": "7"}, "whole: must be a whole number, and is a text"),
        ({"whole": 1, "limited": 0}, "limited: must be at least 1"),
        ({"whole": 1, "limited": 10}, "limited: must be at most 9"),
        ({"whole": 1, "choice": "z"}, "choice: 'z' cannot be chosen"),
        ({"whole": 1, "texts": [1]}, 'texts[0]: must be a text in quotes, like "this", and is a whole number'),
        ({"whole": 1, "short": ""}, "short: must not be empty"),
        ({"whole": 1, "short": "abcd"}, "short: must have at most 3 characters"),
        ({"whole": 1, "pair": [1]}, "pair: must have 2 entries, and has 1"),
        ({"whole": 1, "maybe": "x"}, "maybe: must be a number, and is a text"),
        ({"whole": 1, "more": 1}, "there is no 'more'"),
    ],
)
def test_a_wrong_value_is_named_in_plain_words(given: Any, said: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(given, Typed)
    assert plain(caught.value) == said
