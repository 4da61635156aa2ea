"""What people read, in the three languages of a Macau floor. Every key stands in each of them: a test says so."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Literal, TypeAlias, get_args

__all__ = ["LANGS", "Lang", "catalog", "choose", "say"]

Lang: TypeAlias = Literal["en", "pt", "zh-Hant"]
LANGS: tuple[Lang, ...] = get_args(Lang)
# What browsers call them.
ALSO: Mapping[str, Lang] = {"zh": "zh-Hant", "zh-tw": "zh-Hant", "zh-hk": "zh-Hant", "zh-mo": "zh-Hant"}


@cache
def catalog(lang: Lang) -> Mapping[str, str]:
    """All words of one language: every `words/*<lang>.toml`."""
    found: dict[str, str] = {}
    for file in sorted(resources.files("daemon.console").joinpath("words").iterdir(), key=lambda file: file.name):
        if file.name == f"{lang}.toml" or file.name.endswith(f".{lang}.toml"):
            found |= tomllib.loads(file.read_text(encoding="utf-8"))
    return found


def say(lang: Lang, key: str, /, **values: Any) -> str:
    """The words of `key`; what nobody translated, a game's own word for instance, stands as it is."""
    text = catalog(lang).get(key) or catalog("en").get(key)
    return key.rpartition(".")[2].replace("_", " ") if text is None else text.format(**values) if values else text


def choose(cookie: str, accepted: str) -> Lang:
    """The language a person chose, or else the first of those the browser accepts."""
    for lang in LANGS:
        if cookie == lang:
            return lang
    for part in accepted.split(","):
        word = part.partition(";")[0].strip().lower()
        while word:
            for lang in LANGS:
                if word == lang.lower():
                    return lang
            if word in ALSO:
                return ALSO[word]
            word = word.rpartition("-")[0]
    return "en"
