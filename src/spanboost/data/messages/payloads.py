"""The rows in the payload of a message: a JSON object, a list of objects, or an Arrow stream."""

from typing import Any

from spanboost.data.formats.arrow_rows import ArrowRowsError, parse_arrow_rows
from spanboost.data.formats.jsonl import BadRowError, decode_json

MOST_ROWS, MOST_BYTES = 10_000, 1 << 24  # limits of one message
_ARROW = b"\xff\xff\xff\xff"  # the first bytes of an Arrow stream; JSON cannot begin with them


def decode_payload(payload: bytes, *, exact: bool) -> list[Any]:
    """Return the values of a message, one for each row; BadRowError if it cannot be read.

    An empty message, such as the mark of a deleted key in Kafka, has no rows.
    exact: as for `decode_json`.
    """
    if not payload:
        return []
    if payload.startswith(_ARROW):
        try:
            return [*parse_arrow_rows(payload, MOST_ROWS, MOST_BYTES)]
        except ArrowRowsError as error:
            raise BadRowError(str(error)) from None
    if len(payload) > MOST_BYTES:
        raise BadRowError(f"the message is longer than {MOST_BYTES >> 20} MiB")
    try:
        text = payload.decode()
    except UnicodeDecodeError as error:
        raise BadRowError(f"the message is not valid UTF-8 at byte {error.start}") from None
    value = decode_json(text, exact=exact)
    values = value if isinstance(value, list) else [value]
    if len(values) > MOST_ROWS:
        raise BadRowError(f"too many rows in one message: {len(values):,} (maximum: {MOST_ROWS:,})")
    return values
