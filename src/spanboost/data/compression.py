"""Decompress files. The first bytes decide, not the name."""

import io
from collections.abc import Callable
from functools import partial
from typing import Any

from spanboost.data.problems import StreamError

HEAD = 4  # bytes that decide; more could block on a pipe that begins with a short line
SUFFIXES = (".gz", ".gzip", ".zst", ".zstd", ".bz2", ".xz")
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"  # a zstd frame written by pzstd, after a byte 50 to 5f
_BZIP2 = tuple(f"BZh{level}".encode() for level in range(1, 10))
_XZ = b"\xfd7zX"
_BLOCK = 1 << 16
_ZIP = b"PK\x03\x04"
_OLD_EXCEL = b"\xd0\xcf\x11\xe0"
_SHEETS = (".xlsx", ".xlsm", ".xlsb", ".ods")  # zip archives, too


def decompress(name: str, stored: io.RawIOBase, head: bytes) -> Any:
    """Return a file of the decompressed bytes of `stored`, which begins with `head`.

    A file that is not compressed is returned as it is. Reading an archive or a spreadsheet raises
    a StreamError.
    """
    if head.startswith(_GZIP):
        import gzip

        return gzip.GzipFile(fileobj=stored)
    if head.startswith(_ZSTD) or (head[1:4] == _SKIPPABLE and head[0] >> 4 == 5):
        import pyarrow

        return pyarrow.CompressedInputStream(pyarrow.PythonFile(stored, mode="r"), "zstd")
    if head.startswith(_BZIP2):
        import bz2

        return _Streams(stored, bz2.BZ2Decompressor)
    if head.startswith(_XZ):
        import lzma

        return _Streams(stored, partial(lzma.LZMADecompressor, lzma.FORMAT_XZ))
    if head.startswith((_ZIP, _OLD_EXCEL)):
        sheet = head.startswith(_OLD_EXCEL) or name.lower().endswith(_SHEETS)
        what = "spreadsheet; save it as CSV" if sheet else "zip archive; extract it first"
        return _Refused(f"{name}: the file is a {what}")
    return stored


class _Refused(io.RawIOBase):
    """A file that cannot be read."""

    def __init__(self, why: str) -> None:
        self._why = why

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        raise StreamError(self._why)


class _Streams(io.RawIOBase):
    """One or more compressed streams after each other.

    The files of the modules bz2 and lzma would ignore anything after the first stream that is not
    another one.
    """

    def __init__(self, stored: io.RawIOBase, start: Callable[[], Any]) -> None:
        self._stored, self._start = stored, start
        self._stream = start()

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        while True:
            data = b""
            if self._stream.eof:
                data = self._stream.unused_data or self._stored.read(_BLOCK) or b""
                if not data:
                    return 0
                self._stream = self._start()
            elif self._stream.needs_input:
                data = self._stored.read(_BLOCK) or b""
                if not data:
                    raise EOFError("the compressed file is truncated")
            text = self._stream.decompress(data, len(target))
            if text:
                target[: len(text)] = text
                return len(text)
