"""Typesets a report as PDF with reportlab, for `feltd journal recall --pdf`, or from standard input to standard output
in a process that `paper` starts.

Latin letters are Bitstream Vera, which comes with reportlab and is embedded. Codes in Courier and Chinese in the Adobe
CID font MSung-Light need no file: the PDF viewer draws them with its own fonts.
"""

import io
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any
from xml.sax.saxutils import escape

import msgspec
from reportlab.lib.colors import HexColor
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import cidfonts, pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import CondPageBreak, Paragraph, SimpleDocTemplate, Spacer, Table

from daemon.console.paper import LONGEST_CELL, Block, Facts, Heading, Lines, Paper, Rows, Text

__all__ = ["pdf"]

SIDE, TOP, FOOT = 16 * mm, 16 * mm, 20 * mm
WIDTH = A4[0] - 2 * SIDE
FRAME = 6
"""reportlab's own padding of a page."""
PAD = 5
"""The gap to the right of each cell, in points."""
TOGETHER = 100
"""Rows of a table that are laid out together: the time grows with their square."""
MOST_LINES = 45
"""The most lines in a cell of a table, because a row is not broken between pages."""
LATIN, BOLD, CODE, HAN = "Vera", "VeraBd", "Courier", "MSung-Light"
INK, SOFT, LINE = HexColor("#14181b"), HexColor("#555f68"), HexColor("#c9cfd3")
# Everything from the CJK radicals on, and the punctuation that is as wide as a character.
_HAN = re.compile("([\u2e80-\ufffd]+)")
_ACCENTS = re.compile("[\u00a0-\u02ff]")
_WORDS = re.compile("[\u2e80-\ufffd]|[^\u2e80-\ufffd ]+ *| +")
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]|[^\x00-\uffff]")


def pdf(paper: Paper) -> bytes:
    """The whole report."""
    for name in (LATIN, BOLD):
        pdfmetrics.registerFont(TTFont(name, f"{name}.ttf"))
    # reportlab pairs this font with the encoding of another collection, which some viewers refuse.
    cidfonts.defaultUnicodeEncodings[HAN] = ("cht", "UniCNS-UCS2-H")
    pdfmetrics.registerFont(cidfonts.UnicodeCIDFont(HAN))
    out = io.BytesIO()
    document = SimpleDocTemplate(
        out,
        pagesize=A4,
        leftMargin=SIDE - FRAME,
        rightMargin=SIDE - FRAME,
        topMargin=TOP,
        bottomMargin=FOOT,
        title=paper.title,
        author="feltd",
        lang=paper.lang,
    )
    story = [_paragraph(paper.title, _style(15, bold=True, after=6))]
    for block in paper.blocks:
        story += _flowables(block)
    document.build(story, canvasmaker=lambda *given, **named: _Numbered(paper, *given, **named))
    return out.getvalue()


class _Numbered(Canvas):  # type: ignore[misc]
    """Draws the foot of each page when the number of pages is known."""

    def __init__(self, paper: Paper, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._paper = paper
        self._pages: list[dict[str, Any]] = []

    def showPage(self) -> None:  # noqa: N802 - reportlab calls it so
        self._pages.append(dict(self.__dict__))
        self._startPage()

    def save(self) -> None:
        for number, page in enumerate(self._pages, 1):
            self.__dict__.update(page)
            count = self._paper.page.format(page=number, pages=len(self._pages))
            self.setStrokeColor(LINE)
            self.line(SIDE, FOOT - 4 * mm, A4[0] - SIDE, FOOT - 4 * mm)
            for text, left, width in (
                (self._paper.foot, SIDE, WIDTH - 32 * mm),
                (count, A4[0] - SIDE - 30 * mm, 30 * mm),
            ):
                drawn = _paragraph(text, _style(7, soft=True))
                _, height = drawn.wrap(width, FOOT)
                drawn.drawOn(self, left, FOOT - 6 * mm - height)
            super().showPage()
        super().save()


def _flowables(block: Block) -> Iterator[Any]:
    match block:
        case Heading(text):
            yield CondPageBreak(40 * mm)
            yield _paragraph(text, _style(11, bold=True, before=10, after=4))
        case Text(text, strong):
            yield _paragraph(text, _style(9, bold=strong, after=3))
        case Facts(rows):
            cells = [[_paragraph(name, _style(8, soft=True)), _paragraph(value, _style(8.5))] for name, value in rows]
            yield Table(cells, [0.27 * WIDTH, 0.73 * WIDTH], hAlign="LEFT", style=_ruled())
            yield Spacer(1, 4)
        case Rows() if block.rows:
            yield from _table(block)
            yield Spacer(1, 4)
        case Rows():
            yield _paragraph("–", _style(9, soft=True))
        case Lines(lines):
            for line in lines:
                yield _paragraph(line, _style(8, code=True, after=1))


def _table(block: Rows) -> Iterator[Any]:
    """A table whose cells are broken into lines here: a paragraph for each cell takes ten times as long."""
    widths = [part * WIDTH / sum(block.widths) for part in block.widths]
    head = [_paragraph(text, _style(7.5, soft=True)) for text in block.head]
    rows = list(block.rows)
    for at in range(0, len(rows), TOGETHER):
        style = _ruled()
        cells: list[list[Any]] = []
        for y, row in enumerate(rows[at : at + TOGETHER], 1):
            cells.append([])
            for x, (text, width) in enumerate(zip(row, widths, strict=True)):
                plain = _printable(text)
                if _HAN.search(plain) and _ACCENTS.search(plain):  # no font has both
                    widest = 8  # a Chinese character
                    cells[-1].append(_paragraph(_cut(plain, int((width - PAD) / widest) * MOST_LINES), _style(widest)))
                    continue
                font = HAN if _HAN.search(plain) else CODE if x in block.mono else LATIN
                size = 7 if font == CODE else 8
                lines = list(islice(_broken(plain, font, size, width - PAD), MOST_LINES + 1))
                cells[-1].append("\n".join(lines if len(lines) <= MOST_LINES else (*lines[:MOST_LINES], "…")))
                style.append(("FONT", (x, y), (x, y), font, size, size * 1.3))
        yield Table([head, *cells], widths, repeatRows=1, hAlign="LEFT", style=style)


def _broken(text: str, font: str, size: float, width: float) -> Iterator[str]:
    """Lines not wider than `width`: broken at spaces, after Chinese characters, and within a longer word."""
    line, used = "", 0.0
    for word in _WORDS.findall(text):
        wide = sum(_wide(font, letter) for letter in word) * size
        if used + sum(_wide(font, letter) for letter in word.rstrip()) * size <= width:
            line, used = line + word, used + wide
            continue
        if line:
            yield line.rstrip()
        line, used = "", 0.0
        for letter in word:
            step = _wide(font, letter) * size
            if used + step > width and line:
                yield line
                line, used = "", 0.0
            line, used = line + letter, used + step
    yield line.rstrip()


@lru_cache(maxsize=4096)
def _wide(font: str, letter: str) -> float:
    """The width of one letter at size 1."""
    return float(pdfmetrics.stringWidth(letter, font, 1))


def _ruled() -> list[tuple[Any, ...]]:
    return [
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
        ("LINEBELOW", (0, 0), (-1, -1), 0.3, LINE),
        ("LEFTPADDING", (0, 0), (-1, -1), 0),
        ("TEXTCOLOR", (0, 0), (-1, -1), INK),
        ("RIGHTPADDING", (0, 0), (-1, -1), PAD),
        ("TOPPADDING", (0, 0), (-1, -1), 1.5),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 2.5),
    ]


def _paragraph(text: str, style: ParagraphStyle) -> Any:
    """Latin in the font of the style, Chinese in its own; a character without a font becomes a square."""
    plain = _printable(text)
    pieces = _HAN.split(plain)
    marked = "".join(
        f'<font name="{HAN}">{escape(piece)}</font>' if n % 2 else escape(piece) for n, piece in enumerate(pieces)
    )
    return Paragraph(marked, style)


def _cut(text: str, most: int) -> str:
    """At most so many characters, and a mark where some are left out."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _printable(text: str) -> str:
    """The text in one line, not longer than a cell, with a square for each character without a font."""
    return _UNSEEN.sub("\u25a1", _cut(text.replace("\n", " "), LONGEST_CELL))


def _style(
    size: float,
    *,
    bold: bool = False,
    soft: bool = False,
    code: bool = False,
    before: float = 0,
    after: float = 0,
) -> ParagraphStyle:
    font = CODE if code else BOLD if bold else LATIN
    return ParagraphStyle(
        "one",
        fontName=font,
        fontSize=size,
        leading=size * 1.35,
        textColor=SOFT if soft else INK,
        spaceBefore=before,
        spaceAfter=after,
        wordWrap="CJK",
        splitLongWords=1,
    )


if __name__ == "__main__":
    sys.stdout.buffer.write(pdf(msgspec.json.decode(sys.stdin.buffer.read(), type=Paper)))
