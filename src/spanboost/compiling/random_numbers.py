"""Random numbers that are the same in compiled code and in plain Python.

`uniform` is L'Ecuyer's MRG32k3a (Operations Research 47(1), 1999). All its products stay below
2^53, so 64-bit integers and Python's integers give the same results. The state is six integers in
an array. `hash_integers` gives random access: it computes the number at any position.
"""

from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel

_M1, _M2 = 4294967087, 4294944443
_ONES = 2**64 - 1
_MIXER = 0x2545F491  # odd; its product with 32 bits stays below 2^62


def streams(seed: int, n: int) -> Array:
    """Return the states of n independent streams, [n, 6]."""
    rng = np.random.default_rng(seed)
    return rng.integers(1, _M2, size=(n, 6), dtype=np.int64)


def are_streams(states: Array) -> bool:
    """Return whether these are states of streams, [n, 6]; one of zeros would never change."""
    first, second = states[:, :3], states[:, 3:]
    return all(
        bool(((part >= 0) & (part < m)).all() and part.any(axis=1).all())
        for part, m in ((first, _M1), (second, _M2))
    )


@kernel
def uniform(state: Array) -> float:
    """Return the next number in (0, 1), and advance the state."""
    a = (1403580 * int(state[1]) - 810728 * int(state[0])) % _M1
    b = (527612 * int(state[5]) - 1370589 * int(state[3])) % _M2
    state[0], state[1], state[2] = state[1], state[2], a
    state[3], state[4], state[5] = state[4], state[5], b
    return ((a - b) % _M1 + 0.5) / _M1


@kernel
def fill_uniform(state: Array, out: Array, number: int) -> None:
    """Set out[:number] to what as many calls of `uniform` return, with the state in registers."""
    a, b, c = int(state[0]), int(state[1]), int(state[2])
    d, e, f = int(state[3]), int(state[4]), int(state[5])
    for k in range(number):
        a, b, c = b, c, (1403580 * b - 810728 * a) % _M1
        d, e, f = e, f, (527612 * f - 1370589 * d) % _M2
        out[k] = ((c - f) % _M1 + 0.5) / _M1
    state[0], state[1], state[2] = a, b, c
    state[3], state[4], state[5] = d, e, f


@kernel
def scramble(number: int) -> int:
    """Return 32 bits that look random, for a number of 0 or more; kernels can call it."""
    bits = number % 2**32
    for _ in range(2):
        bits = (bits ^ (bits >> 15)) * _MIXER % 2**32
    return bits ^ (bits >> 15)


def hash_integers(bits: Any) -> Any:
    """Return 64-bit hashes (finaliser of SplitMix; G. Steele, D. Lea, C. Flood, OOPSLA 2014)."""
    with np.errstate(over="ignore"):
        bits = bits + np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return bits ^ (bits >> np.uint64(31))


def hash_integer(bits: int) -> int:
    """Return the hash that `hash_integers` has for one number, sooner."""
    bits = (bits + 0x9E3779B97F4A7C15) & _ONES
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & _ONES
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & _ONES
    return bits ^ (bits >> 31)
