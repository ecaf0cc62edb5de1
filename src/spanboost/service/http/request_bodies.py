"""Parsing of request bodies (JSON, JSON Lines or Arrow) into lists of rows."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from starlette.requests import Request

from spanboost.data.formats.arrow_rows import (
    ArrowRowsError,
    count_arrow_cells,
    parse_arrow_rows,
)
from spanboost.data.formats.jsonl import BadRowError, decode_json
from spanboost.service.limits import RequestLimits

JSON, JSON_LINES, ARROW = (
    "application/json",
    "application/x-ndjson",
    "application/vnd.apache.arrow.stream",
)
MEDIA_TYPES = {JSON: JSON, JSON_LINES: JSON_LINES, "application/jsonl": JSON_LINES, ARROW: ARROW}
_BYTE_MEMORY, _TOKEN_MEMORY = 6, 100  # bytes for each byte and each token of a body, at most


class BodyError(Exception):
    """A body that cannot be parsed; the message says why."""


class Body(NamedTuple):
    """The values of a request, one for each row; a BadRowError where a line cannot be parsed."""

    rows: Sequence[Any]
    single: bool = False  # whether the body is one object, so that the response is one, too


def content_type(request: Request) -> str:
    """Return the media type that a request states, without its parameters."""
    header: str = request.headers.get("content-type", "")
    return header.partition(";")[0].strip().lower()


def describe_content_type(request: Request, supported: Iterable[str]) -> str:
    """Return the message about a content type that is not one of the supported ones."""
    given = content_type(request)
    got = f"{given!r:.60}" if given else "none"
    names = ", ".join(supported)
    return f"unsupported content type (got {got}); set the header Content-Type to one of: {names}"


def estimate_memory(media_type: str, data: bytes) -> int:
    """Return an estimate of the memory for the rows of a body, before it is parsed."""
    if media_type == ARROW:
        with _body_errors():
            return _BYTE_MEMORY * len(data) + _TOKEN_MEMORY * count_arrow_cells(data)
    tokens = len(data) - len(data.translate(None, b",:[{\n"))
    return _BYTE_MEMORY * len(data) + _TOKEN_MEMORY * tokens


def parse_body(media_type: str, data: bytes, limits: RequestLimits, exact: bool) -> Body:
    """Parse a body; `exact` as for `decode_json`."""
    if media_type == ARROW:
        with _body_errors():
            return Body(parse_arrow_rows(data, limits.rows, limits.body_bytes))
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise BodyError(f"the body is not valid UTF-8 at byte {error.start}") from None
    if media_type == JSON_LINES:
        lines = [line for line in text.split("\n") if line and not line.isspace()]
        _check_rows(len(lines), limits)
        return Body(_parse_lines(text, lines, exact))
    try:
        value = decode_json(text, exact=exact)
    except BadRowError as error:
        raise BodyError(f"the body is not valid JSON: {error}") from None
    if isinstance(value, dict):
        return Body([value], single=True)
    if not isinstance(value, list):
        raise BodyError("the body is neither a JSON object nor a list of objects")
    _check_rows(len(value), limits)
    return Body(value)


@contextmanager
def _body_errors() -> Iterator[None]:
    try:
        yield
    except ArrowRowsError as error:
        raise BodyError(str(error)) from None


def _parse_lines(text: str, lines: list[str], exact: bool) -> list[Any]:
    """Parse the lines of a body: as one list if possible, which takes less time."""
    flat = "[" not in text and text.count("{") == len(lines)
    if flat and all(line[:1] == "{" for line in lines):  # no object extends over two lines
        with suppress(BadRowError):  # the lines say which of them is at fault
            values: list[Any] = decode_json(f"[{','.join(lines)}]", exact=exact)
            if len(values) == len(lines):
                return values
    return [_parse_line(line, exact) for line in lines]


def _parse_line(text: str, exact: bool) -> Any:
    try:
        return decode_json(text, exact=exact)
    except BadRowError as error:
        return error


def _check_rows(rows: int, limits: RequestLimits) -> None:
    if rows > limits.rows:
        raise BodyError(f"too many rows in one request: {rows:,} (maximum: {limits.rows:,})")
