"""Reading files into batches, compared with libraries that read the same files."""

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks import common
from benchmarks.common import race
from benchmarks.formats import binary, write
from benchmarks.measure import Row, Setting
from spanboost.data.schema import Schema
from spanboost.data.stream import Stream
from spanboost.data.target import BinaryTarget, NumberTarget

SETS = (("covtype", 1, None), ("adult", 1, ">50K"), ("adult", 10, ">50K"))


def svmlight(setting: Setting) -> Iterator[Row]:
    """Compare sparse text with scikit-learn's reader."""
    from sklearn.datasets import load_svmlight_file

    for name, times in (("covtype", 1), ("a9a", 10)):
        table = data_set(setting, name)
        with TemporaryDirectory() as folder:
            file = write(Path(folder) / f"{name}.svmlight", table, times)
            size = file.stat().st_size / 2**20
            ours, theirs = race(
                setting.repeats,
                lambda f=file: read(f),
                lambda f=file: load_svmlight_file(str(f)),
            )
        measure = f"svmlight, {named(name, times)}, against scikit-learn"
        speeds = [size / timed.seconds for timed in (ours, theirs)]
        yield Row(measure, "MiB/s", *speeds, ">= 2", f"{size:.0f} MiB")


def parquet(setting: Setting) -> Iterator[Row]:
    """Compare Parquet with Arrow alone."""
    from pyarrow.parquet import ParquetFile

    def alone(file: Path) -> None:
        exhaust(ParquetFile(file).iter_batches())

    def stacked(file: Path) -> None:
        for batch in ParquetFile(file).iter_batches():
            np.column_stack([numbers(column) for column in batch.columns])

    for name, times, positive in SETS:
        table = data_set(setting, name)
        with TemporaryDirectory() as folder:
            file = write(Path(folder) / f"{name}.parquet", table, times)
            ours, theirs, rows = race(
                setting.repeats,
                lambda f=file, p=positive: read(f, p),
                lambda f=file: alone(f),
                lambda f=file: stacked(f),
            )
        note = f"Arrow and np.column_stack: {1000 * rows.seconds:.1f} ms"
        yield overhead("Parquet", named(name, times), ours.seconds, theirs.seconds, note)


def csv(setting: Setting) -> Iterator[Row]:
    """Compare CSV with Arrow alone, whole or in pieces, whichever is faster."""
    from pyarrow.csv import open_csv, read_csv

    for name, times, positive in SETS:
        table = data_set(setting, name)
        with TemporaryDirectory() as folder:
            file = write(Path(folder) / f"{name}.csv", table, times)
            ours, whole, pieces = race(
                setting.repeats,
                lambda f=file, p=positive: read(f, p),
                lambda f=file: read_csv(f),
                lambda f=file: exhaust(open_csv(f)),
            )
        theirs = min(whole.seconds, pieces.seconds)
        faster = "read_csv" if theirs == whole.seconds else "open_csv"
        yield overhead("CSV", named(name, times), ours.seconds, theirs, faster)


def overhead(format: str, name: str, ours: float, theirs: float, note: str = "") -> Row:
    """Return a line that compares our time with Arrow's."""
    measure = f"{format}, {name}, against Arrow alone"
    return Row(measure, "ms", 1000 * ours, 1000 * theirs, "<= 1.3", note)


def numbers(column: Any) -> np.ndarray:
    """Return an Arrow column as float32: its numbers, or its dictionary codes."""
    return getattr(column, "indices", column).to_numpy().astype(np.float32)


def read(file: Path, positive: str | None = None) -> None:
    """Read a file to its end as `spanboost train` does, without a model."""
    stream = Stream([str(file)])
    target = NumberTarget() if positive is None else BinaryTarget(positive)
    schema = Schema(stream.form, target)
    exhaust(stream.batches(schema, labelled=True))


def exhaust(items: Any) -> None:
    """Consume all items without storing them."""
    deque(items, maxlen=0)


def data_set(setting: Setting, name: str) -> Any:
    """Return a data set, or only its first rows for a quick run."""
    table = common.table_of(setting.folder, name)
    table = binary(table) if name == "covtype" else table
    return table.slice(0, 20_000) if setting.quick else table


def named(name: str, times: int) -> str:
    """Return the name of a data set that is repeated in a file."""
    return name if times == 1 else f"{name} x {times}"
