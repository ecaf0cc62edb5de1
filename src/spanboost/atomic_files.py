"""Files that are written whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from spanboost.errors import UserError

PARTIAL = ".partial"  # how the name of a file ends while it is written


def check_writable(path: str | os.PathLike[str]) -> None:
    """A UserError where no file can be written: better known before hours of work than after."""
    folder = Path(path).resolve().parent
    if Path(path).is_dir():
        raise UserError(f"{path}: it is a folder")
    if not folder.is_dir():
        raise UserError(f"{path}: its folder does not exist")
    if _is_device(Path(path)):
        return
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise UserError(f"{path}: its folder takes no files: {error.strerror}") from None


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to, beside its place; moved there, with all that was written, at the end.

    What is there already and no file, a pipe or /dev/null, is written to as it is.
    """
    if _is_device(Path(path)):
        with Path(path).open("wb") as file:
            yield file
        return
    final = Path(path).resolve()  # what a link points to, which may be on another disk
    descriptor, beside = tempfile.mkstemp(PARTIAL, f"{final.name}.", final.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, 0o666 & ~_umask())
        os.replace(beside, final)
    except BaseException:
        Path(beside).unlink(missing_ok=True)  # it may just have been moved
        raise
    sync_folder(final.parent)


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file()


def sync_folder(folder: Path) -> None:
    """The new name, too, outlives a loss of power."""
    if hasattr(os, "O_DIRECTORY"):
        entry = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(entry)
        finally:
            os.close(entry)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
