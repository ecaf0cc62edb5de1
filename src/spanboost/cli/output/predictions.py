"""Predictions as a file: CSV, Parquet, or CSV on standard output; whole, or not at all."""

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from spanboost.atomic_files import atomic_write


class Writer(Protocol):
    """Takes predictions as they come."""

    def write(self, table: Any) -> None:
        """One more pyarrow table."""


@contextmanager
def writer(path: str) -> Iterator[Writer]:
    """A place for predictions: `-` is standard output, *.parquet is Parquet, all else CSV."""
    if path == "-":
        yield _Csv(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    with atomic_write(path) as file:
        made = _Parquet(file) if Path(path).suffix == ".parquet" else _Csv(file)
        with closing(made):  # also where it ends early: while the file is there to be written to
            yield made


class _Csv:
    def __init__(self, file: Any) -> None:
        self._file, self._header = file, True

    def write(self, table: Any) -> None:
        from pyarrow import csv

        if self._header:  # pyarrow would put names in quotes
            self._file.write(",".join(map(_field, table.column_names)).encode() + b"\n")
            self._header = False
        csv.write_csv(table, self._file, csv.WriteOptions(include_header=False))

    def close(self) -> None:
        """All is written."""


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
        """All is written."""
        if self._writer is not None:
            self._writer.close()


def _field(name: str) -> str:
    """A name as CSV has it."""
    special = any(character in name for character in ',"\r\n')
    return '"' + name.replace('"', '""') + '"' if special else name
