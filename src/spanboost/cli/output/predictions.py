"""Write predictions to a CSV or Parquet file, atomically, or as CSV to standard output."""

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from spanboost.atomic_files import atomic_write, name_full_disk


class Writer(Protocol):
    """A destination for predictions."""

    def write(self, table: Any) -> None:
        """Append a pyarrow table."""


@contextmanager
def open_writer(path: str) -> Iterator[Writer]:
    """Open a file for predictions: `-` is standard output, *.parquet is Parquet, others CSV."""
    if path == "-":
        with name_full_disk(Path("standard output")):
            yield _Csv(sys.stdout.buffer)
            sys.stdout.buffer.flush()
        return
    with atomic_write(path) as file:
        writer = _Parquet(file) if Path(path).suffix == ".parquet" else _Csv(file)
        with closing(writer):  # before the file is closed, also after an error
            yield writer


class _Csv:
    def __init__(self, file: Any) -> None:
        self._file, self._header = file, True

    def write(self, table: Any) -> None:
        import pyarrow as pa
        from pyarrow import csv

        lines = pa.BufferOutputStream()
        if self._header:  # pyarrow would quote the names
            lines.write(",".join(map(_field, table.column_names)).encode() + b"\n")
            self._header = False
        csv.write_csv(table, lines, csv.WriteOptions(include_header=False))
        _write_all(self._file, lines.getvalue())

    def close(self) -> None:
        """Do nothing: every table is written at once."""


class _Parquet:
    def __init__(self, file: Any) -> None:
        self._file = file
        self._writer: Any = None

    def write(self, table: Any) -> None:
        from pyarrow import parquet

        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._file, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        """Write the footer of the file."""
        if self._writer is not None:
            self._writer.close()


def _write_all(file: Any, data: Any) -> None:
    """Write all bytes: an unbuffered file may take only a part of them, such as on a full disk."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _field(name: str) -> str:
    """Return a column name as a CSV field."""
    special = any(character in name for character in ',"\r\n')
    return '"' + name.replace('"', '""') + '"' if special else name
