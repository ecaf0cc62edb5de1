"""Convert text in UTF-16, such as the "Unicode text" of Excel, to UTF-8 while it is read."""

import codecs
import io
from typing import Any

from spanboost.data.problems import StreamError

_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SIZE = 1 << 16  # bytes that are converted at a time


class Utf8Bytes(io.RawIOBase):
    """The bytes of a text file; a text in UTF-16 with a byte order mark is converted to UTF-8.

    Text in UTF-16 without the mark is an error that names the command to convert it: zero bytes
    between the first letters give it away.
    """

    def __init__(self, name: str, file: io.RawIOBase) -> None:
        self._name, self._file = name, file
        self._decoder: codecs.IncrementalDecoder | None = None
        self._ready: bytes | None = None  # bytes to return next; None before the first read

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        if self._ready is None:
            self._ready = self._begin()
        while not self._ready:
            if self._decoder is None:
                return self._file.readinto(target) or 0
            raw = self._file.read(_SIZE) or b""
            self._ready = self._convert(self._decoder, raw)
            if not raw:
                break
        count = min(len(target), len(self._ready))
        target[:count], self._ready = self._ready[:count], self._ready[count:]
        return count

    def close(self) -> None:
        self._file.close()
        super().close()

    def _begin(self) -> bytes:
        """Return the first four bytes, or those of a text in UTF-16 converted; set the decoder."""
        first = b""
        while len(first) < len("ab".encode("utf-16-le")) and (more := self._file.read(1)):
            first += more
        if first.startswith(_MARKS):
            self._decoder = codecs.getincrementaldecoder("utf-16")()
            return self._convert(self._decoder, first)
        for order in ("LE", "BE"):
            if _is_utf16(first, order):
                raise StreamError(
                    f"{self._name}: the file seems to be in UTF-16; convert it with "
                    f"iconv -f UTF-16{order} -t UTF-8"
                )
        return first

    def _convert(self, decoder: codecs.IncrementalDecoder, raw: bytes) -> bytes:
        try:
            return decoder.decode(raw, final=not raw).encode()
        except UnicodeDecodeError:
            raise StreamError(f"{self._name}: the file is damaged: invalid UTF-16") from None


def _is_utf16(first: bytes, order: str) -> bool:
    """Return whether the bytes are a printable ASCII character and another one in UTF-16."""
    text = first.decode(f"utf-16-{order}", errors="replace")
    return len(text) > 1 and text.isascii() and text[0].isprintable() and text[1] != "\0"
