"""The journal: a write-ahead log of all labelled rows, in the order in which they are learned.

It is a folder of files (journal_files.py) that form a chain (journal_chain.py). The name of each
file is the number of its first record.
"""

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from spanboost import __version__
from spanboost.atomic_files import PARTIAL, atomic_write
from spanboost.service.storage.journal_chain import Chain, journal_paths, read_chain
from spanboost.service.storage.journal_files import (
    END,
    HEADER_BYTES,
    SUFFIX,
    FileHeader,
    JournalFile,
    MarkedRecords,
    Position,
    journal_number,
    new_header,
)
from spanboost.service.storage.record_files import WAY_OUT, LogFile, Record, StateError

SEGMENT_BYTES = 1 << 26  # approximate size at which a new file is started


class Journal:
    """A log of records numbered 1, 2, 3, ...; only one process may have it open."""

    def __init__(
        self,
        folder: Path,
        segment_bytes: int = SEGMENT_BYTES,
        *,
        first: int = 1,
        replaces: Sequence[str] = (),
        version: str | None = None,
    ) -> None:
        """Name the folder, which `read` creates if needed.

        first: number of the first record of a new journal.
        replaces: marks of files that a new journal replaces.
        version: of spanboost that wrote the records of a new journal, if it is not this one.
        """
        self.folder, self.segment_bytes = folder, segment_bytes
        self.last = self._before = first - 1  # number of the last record
        self._replaces, self._version = list(replaces), version
        self.removed_bytes = 0  # size of an interrupted write that `read` removes
        self._paths: list[Path] = []  # of the files of the chain
        self._file: LogFile | None = None  # the last file, to which records are appended
        self._header: FileHeader | None = None  # of the last file

    def read(self, mark: str | None = None) -> Iterator[Record]:
        """Yield all records in order; they must be read to the end before `append` is called.

        mark: of a file that must be part of the journal.
        An incomplete record at the end was never acknowledged, and is removed. Any other damage
        raises StateError and changes nothing.
        """
        self.close()
        self.folder.mkdir(exist_ok=True)
        chain = read_chain(self.folder)
        ends = yield from self._read_chain(chain, mark)
        self._open(chain, ends)

    def verify(self, mark: str | None = None) -> None:
        """Read all records like `read`, but change nothing, not even an incomplete record."""
        for _ in self._read_chain(read_chain(self.folder), mark):
            pass

    def append(self, payload: bytes, when: float | None = None, *, sync: bool = True) -> int:
        """Append a record, sync it to the disk and return its number; OSError if that fails.

        when: time of the record, if it is not now.
        sync: False if the record need not be on the disk before the next `rotate` or `sync`.
        """
        assert self._file is not None
        if self._file.end - HEADER_BYTES >= self.segment_bytes:
            self.rotate()
        self._write(self.last + 1, payload, when, sync)
        self.last += 1
        return self.last

    def sync(self) -> None:
        """Sync all records to the disk; OSError if that fails."""
        assert self._file is not None
        self._file.sync()

    def rotate(self, needed: int = 0) -> None:
        """Start a new file, unless the last one has no records; delete files that are too old.

        needed: number of the first record that must be kept.
        Raises OSError if that fails. If there is no new file, the last one is still in use.
        """
        assert self._file is not None
        assert self._header is not None
        if self._file.end == HEADER_BYTES:
            return
        numbers = [*map(journal_number, self._paths), self.last + 1]
        first = max(number for number in numbers if number <= max(needed, numbers[0]))
        previous = Position(self._header.file, self.last, self._file.end)
        old, (file, header) = self._file, self._create_file(first, previous)
        try:
            self._write(END, bytes.fromhex(header.file))
        except OSError:
            file.close()
            if old.failure is None:  # otherwise the end record may be on the disk
                _unlink_quietly(file.path)
            raise
        old.close()
        self._file, self._header = file, header
        self._paths.append(file.path)
        while journal_number(self._paths[0]) < first:
            self._paths[0].unlink(missing_ok=True)
            del self._paths[0]

    def sizes(self) -> list[tuple[Path, int]]:
        """Return the path and the size of every file; the last record is complete."""
        assert self._file is not None
        *complete, last = self._paths
        return [*((path, path.stat().st_size) for path in complete), (last, self._file.end)]

    def first_numbers(self) -> list[int]:
        """Return the number of the first record of every file."""
        return [journal_number(path) for path in journal_paths(self.folder)]

    def close(self) -> None:
        """Close the file that records are appended to."""
        if self._file is not None:
            self._file.close()

    @property
    def mark(self) -> str:
        """The mark of the file that records are appended to."""
        assert self._header is not None
        return self._header.file

    @property
    def failure(self) -> str | None:
        """Why records can no longer be appended; None if they can."""
        return None if self._file is None else self._file.failure

    @property
    def size(self) -> int:
        """Size on disk, in bytes; any thread may ask for it."""
        return sum(map(_file_size, journal_paths(self.folder)))

    def _read_chain(self, chain: Chain, mark: str | None) -> Generator[Record, None, list[int]]:
        """Yield the records of all files, and return where they end in each file."""
        if mark is not None and not chain.contains(mark):
            raise StateError(
                f"{self.folder}: the journal file that the last snapshot names is missing or "
                f"empty; {WAY_OUT}"
            )
        self.last = chain.files[0].number - 1 if chain.files else self._before
        self.removed_bytes, ends = 0, list[int]()
        for file in chain.files:
            end = yield from self._read_file(file)
            self.removed_bytes = file.end - end
            if self.removed_bytes and file is not chain.files[-1]:
                raise _damage(file.path, self.last + 1, end)
            ends.append(end)
        return ends

    def _read_file(self, file: JournalFile) -> Generator[Record, None, int]:
        """Yield the records of a file, and return where they end."""
        if file.number != self.last + 1:
            raise StateError(
                f"{file.path}: the journal has a gap: record {self.last + 1} is missing; {WAY_OUT}"
            )
        data, records = file.path.read_bytes()[: file.end], file.records
        view, end = memoryview(data), records.start
        while (record := records.record_at(view, end)) is not None:
            if record.number != self.last + 1:
                raise StateError(
                    f"{file.path}: expected record {self.last + 1}, got record {record.number}; "
                    f"{WAY_OUT}"
                )
            yield record
            self.last, end = record.number, record.end
        if end < len(data) and not records.is_torn(data, end):
            raise _damage(file.path, self.last + 1, end)
        return end

    def _open(self, chain: Chain, ends: list[int]) -> None:
        """Open the last file at its end; begin one if there is none that can be continued."""
        for path in (*chain.unused, *self.folder.glob(f"*{PARTIAL}")):
            path.unlink()
        if chain.files and chain.files[-1].header is not None:
            self._paths = [file.path for file in chain.files]
            self._file, self._header = LogFile(self._paths[-1], ends[-1]), chain.files[-1].header
            if self._header.version != __version__:
                self._begin_version()
            return
        # records are not appended to files without a header
        old = [(file, end) for file, end in zip(chain.files, ends, strict=True) if end]
        previous = None
        if old:
            file, end = old[-1]
            _truncate(file.path, end)
            previous = Position("", self.last, end)
        first = old[0][0].number if old else self.last + 1
        self._file, self._header = self._create_file(first, previous)
        self._paths = [*(file.path for file, _ in old), self._file.path]
        for file, end in zip(chain.files, ends, strict=True):
            if not end:  # the new file has the records that this one was begun for
                file.path.unlink()

    def _begin_version(self) -> None:
        """Name this version in the file that records are appended to."""
        assert self._file is not None
        assert self._header is not None
        if self._file.end > HEADER_BYTES:
            self.rotate()
            return
        self._file.close()
        header = self._header._replace(version=__version__, time=time.time())
        with atomic_write(self._file.path, private=True) as file:
            file.write(header.encode())
        self._file, self._header = LogFile(self._file.path, HEADER_BYTES), header

    def _create_file(self, first: int, previous: Position | None) -> tuple[LogFile, FileHeader]:
        """Begin a file for the records to come."""
        header = new_header(first, previous, self._replaces, self._version)
        path = self.folder / f"{self.last + 1:020}{SUFFIX}"
        try:
            with atomic_write(path, private=True) as file:
                file.write(header.encode())
            return LogFile(path, HEADER_BYTES), header
        except OSError:
            _unlink_quietly(path)
            raise

    def _write(
        self, number: int, payload: bytes, when: float | None = None, sync: bool = True
    ) -> None:
        assert self._file is not None
        data = MarkedRecords(self.mark).encode(
            number, payload, time.time() if when is None else when
        )
        self._file.write(data, sync=sync)


def _damage(path: Path, record: int, end: int) -> StateError:
    return StateError(
        f"{path}: damaged at byte {end} (record {record}), and not by an interrupted write; "
        f"{WAY_OUT}"
    )


def _truncate(path: Path, end: int) -> None:
    """Remove an interrupted write from a file that is not written again."""
    file = LogFile(path, end)
    try:
        file.sync()
    finally:
        file.close()


def _unlink_quietly(path: Path) -> None:
    """Delete a file without records; if that fails, the next start ignores it."""
    with suppress(OSError):
        path.unlink()


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # deleted by the writer thread in the meantime
        return 0
