"""Logs: one JSON object a line for machines, readable lines on a terminal. Per incident and per round, not per byte.

To journald each line says how bad it is, so that `journalctl -p warning` shows what somebody should look at.
"""

import contextlib
import json
import logging
import os
import sys
from collections.abc import Iterator, MutableMapping
from typing import Any

import msgspec

from daemon.plain_text import coloured, plain_values

__all__ = ["first", "get", "set_up"]


@contextlib.contextmanager
def _rich_hidden() -> Iterator[None]:
    """Imports of `rich` fail meanwhile: structlog loads it where it finds it, 4 MiB that a table's computer never uses.

    A module that is None in `sys.modules` raises ModuleNotFoundError (Python's language reference, 5.3.1).
    """
    hidden = "rich" not in sys.modules
    if hidden:
        sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if hidden:
            del sys.modules["rich"]


with _rich_hidden():
    import structlog

# As in sd-daemon(3): journald takes them from the beginning of a line.
_PRIORITIES = {"debug": b"<7>", "info": b"<6>", "warning": b"<4>", "error": b"<3>", "critical": b"<2>"}


class _IntoStructlog(logging.Handler):
    """What libraries log goes the same way."""

    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger(record.name)
        log.log(max(record.levelno, logging.DEBUG), record.getMessage(), exc_info=record.exc_info)


def set_up(level: str = "info") -> None:
    """Log to standard error from `level` up."""
    least = logging.getLevelNamesMapping()[level.upper()]
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _plain,
    ]
    if sys.stderr.isatty():
        structlog.configure(
            processors=[*shared, structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)],
            wrapper_class=structlog.make_filtering_bound_logger(least),
            logger_factory=structlog.PrintLoggerFactory(coloured(sys.stderr)),
        )
    else:
        structlog.configure(
            processors=[
                *shared,
                _for_journald if _to_journald() else _render,
            ],
            wrapper_class=structlog.make_filtering_bound_logger(least),
            logger_factory=structlog.BytesLoggerFactory(sys.stderr.buffer),
        )
    logging.basicConfig(level=logging.WARNING, handlers=[_IntoStructlog()], force=True)


def _to_journald() -> bool:
    """Whether standard error is what systemd made for the journal, as it says in systemd.exec(5)."""
    try:
        standing = os.fstat(sys.stderr.fileno())
    except OSError:  # none at all
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{standing.st_dev}:{standing.st_ino}"


def _plain(_logger: Any, _method: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Texts of devices and of the network are read on terminals, also by way of journalctl."""
    return {name: plain_values(value) for name, value in fields.items()}


def _render(_logger: Any, _method: str, fields: MutableMapping[str, Any]) -> bytes:
    return _encode(fields)


def _for_journald(_logger: Any, _method: str, fields: MutableMapping[str, Any]) -> bytes:
    return _PRIORITIES.get(fields["level"], b"<6>") + _encode(fields)


def _encode(fields: Any) -> bytes:
    try:
        return msgspec.json.encode(fields, enc_hook=str)
    except UnicodeEncodeError:  # a word that is no text; it is logged where nothing else may fail any more
        return json.dumps(fields, default=str).encode()


def first(error: BaseException) -> BaseException:
    """What was raised first in a group of groups; anything else is itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def get(**context: str) -> structlog.typing.FilteringBoundLogger:
    """A logger that says `context` in every line."""
    log: structlog.typing.FilteringBoundLogger = structlog.get_logger(**context)
    return log
