"""The journal: a write-ahead log of all labelled rows, in the order in which they are learned.

It is a folder of record files (record_files.py). The name of each file is the number of its first
record.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from spanboost.atomic_files import sync_folder
from spanboost.service.record_files import (
    LogFile,
    Record,
    StateError,
    encode_record,
    file_number,
    has_record_after,
    read_records,
)

SEGMENT_BYTES = 1 << 26  # approximate size at which a new file is started
_SUFFIX = ".log"


class Journal:
    """A log of records numbered 1, 2, 3, ...; only one process may have it open."""

    def __init__(self, folder: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.folder, self.segment_bytes = folder, segment_bytes
        self.last = 0  # number of the last record
        self.removed_bytes = 0  # size of an interrupted write that `read` removed
        self._file: LogFile | None = None
        folder.mkdir(exist_ok=True)

    def read(self) -> Iterator[Record]:
        """Yield all records in order; they must be read to the end before `append` is called.

        An incomplete record at the end was never acknowledged, and is removed. Any other damage
        raises StateError and changes nothing.
        """
        paths = self._paths()
        self.last = file_number(paths[0]) - 1 if paths else 0
        end = 0
        for k, path in enumerate(paths):
            if file_number(path) != self.last + 1:
                raise StateError(
                    f"{path}: the journal has a gap: record {self.last + 1} is missing; restore "
                    "the folder from a backup"
                )
            data, end = path.read_bytes(), 0
            for record in read_records(memoryview(data)):
                if record.number != self.last + 1:
                    raise StateError(
                        f"{path}: expected record {self.last + 1}, got record {record.number}; "
                        "restore the folder from a backup"
                    )
                yield record
                self.last, end = record.number, record.end
            if end < len(data) and (k + 1 < len(paths) or has_record_after(data, end)):
                raise StateError(
                    f"{path}: damaged at byte {end}, before acknowledged labels; "
                    "restore the folder from a backup"
                )
            self.removed_bytes = len(data) - end
        self._file = LogFile(paths[-1], end) if paths else self._create_file()

    def append(self, payload: bytes) -> int:
        """Append a record, sync it to the disk and return its number; OSError if that fails."""
        assert self._file is not None
        if self._file.end >= self.segment_bytes:
            self.rotate()
        self._file.write(encode_record(self.last + 1, payload), sync=True)
        self.last += 1
        return self.last

    def rotate(self) -> None:
        """Start a new file for the records to come."""
        if self._file is not None and self._file.end:
            old, self._file = self._file, self._create_file()
            old.close()

    def delete_before(self, number: int) -> None:
        """Delete the files that only contain records before this one."""
        paths = self._paths()
        for path, after in pairwise(paths):
            if file_number(after) <= number:
                path.unlink()

    def first_numbers(self) -> list[int]:
        """Return the number of the first record of every file."""
        return [file_number(path) for path in self._paths()]

    def close(self) -> None:
        """Close the file that records are appended to."""
        if self._file is not None:
            self._file.close()

    @property
    def failure(self) -> str | None:
        """Why records can no longer be appended; None if they can."""
        return None if self._file is None else self._file.failure

    @property
    def size(self) -> int:
        """Size on disk, in bytes; any thread may ask for it."""
        return sum(map(_file_size, self._paths()))

    def _paths(self) -> list[Path]:
        return sorted(self.folder.glob(f"*{_SUFFIX}"), key=file_number)

    def _create_file(self) -> LogFile:
        file = LogFile(self.folder / f"{self.last + 1:020}{_SUFFIX}")
        try:
            sync_folder(self.folder)
        except OSError:
            file.close()
            raise
        return file


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # deleted by the writer thread in the meantime
        return 0
