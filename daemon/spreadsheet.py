"""Text for spreadsheets: CSV in which no cell is executed as a formula."""

import csv
import io
from collections.abc import Iterable, Sequence

__all__ = ["BYTE_ORDER_MARK", "csv_text", "harmless"]

BYTE_ORDER_MARK = "\ufeff"
"""The mark by which spreadsheets recognise UTF-8."""


def harmless(cell: str) -> str:
    """Escape text so that spreadsheets do not execute it as a formula; some also execute full-width signs."""
    return "'" + cell if cell.startswith(tuple("=+-@\t\r\n＝＋－＠")) else cell


def csv_text(rows: Iterable[Sequence[str]]) -> str:
    """The rows as CSV text."""
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()
