"""Byte streams from files, globs, standard input and URLs, compressed or not."""

import glob
import io
import os
import select
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, BinaryIO, cast

from spanboost.data.compression import HEAD, decompress
from spanboost.data.compression import SUFFIXES as COMPRESSED
from spanboost.data.problems import StreamError
from spanboost.data.utf16 import Utf8Bytes
from spanboost.errors import install_hint

_FIRST = 1 << 16  # bytes in a fingerprint


class Source:
    """A byte stream: a file, standard input or a URL."""

    def __init__(
        self,
        name: str,
        size: int | None,
        begin: Callable[[], BinaryIO],
        *,
        seekable: bool = True,
        once: bool = False,
    ) -> None:
        self.name = name  # as shown in messages
        self.size = size  # in bytes, as stored; None if unknown
        self.position = 0  # stored bytes read since `open`
        self._begin = begin
        self._seekable = seekable
        self._once = once  # it can be read only once, like a pipe
        self._peeked: tuple[bytes, BinaryIO] | None = None  # first bytes of a pipe, and the pipe
        self._spent = False  # a pipe that was read
        self._pipe: BinaryIO | None = None  # the open pipe

    @property
    def is_on_disk(self) -> bool:
        """Whether this is a file of this machine, which can be opened again at little cost."""
        return self._seekable and not self._once and "://" not in self.name

    def open(self) -> io.RawIOBase:
        """Open the text, decompressed and in UTF-8; both are detected from the first bytes.

        A read returns the bytes that are available, which may be fewer than requested.
        """
        self.position = 0
        with _readable_errors(self.name):
            head, file = self._start(HEAD)
            self._spent = self._once
            self._pipe = file if self._once else None
            stored = _Decompressed(self.name, _Stored(self, head, file), head)
            return Utf8Bytes(self.name, stored)

    def would_block(self) -> bool:
        """Return whether this is an open pipe without data, so that reading would block."""
        try:
            return self._pipe is not None and not select.select([self._pipe], [], [], 0)[0]
        except (OSError, ValueError):  # not a kind of file that select supports
            return False

    def random_access(self) -> BinaryIO:
        """Open the stored bytes for random access; a pipe is copied to a temporary file."""
        with _readable_errors(self.name):
            head, file = self._start(0)
            if self._seekable:
                return file
            self._spent = self._once
            with file:
                return _copy_to_file(head, file)

    def first_line(self, limit: int) -> bytes:
        """Return the first line that is not blank, decompressed, or its first `limit` bytes.

        For a pipe, call it before `open`, which still returns this line.
        """
        with _readable_errors(self.name):
            head, file = self._start(HEAD)
            with ExitStack() as stack:
                if not self._once:
                    stack.callback(file.close)
                stored = _Recorded(head, file)
                stream = Utf8Bytes(self.name, _Decompressed(self.name, stored, head))
                text = b""
                while len(text) < limit and b"\n" not in text.lstrip():
                    more = stream.read(limit - len(text))
                    if not more:
                        break
                    text += more
            if self._once:
                self._peeked = bytes(stored.seen), file
            return text.lstrip().partition(b"\n")[0]

    def fingerprint(self) -> list[int | None]:
        """Return the size and the CRC-32 of the first 64 KiB, as stored.

        For a pipe, call it before `open`.
        """
        with _readable_errors(self.name):
            head, file = self._start(_FIRST)
            if self._once:
                self._peeked = head, file
            else:
                file.close()
            return [self.size, zlib.crc32(head[:_FIRST])]

    def _start(self, size: int) -> tuple[bytes, BinaryIO]:
        """Return at least the first `size` bytes, and the file positioned after them."""
        if self._spent:
            raise StreamError(f"{self.name} can be read only once")
        head, file = self._peeked or (b"", self._begin())
        while len(head) < size and (more := file.read(size - len(head))):
            head += more
        return head, file


class _Stored(io.RawIOBase):
    """Stored bytes, including the first ones that were already read. Counts what is read."""

    def __init__(self, source: Source, head: bytes, file: BinaryIO) -> None:
        self._source, self._head, self._file = source, head, file

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        if self._head:
            count = min(len(target), len(self._head))
            target[:count], self._head = self._head[:count], self._head[count:]
        else:
            count = self._file.readinto(target)  # type: ignore[attr-defined]
        self._source.position += count
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


class _Recorded(io.RawIOBase):
    """Stored bytes that are remembered, so that a pipe can be read from its beginning again."""

    def __init__(self, head: bytes, file: BinaryIO) -> None:
        self.seen = bytearray(head)
        self._position, self._file = 0, file

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        if self._position == len(self.seen):
            self.seen += self._file.read(min(len(target), _FIRST)) or b""
        count = min(len(target), len(self.seen) - self._position)
        target[:count] = self.seen[self._position : self._position + count]
        self._position += count
        return count


class _Decompressed(io.RawIOBase):
    """Decompressed bytes. Any failure is a StreamError."""

    def __init__(self, name: str, stored: io.RawIOBase, head: bytes) -> None:
        self._name, self._stored = name, stored
        self._file = decompress(name, stored, head)

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        with _readable_errors(self._name):
            return self._file.readinto(target)

    def close(self) -> None:
        self._file.close()
        self._stored.close()
        super().close()


def _copy_to_file(head: bytes, file: BinaryIO) -> BinaryIO:
    with ExitStack() as undo:
        copy = undo.enter_context(tempfile.TemporaryFile())
        copy.write(head)
        shutil.copyfileobj(file, copy, 1 << 20)
        copy.seek(0)
        undo.pop_all()
        return copy


def find_sources(paths: Sequence[str]) -> list[Source]:
    """Return the sources for paths, globs (sorted), URLs and - (standard input)."""
    if list(paths).count("-") > 1:
        raise StreamError("standard input (-) is given more than once")
    return [source for path in paths for source in _sources_of(path)]


def suffix(name: str) -> str:
    """Return the suffix that names a file's format: `csv` for `data/x.CSV.gz`; may be empty."""
    if "://" in name:
        name = name.partition("?")[0].partition("#")[0]
    stem, ending = os.path.splitext(name)
    if ending.lower() in COMPRESSED:
        ending = os.path.splitext(stem)[1]
    return ending[1:].lower()


def _sources_of(path: str) -> list[Source]:
    if path == "-":
        return [Source("stdin", None, _standard_input, seekable=False, once=True)]
    if "://" in path:
        return _at_address(path)
    if os.path.lexists(path) or not _is_glob(path):
        return [_file(path)]
    names = sorted(name for name in glob.glob(path, recursive=True) if not os.path.isdir(name))
    return [_file(name) for name in names] or _nothing_matches(path)


def _standard_input() -> BinaryIO:
    file = sys.stdin.buffer
    return getattr(file, "raw", file)  # a buffered read would block until it is full


def _file(path: str) -> Source:
    with _readable_errors(path):
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            raise StreamError(f"{path} is a folder, not a file")
        if not os.access(path, os.R_OK):  # opening a pipe just to check would break it
            raise PermissionError("Permission denied")
    regular = stat.S_ISREG(status.st_mode)
    size = status.st_size if regular else None
    buffering = -1 if regular else 0
    begin = partial(open, path, "rb", buffering)  # unbuffered, a pipe returns what is available
    return Source(path, size, cast(Any, begin), seekable=regular, once=not regular)


def _at_address(address: str) -> list[Source]:
    with _readable_errors(address):
        import fsspec.core

        system, path = fsspec.core.url_to_fs(address, **_file_system_options(address))
        try:
            infos = {address: system.info(path)}
        except FileNotFoundError:
            if not _is_glob(address):
                raise
            names = sorted(system.glob(path))
            matches = {system.unstrip_protocol(name): system.info(name) for name in names}
            infos = {name: info for name, info in matches.items() if info["type"] == "file"}
        if infos.get(address, {}).get("type") == "directory":
            raise StreamError(f"{address} is a folder, not a file")
    return [_remote(system, *item) for item in infos.items()] or _nothing_matches(address)


def _remote(system: Any, name: str, info: dict[str, Any]) -> Source:
    if _is_http(name):  # as a stream: not every server supports range requests
        begin = partial(system.open, info["name"], "rb", block_size=0)
        return Source(name, info["size"], begin, seekable=False)
    return Source(name, info.get("size"), partial(system.open, info["name"], "rb"))


def _file_system_options(address: str) -> dict[str, Any]:
    if not _is_http(address):
        return {}
    import aiohttp

    # By default a transfer ends after five minutes, but learning from it may take longer.
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=300)
    return {"client_kwargs": {"timeout": timeout}}


def _is_http(address: str) -> bool:
    return address.startswith(("http://", "https://"))


def _is_glob(path: str) -> bool:
    return any(sign in path for sign in "*?[")


def _nothing_matches(pattern: str) -> list[Source]:
    raise StreamError(f"no file matches {pattern}")


@contextmanager
def _readable_errors(name: str) -> Iterator[None]:
    """Turn any exception of a file system into a StreamError with a one-line message."""
    try:
        yield
    except StreamError:
        raise
    except ImportError as error:
        what = install_hint("http") if _is_http(name) else _reason(error)
        raise StreamError(f"reading {name} requires another package: {what}") from error
    except Exception as error:
        if isinstance(error, FileNotFoundError) and error.__cause__ is None:
            raise StreamError(f"{name}: file not found") from error
        why = _reason(error.__cause__ or error)
        raise StreamError(f"{name}: cannot read the file: {why}") from error


def _reason(error: BaseException) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(text.split())[:200]
