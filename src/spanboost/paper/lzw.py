"""Decompression of .Z files, as written by Unix `compress`; the standard library has none.

T. Welch, *A Technique for High-Performance Data Compression*, IEEE Computer, 1984. After two magic
bytes comes a byte with the largest code width; its highest bit says that the table may be cleared.
Codes are 9 bits wide at first, lowest bit first, and come in groups of eight, so that a group of
w-bit codes is w bytes. When the width changes or the table is cleared, the rest of the group is
unused.
"""

from spanboost.errors import UserError

MAGIC = b"\x1f\x9d"
_CLEAR = 256


def unpack(data: bytes) -> bytes:
    """Return the decompressed bytes."""
    if data[:2] != MAGIC or len(data) < 3:
        raise UserError("not a .Z file")
    widest, clears = data[2] & 0x1F, bool(data[2] & 0x80)
    first = _CLEAR + 1 if clears else _CLEAR
    table = [bytes([value]) for value in range(256)] + [b""] * (first - 256)
    out: list[bytes] = []
    last = b""
    position, width = 3, 9  # position of a group in bytes, width of its codes in bits
    while position < len(data):
        group = int.from_bytes(data[position : position + width], "little")
        codes = 8 * min(width, len(data) - position) // width
        for k in range(codes):
            code = group >> (k * width) & ((1 << width) - 1)
            if clears and code == _CLEAR:
                del table[first:]
                last, next_width = b"", 9
                break
            if code > len(table) or (code == len(table) and not last):
                raise UserError("the .Z file is damaged")
            entry = table[code] if code < len(table) else last + last[:1]
            out.append(entry)
            if last and len(table) < 1 << widest:
                table.append(last + entry[:1])
            last, next_width = entry, width
            # the compressor is one entry ahead: it widens codes when its next one would not fit
            if len(table) == 1 << width and width < widest:
                next_width = width + 1
                break
        position, width = position + width, next_width
    return b"".join(out)
