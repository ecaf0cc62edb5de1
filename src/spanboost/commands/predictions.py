"""Predictions as a file: CSV, Parquet, or CSV on standard output; whole, or not at all."""

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from spanboost.arrays import Array
from spanboost.auto import AnyModel
from spanboost.data.target import BinaryTarget, Target
from spanboost.files import whole
from spanboost.losses import Logistic, Softmax, predicts_scores


class Writer(Protocol):
    """Takes predictions as they come."""

    def write(self, table: Any) -> None:
        """One more pyarrow table."""


def table_of(model: AnyModel, answers: Array, *, learning: bool = False) -> Any:
    """Predictions as columns: a number; or the likelier label, and how probable labels are.

    While it is learning, classes may not have their names yet: only that of the likeliest is given.
    """
    import pyarrow as pa

    if isinstance(model.loss_, Softmax):
        names = names_of(model)
        shares = np.exp(answers - answers.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        best = {"prediction": pa.array([names[k] for k in answers.argmax(axis=1)], pa.string())}
        if learning:
            return pa.table(best | {"probability": shares.max(axis=1)})
        each = {f"probability_{name}": shares[:, k] for k, name in enumerate(names)}
        return pa.table(best | each)
    if not predicts_scores(model.loss_):
        return pa.table({"prediction": answers})
    negative, positive = names_of(model)
    columns: dict[str, Any] = {"prediction": np.where(answers > 0, positive, negative)}
    if isinstance(model.loss_, Logistic):
        with np.errstate(over="ignore"):
            return pa.table(columns | {"probability": 1 / (1 + np.exp(-answers))})
    return pa.table(columns | {"score": answers})


@contextmanager
def writer(path: str) -> Iterator[Writer]:
    """A place for predictions: `-` is standard output, *.parquet is Parquet, all else CSV."""
    if path == "-":
        yield _Csv(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    with whole(path) as file:
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


def names_of(model: AnyModel) -> list[str]:
    """The labels of a model of classes, in their order."""
    target: Target = model.schema.target
    if isinstance(model.loss_, Softmax):
        return _filled(target.values, model.loss_.d)
    return list(_two(target))


def _filled(values: list[str], classes: int) -> list[str]:
    """The names of all classes; one that has not been met has none."""
    known = [*values]  # at once: a service meets more of them while it predicts
    return known + [f"unseen {k}" for k in range(len(known), classes)]


def _two(target: Target) -> tuple[str, str]:
    """The labels that are -1 and +1."""
    if isinstance(target, BinaryTarget) and target.positive is not None:
        return f"not {target.positive}", target.positive
    if set(target.values) <= {"-1", "0", "1"}:
        return ("0" if "0" in target.values else "-1"), "1"
    negative, positive = _filled(target.values, 2)
    return negative, positive
