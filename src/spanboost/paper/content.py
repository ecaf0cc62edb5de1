"""What a table holds: its checksum, and the rows and labels that learners are given."""

import hashlib
from typing import Any, NamedTuple

import numpy as np

from spanboost.arrays import Array
from spanboost.block import Rows
from spanboost.paper.sets import DataSet

MISSING = "?"  # a category that says so is an absent feature, as the paper's counts show
SEED = 0  # of the one shuffle


class Examples(NamedTuple):
    """A data set in memory, in some order."""

    numbers: Array  # [rows, columns]
    codes: Array  # [rows, columns of categories], -1 for missing
    y: Array  # labels as the paper has them

    def rows(self, first: int, last: int) -> Any:
        """A block as `learn_many` takes it."""
        part = slice(first, last)
        if self.codes.shape[1] == 0:
            return self.numbers[part]
        return Rows(self.numbers[part], self.codes[part])

    def shuffled(self) -> "Examples":
        """The same in one fixed random order."""
        order = np.random.default_rng(SEED).permutation(len(self.y))
        return Examples(*(part[order] for part in self))


def digest(table: Any) -> str:
    """SHA-256 of the values, whatever the file and the types they were stored in."""
    sha = hashlib.sha256()
    for column in table.columns:
        if _is_text(column.type):
            codes, texts = _categories(column)
            sha.update("\n".join(texts).encode() + b"\0" + codes.astype("<i4").tobytes())
        else:
            sha.update(column.to_numpy().astype("<f8").tobytes())
    return sha.hexdigest()


def examples_of(one: DataSet, table: Any) -> Examples:
    """What learners are given: numbers as float32, categories as codes, labels as the paper's."""
    *columns, label = table.columns
    numbers = [c.to_numpy().astype(np.float32) for c in columns if not _is_text(c.type)]
    coded = [_categories(c) for c in columns if _is_text(c.type)]
    codes = [
        np.where(np.array(texts) == MISSING, -1, np.arange(len(texts)))[c] for c, texts in coded
    ]
    return Examples(
        np.column_stack(numbers) if numbers else np.zeros((table.num_rows, 0), np.float32),
        np.column_stack(codes) if codes else np.zeros((table.num_rows, 0), np.int64),
        one.label(np.asarray(label.to_pylist() if _is_text(label.type) else label.to_numpy())),
    )


def counts(examples: Examples) -> tuple[int, float]:
    """Features in all, one for each category, and those of a row on average; no constant."""
    numbers, codes = examples.numbers, examples.codes
    categories = sum(len(np.unique(column[column >= 0])) for column in codes.T)
    active = np.count_nonzero(np.nan_to_num(numbers)) + np.count_nonzero(codes >= 0)
    return numbers.shape[1] + categories, active / len(examples.y)


def _is_text(kind: Any) -> bool:
    return hasattr(kind, "index_type") or str(kind) in ("string", "large_string")


def _categories(column: Any) -> tuple[Array, list[str]]:
    """Codes in the order in which the texts first appear, and these."""
    import pyarrow as pa

    text = column.cast(pa.string()).combine_chunks().dictionary_encode()
    text = text.chunk(0) if isinstance(text, pa.ChunkedArray) else text
    return text.indices.to_numpy().astype(np.int64), text.dictionary.to_pylist()
