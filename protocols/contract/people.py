"""Whether two names belong to one person. Every decision of two people compares their names by this module."""

import unicodedata

__all__ = ["OPENID", "may_be_one_person", "of_provider", "person_key", "same_person"]

OPENID = "openid"
"""Names of the users of an OpenID provider are `openid:<shown>:<subject>`, and the person may choose `shown`."""


def person_key(name: str) -> str:
    """The name without what a person may vary: case, width, invisible characters, the shown name of a provider."""
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
    """Whether it is the name of a user of the OpenID provider."""
    return person_key(name).startswith(f"{OPENID}:")


def may_be_one_person(one: str, other: str) -> bool:
    """Whether both names may be of one person: also an account of the console and one of the provider.

    The console does not know who has both.
    """
    return of_provider(one) != of_provider(other) or same_person(one, other)
