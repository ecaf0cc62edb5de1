"""Encoding of the rows that users pass in for the learner's bank, in blocks or one by one."""

from collections.abc import Collection, Hashable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from spanboost.errors import DataError, list_names, warn_caller
from spanboost.rows.block import Block, as_rows, features_of, shape_of, slice_block
from spanboost.rows.column_rows import ColumnRows
from spanboost.rows.feature_names import FeatureNames, are_named
from spanboost.rows.frame_rows import (
    check_frame,
    column_names,
    dicts_in_order,
    frame_names,
    frame_to_dicts,
    in_order,
    is_frame,
    is_numeric_frame,
    join_series,
)
from spanboost.rows.single_row import NamedRow, SequenceRow, are_plain
from spanboost.rows.unknown_categories import UnknownCategories
from spanboost.rows.validation import FeatureError


class NumberedBlock(NamedTuple):
    """A block whose features are numbered: dictionaries have been converted to a matrix."""

    X: Any  # the rows
    rows: int  # number of rows
    named: bool  # whether the rows were dictionaries
    new: dict[Any, int]  # columns of names not known yet, or codes of new categories of a table
    columns: tuple[str, ...] | None = None  # of a frame of numbers


class EncodedBlock(NamedTuple):
    """A block that has been checked and encoded."""

    encoded: Any  # the rows as encoded by the learner
    rows: Any  # the rows as read by the loop
    number: int  # number of rows
    features: int  # number of features
    width: int  # upper bound on the active features of a row
    kind: "RowKind"
    new: dict[Any, int]  # as in NumberedBlock
    columns: tuple[str, ...] | None = None  # of a frame of numbers


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


class ColumnNames(Protocol):
    """Converts dictionaries to rows of numbers and codes, for a model that reads a table."""

    @property
    def names(self) -> list[str]:
        """The names of all columns."""

    @property
    def number_names(self) -> list[str]:
        """The names of the columns of numbers."""

    def categories(self) -> Mapping[str, Collection[Hashable]]:
        """Return the learned values of each column of categories that is not hashed."""

    def read(self, rows: Any, learn: bool) -> tuple[Any, dict[Any, int]]:
        """Return the rows, and the codes of new categories; these are missing unless `learn`."""

    def add(self, new: dict[Any, int]) -> None:
        """Add new categories and their codes."""


class RowEncoder:
    """Encodes the rows of one model: all of the same length, or dictionaries of features.

    table: the columns of a model that reads a table, to convert dictionaries; None for others.
    columns: the columns of the first frame of numbers; None without one.
    """

    # here, because pickles of earlier versions do not have them
    table: ColumnNames | None = None
    columns: tuple[str, ...] | None = None

    def __init__(self, learner: Any, D: float) -> None:
        self.learner, self.D = learner, D
        self.kind: RowKind | None = None
        self.names: FeatureNames | None = None
        if getattr(learner, "named", False) is True:
            self.names = FeatureNames(getattr(learner, "bits", None))
        self._single: SequenceRow | NamedRow | None = None
        self._last: EncodedBlock | None = None

    def numbered(self, X: Any, learn: bool = False) -> NumberedBlock:
        """Return a block with numbered features; equal names give equal numbers.

        learn: the rows are about to be learned, with the new categories of a table.
        """
        if isinstance(X, NumberedBlock):
            return X
        number, columns = count_rows(X), None
        if isinstance(X, ColumnRows):
            matrix = None if self.names is None else self.names.read_columns(X)
            if matrix is not None and self.table is None:
                return NumberedBlock(matrix, number, True, {})
            X = [*X]
        if self.names is not None:
            X = join_series(X)
        if self.table is not None and (is_frame(X) or are_named(X)):
            if is_frame(X):
                present, X = {*map(str, frame_names(X))}, frame_to_dicts(X)
                if not learn:
                    _warn_absent([name for name in self.table.names if name not in present])
                    _warn_unknown(X, self.table.categories())
            matrix, new = self.table.read(X, learn)
            return NumberedBlock(matrix, number, False, new)
        if self.names is not None and is_frame(X):
            named = self.kind.named if self.kind is not None else not is_numeric_frame(X)
            columns = None if named else self.columns or column_names(X)
            present = {*map(str, frame_names(X))}
            X = frame_to_dicts(X) if named else X if columns is None else in_order(X, columns)
            if named and self.kind is not None and not learn:
                self.names.warn_unknown(X)
                _warn_absent(self.names.absent(present))
                _warn_unknown(X, self.names.categories())
        if self.columns is not None and are_named(X):
            X = dicts_in_order(X, self.columns)
        if self.names is None or not are_named(X):
            return NumberedBlock(X, number, False, {}, columns)
        matrix, new = self.names.read(X)
        return NumberedBlock(matrix, number, True, new)

    def read(self, X: Any, learn: bool = False) -> EncodedBlock:
        """Check and encode a block; a DataError names the first bad row. This changes no state.

        learn: as for `numbered`.
        """
        X, number, named, new, columns = block = self.numbered(X, learn)
        try:
            encoded = self.learner.encode(X, self.D)
        except FeatureError as error:
            what = f"{self._feature_title(block, error.column)} {error.problem}"
            raise DataError(error.row, what) from None
        kind = RowKind(shape_of(X, encoded), named)
        if self.kind is not None and kind != self.kind:
            self.kind.refuse(kind)  # compiled code must not see another shape
        width = len(encoded.x) if isinstance(encoded, Block) else 0
        return EncodedBlock(
            encoded, as_rows(encoded), number, features_of(encoded), width, kind, new, columns
        )

    def encode(self, X: Any, learn: bool = False) -> NumberedBlock:
        """Return a block that others can read without encoding it again, whole or in slices.

        learn: as for `numbered`.
        """
        block = self.numbered(X, learn)
        return block._replace(X=self.read(block).encoded)

    def _feature_title(self, block: NumberedBlock, column: int) -> str:
        """Return a column of a block as messages show it: its name, or its number."""
        if block.named and self.names is not None:
            known = [*self.names.columns.items(), *block.new.items()]
            return next((f"{name!r:.40}" for name, own in known if own == column), "a feature")
        if self.table is not None:
            return f"column {self.table.number_names[column]!r:.40}"
        return f"column {column if block.columns is None else block.columns[column]!r}"

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_single": None, "_last": None}  # the next row creates them again

    def accept(self, reading: EncodedBlock) -> None:
        """Add the new names of a block, once its rows are about to be learned."""
        if self.columns is None:
            self.columns = reading.columns
        names = self.names if reading.kind.named else self.table
        if reading.new and names is not None:
            names.add(reading.new)

    def header(self) -> dict[str, Any]:
        """Return what is known about the keys of rows as JSON; empty if nothing is."""
        kinds = None if self.names is None else self.names.kinds
        return {} if kinds is None else {"keys": kinds.state()}

    def restore_keys(self, header: dict[str, Any]) -> None:
        """Set what is known about the keys of rows; files of earlier versions do not know it."""
        if self.names is not None and self.names.kinds is not None:
            if "keys" in header:
                self.names.kinds.restore(header["keys"])
            else:
                self.names.kinds = None

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
        if type(x) is dict and self.table is not None:
            return None
        if type(x) is np.ndarray and x.ndim == 1 and x.dtype.kind in "biuf":
            x = x.tolist()
        if type(x) is dict and self.columns is not None and x.keys() == {*self.columns}:
            x = [x[name] for name in self.columns]
        if self._single is not None and self._single.write(x):
            return self._last
        if self.names is None or self.kind is None or type(x) not in (dict, list, tuple) or not x:
            return None
        try:
            reading = self.read([x])
        except ValueError:
            return None
        if type(x) is dict and reading.kind.named:
            if not reading.new and len(reading.encoded.data) > 0:
                self._single, self._last = NamedRow(self.names, reading.encoded), reading
        elif are_plain(x):
            self._single, self._last = SequenceRow(reading.encoded.X), reading
        return reading


def slice_rows(block: NumberedBlock, first: int, last: int) -> NumberedBlock:
    """Return the rows first <= t < last of a block that was encoded."""
    part = slice_block(block.X, first, last)
    return block._replace(X=part, rows=last - first, new=block.new if first == 0 else {})


def _warn_absent(names: list[str]) -> None:
    """Issue a warning about learned columns that a frame does not have; none if there are none.

    Dictionaries may leave out any key, but a frame with fewer columns is often a mistake.
    """
    if names:
        what, they = ("column", "it counts") if len(names) == 1 else ("columns", "they count")
        text = f"the frame has no {what} {list_names(names)}, which the model has learned"
        warn_caller(UserWarning(f"{text}; {they} as missing"))


def _warn_unknown(rows: list[dict[str, Any]], known: Mapping[str, Collection[Hashable]]) -> None:
    """Issue a warning about columns of a frame of which no value was learned."""
    unknown = UnknownCategories()
    unknown.watch_rows(rows, known)
    unknown.warn()


def count_rows(X: Any) -> int:
    """Return the number of rows of a block; raise a ValueError if it has no rows."""
    shape = getattr(X, "shape", None)
    if isinstance(X, dict):
        raise ValueError(
            "expected several rows, such as a list of dictionaries (got one dictionary); for one "
            f"row, use predict_one or learn_one, or pass [row]: {X!r:.60}"
        )
    check_frame(X)
    if shape == () or (shape is None and not hasattr(X, "__len__")):
        raise ValueError(f"expected several rows, such as a list or an array (got {X!r:.60})")
    number = len(X) if shape is None else int(shape[0])
    if number == 0:
        raise ValueError("there are no rows")
    return number
