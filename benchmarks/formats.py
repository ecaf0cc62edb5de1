"""Write data sets in the file formats that are benchmarked."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import compute, csv, parquet

ROWS = 1 << 16  # rows converted at a time


class Line(NamedTuple):
    """A row as one line of text: before the label, after it, before each value, at the end."""

    start: str
    middle: str
    pair: str  # {} is replaced by the feature name
    end: str
    numbered: bool = False  # features are numbered from 1


LINES = {
    ".vw": Line("", " |", " {}:", "\n"),
    ".svmlight": Line("", "", " {}:", "\n", numbered=True),
    ".jsonl": Line('{"label":', "", ',"{}":', "}\n"),
}


def write(file: Path, table: Any, times: int = 1) -> Path:
    """Write a table, repeated `times` times, in the format of the file name's extension."""
    if file.suffix == ".parquet":
        with parquet.ParquetWriter(file, table.schema) as writer:
            for _ in range(times):
                writer.write_table(table)
        return file
    with file.open("wb") as opened:
        if file.suffix == ".csv":
            opened.write((",".join(table.column_names) + "\n").encode())
            blocks = [_csv(table)]
        else:
            blocks = [*_blocks(table, LINES[file.suffix])]
        for _ in range(times):
            opened.writelines(blocks)
    return file


def binary(table: Any) -> Any:
    """Return covtype with two classes: +1 for class 2 of 7, otherwise -1."""
    label = np.where(table.column("label").to_numpy() == 2, 1, -1)
    return table.set_column(table.num_columns - 1, "label", pa.array(label, pa.int8()))


def _blocks(table: Any, line: Line) -> Iterator[bytes]:
    """Yield rows as lines, without zeros."""
    names: Iterable[Any] = table.column_names[:-1]
    if line.numbered:
        names = range(1, table.num_columns)
    for batch in table.to_batches(ROWS):
        *features, label = batch.columns
        parts: list[Any] = [line.start, label.cast(pa.string()), line.middle]
        for name, values in zip(names, features, strict=True):
            before, text = line.pair.format(name), values.cast(pa.string())
            pair = compute.binary_join_element_wise(before, text, "")
            parts.append(compute.if_else(compute.equal(values, 0), "", pair))
        rows = compute.binary_join_element_wise(*parts, line.end, "")
        yield "".join(rows.to_pylist()).encode()


def _csv(table: Any) -> bytes:
    """Return rows as CSV without quotes or header."""
    decoded = {
        name: column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    out = pa.BufferOutputStream()
    options = csv.WriteOptions(include_header=False, quoting_style="none")
    csv.write_csv(pa.table(decoded), out, options)
    return out.getvalue().to_pybytes()
