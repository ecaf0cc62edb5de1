"""A progress bar in bytes, for work on files of the service."""

import sys
from typing import Any


class ByteBar:
    """A progress bar on standard error, shown only on a terminal."""

    def __init__(self, quiet: bool, what: str) -> None:
        self._quiet, self._what = quiet or not sys.stderr.isatty(), what
        self._bar: Any = None

    def __enter__(self) -> "ByteBar":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def update(self, done: int, size: int) -> None:
        """Show how many bytes are done, of how many."""
        if self._quiet:
            return
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(total=size, unit="B", unit_scale=True, leave=False, desc=self._what)
        self._bar.update(done - self._bar.n)
