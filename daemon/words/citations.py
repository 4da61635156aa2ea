"""Citations of the law as each language writes them; verdicts carry them in Portuguese."""

import re
from typing import Final

from daemon.words.numbers import Lang

__all__ = ["cite"]

LONGEST: Final = 200
_ACT: Final = re.compile(r"(Despacho|Decreto Executivo) (?:n\.º )?(\d+/\d+)")
_ARTICLE: Final = re.compile(r"\bart\. (\d{1,3})((?:\(\w{1,4}\)|\b[a-z]\)|(?<=\))[a-z]{1,4}\)?)*)")
_PART: Final = re.compile(r"\w+")
_ACTS: Final = {"Despacho": "批示", "Decreto Executivo": "行政令"}
_DIGITS: Final = "零一二三四五六七八九"


def cite(lang: Lang, text: str) -> str:
    """A citation, in Chinese 「第55/2004號批示第五條第一款」; other languages keep the Portuguese."""
    if lang != "zh-Hant" or len(text) > LONGEST:
        return text
    text = _ACT.sub(lambda found: f"第{found[2]}號{_ACTS[found[1]]}", text)
    return re.sub(r"(?<=[示令]) (?=第)", "", _ARTICLE.sub(_article, text))


def _article(found: re.Match[str]) -> str:
    parts = _PART.findall(found[2])
    said = "".join(f"第{_numeral(int(one))}款" if one.isdecimal() else f"{one})項" for one in parts)
    return f"第{_numeral(int(found[1]))}條{said}"


def _numeral(number: int) -> str:
    """A number in Chinese: 17 is 十七."""
    hundreds, rest = divmod(number, 100)
    tens, ones = divmod(rest, 10)
    head = f"{_DIGITS[hundreds]}百" if hundreds else ""
    if not tens:
        return (head + ("零" if head and ones else "") + (_DIGITS[ones] if ones else "")) or _DIGITS[0]
    ten = "十" if tens == 1 and not head else f"{_DIGITS[tens]}十"
    return head + ten + (_DIGITS[ones] if ones else "")
