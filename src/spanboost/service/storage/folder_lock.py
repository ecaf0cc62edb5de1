"""The lock of a state folder: only one process uses a folder at a time.

The folder itself is locked, so deleting a file does not release the lock. The file `lock` in it
contains the process id. The file is locked too, which keeps out versions that lock only the file.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from spanboost.atomic_files import create_folder
from spanboost.service.storage.record_files import StateError, close_quietly

# of file systems, such as NFS, on which a folder cannot be locked
_UNSUPPORTED = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOTSUP)


class FolderInUseError(StateError):
    """Another process has locked the folder."""


def check_no_other_files(folder: Path) -> None:
    """Raise StateError if a folder without a journal contains files of another kind.

    A volume has a folder `lost+found`.
    """
    if not folder.is_dir() or any((folder / name).is_dir() for name in ("journal", "snapshots")):
        return
    others = sorted({path.name for path in folder.iterdir()} - {"lock", "lost+found"})
    if others:
        raise StateError(
            f"{folder} is not empty and not a state folder (it contains {others[0]!r:.60}); give a "
            "new or empty --dir"
        )


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Create the folder if needed, and lock it for this process."""
    if folder.exists() and not folder.is_dir():
        raise StateError(f"{folder} is a file; expected a folder")
    create_folder(folder, 0o700)
    with ExitStack() as opened:
        entry = os.open(folder, os.O_RDONLY)
        opened.callback(close_quietly, entry)
        _lock(entry, folder, _UNSUPPORTED)
        file = os.open(folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        opened.callback(close_quietly, file)
        _lock(file, folder)
        with suppress(OSError):  # the number is for people; a full disk can still be checked
            os.ftruncate(file, 0)
            os.write(file, f"{os.getpid()}\n".encode())
        yield


def _lock(file: int, folder: Path, unsupported: tuple[int, ...] = ()) -> None:
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise FolderInUseError(
            f"{folder} is in use by another server; stop it, or use another folder"
        ) from None
    except OSError as error:
        if error.errno not in unsupported:
            raise
