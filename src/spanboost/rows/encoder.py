"""Rows as users give them, read into what the learner's bank wants, block by block or singly."""

from typing import Any, NamedTuple

import numpy as np

from spanboost.errors import DataError
from spanboost.rows.block import Block, as_rows, features_of, shape_of
from spanboost.rows.feature_names import Names, are_named
from spanboost.rows.single_row import Single, are_plain, key_of


class Numbered(NamedTuple):
    """A block whose features have numbers: as it came or, of dictionaries, made a matrix."""

    X: Any
    rows: int
    named: bool
    new: dict[str, int]  # columns of names not known yet


class Reading(NamedTuple):
    """A block, checked."""

    encoded: Any  # as the learner encoded it
    rows: Any  # as the loop reads it
    number: int  # of rows
    features: int  # rows a table needs for them
    width: int  # active features of the widest row, at most
    kind: "Kind"
    new: dict[str, int]  # columns of names not known yet


class Kind(NamedTuple):
    """What must be the same in every block of a model."""

    shape: tuple[Any, ...]  # of its rows, the number of features first; empty for any rows
    named: bool  # dictionaries of features

    def refuse(self, other: "Kind") -> None:
        """Say why rows of another kind cannot be read by this model."""
        if self.named != other.named:
            kinds = "a dictionary", "a sequence of numbers"
            now, then = kinds if other.named else kinds[::-1]
            raise DataError(0, f"the row is {now}, and the model's rows are each {then}")
        if self.shape[0] != other.shape[0]:
            sparse = (
                "; sparse rows have columns of their own"
                if 0 in (self.shape[0], other.shape[0])
                else ""
            )
            raise DataError(
                0, f"the row has {other.shape[0]} features, the model {self.shape[0]}{sparse}"
            )
        raise DataError(0, f"the row's shape is {other.shape[1:]}, the model's {self.shape[1:]}")


class Reader:
    """The rows of one model: all of one kind and one width, or dictionaries of named features."""

    def __init__(self, learner: Any, D: float) -> None:
        self.learner, self.D = learner, D
        self.kind: Kind | None = None
        self.names: Names | None = None
        if getattr(learner, "named", False) is True:
            self.names = Names(getattr(learner, "bits", None))
        self._single: Single | None = None
        self._last: Reading | None = None

    def numbered(self, X: Any) -> Numbered:
        """A block by the numbers of its features: the same for all who know the same names."""
        if isinstance(X, Numbered):
            return X
        number = rows_in(X)
        if self.names is None or not are_named(X):
            return Numbered(X, number, False, {})
        matrix, new = self.names.read(X)
        return Numbered(matrix, number, True, new)

    def read(self, X: Any) -> Reading:
        """A block, checked; a DataError names the first bad row. Changes nothing."""
        X, number, named, new = self.numbered(X)
        encoded = self.learner.encode(X, self.D)
        kind = Kind(shape_of(X, encoded), named)
        if self.kind is not None and kind != self.kind:
            self.kind.refuse(kind)  # compiled code must never meet another shape than its own
        width = len(encoded.x) if isinstance(encoded, Block) else 0
        return Reading(encoded, as_rows(encoded), number, features_of(encoded), width, kind, new)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_single": None, "_last": None}  # the next row makes them again

    def accept(self, reading: Reading) -> None:
        """These rows are learned now, and their names."""
        if reading.new and self.names is not None:
            self.names.add(reading.new)

    def blank(self, kind: Kind) -> Any:
        """A row of this kind, for learners that ask for one before they make a bank."""
        if self.names is not None or len(kind.shape) < 2:
            return None
        return np.zeros((1, *kind.shape[1]))

    def single(self, x: Any) -> Reading | None:
        """One row, written into the block of the row before it where that is possible (single.py).

        None where that block cannot tell: for learners that read no features, the first row of all,
        rows of another kind or width, and whatever `read` has to say about a bad one.
        """
        if type(x) is np.ndarray and x.ndim == 1 and x.dtype.kind in "biuf":
            x = x.tolist()
        if self._single is not None and self._single.write(x):
            return self._last
        if self.names is None or self.kind is None or not key_of(x):
            return None
        try:
            reading = self.read([x])
        except ValueError:
            return None
        values, numbers, fits = x, reading.encoded.X, not reading.new
        if type(x) is dict:
            values, numbers = x.values(), reading.encoded.data
            fits = fits and all(type(name) is str for name in x)  # 1 and True are one key
        if fits and are_plain(values):
            self._single, self._last = Single(key_of(x), numbers), reading
        return reading


def rows_in(X: Any) -> int:
    """How many rows a block has; a ValueError if it is none, or has none."""
    shape = getattr(X, "shape", None)
    if isinstance(X, dict) or shape == () or (shape is None and not hasattr(X, "__len__")):
        raise ValueError(f"a block is a sequence of rows, not {X!r}")
    number = len(X) if shape is None else int(shape[0])
    if number == 0:
        raise ValueError("the block has no rows")
    return number
