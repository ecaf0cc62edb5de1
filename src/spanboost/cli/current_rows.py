"""The rows that are being learned: errors and warnings of models name their files and lines."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from spanboost.data.batch import Batch
from spanboost.data.problems import StreamError
from spanboost.errors import DataError, RowWarning


class CurrentRows:
    """The batch that a model is learning. A model knows only the numbers of its rows."""

    def __init__(self) -> None:
        self._batch: Batch | None = None
        self._first = 0  # rows that the model has learned before the batch

    def follow(self, batches: Iterable[Batch], learned: Callable[[], int]) -> Iterator[Batch]:
        """Yield the batches; `learned` returns how many rows the model has learned."""
        for batch in batches:
            self._batch, self._first = batch, learned()
            yield batch

    def locate(self, error: DataError) -> StreamError:
        """Return an error about one of the rows with its file and line."""
        assert self._batch is not None
        return self._batch.locate(error)

    @contextmanager
    def name_lines(self) -> Iterator[None]:
        """Show warnings about rows with the file and line, instead of the number of the row."""
        with warnings.catch_warnings():
            show = warnings.showwarning

            def show_line(message: Any, *rest: Any, **more: Any) -> None:
                if isinstance(message, RowWarning):
                    message = self._with_line(message)
                show(message, *rest, **more)

            warnings.showwarning = show_line
            yield

    def _with_line(self, warning: RowWarning) -> Warning:
        batch, row = self._batch, warning.row - self._first
        if batch is None or not 0 <= row < batch.rows:
            return warning
        return UserWarning(f"{batch.file}:{batch.lines[row]}: {warning.what}")
