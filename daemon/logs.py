"""Logs: one JSON object a line for machines, readable lines on a terminal. A line per incident or round, not per byte.

For journald each line has its priority, so `journalctl -p warning` shows the lines that need attention.
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
    """Make imports of `rich` fail meanwhile: structlog loads it if it is installed, and its 4 MiB are not needed.

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

# The priorities of sd-daemon(3), which journald reads at the beginning of a line.
_PRIORITIES = {"debug": b"<7>", "info": b"<6>", "warning": b"<4>", "error": b"<3>", "critical": b"<2>"}


class _IntoStructlog(logging.Handler):
    """Passes the log records of libraries to structlog."""

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
    """Whether standard error is the stream to the journal that systemd named in JOURNAL_STREAM (systemd.exec(5))."""
    try:
        standing = os.fstat(sys.stderr.fileno())
    except OSError:  # there is no standard error
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{standing.st_dev}:{standing.st_ino}"


def _plain(_logger: Any, _method: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Make texts of devices and of the network safe for terminals, where journalctl shows them, too."""
    return {name: plain_values(value) for name, value in fields.items()}


def _render(_logger: Any, _method: str, fields: MutableMapping[str, Any]) -> bytes:
    return _encode(fields)


def _for_journald(_logger: Any, _method: str, fields: MutableMapping[str, Any]) -> bytes:
    return _PRIORITIES.get(fields["level"], b"<6>") + _encode(fields)


def _encode(fields: Any) -> bytes:
    try:
        return msgspec.json.encode(fields, enc_hook=str)
    except UnicodeEncodeError:  # not valid Unicode; logging it must not fail
        return json.dumps(fields, default=str).encode()


def first(error: BaseException) -> BaseException:
    """The first exception in nested groups; any other exception unchanged."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def get(**context: str) -> structlog.typing.FilteringBoundLogger:
    """A logger that adds `context` to every line."""
    log: structlog.typing.FilteringBoundLogger = structlog.get_logger(**context)
    return log
