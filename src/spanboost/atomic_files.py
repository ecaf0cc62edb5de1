"""Write files atomically: completely or not at all."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from spanboost.errors import UserError

PARTIAL = ".partial"  # suffix of a file that is being written
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # errors of writes that need more space

# of folders that cannot be created at a path
_MISPLACED = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.EACCES, errno.EPERM, errno.EROFS),
    errno.ENAMETOOLONG,
)


class MissingFolderError(FileNotFoundError, UserError):
    """A file in a folder that does not exist."""

    def __str__(self) -> str:
        return f"{self.filename}: the folder does not exist"


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise a UserError if no file can be written to `path`, before hours of work are lost."""
    folder = Path(path).resolve().parent
    if Path(path).is_dir():
        raise UserError(f"{path} is a folder, not a file")
    if not folder.is_dir():
        raise MissingFolderError(errno.ENOENT, "the folder does not exist", str(path))
    if _is_device(Path(path)):
        return
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise UserError(f"{path}: cannot write to the folder: {error.strerror}") from None


def create_folder(folder: Path, mode: int = 0o777) -> None:
    """Create a folder unless it exists; raise a UserError if its place does not allow that."""
    try:
        folder.mkdir(mode, parents=True, exist_ok=True)
    except OSError as error:
        if error.errno not in _MISPLACED:
            raise
        raise UserError(f"cannot create the folder {folder}: {error.strerror}") from None


@contextmanager
def atomic_write(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[BinaryIO]:
    """Open a temporary file next to `path`, and move it to `path` when the block succeeds.

    If `path` exists and is not a regular file, such as a pipe or /dev/null, write to it directly.
    private: only the owner may read the file.
    """
    if _is_device(Path(path)):
        with name_full_disk(Path(path)), Path(path).open("wb") as file:
            yield file
        return
    final = Path(path).resolve()  # the target of a link may be on another disk
    try:
        descriptor, partial = tempfile.mkstemp(PARTIAL, f"{final.name}.", final.parent)
    except OSError as error:
        error.filename = str(path)  # not the name of the temporary file
        raise
    try:
        with name_full_disk(final), os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if not private:  # a temporary file is
            os.chmod(partial, 0o666 & ~_umask())
        os.replace(partial, final)
    except BaseException:
        Path(partial).unlink(missing_ok=True)  # an interrupt may come just after the move
        raise
    sync_folder(final.parent)


@contextmanager
def name_full_disk(path: Path) -> Iterator[None]:
    """Name the file in errors of a full disk, which do not name the file that is written."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL and error.filename is None:
            error.filename = str(path)
        raise


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file()


def sync_folder(folder: Path) -> None:
    """Flush a folder to disk, so that a new file name in it survives a power failure."""
    if hasattr(os, "O_DIRECTORY"):
        entry = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with name_full_disk(folder):
                os.fsync(entry)
        finally:
            os.close(entry)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
