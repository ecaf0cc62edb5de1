"""What every reader of a format yields: some rows of one file, ready for a model."""

from typing import Any, NamedTuple

from spanboost.arrays import Array


class Batch(NamedTuple):
    """Good rows of one file, in order; bad ones have been dealt with."""

    X: Any  # what a model reads: an array, `rows.Sparse`, `block.Rows` or a list of dictionaries
    y: Array | None  # [rows] labels, encoded by the target; None where they were not asked for
    weights: Array | None  # [rows] of importance; None: all 1
    file: str
    lines: Array  # [rows] the line each stands on, from 1; of Parquet and Arrow its row, from 1

    def __len__(self) -> int:
        return len(self.lines)
