"""Text for spreadsheets: CSV whose cells no program takes for a formula."""

import csv
import io
from collections.abc import Iterable, Sequence

__all__ = ["BYTE_ORDER_MARK", "csv_text", "harmless"]

BYTE_ORDER_MARK = "\ufeff"
"""The mark by which spreadsheets recognise UTF-8."""


def harmless(cell: str) -> str:
    """Escape text so that spreadsheets do not execute it as a formula; some of them take the wide signs too."""
    return "'" + cell if cell.startswith(tuple("=+-@\t\r\n＝＋－＠")) else cell


def csv_text(rows: Iterable[Sequence[str]]) -> str:
    """Lines of CSV."""
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()
