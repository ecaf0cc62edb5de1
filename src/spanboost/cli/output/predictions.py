"""Write predictions to a CSV or Parquet file, atomically, or as CSV to standard output."""

import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from spanboost.atomic_files import atomic_write, name_full_disk
from spanboost.compiling.arrays import Array
from spanboost.models.model import Model
from spanboost.models.predictions import has_chances, prediction_table

_SPECIAL = r'[,"\r\n]'  # a field with one of these characters is quoted


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


class Answers(Protocol):
    """A destination for what a model answers while it learns."""

    def add(self, answers: Array) -> None:
        """Append the answers to some rows."""


@contextmanager
def open_answers(path: str, model: Model) -> Iterator[Answers]:
    """Open a file for predictions as `open_writer` does, while the model learns.

    Classes may appear in any row, and each is a column. So their scores are kept in a temporary
    file, and the predictions are written at the end.
    """
    folder = None if path == "-" else Path(path).resolve().parent
    with open_writer(path) as writer:
        if not has_chances(model):
            yield _Direct(model, writer)
            return
        with tempfile.TemporaryFile(dir=folder) as file:
            kept = _KeptScores(file)
            yield kept
            for scores in kept.read():
                writer.write(prediction_table(model, scores))


class _Direct:
    def __init__(self, model: Model, writer: Writer) -> None:
        self._model, self._writer = model, writer

    def add(self, answers: Array) -> None:
        self._writer.write(prediction_table(self._model, answers))


class _KeptScores:
    """Scores [rows] or [rows, classes so far] in a file, by block."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._blocks = self._classes = 0  # blocks in the file; classes of the last one

    def add(self, answers: Array) -> None:
        np.save(self._file, answers, allow_pickle=False)
        self._blocks += 1
        self._classes = answers.shape[1] if answers.ndim > 1 else 0

    def read(self) -> Iterator[Array]:
        """Yield the blocks; a class that appeared later has the probability 0."""
        self._file.seek(0)
        for _ in range(self._blocks):
            scores = np.load(self._file, allow_pickle=False)
            if scores.ndim > 1:
                later = self._classes - scores.shape[1]
                scores = np.pad(scores, ((0, 0), (0, later)), constant_values=-np.inf)
            yield scores


class _Csv:
    def __init__(self, file: Any) -> None:
        self._file, self._header = file, True

    def write(self, table: Any) -> None:
        if self._header:
            _write_all(self._file, ",".join(map(_field, table.column_names)).encode() + b"\n")
            self._header = False
        if table.num_rows:
            _write_all(self._file, _lines(table))

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


def _lines(table: Any) -> Any:
    """Return the rows of a table as the bytes of CSV lines, quoted only where they must be.

    pyarrow quotes all texts or none. If a text must be quoted, its column becomes finished fields.
    """
    import pyarrow as pa
    from pyarrow import csv

    special = [_special_fields(column) for column in table.columns]
    if all(one is None for one in special):
        lines = pa.BufferOutputStream()
        options = csv.WriteOptions(include_header=False, quoting_style="none")
        csv.write_csv(table, lines, options)
        return lines.getvalue()
    pairs = zip(table.columns, special, strict=True)
    return _join([_quote(column, one) for column, one in pairs])


def _special_fields(column: Any) -> Any:
    """Return a mask of the values that must be quoted; None if every value can stay as it is."""
    import pyarrow as pa
    from pyarrow import compute

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return None
    special = compute.match_substring_regex(column, _SPECIAL)
    return special if compute.any(special).as_py() else None


def _quote(column: Any, special: Any) -> Any:
    """Return the values of a column as CSV fields."""
    import pyarrow as pa
    from pyarrow import compute

    text = compute.fill_null(column.cast(pa.large_string()), "")
    if special is None:
        return text
    doubled = compute.replace_substring(text, '"', '""')
    quote, nothing = pa.scalar('"', text.type), pa.scalar("", text.type)
    quoted = compute.binary_join_element_wise(quote, doubled, quote, nothing)
    return compute.if_else(compute.fill_null(special, False), quoted, text)


def _join(fields: Sequence[Any]) -> Any:
    """Return the lines of these columns of fields as bytes."""
    import pyarrow as pa
    from pyarrow import compute

    text = pa.large_string()
    lines = compute.binary_join_element_wise(*fields, pa.scalar(",", text)).combine_chunks()
    ended = pa.concat_arrays([lines, pa.array([""], text)])  # the last line ends, too
    whole = pa.LargeListArray.from_arrays(pa.array([0, len(ended)], pa.int64()), ended)
    return compute.binary_join(whole, pa.scalar("\n", text))[0].as_buffer()


def _field(name: str) -> str:
    """Return a column name as a CSV field."""
    special = re.search(_SPECIAL, name)
    return '"' + name.replace('"', '""') + '"' if special else name
