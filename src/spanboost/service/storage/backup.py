"""A backup: the files of a state folder at one moment, as a tar archive.

    backup.json          the last record, the version of spanboost, and the size of every file
    journal/N.v2.log     the other files have the names that they have in the folder
    ...

The files of a running service are opened at one moment. They are written later, while the service
continues. The sizes in backup.json show whether an archive is complete; checksums in the files show
whether they are damaged.
"""

import re
import tarfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson

from spanboost import __version__
from spanboost.atomic_files import name_full_disk
from spanboost.service.storage.file_views import FileView, close_views, open_views
from spanboost.service.storage.journal_chain import journal_paths
from spanboost.service.storage.record_files import StateError, file_number

CONTENTS = "backup.json"
CHUNK_BYTES = 1 << 18
_NAME = re.compile(r"[a-z]+/\w[\w.]*")  # of a file in the archive: no path leaves its folder
_END = bytes(2 * tarfile.BLOCKSIZE)


class Backup:
    """The open files of a state folder; `close` it after use."""

    def __init__(self, record: int, views: Sequence[FileView]) -> None:
        """Describe the files, which are complete up to a record."""
        self.record, self._views = record, views
        self._time = time.time()
        names = [f"{view.path.parent.name}/{view.path.name}" for view in views]
        self._names = names
        self._contents = orjson.dumps(
            {
                "record": record,
                "time": self._time,
                "version": __version__,
                "files": dict(zip(names, (view.size for view in views), strict=True)),
            }
        )

    @property
    def size(self) -> int:
        """Size of the archive."""
        sizes = [len(self._contents), *(view.size for view in self._views)]
        return sum(tarfile.BLOCKSIZE + size + _padding(size) for size in sizes) + len(_END)

    def chunks(self) -> Iterator[bytes]:
        """Yield the archive in chunks; StateError or OSError if a file cannot be read."""
        yield self._header(CONTENTS, len(self._contents))
        yield self._contents + bytes(_padding(len(self._contents)))
        for name, view in zip(self._names, self._views, strict=True):
            yield self._header(name, view.size)
            yield from view.read(CHUNK_BYTES)
            yield bytes(_padding(view.size))
        yield _END

    def close(self) -> None:
        """Close all files."""
        close_views(self._views)

    def _header(self, name: str, size: int) -> bytes:
        info = tarfile.TarInfo(name)
        info.size, info.mtime, info.mode = size, int(self._time), 0o600
        return info.tobuf(tarfile.GNU_FORMAT)


def _padding(size: int) -> int:
    return -size % tarfile.BLOCKSIZE


def open_backup(folder: Path, record: int) -> Backup:
    """Open all files of a state folder that no server uses; its last record is `record`."""
    journal = journal_paths(folder / "journal")
    paths = [*snapshot_paths(folder), *journal, *pending_paths(folder)]
    return Backup(record, open_views((path, path.stat().st_size) for path in paths))


def snapshot_paths(folder: Path) -> list[Path]:
    """Return the paths of all snapshots in a state folder, the oldest first."""
    return sorted((folder / "snapshots").glob("*.sb"), key=file_number)


def pending_paths(folder: Path) -> list[Path]:
    """Return the paths of all files of pending rows in a state folder, the oldest first."""
    return sorted((folder / "pending").glob("*.log"), key=file_number)


def extract_backup(archive: Path, folder: Path) -> None:
    """Write the files of an archive to a folder; StateError if it is not a complete backup."""
    try:
        with tarfile.open(archive, "r:") as tar:
            for name, data in _read_members(tar):
                path = folder / name
                path.parent.mkdir(exist_ok=True, mode=0o700)
                with name_full_disk(path), path.open("wb") as file:
                    for chunk in data:
                        file.write(chunk)
    except (tarfile.TarError, EOFError, ValueError, TypeError, LookupError, AttributeError):
        raise StateError(
            f"{archive}: not a backup, or an incomplete one; expected a file written by `spanboost "
            "backup`"
        ) from None


def _read_members(tar: tarfile.TarFile) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield the names and the contents of all files that an archive must have."""
    contents = orjson.loads(b"".join(_read_member(tar, CONTENTS, None)))
    for name, size in contents["files"].items():
        if not _NAME.fullmatch(name):
            raise ValueError(name)
        yield name, _read_member(tar, name, size)


def _read_member(tar: tarfile.TarFile, name: str, size: int | None) -> Iterator[bytes]:
    """Yield the content of the next file of an archive; errors if it is not the expected one."""
    member = tar.next()
    if member is None or member.name != name or size not in (None, member.size):
        raise ValueError(name)
    file = tar.extractfile(member)
    if file is None:
        raise ValueError(name)
    while data := file.read(CHUNK_BYTES):
        yield data
