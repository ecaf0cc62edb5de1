"""Names of features as Vowpal Wabbit hashes them, so that its tables and ours agree.

A name of digits alone stands for its number plus the seed; any other is hashed by MurmurHash3
(x86, 32 bits). The seed of a feature is the hash of its namespace, that of a namespace is 0.
"""

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel

# unsigned, and below 2^32: neither compiled nor as plain Python does a product of two overflow
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
    """The hash of the name that begins at `start`, and where it ends.

    It ends before a blank or another control character, a colon or a bar, one of which must come.
    """
    p, number = start, np.uint64(0)
    while 48 <= data[p] <= 57:
        number = number * _TEN + np.uint64(data[p] - 48) & _BITS
        p += 1
    if _ends(data, p):
        return number + seed & _BITS, p
    return _murmur(data, start, seed)


@kernel
def _murmur(data: Array, start: int, seed: np.uint64) -> tuple[np.uint64, int]:
    """MurmurHash3, x86 with 32 bits, of the name at `start`, and where the name ends."""
    p, h = start, seed
    last = data.shape[0] - 4
    while p <= last:
        k = _four(data, p)
        if _any_ends(k):
            break
        h = _rotated(h ^ _scrambled(k), 13) * _FIVE + _ADD & _BITS
        p += 4
    k, place = np.uint64(0), np.uint64(0)
    while not _ends(data, p):  # three times at most, or four at the end of the data
        k |= np.uint64(data[p]) << place
        place += _EIGHT
        p += 1
        if place == _WORD:
            h = _rotated(h ^ _scrambled(k), 13) * _FIVE + _ADD & _BITS
            k, place = np.uint64(0), np.uint64(0)
    if place > 0:
        h ^= _scrambled(k)
    h ^= np.uint64(p - start)
    h = (h ^ h >> np.uint64(16)) * _THIRD & _BITS
    h = (h ^ h >> np.uint64(13)) * _FOURTH & _BITS
    return h ^ h >> np.uint64(16), p


@kernel
def _ends(data: Array, p: int) -> bool:
    """Whether a name ends before p."""
    return data[p] <= 32 or data[p] == 58 or data[p] == 124  # a colon, a bar


@kernel
def _four(data: Array, p: int) -> np.uint64:
    """Four bytes as one number."""
    q = np.uint64(p)  # a place that may be negative would be looked at twice
    k = np.uint64(data[q])
    k |= np.uint64(data[q + np.uint64(1)]) << np.uint64(8)
    k |= np.uint64(data[q + np.uint64(2)]) << np.uint64(16)
    return k | np.uint64(data[q + np.uint64(3)]) << np.uint64(24)


@kernel
def _any_ends(k: np.uint64) -> bool:
    """Whether a name ends before one of four bytes: the same as four times `_ends`, in one go.

    Of each byte the highest bit tells: whether it is above 32, other than a colon, than a bar.
    """
    colon, bar = k ^ _COLONS, k ^ _BARS
    above = (k & _LOW) + _ABOVE | k
    other = ((colon & _LOW) + _LOW | colon) & ((bar & _LOW) + _LOW | bar)
    return above & other & _HIGH != _HIGH


@kernel
def _scrambled(k: np.uint64) -> np.uint64:
    return _rotated(k * _FIRST & _BITS, 15) * _SECOND & _BITS


@kernel
def _rotated(x: np.uint64, by: int) -> np.uint64:
    return (x << np.uint64(by) | x >> np.uint64(32 - by)) & _BITS
