"""The intervals of a pass in a file, from which the metrics of any part of it are computed."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from spanboost.analysis.metrics.of_intervals import IntervalMetrics, QuantileMetrics
from spanboost.analysis.metrics.tape import BLOCK, window_ends
from spanboost.analysis.row_file import RowFile
from spanboost.compiling.arrays import Array
from spanboost.models.quantiles.asked_levels import interval_levels
from spanboost.models.quantiles.curves import LEVELS

WINDOW = 1000  # rows in which the coverage is compared with what was asked for
CLOSE = 0.05  # a window is close if its coverage is within this distance


class IntervalRows(NamedTuple):
    """Rows of one model."""

    weights: Array  # [rows]
    labels: Array  # [rows]
    predictions: Array  # [rows]
    quantiles: Array  # [rows, level]


class Windows(NamedTuple):
    """The coverage in windows of equal length."""

    rows: int  # in each window
    number: int  # of windows
    farthest: float | None  # the coverage that is farthest from what was asked for
    close: float | None  # share of the windows within CLOSE of what was asked for


class IntervalTape:
    """The weight, the label, the predictions and the quantiles of every row.

    coverages: of the intervals.
    models: how many models predict each row.
    levels: of further quantiles, for the CRPS.
    """

    def __init__(
        self, coverages: Sequence[float], models: int, levels: Sequence[float] = LEVELS
    ) -> None:
        self.coverages = tuple(dict.fromkeys(coverages))
        ends = [level for one in self.coverages for level in interval_levels(one)]
        self.levels = tuple(sorted({*levels, *ends}))
        self._models = models
        self._file = RowFile(2 + models * (1 + len(self.levels)))

    @property
    def rows(self) -> int:
        """The number of rows so far."""
        return self._file.rows

    def extend(
        self, y: Array, weights: Array, answers: Sequence[Array], quantiles: Sequence[Array]
    ) -> None:
        """Append rows: labels, weights, and the predictions and quantiles of each model."""
        each = [np.column_stack(pair) for pair in zip(answers, quantiles, strict=True)]
        self._file.append(np.column_stack([weights, y, *each]))

    def read(self, first: int, last: int, model: int = 0) -> IntervalRows:
        """Return rows `first` to `last` - 1 of a model."""
        rows = self._file.read(first, last)
        own = np.hsplit(rows[:, 2:], self._models)[model]
        return IntervalRows(rows[:, 0], rows[:, 1], own[:, 0], own[:, 1:])

    def ends(self, rows: IntervalRows, coverage: float) -> Array:
        """Return the intervals of rows, [rows, 2]."""
        return rows.quantiles[:, [self.levels.index(one) for one in interval_levels(coverage)]]

    def intervals(self, coverage: float, first: int, last: int, model: int = 0) -> IntervalMetrics:
        """Return the metrics of the intervals of a model over rows `first` to `last` - 1."""
        found = IntervalMetrics(coverage)
        for rows in self._blocks(first, last, model):
            found.add(rows.labels, self.ends(rows, coverage), rows.weights)
        return found

    def quantiles(self, first: int, last: int, model: int = 0) -> QuantileMetrics:
        """Return the metrics of the quantiles of a model over rows `first` to `last` - 1."""
        found = QuantileMetrics(self.levels)
        for rows in self._blocks(first, last, model):
            found.add(rows.labels, rows.quantiles, rows.weights)
        return found

    def parts(self) -> dict[str, tuple[int, int]]:
        """Return the first row and the end of each part of the stream."""
        rows = self.rows
        return {
            "whole": (0, rows),
            "first_half": (0, rows // 2),
            "second_half": (rows // 2, rows),
            "last_window": (window_ends(rows)[-2], rows),
        }

    def windows(self, coverage: float, model: int = 0) -> Windows:
        """Return how far the coverage of windows is from what was asked for.

        Rows after the last whole window are left out; a shorter stream is a single window.
        """
        length = min(WINDOW, self.rows)
        ends = range(0, self.rows + 1, length)
        each = [one for one in self.coverages_between(coverage, ends, model) if one is not None]
        if not each:
            return Windows(length, 0, None, None)
        near = [round(abs(one - coverage), 9) <= CLOSE for one in each]  # 0.85 is within of 0.9
        farthest = max(each, key=lambda one: abs(one - coverage))
        return Windows(length, len(each), farthest, sum(near) / len(near))

    def coverages_between(
        self, coverage: float, ends: Sequence[int], model: int = 0
    ) -> Iterator[float | None]:
        """Yield the coverage of the rows from each of `ends` to the next one; None if undefined."""
        for first, last in pairwise(ends):
            yield self.intervals(coverage, first, last, model).results()["coverage"]

    def close(self) -> None:
        """Delete the file."""
        self._file.close()

    def _blocks(self, first: int, last: int, model: int) -> Iterator[IntervalRows]:
        for start in range(first, last, BLOCK):
            yield self.read(start, min(start + BLOCK, last), model)
