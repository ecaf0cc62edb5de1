"""Hash feature names as Vowpal Wabbit does, so that both use the same indices.

The hash of a name that consists of digits is its number plus the seed. Any other name is hashed
with MurmurHash3 (x86, 32 bits). The seed of a feature is the hash of its namespace; the seed of a
namespace is 0.
"""

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel

# unsigned and below 2^32, so that no product overflows, in compiled code or plain Python
_BITS = np.uint64(0xFFFFFFFF)
_FIRST, _SECOND = np.uint64(0xCC9E2D51), np.uint64(0x1B873593)
_FIVE, _ADD = np.uint64(5), np.uint64(0xE6546B64)
_THIRD, _FOURTH = np.uint64(0x85EBCA6B), np.uint64(0xC2B2AE35)
_TEN, _EIGHT, _WORD = np.uint64(10), np.uint64(8), np.uint64(32)
_LOW, _HIGH = np.uint64(0x7F7F7F7F), np.uint64(0x80808080)
_ABOVE = np.uint64(0x5F5F5F5F)  # 127 - 32
_COLONS, _BARS = np.uint64(0x3A3A3A3A), np.uint64(0x7C7C7C7C)


@kernel
def hash_name(data: Array, start: int, seed: np.uint64) -> tuple[np.uint64, int]:
    """Return the hash of the name at `start`, and where the name ends.

    A name ends before a blank, a control character, a colon or a bar. One of these must follow.
    """
    p, number = start, np.uint64(0)
    while 48 <= data[p] <= 57:
        number = number * _TEN + np.uint64(data[p] - 48) & _BITS
        p += 1
    if _at_name_end(data, p):
        return number + seed & _BITS, p
    return _murmur(data, start, seed)


@kernel
def _murmur(data: Array, start: int, seed: np.uint64) -> tuple[np.uint64, int]:
    """Return the MurmurHash3 (x86, 32 bits) of the name at `start`, and where the name ends."""
    p, h = start, seed
    last = data.shape[0] - 4
    while p <= last:
        k = _read_word(data, p)
        if _any_at_name_end(k):
            break
        h = _rotate(h ^ _scramble(k), 13) * _FIVE + _ADD & _BITS
        p += 4
    k, shift = np.uint64(0), np.uint64(0)
    while not _at_name_end(data, p):  # at most 3 bytes, except near the end of the data
        k |= np.uint64(data[p]) << shift
        shift += _EIGHT
        p += 1
        if shift == _WORD:
            h = _rotate(h ^ _scramble(k), 13) * _FIVE + _ADD & _BITS
            k, shift = np.uint64(0), np.uint64(0)
    if shift > 0:
        h ^= _scramble(k)
    h ^= np.uint64(p - start)
    h = (h ^ h >> np.uint64(16)) * _THIRD & _BITS
    h = (h ^ h >> np.uint64(13)) * _FOURTH & _BITS
    return h ^ h >> np.uint64(16), p


@kernel
def _at_name_end(data: Array, p: int) -> bool:
    """Return whether a name ends before p."""
    return data[p] <= 32 or data[p] == 58 or data[p] == 124  # a colon, a bar


@kernel
def _read_word(data: Array, p: int) -> np.uint64:
    """Return four bytes as one number."""
    q = np.uint64(p)  # an unsigned index needs no check for negative values
    k = np.uint64(data[q])
    k |= np.uint64(data[q + np.uint64(1)]) << np.uint64(8)
    k |= np.uint64(data[q + np.uint64(2)]) << np.uint64(16)
    return k | np.uint64(data[q + np.uint64(3)]) << np.uint64(24)


@kernel
def _any_at_name_end(k: np.uint64) -> bool:
    """Return whether a name ends before any of four bytes: `_at_name_end` for all at once.

    The highest bit of each byte is set if the byte is above 32 and neither a colon nor a bar.
    """
    colon, bar = k ^ _COLONS, k ^ _BARS
    above = (k & _LOW) + _ABOVE | k
    other = ((colon & _LOW) + _LOW | colon) & ((bar & _LOW) + _LOW | bar)
    return above & other & _HIGH != _HIGH


@kernel
def _scramble(k: np.uint64) -> np.uint64:
    return _rotate(k * _FIRST & _BITS, 15) * _SECOND & _BITS


@kernel
def _rotate(x: np.uint64, by: int) -> np.uint64:
    return (x << np.uint64(by) | x >> np.uint64(32 - by)) & _BITS
