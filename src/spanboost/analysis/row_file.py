"""Rows of numbers in a file: memory use stays constant however long the stream is."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from spanboost.atomic_files import name_full_disk
from spanboost.compiling.arrays import Array


class RowFile:
    """Rows of float64 numbers, appended at the end and read by position.

    columns: how many numbers a row has.
    path: the file; None is a temporary file.
    rows: how many rows of the file at `path` to keep, to resume a run.
    """

    def __init__(self, columns: int, path: Path | None = None, rows: int = 0) -> None:
        self.columns, self.rows, self._named = columns, rows, path is not None
        self._place = path or Path(tempfile.gettempdir())
        if path is None:
            self._file: Any = tempfile.SpooledTemporaryFile(max_size=1 << 20)  # noqa: SIM115
        else:
            self._file = path.open("r+b" if rows else "w+b")
            self._file.truncate(8 * columns * rows)
        self._file.seek(0, os.SEEK_END)

    def append(self, rows: Array) -> None:
        """Append rows, [rows, columns]."""
        with name_full_disk(self._place):
            self._file.write(np.ascontiguousarray(rows, np.float64).data)
        self.rows += len(rows)

    def read(self, first: int, last: int) -> Array:
        """Return rows `first` to `last` - 1, [rows, columns]."""
        self._file.seek(8 * self.columns * first)
        found = np.frombuffer(self._file.read(8 * self.columns * (last - first)))
        self._file.seek(0, os.SEEK_END)
        # a copy can be written to: read-only arrays would need compiled code of their own
        return found.reshape(-1, self.columns).copy()

    def flush(self) -> None:
        """Write everything to the file; sync it to disk if it has a path."""
        with name_full_disk(self._place):
            self._file.flush()
            if self._named:
                os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; a temporary file is deleted. Rows after the last flush may be lost."""
        with suppress(OSError):  # the disk is full, which an earlier error has said
            self._file.close()
