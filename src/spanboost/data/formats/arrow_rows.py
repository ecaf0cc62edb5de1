"""Read the rows of an Arrow stream in memory as JSON would represent them.

Clients and producers send such streams, so everything in them is checked before it is used.
"""

import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

_BATCH, _DICTIONARY = 3, 2  # types of Arrow messages that hold buffers
_CELL_BYTES = 4  # size that an Arrow value counts for, since some take no space in the stream


class ArrowRowsError(ValueError):
    """An Arrow stream that cannot be used; the message says why."""


def count_arrow_cells(data: bytes) -> int:
    """Return the number of values in an Arrow stream, counting each column name as three."""
    import pyarrow as pa

    try:
        _check_uncompressed(data)
        with pa.ipc.open_stream(data) as reader:
            columns = len(reader.schema)
            return columns * (3 + 2 * sum(batch.num_rows for batch in reader))
    except Exception as error:  # Arrow raises many types
        raise _arrow_error(error) from None


def _arrow_error(error: Exception) -> ArrowRowsError:
    if isinstance(error, ArrowRowsError):
        return error
    what = " ".join(str(error).split())[:200]
    return ArrowRowsError(f"this is not a valid Arrow stream: {what}")


class ValueRows(Sequence[dict[str, Any]]):
    """Rows of values as JSON would represent them, by column; a dictionary for each is created."""

    def __init__(self, columns: dict[str, list[Any]], rows: int) -> None:
        self.columns, self._rows = columns, rows

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return [*self][key]
        return {name: values[key] for name, values in self.columns.items()}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        if not self.columns:
            return iter([{} for _ in range(self._rows)])
        rows = zip(*self.columns.values(), strict=True)
        return (dict(zip(self.columns, values, strict=True)) for values in rows)


def parse_arrow_rows(data: bytes, most_rows: int, most_bytes: int) -> ValueRows:
    """Parse an Arrow stream; Arrow does not check what it reads, so all of it is validated.

    most_rows, most_bytes: limits of the stream when it is unpacked.
    """
    import pyarrow as pa

    try:
        _check_uncompressed(data)
        with pa.ipc.open_stream(data) as reader:
            batches, rows = list[Any](), 0
            for batch in reader:
                batch.validate(full=True)
                rows += len(batch)
                if rows > most_rows:
                    raise ArrowRowsError(
                        f"the Arrow stream has too many rows (maximum: {most_rows:,})"
                    )
                batches.append(batch)
            table = pa.Table.from_batches(batches, reader.schema)
        names = table.column_names
        if len(set(names)) < len(names):
            name = Counter(names).most_common(1)[0][0]
            raise ArrowRowsError(f"duplicate column {name!r:.40} in the Arrow stream")
        _check_unpacked_size(table, most_bytes)
        columns = {name: _column_values(name, table.column(name)) for name in names}
    except Exception as error:  # Arrow raises many types
        raise _arrow_error(error) from None
    return ValueRows(columns, len(table))


def _check_unpacked_size(table: Any, limit: int) -> None:
    """Refuse a table that is small in the stream but large in memory."""
    texts = sum(_text_bytes(chunk) for column in table.columns for chunk in column.chunks)
    if texts + _CELL_BYTES * table.num_rows * table.num_columns > limit:
        raise ArrowRowsError(f"the Arrow stream is larger than {limit:,} bytes when it is unpacked")


def _text_bytes(values: Any) -> int:
    """Return the size of all strings; a string that several values share counts for each."""
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


def _is_text(type: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(type) or pa.types.is_large_string(type))


def _column_values(name: str, column: Any) -> list[Any]:
    """Return the values of a column as JSON would represent them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    type = column.type
    if pa.types.is_dictionary(type):
        if not _is_text(type.value_type):
            raise ArrowRowsError(
                f"column {name!r:.40} is a dictionary of {type.value_type}; expected strings"
            )
        return column.cast(type.value_type).to_pylist()
    if pa.types.is_floating(type) or pa.types.is_decimal(type):
        numbers = column.cast(pa.float64())
        return pc.if_else(pc.is_nan(numbers), None, numbers).to_pylist()
    if pa.types.is_timestamp(type) or pa.types.is_date(type):  # in ISO 8601
        return column.cast(pa.string()).to_pylist()
    supported = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_null, _is_text)
    if not any(test(type) for test in supported):
        raise ArrowRowsError(
            f"column {name!r:.40} has the type {type}; expected numbers, strings or times"
        )
    return column.to_pylist()


def _check_uncompressed(data: bytes) -> None:
    """Refuse compressed buffers: a few bytes could expand to more than the memory holds."""
    import pyarrow as pa

    for message in pa.ipc.MessageReader.open_stream(data):
        if _is_compressed(bytes(message.metadata)):
            raise ArrowRowsError("the Arrow stream is compressed; send it without compression")


def _is_compressed(metadata: bytes) -> bool:
    """Return whether the FlatBuffer of a message may name a compression.

    The layout is that of format/Message.fbs of Arrow. Arrow 0.17 named the compression in the
    custom metadata of the message. Other versions leave that empty, so any entry counts.
    """
    (message,) = struct.unpack_from("<I", metadata, 0)
    type, header = _field(metadata, message, 1), _field(metadata, message, 2)
    if not type or not header or metadata[type] not in (_BATCH, _DICTIONARY):
        return False
    if _field(metadata, message, 4):
        return True
    batch = _follow(metadata, header)
    if metadata[type] == _DICTIONARY:
        batch = _follow(metadata, _field(metadata, batch, 1))
    return _field(metadata, batch, 3) != 0


def _field(metadata: bytes, table: int, number: int) -> int:
    """Return the offset of a field of a FlatBuffer table; 0 if the table does not have it."""
    vtable = table - struct.unpack_from("<i", metadata, table)[0]
    if 4 + 2 * number >= struct.unpack_from("<H", metadata, vtable)[0]:
        return 0
    offset = struct.unpack_from("<H", metadata, vtable + 4 + 2 * number)[0]
    return table + offset if offset else 0


def _follow(metadata: bytes, offset: int) -> int:
    """Return the offset that a FlatBuffer reference points to."""
    return offset + int(struct.unpack_from("<I", metadata, offset)[0])
