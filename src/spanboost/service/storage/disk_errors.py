"""Errors of the disk in commands: what they have changed, and what to do."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from spanboost.atomic_files import FULL

_BROKEN = (errno.EIO, errno.EROFS)


@contextmanager
def explain_disk_errors(outcome: str) -> Iterator[None]:
    """Add to errors of the disk what has happened, and what to do.

    outcome: what is true after an error, such as "nothing was changed".
    """
    try:
        yield
    except OSError as error:
        if error.errno not in (*FULL, *_BROKEN):
            raise
        what = "free some space" if error.errno in FULL else "check the disk"
        why = f"{error.strerror}; {outcome}; {what}, then run the command again"
        raise OSError(error.errno, why, error.filename) from error
