"""The outcomes of a pass in a file, from which the metrics of any part of it are computed.

A half of a stream is known only when the stream ends, so the pass keeps what metrics need of every
row. Memory use stays constant.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spanboost.analysis.metrics.collected import Metrics
from spanboost.analysis.row_file import RowFile
from spanboost.compiling.arrays import Array

WINDOWS = 20
BLOCK = 1 << 14  # rows that are read at once


class OutcomeTape:
    """The weight, the label and the predictions of every row.

    loss: the loss of all models.
    models: how many models predict each row.
    path: the file; None is a temporary file.
    rows: how many rows of the file at `path` to keep, to resume a run.
    """

    def __init__(self, loss: Any, models: int, path: Path | None = None, rows: int = 0) -> None:
        self._none, self._models = Metrics(loss), models
        self._file = RowFile(row_columns(loss, models), path, rows)

    @property
    def rows(self) -> int:
        """The number of rows so far."""
        return self._file.rows

    def extend(self, y: Any, answers: Sequence[Array], weights: Array) -> None:
        """Append rows: their labels, the predictions of each model, and their weights."""
        records = [self._none.record(y, one) for one in answers]
        self._file.append(np.column_stack([weights, *records]))

    def metrics(self, loss: Any, first: int, last: int) -> list[Metrics]:
        """Return the metrics of each model over rows `first` to `last` - 1."""
        found = [Metrics(loss) for _ in range(self._models)]
        for start in range(first, last, BLOCK):
            rows = self._file.read(start, min(start + BLOCK, last))
            for one, records in zip(found, np.hsplit(rows[:, 1:], self._models), strict=True):
                one.add_records(rows[:, 0], records)
        return found

    def parts(self, loss: Any) -> dict[str, list[Metrics]]:
        """Return the metrics of each model over the parts of the stream.

        loss: the loss after the pass, which may have more classes than before it.
        """
        rows = self.rows
        halves = {
            "first_half": self.metrics(loss, 0, rows // 2),
            "second_half": self.metrics(loss, rows // 2, rows),
        }
        whole = [first + second for first, second in zip(*halves.values(), strict=True)]
        window = self.metrics(loss, window_ends(rows)[-2], rows)
        return {"whole": whole, **halves, "last_window": window}

    def flush(self) -> None:
        """Write everything to the file; sync it to disk if it has a path."""
        self._file.flush()

    def close(self) -> None:
        """Close the file; a temporary file is deleted."""
        self._file.close()


def row_columns(loss: Any, models: int) -> int:
    """Return how many numbers a row of the tape has."""
    return 1 + models * Metrics(loss).columns


def window_ends(rows: int, windows: int = WINDOWS) -> list[int]:
    """Return 0 and the last row of each of about twenty windows of equal length.

    The last window also has the remaining rows.
    """
    length = max(1, rows // windows)
    return [0, *range(length, rows - length + 1, length), rows]
