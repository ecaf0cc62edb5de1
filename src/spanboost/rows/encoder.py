"""Encoding of the rows that users pass in for the learner's bank, in blocks or one by one."""

from typing import Any, NamedTuple

import numpy as np

from spanboost.errors import DataError
from spanboost.rows.block import Block, as_rows, features_of, shape_of
from spanboost.rows.feature_names import FeatureNames, are_named
from spanboost.rows.single_row import SingleRow, are_plain, row_key


class NumberedBlock(NamedTuple):
    """A block whose features are numbered: dictionaries have been converted to a matrix."""

    X: Any  # the rows
    rows: int  # number of rows
    named: bool  # whether the rows were dictionaries
    new: dict[str, int]  # columns of names not known yet


class EncodedBlock(NamedTuple):
    """A block that has been checked and encoded."""

    encoded: Any  # the rows as encoded by the learner
    rows: Any  # the rows as read by the loop
    number: int  # number of rows
    features: int  # number of features
    width: int  # upper bound on the active features of a row
    kind: "RowKind"
    new: dict[str, int]  # columns of names not known yet


class RowKind(NamedTuple):
    """The properties that all blocks of a model must share."""

    shape: tuple[Any, ...]  # shape of a row, the number of features first; empty for any rows
    named: bool  # whether rows are dictionaries of features

    def refuse(self, other: "RowKind") -> None:
        """Raise a DataError that says why the model cannot read rows of another kind."""
        if self.named != other.named:
            kinds = "a dictionary", "a sequence of numbers"
            got, expected = kinds if other.named else kinds[::-1]
            raise DataError(0, f"the row is {got}, but the model expects {expected}")
        if self.shape[0] != other.shape[0]:
            sparse = (
                "; sparse and dense rows cannot be mixed"
                if 0 in (self.shape[0], other.shape[0])
                else ""
            )
            raise DataError(
                0,
                f"the row has {other.shape[0]} features, "
                f"but the model expects {self.shape[0]}{sparse}",
            )
        raise DataError(
            0, f"the row has shape {other.shape[1:]}, but the model expects {self.shape[1:]}"
        )


class RowEncoder:
    """Encodes the rows of one model: all of the same length, or dictionaries of features."""

    def __init__(self, learner: Any, D: float) -> None:
        self.learner, self.D = learner, D
        self.kind: RowKind | None = None
        self.names: FeatureNames | None = None
        if getattr(learner, "named", False) is True:
            self.names = FeatureNames(getattr(learner, "bits", None))
        self._single: SingleRow | None = None
        self._last: EncodedBlock | None = None

    def numbered(self, X: Any) -> NumberedBlock:
        """Return a block with numbered features; equal names give equal numbers."""
        if isinstance(X, NumberedBlock):
            return X
        number = count_rows(X)
        if self.names is None or not are_named(X):
            return NumberedBlock(X, number, False, {})
        matrix, new = self.names.read(X)
        return NumberedBlock(matrix, number, True, new)

    def read(self, X: Any) -> EncodedBlock:
        """Check and encode a block; a DataError names the first bad row. This changes no state."""
        X, number, named, new = self.numbered(X)
        encoded = self.learner.encode(X, self.D)
        kind = RowKind(shape_of(X, encoded), named)
        if self.kind is not None and kind != self.kind:
            self.kind.refuse(kind)  # compiled code must not see another shape
        width = len(encoded.x) if isinstance(encoded, Block) else 0
        return EncodedBlock(
            encoded, as_rows(encoded), number, features_of(encoded), width, kind, new
        )

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_single": None, "_last": None}  # the next row creates them again

    def accept(self, reading: EncodedBlock) -> None:
        """Add the new names of a block, once its rows are about to be learned."""
        if reading.new and self.names is not None:
            self.names.add(reading.new)

    def blank(self, kind: RowKind) -> Any:
        """Return a row of zeros of this kind, for learners that need one to create a bank."""
        if self.names is not None or len(kind.shape) < 2:
            return None
        return np.zeros((1, *kind.shape[1]))

    def single(self, x: Any) -> EncodedBlock | None:
        """Encode one row, in the block of the previous row if possible (single_row.py).

        Return None if the caller must use `read`: for learners that do not read features, for the
        first row of all, and for a row that is invalid, which `read` reports.
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
            fits = fits and all(type(name) is str for name in x)  # 1 and True are the same key
        if fits and are_plain(values):
            self._single, self._last = SingleRow(row_key(x), numbers), reading
        return reading


def count_rows(X: Any) -> int:
    """Return the number of rows of a block; raise a ValueError if it has no rows."""
    shape = getattr(X, "shape", None)
    if isinstance(X, dict) or shape == () or (shape is None and not hasattr(X, "__len__")):
        raise ValueError(f"a block is a sequence of rows, not {X!r}")
    number = len(X) if shape is None else int(shape[0])
    if number == 0:
        raise ValueError("the block has no rows")
    return number
