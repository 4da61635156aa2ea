"""Whether two names are one person's: where two people must decide, everything compares them by this."""

import unicodedata

__all__ = ["OPENID", "person_key", "same_person"]

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
