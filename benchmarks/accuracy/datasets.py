"""The data sets, their labels and orders, and rows in the form each library needs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import common

SEED = 0
ORDERS = {"file": "file order", "shuffled": "shuffled"}  # names and titles
FRIEDMAN_ROWS = 100_000


class Task(NamedTuple):
    """How to code the labels of a file, and the paper's best loss on them."""

    labels: Callable[[np.ndarray], np.ndarray]
    paper: float | None = None  # smallest of the nine figures in the paper's supplement
    coded_alike: bool = True  # whether the paper defines its label coding


def _sign(condition: np.ndarray) -> np.ndarray:
    return np.where(condition, 1.0, -1.0)


def _as_numbers(labels: np.ndarray) -> np.ndarray:
    return labels.astype(float)


MOVEMENTS = ("walking", "sittingdown", "standingup")
TASKS = {  # smallest first
    "abalone": Task(_as_numbers, 3.7154),
    "abalone_4977": Task(_as_numbers),
    "ailerons": Task(_as_numbers),
    "elevators": Task(_as_numbers),
    "letter": Task(lambda letter: _sign(letter <= "M"), 0.5698, coded_alike=False),
    "cal_housing": Task(lambda price: (price - 14999) / (500001 - 14999), 0.0094),
    "house8l": Task(_as_numbers),
    "fried": Task(_as_numbers),
    "shuttle": Task(lambda state: _sign(state == 1), 0.0694, coded_alike=False),
    "bank": Task(lambda answer: _sign(answer == "yes"), 0.2962),
    "casp": Task(lambda size: size / 20.999, 0.0630),
    "adult": Task(lambda income: np.where(income == ">50K", 1.0, 0.0), 0.1055),
    "a9a": Task(_as_numbers, 0.4246),
    "friedman": Task(_as_numbers),
    "demandf": Task(_as_numbers),
    "activity": Task(lambda posture: _sign(np.isin(posture, MOVEMENTS)), 0.0143),
    "census": Task(lambda income: _sign(income == "50000+."), 0.1523),
    "covtype": Task(lambda cover: _sign(cover == 2), 0.6465),
}


class Column(NamedTuple):
    """A feature: numbers, or category codes with their names."""

    name: str
    values: np.ndarray
    categories: tuple[str, ...] | None


class Data(NamedTuple):
    """A data set in the order of learning."""

    columns: list[Column]
    y: np.ndarray

    @property
    def categorical(self) -> list[int]:
        """The indices of categorical columns."""
        return [j for j, column in enumerate(self.columns) if column.categories]

    def matrix(self) -> np.ndarray:
        """Return all columns as numbers, with categories as codes."""
        return np.column_stack([column.values.astype(np.float32) for column in self.columns])

    def rows(self) -> Any:
        """Return rows for spanboost; "?" is a missing category, as in its readers."""
        from spanboost import Rows

        numbers = [column.values for column in self.columns if not column.categories]
        codes = [_without_marks(column) for column in self.columns if column.categories]
        stacked = np.column_stack(numbers).astype(np.float32) if numbers else None
        return Rows(stacked, np.column_stack(codes)) if codes else stacked

    def one_hot(self) -> tuple[list[str], np.ndarray]:
        """Return column names and values, with one 0/1 column for each category."""
        names, parts = [], []
        for column in self.columns:
            if column.categories:
                names += [f"{column.name}={category}" for category in column.categories]
                parts.append(np.eye(len(column.categories), dtype=np.float32)[column.values])
            else:
                names.append(column.name)
                parts.append(column.values.astype(np.float32)[:, None])
        return names, np.hstack(parts)


def _without_marks(column: Column) -> np.ndarray:
    missing = np.array(column.categories) == "?"
    return np.where(missing[column.values], -1, column.values)


def load(
    name: str,
    order: str,
    folder: Path | None,
    most: int | None = None,
    labels: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Data:
    """Load a data set in one order, or only its first `most` rows.

    labels: how to code the labels; None codes them as in `TASKS`, and those of other sets as
        numbers.
    """
    columns, raw = _friedman() if name == "friedman" else _read(name, folder)
    kept = positions(len(raw), order)[:most]
    ordered = [column._replace(values=column.values[kept]) for column in columns]
    if labels is None:
        labels = TASKS[name].labels if name in TASKS else _as_numbers
    return Data(ordered, labels(raw)[kept])


def positions(rows: int, order: str) -> np.ndarray:
    """Return the file positions of the rows in the given order."""
    if order == "file":
        return np.arange(rows)
    return np.random.default_rng(SEED).permutation(rows)


def _read(name: str, folder: Path | None) -> tuple[list[Column], np.ndarray]:
    table = common.table_of(folder, name).unify_dictionaries().combine_chunks()
    features = table.drop_columns("label")
    columns = [_column(field, features.column(field)) for field in features.column_names]
    return columns, np.asarray(table.column("label").to_pylist())


def _column(name: str, cells: Any) -> Column:
    if not hasattr(cells.type, "index_type"):
        return Column(name, cells.to_numpy(), None)
    chunk = cells.chunk(0)
    codes = chunk.indices.to_numpy().astype(np.int64)
    return Column(name, codes, tuple(chunk.dictionary.to_pylist()))


def _friedman() -> tuple[list[Column], np.ndarray]:
    """Friedman's first benchmark (1991): ten uniform features, five of which matter, noise 1."""
    rng = np.random.default_rng(SEED)
    x = rng.random((FRIEDMAN_ROWS, 10))
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    y += 10 * x[:, 3] + 5 * x[:, 4] + rng.standard_normal(FRIEDMAN_ROWS)
    return [Column(f"x{j + 1}", x[:, j], None) for j in range(10)], y
