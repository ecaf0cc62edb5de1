"""A disk on which a chosen system call fails: injects errors into calls that concern a folder."""

import fcntl
import io
import os

from spanboost.service.storage import record_files

PATH_CALLS = ("open", "mkdir", "unlink", "rename", "replace", "scandir", "chmod")
KILLED = 9  # exit status of a process that is ended by a call
FILE_CALLS = ("write", "pwrite", "pread", "ftruncate", "fsync", "close")


class FaultyDisk:
    """Counts the calls on files in a folder; the ones in `failing` raise an error.

    A write that fails has written some of the bytes; a close that fails has closed the file.
    If the code is None, the process ends at once instead, as if it were killed.
    """

    def __init__(self, monkeypatch, folder, failing=range(0), code=0):
        self.folder, self.failing, self.code = str(folder), failing, code
        self.calls = []  # names of the calls so far
        self._open_files = set()
        for name in PATH_CALLS:
            self._wrap(monkeypatch, os, name, self._is_inside)
        for name in FILE_CALLS:
            self._wrap(monkeypatch, os, name, self._open_files.__contains__)
        self._wrap(monkeypatch, record_files, "_sync", self._open_files.__contains__)
        self._wrap(monkeypatch, fcntl, "flock", self._open_files.__contains__)
        self._wrap(monkeypatch, io, "open", self._is_inside)
        monkeypatch.setattr(os, "fdopen", self._fdopen(os.fdopen))

    @property
    def failed(self):
        """Whether any call has failed."""
        return len(self.calls) > self.failing.start

    def check(self, name, write_some=lambda: None):
        """Count a call, and raise an error if it is one of those that fail."""
        self.calls.append(name)
        if len(self.calls) - 1 in self.failing:
            write_some()
            if self.code is None:
                os._exit(KILLED)
            raise OSError(self.code, f"{os.strerror(self.code)} (in {name})")

    def _is_inside(self, path):
        return isinstance(path, str | os.PathLike) and os.fspath(path).startswith(self.folder)

    def _wrap(self, monkeypatch, module, name, concerns):
        call = getattr(module, name)

        def wrapped(first, *rest, **options):
            if not concerns(first):
                return call(first, *rest, **options)
            if name == "close":
                self._open_files.discard(first)
                call(first)
                return self.check(name)
            if name in ("write", "pwrite"):
                self.check(name, lambda: call(first, rest[0][:3], *rest[1:]))
            else:
                self.check(name)
            result = call(first, *rest, **options)
            if module is os and name == "open":
                self._open_files.add(result)
            return result

        monkeypatch.setattr(module, name, wrapped)

    def _fdopen(self, call):
        def fdopen(file, *rest, **options):
            if file not in self._open_files:
                return call(file, *rest, **options)
            self._open_files.discard(file)  # the object closes it without os.close
            return _FaultyFile(self, call(file, *rest, **options))

        return fdopen


class _FaultyFile:
    """A file object whose writes are counted."""

    def __init__(self, disk, file):
        self._disk, self._file = disk, file
        self._number = file.fileno()
        disk._open_files.add(self._number)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._disk._open_files.discard(self._number)
        self._file.close()
        self._disk.check("close")

    def __getattr__(self, name):
        return getattr(self._file, name)

    def write(self, data):
        self._disk.check("write")
        return self._file.write(data)

    def flush(self):
        self._disk.check("flush")
        self._file.flush()
