"""Rows as users give them, read into what the learner's bank wants, block by block or singly."""

from typing import Any, NamedTuple

from spanboost.block import Block, as_rows, features_of, shape_of
from spanboost.errors import DataError
from spanboost.names import Names, are_named
from spanboost.single import Single, key_of


class Reading(NamedTuple):
    """A block, checked."""

    encoded: Any  # as the learner encoded it
    rows: Any  # as the loop reads it
    number: int  # of rows
    features: int  # rows a table needs for them
    width: int  # active features of the widest row, at most
    shape: tuple[Any, ...]  # what must be the same in every block
    new: dict[str, int]  # columns of names not known yet


def reading(encoded: Any, number: int, shape: tuple[Any, ...], new: dict[str, int]) -> Reading:
    """What the booster asks of an encoded block."""
    width = len(encoded.x) if isinstance(encoded, Block) else 0
    return Reading(encoded, as_rows(encoded), number, features_of(encoded), width, shape, new)


class Reader:
    """The rows of one model: all of one kind and one width, or dictionaries of named features."""

    def __init__(self, learner: Any, D: float) -> None:
        self.learner, self.D = learner, D
        self.shape: tuple[Any, ...] = ()
        self.named: Names | None = None
        if getattr(learner, "named", False) is True:
            self.named = Names(learner.bits)
        self._single: Single | None = None
        self._last: Reading | None = None

    def read(self, X: Any) -> Reading:
        """A block, checked; a DataError names the first bad row. Changes nothing."""
        if isinstance(X, dict) or not (hasattr(X, "shape") or hasattr(X, "__len__")):
            raise ValueError(f"a block is a sequence of rows, not {X!r}")
        number = int(X.shape[0]) if hasattr(X, "shape") else len(X)
        if number == 0:
            raise ValueError("the block has no rows")
        new: dict[str, int] = {}
        by_name = self.named is not None and are_named(X)
        if self.named is not None and by_name:
            X, new = self.named.read(X)
        encoded = self.learner.encode(X, self.D)
        shape = shape_of(X, encoded)
        if shape:
            shape = (*shape, by_name)
        self._compare(shape)
        return reading(encoded, number, shape, new)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_single": None, "_last": None}  # the next row makes them again

    def add(self, new: dict[str, int]) -> None:
        """Names that are learned now."""
        if new and self.named is not None:
            self.named.add(new)

    def single(self, x: Any) -> Reading | None:
        """One row, written into the block of the row before it where that is possible (single.py).

        None if there is nothing to gain, or something wrong that `read` will tell.
        """
        if self._single is not None and self._single.write(x):
            return self._last
        if self.named is None or not self.shape or not key_of(x):
            return None
        try:
            block = self.read([x])
        except ValueError:
            return None
        values, numbers = x, block.encoded.X
        if type(x) is dict:
            values, numbers = x.values(), block.encoded.data
        if not block.new and all(isinstance(value, int | float) for value in values):
            self._single, self._last = Single(key_of(x), numbers), block
        return block

    def _compare(self, shape: tuple[Any, ...]) -> None:
        """Compiled code must never meet another shape than its own."""
        if not self.shape or shape == self.shape:
            return
        if shape[-1] != self.shape[-1]:
            kinds = "a dictionary", "a sequence of numbers"
            now, then = kinds if shape[-1] else kinds[::-1]
            raise DataError(0, f"the row is {now}, and the model's rows are each {then}")
        raise DataError(0, f"the row has {shape[0]} features, the model {self.shape[0]}")
