"""A line of the speed table, and what every measurement of it needs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import common
from benchmarks.common import Stream
from spanboost import SpanBoost


class Row(NamedTuple):
    """A line of the table."""

    measure: str
    unit: str
    ours: float
    theirs: float | None = None
    must: str | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Ours over theirs."""
        return None if self.theirs is None else self.ours / self.theirs

    @property
    def met(self) -> bool | None:
        """Whether the ratio, or our figure where there is none, is as demanded."""
        value = self.ours if self.ratio is None else self.ratio
        return None if self.must is None else common.meets(value, self.must)


class Setting(NamedTuple):
    """What the user asked for."""

    folder: Path | None
    learners: Sequence[str]
    repeats: int
    quick: bool

    def stream(self, name: str) -> Stream:
        """A data set as a stream, from its beginning again where it is too short."""
        from scipy.sparse import csr_matrix

        table = common.table_of(self.folder, name)
        length = 20_000 if self.quick else 200_000
        X = common.numbers_of(table, table.column_names[:-1])
        label = table.column("label").to_numpy()
        take = np.arange(length) % len(label)
        if name == "covtype":
            return Stream(X[take], np.where(label[take] == 2, 1.0, -1.0))
        return Stream(csr_matrix(X[take]), label[take].astype(np.float64))


def learn(base: Any, n: int, stream: Stream) -> np.ndarray:
    """One pass of progressive validation; returns the predictions."""
    return SpanBoost(base, n=n).learn_many(stream.X, stream.y)
