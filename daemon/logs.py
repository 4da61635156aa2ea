"""Logs: one JSON object a line for machines, readable lines on a terminal. Per incident and per round, not per byte."""

import json
import logging
import sys
from typing import Any

import msgspec
import structlog

__all__ = ["get", "set_up"]


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
    ]
    if sys.stderr.isatty():
        structlog.configure(
            processors=[*shared, structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)],
            wrapper_class=structlog.make_filtering_bound_logger(least),
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        )
    else:
        structlog.configure(
            processors=[
                *shared,
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(serializer=_encode),
            ],
            wrapper_class=structlog.make_filtering_bound_logger(least),
            logger_factory=structlog.BytesLoggerFactory(sys.stderr.buffer),
        )
    logging.basicConfig(level=logging.WARNING, handlers=[_IntoStructlog()], force=True)


def _encode(fields: Any, **_: Any) -> bytes:
    try:
        return msgspec.json.encode(fields, enc_hook=str)
    except UnicodeEncodeError:  # a word that is no text; it is logged where nothing else may fail any more
        return json.dumps(fields, default=str).encode()


def get(**context: str) -> structlog.typing.FilteringBoundLogger:
    """A logger that says `context` in every line."""
    log: structlog.typing.FilteringBoundLogger = structlog.get_logger(**context)
    return log
