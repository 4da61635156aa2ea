"""Compares user names to find out whether they belong to one person. Every decision by two people calls it."""

import unicodedata

__all__ = ["OPENID", "may_be_one_person", "of_provider", "person_key", "same_person"]

OPENID = "openid"
"""Users of an OpenID provider are named `openid:<shown>:<subject>`; a person may choose the display name `shown`."""


def person_key(name: str) -> str:
    """The name without the parts that a person can vary: case, character width, invisible characters, display name."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    visible = "".join(one for one in folded if unicodedata.category(one) not in ("Cc", "Cf")).strip()
    kind, _, rest = visible.partition(":")
    if kind == OPENID and ":" in rest:
        return f"{OPENID}:{rest.partition(':')[2]}"
    return visible


def same_person(one: str, other: str) -> bool:
    """Whether both names are those of one person."""
    return person_key(one) == person_key(other)


def of_provider(name: str) -> bool:
    """Whether the name is that of a user of the OpenID provider."""
    return person_key(name).startswith(f"{OPENID}:")


def may_be_one_person(one: str, other: str) -> bool:
    """Whether two names may belong to one person.

    True for an account of the console and one of the provider, because the console cannot compare them.
    """
    return of_provider(one) != of_provider(other) or same_person(one, other)
