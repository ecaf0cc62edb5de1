"""Names of features as Vowpal Wabbit hashes them, so that its tables and ours agree.

A name of digits alone stands for its number plus the seed; any other is hashed by MurmurHash3
(x86, 32 bits). The seed of a feature is the hash of its namespace, that of a namespace is 0.
"""

import numpy as np

from spanboost._jit import kernel
from spanboost.arrays import Array

# unsigned, and below 2^32: neither compiled nor as plain Python does a product of two overflow
_BITS = np.uint64(0xFFFFFFFF)
_FIRST, _SECOND = np.uint64(0xCC9E2D51), np.uint64(0x1B873593)
_FIVE, _ADD = np.uint64(5), np.uint64(0xE6546B64)
_THIRD, _FOURTH = np.uint64(0x85EBCA6B), np.uint64(0xC2B2AE35)
_TEN = np.uint64(10)


@kernel
def murmur(data: Array, start: int, end: int, seed: np.uint64) -> np.uint64:
    """MurmurHash3, x86 with 32 bits, of the bytes from start to end."""
    h = seed
    whole = start + (end - start) // 4 * 4
    for p in range(start, whole, 4):
        k = np.uint64(data[p])
        for i in range(1, 4):
            k |= np.uint64(data[p + i]) << np.uint64(8 * i)
        h = _rotated(h ^ _scrambled(k), 13) * _FIVE + _ADD & _BITS
    if whole < end:
        k = np.uint64(data[whole])
        if whole + 1 < end:
            k |= np.uint64(data[whole + 1]) << np.uint64(8)
        if whole + 2 < end:
            k |= np.uint64(data[whole + 2]) << np.uint64(16)
        h ^= _scrambled(k)
    h ^= np.uint64(end - start)
    h = (h ^ h >> np.uint64(16)) * _THIRD & _BITS
    h = (h ^ h >> np.uint64(13)) * _FOURTH & _BITS
    return h ^ h >> np.uint64(16)


@kernel
def hashed_name(data: Array, start: int, seed: np.uint64) -> tuple[np.uint64, int]:
    """The hash of the name that begins at `start`, and where it ends.

    It ends before a blank or another control character, a colon or a bar, one of which must come.
    """
    p = start
    number = np.uint64(0)
    while 48 <= data[p] <= 57:
        number = number * _TEN + np.uint64(data[p] - 48) & _BITS
        p += 1
    if data[p] <= 32 or data[p] == 58 or data[p] == 124:  # a colon, a bar
        return number + seed & _BITS, p
    while not (data[p] <= 32 or data[p] == 58 or data[p] == 124):
        p += 1
    return murmur(data, start, p, seed), p


@kernel
def _scrambled(k: np.uint64) -> np.uint64:
    return _rotated(k * _FIRST & _BITS, 15) * _SECOND & _BITS


@kernel
def _rotated(x: np.uint64, by: int) -> np.uint64:
    return (x << np.uint64(by) | x >> np.uint64(32 - by)) & _BITS
