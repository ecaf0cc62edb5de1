"""Files as they are at one moment: a log that grows, or is deleted, is read as it was then."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from spanboost.service.storage.record_files import StateError


class FileView(NamedTuple):
    """An open file, and its size at the moment when it was opened."""

    path: Path
    file: BinaryIO
    size: int

    def read(self, chunk_bytes: int) -> Iterator[bytes]:
        """Yield the content in chunks."""
        left = self.size
        while left:
            data = self.file.read(min(left, chunk_bytes))
            if not data:
                raise StateError(f"{self.path}: the file became shorter while it was read")
            left -= len(data)
            yield data


def open_views(sizes: Iterable[tuple[Path, int]]) -> list[FileView]:
    """Open files of which no more than these sizes are read; OSError if one cannot be opened."""
    views = list[FileView]()
    try:
        for path, size in sizes:
            views.append(FileView(path, path.open("rb"), size))
    except OSError:
        close_views(views)
        raise
    return views


def close_views(views: Iterable[FileView]) -> None:
    """Close files."""
    for view in views:
        view.file.close()
