"""The log of the service on standard error: lines of text or JSON, each with its time.

A line never contains values of rows. Lines that clients or a failing disk could cause without end
are limited to a number per minute.
"""

import io
import json
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr
from datetime import UTC, datetime
from typing import Any, TextIO

TEXT, JSON = "text", "json"
LOGGER = logging.getLogger("spanboost.service")
WINDOW_SECONDS, WINDOW_LINES = 60.0, 10  # lines of one kind in each window
_LOGGERS = ("spanboost", "uvicorn", "asyncio")


class TextFormatter(logging.Formatter):
    """Formats a line as `TIME spanboost: [LEVEL: ]MESSAGE [KEY=VALUE ...]`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, followed by the traceback of an exception."""
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        fields = "".join(f" {key}={value}" for key, value in _fields(record).items())
        text = f"{_format_time(record)} spanboost: {level}{record.getMessage()}{fields}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class JsonFormatter(logging.Formatter):
    """Formats a line as a JSON object with `time`, `level`, `message` and more keys."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a traceback is the value of the key `traceback`."""
        line = {
            "time": _format_time(record),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


class LimitedLog:
    """Writes at most `WINDOW_LINES` lines of each kind per minute, and counts the others."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._windows: dict[Any, tuple[float, int]] = {}  # by kind: the start, the lines since

    def write(
        self, kind: Any, level: int, message: str, *, traceback: bool = False, **fields: Any
    ) -> None:
        """Log a line, unless there are already many of its kind; perhaps with a traceback."""
        now = self._clock()
        began, lines = self._windows.get(kind, (now, 0))
        if now - began >= WINDOW_SECONDS:
            if lines > WINDOW_LINES:
                fields |= {"not_logged": lines - WINDOW_LINES}  # since the last line of this kind
            began, lines = now, 0
        self._windows[kind] = began, lines + 1
        if lines < WINDOW_LINES:
            write_log(level, message, traceback=traceback, **fields)


_disk_log = LimitedLog()


def write_log(level: int, message: str, *, traceback: bool = False, **fields: Any) -> None:
    """Log a line with more keys and values; `traceback` adds that of the current exception."""
    LOGGER.log(level, message, exc_info=traceback, extra={"fields": fields})


def log_disk_error(what: str, error: OSError) -> None:
    """Log that something could not be read from the disk or written to it."""
    reason = error.strerror or str(error)
    _disk_log.write(what, logging.ERROR, f"{what} failed ({reason})")


class LogHandler(logging.StreamHandler[TextIO]):
    """Writes lines to a stream; a log that cannot be written does not stop the service."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Drop the line: reporting the error would need the same stream."""


class PrintedLines(io.TextIOBase):
    """A text stream that logs the lines that other code prints."""

    def __init__(self) -> None:
        self._rest = ""

    def write(self, text: str) -> int:
        """Log the lines that are complete."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            write_log(logging.INFO, line.removeprefix("spanboost: "))
        return len(text)


@contextmanager
def log_to_stderr(form: str) -> Iterator[None]:
    """Log everything in one format, including warnings and the errors of the HTTP server.

    As JSON, also log what other code prints to standard error, so that every line is an object.
    """
    handler = LogHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == JSON else TextFormatter())
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    printed = redirect_stderr(PrintedLines()) if form == JSON else nullcontext()
    with warnings.catch_warnings(), printed:
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        for logger in loggers:
            logger.addHandler(handler)
        LOGGER.setLevel(logging.INFO)
        try:
            yield
        finally:
            for logger in loggers:
                logger.removeHandler(handler)


def _show_warning(message: Any, *_: Any) -> None:
    LOGGER.warning("%s", message)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return getattr(record, "fields", {})


def _format_time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
