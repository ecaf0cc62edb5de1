"""What requests hold, as JSON, JSON lines or Arrow: a list of rows."""

import struct
from typing import Any, NamedTuple

from spanboost.data.formats.jsonl import BadRowError, decode_json
from spanboost.service.middleware import Limits

JSON, LINES, ARROW = (
    "application/json",
    "application/x-ndjson",
    "application/vnd.apache.arrow.stream",
)
KINDS = {JSON: JSON, LINES: LINES, "application/jsonl": LINES, ARROW: ARROW}
_BATCH, _DICTIONARY = 3, 2  # kinds of Arrow messages that hold buffers
_CELL = 4  # bytes of a body that a value of Arrow counts for at least: some take none there


class BodyError(Exception):
    """A body that holds no rows; one sentence says why."""


class Body(NamedTuple):
    """The rows of a request: what was said of each, or what is wrong with how it was said."""

    rows: list[Any]
    single: bool = False  # one object, to be answered by one


def body_of(kind: str, data: bytes, limits: Limits, exact: bool) -> Body:
    """The rows of a body; `exact` as for `decode_json`."""
    limit = limits.rows
    if kind == ARROW:
        return Body(_arrow(data, limits))
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise BodyError(f"the body is not UTF-8: byte {error.start}") from None
    if kind == LINES:
        lines = [line for line in text.split("\n") if line and not line.isspace()]
        _refuse_many(len(lines), limit)
        return Body([_line(line, exact) for line in lines])
    try:
        value = decode_json(text, exact=exact)
    except BadRowError as error:
        raise BodyError(f"the body is not JSON as it is read here: {error}") from None
    if isinstance(value, dict):
        return Body([value], single=True)
    if not isinstance(value, list):
        raise BodyError("the body is neither a row nor a list of rows")
    _refuse_many(len(value), limit)
    return Body(value)


def _line(text: str, exact: bool) -> Any:
    try:
        return decode_json(text, exact=exact)
    except BadRowError as error:
        return error


def _refuse_many(rows: int, limit: int) -> None:
    if rows > limit:
        raise BodyError(f"{rows:,} rows in one request, of which {limit:,} are allowed")


def _arrow(data: bytes, limits: Limits) -> list[Any]:
    """The rows of an Arrow stream; Arrow takes every byte on trust, so all of it is checked."""
    import pyarrow as pa

    try:
        _refuse_compressed(data)
        with pa.ipc.open_stream(data) as reader:
            batches, rows = list[Any](), 0
            for batch in reader:
                batch.validate(full=True)
                rows += len(batch)
                _refuse_many(rows, limits.rows)
                batches.append(batch)
            table = pa.Table.from_batches(batches, reader.schema)
        names = table.column_names
        if len(set(names)) < len(names):
            raise BodyError("two columns of the Arrow stream have one name")
        _refuse_large(table, limits.body)
        columns = [_values(name, table.column(name)) for name in names]
    except BodyError:
        raise
    except Exception as error:  # it raises many kinds
        what = " ".join(str(error).split())[:200]
        raise BodyError(f"the body is no Arrow stream that can be read: {what}") from None
    if not names:
        return [{} for _ in range(len(table))]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _refuse_large(table: Any, most: int) -> None:
    """What takes little or no room in the stream may take more than there is memory for."""
    texts = sum(_length(chunk) for column in table.columns for chunk in column.chunks)
    if texts + _CELL * table.num_rows * table.num_columns > most:
        raise BodyError(f"the Arrow stream has more than {most:,} bytes when it is unpacked")


def _length(values: Any) -> int:
    """Bytes of texts, each counted as often as it is meant; buffers may be shared, too."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type):
        if not _is_text(values.type.value_type):
            return 0
        lengths = pc.take(pc.binary_length(values.dictionary), values.indices)
    elif _is_text(values.type):
        lengths = pc.binary_length(values)
    else:
        return 0
    return int(pc.sum(lengths.cast(pa.int64())).as_py() or 0)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _values(name: str, column: Any) -> list[Any]:
    """A column as JSON would have it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        if not _is_text(kind.value_type):
            raise BodyError(
                f"column {name!r:.40} is a dictionary of {kind.value_type}, not of texts"
            )
        return column.cast(kind.value_type).to_pylist()
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = column.cast(pa.float64())
        return pc.if_else(pc.is_nan(numbers), None, numbers).to_pylist()
    known = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_null, _is_text)
    if not any(test(kind) for test in known):
        raise BodyError(f"column {name!r:.40} holds {kind}, neither numbers nor texts")
    return column.to_pylist()


def _refuse_compressed(data: bytes) -> None:
    """A few bytes could be unpacked into more than there is memory for."""
    import pyarrow as pa

    for message in pa.ipc.MessageReader.open_stream(data):
        if _is_compressed(bytes(message.metadata)):
            raise BodyError("the buffers of the Arrow stream are compressed: send them as they are")


def _is_compressed(metadata: bytes) -> bool:
    """Whether the FlatBuffer of a message may name a compression (Arrow's format/Message.fbs).

    Arrow 0.17 named it in the message's own metadata, which nothing else needs.
    """
    (message,) = struct.unpack_from("<I", metadata, 0)
    kind, header = _field(metadata, message, 1), _field(metadata, message, 2)
    if not kind or not header or metadata[kind] not in (_BATCH, _DICTIONARY):
        return False
    if _field(metadata, message, 4):
        return True
    batch = _follow(metadata, header)
    if metadata[kind] == _DICTIONARY:
        batch = _follow(metadata, _field(metadata, batch, 1))
    return _field(metadata, batch, 3) != 0


def _field(metadata: bytes, table: int, number: int) -> int:
    """Where a table has a field; 0 if it has it not."""
    vtable = table - struct.unpack_from("<i", metadata, table)[0]
    if 4 + 2 * number >= struct.unpack_from("<H", metadata, vtable)[0]:
        return 0
    offset = struct.unpack_from("<H", metadata, vtable + 4 + 2 * number)[0]
    return table + offset if offset else 0


def _follow(metadata: bytes, place: int) -> int:
    return place + int(struct.unpack_from("<I", metadata, place)[0])
