"""The journal: every labelled row, in the order in which they are learned, before it is learned.

It is a folder of files of records (log.py), each file named by the number of its first record.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from spanboost.atomic_files import sync_folder
from spanboost.service.record_files import (
    LogFile,
    Record,
    StateError,
    find_whole_record,
    number_of,
    record,
    records,
)

SEGMENT = 1 << 26  # bytes of a file, about
_ENDING = ".log"


class Journal:
    """Records numbered 1, 2, 3, ...; only one process may have it open."""

    def __init__(self, folder: Path, segment: int = SEGMENT) -> None:
        self.folder, self.segment = folder, segment
        self.last = 0  # number of the last record
        self.cut = 0  # bytes of a write that was cut off, found at the start and removed
        self._file: LogFile | None = None
        folder.mkdir(exist_ok=True)

    def read(self) -> Iterator[Record]:
        """All records that are kept, in order; to be read to the end before any is added.

        Half a record at the end was never acknowledged, and is removed. Anything else that is not
        in order is a StateError, and nothing is changed.
        """
        paths = self._paths()
        self.last = number_of(paths[0]) - 1 if paths else 0
        end = 0
        for k, path in enumerate(paths):
            if number_of(path) != self.last + 1:
                raise StateError(
                    f"{path}: the journal has a gap: record {self.last + 1} is missing; restore "
                    "the folder from a backup"
                )
            data, end = path.read_bytes(), 0
            for found in records(memoryview(data)):
                if found.number != self.last + 1:
                    raise StateError(f"{path}: record {found.number} stands out of order")
                yield found
                self.last, end = found.number, found.end
            if end < len(data) and (k + 1 < len(paths) or find_whole_record(data, end)):
                raise StateError(
                    f"{path}: damaged at byte {end}, and there are acknowledged labels behind it; "
                    "restore the folder from a backup"
                )
            self.cut = len(data) - end
        self._file = LogFile(paths[-1], end) if paths else self._begin()

    def append(self, payload: bytes) -> int:
        """Add a record; its number once it is on the disk. An OSError if it is not."""
        assert self._file is not None
        if self._file.end >= self.segment:
            self.rotate()
        self._file.write(record(self.last + 1, payload), sync=True)
        self.last += 1
        return self.last

    def rotate(self) -> None:
        """What comes next goes to a new file."""
        if self._file is not None and self._file.end:
            old, self._file = self._file, self._begin()
            old.close()

    def forget(self, number: int) -> None:
        """Remove the files all of whose records come before this one."""
        paths = self._paths()
        for path, after in pairwise(paths):
            if number_of(after) <= number:
                path.unlink()

    def firsts(self) -> list[int]:
        """The number of the first record of every file."""
        return [number_of(path) for path in self._paths()]

    def close(self) -> None:
        """Nothing more is added."""
        if self._file is not None:
            self._file.close()

    @property
    def broken(self) -> str | None:
        """Why nothing can be added any more, if so."""
        return None if self._file is None else self._file.broken

    @property
    def bytes(self) -> int:
        """On the disk; for any thread."""
        return sum(map(_size, self._paths()))

    def _paths(self) -> list[Path]:
        return sorted(self.folder.glob(f"*{_ENDING}"), key=number_of)

    def _begin(self) -> LogFile:
        file = LogFile(self.folder / f"{self.last + 1:020}{_ENDING}")
        try:
            sync_folder(self.folder)
        except OSError:
            file.close()
            raise
        return file


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # forgotten meanwhile, by the thread that writes
        return 0
