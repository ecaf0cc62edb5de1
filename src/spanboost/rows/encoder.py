"""Rows as users give them, read into what the learner's bank wants, block by block or singly."""

from typing import Any, NamedTuple

import numpy as np

from spanboost.errors import DataError
from spanboost.rows.block import Block, as_rows, features_of, shape_of
from spanboost.rows.feature_names import FeatureNames, are_named
from spanboost.rows.single_row import SingleRow, are_plain, row_key


class NumberedBlock(NamedTuple):
    """A block whose features have numbers: as it came or, of dictionaries, made a matrix."""

    X: Any
    rows: int
    named: bool
    new: dict[str, int]  # columns of names not known yet


class EncodedBlock(NamedTuple):
    """A block, checked."""

    encoded: Any  # as the learner encoded it
    rows: Any  # as the loop reads it
    number: int  # of rows
    features: int  # rows a table needs for them
    width: int  # active features of the widest row, at most
    kind: "RowKind"
    new: dict[str, int]  # columns of names not known yet


class RowKind(NamedTuple):
    """What must be the same in every block of a model."""

    shape: tuple[Any, ...]  # of its rows, the number of features first; empty for any rows
    named: bool  # dictionaries of features

    def refuse(self, other: "RowKind") -> None:
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


class RowEncoder:
    """The rows of one model: all of one kind and one width, or dictionaries of named features."""

    def __init__(self, learner: Any, D: float) -> None:
        self.learner, self.D = learner, D
        self.kind: RowKind | None = None
        self.names: FeatureNames | None = None
        if getattr(learner, "named", False) is True:
            self.names = FeatureNames(getattr(learner, "bits", None))
        self._single: SingleRow | None = None
        self._last: EncodedBlock | None = None

    def numbered(self, X: Any) -> NumberedBlock:
        """A block by the numbers of its features: the same for all who know the same names."""
        if isinstance(X, NumberedBlock):
            return X
        number = count_rows(X)
        if self.names is None or not are_named(X):
            return NumberedBlock(X, number, False, {})
        matrix, new = self.names.read(X)
        return NumberedBlock(matrix, number, True, new)

    def read(self, X: Any) -> EncodedBlock:
        """A block, checked; a DataError names the first bad row. Changes nothing."""
        X, number, named, new = self.numbered(X)
        encoded = self.learner.encode(X, self.D)
        kind = RowKind(shape_of(X, encoded), named)
        if self.kind is not None and kind != self.kind:
            self.kind.refuse(kind)  # compiled code must never meet another shape than its own
        width = len(encoded.x) if isinstance(encoded, Block) else 0
        return EncodedBlock(
            encoded, as_rows(encoded), number, features_of(encoded), width, kind, new
        )

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_single": None, "_last": None}  # the next row makes them again

    def accept(self, reading: EncodedBlock) -> None:
        """These rows are learned now, and their names."""
        if reading.new and self.names is not None:
            self.names.add(reading.new)

    def blank(self, kind: RowKind) -> Any:
        """A row of this kind, for learners that ask for one before they make a bank."""
        if self.names is not None or len(kind.shape) < 2:
            return None
        return np.zeros((1, *kind.shape[1]))

    def single(self, x: Any) -> EncodedBlock | None:
        """One row, written into the block of the row before it where that is possible (single.py).

        None where that block cannot tell: for learners that read no features, the first row of all,
        rows of another kind or width, and whatever `read` has to say about a bad one.
        """
        if type(x) is np.ndarray and x.ndim == 1 and x.dtype.kind in "biuf":
            x = x.tolist()
        if self._single is not None and self._single.write(x):
            return self._last
        if self.names is None or self.kind is None or not row_key(x):
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
            self._single, self._last = SingleRow(row_key(x), numbers), reading
        return reading


def count_rows(X: Any) -> int:
    """How many rows a block has; a ValueError if it is none, or has none."""
    shape = getattr(X, "shape", None)
    if isinstance(X, dict) or shape == () or (shape is None and not hasattr(X, "__len__")):
        raise ValueError(f"a block is a sequence of rows, not {X!r}")
    number = len(X) if shape is None else int(shape[0])
    if number == 0:
        raise ValueError("the block has no rows")
    return number
