"""Parse decimal numbers in compiled code, with the same result as Python's float().

The first 18 digits of a number are kept as an integer w, so that the number is w * 10^k. If both
are small, one operation computes it exactly. Otherwise the product is computed in pairs of doubles,
to about 100 bits, which gives a lower and an upper bound. Nearly always both are the same double.
If not (a number halfway between two doubles, or one of size 1e-200), the number is uncertain, and
`text_rows.LineReader` resolves it with float().
"""

import functools
import math

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel

_REACH = 80  # powers of ten from -80 to 80
_EXACT = 22  # the largest power that a double represents exactly
_LIMIT = 10**17  # from here on, w cannot take another digit
_SPLIT = 134217729.0  # 2^27 + 1: splits a double into two halves


@functools.cache
def powers_of_ten() -> Array:
    """Return 10^k for k = -80, ..., 80, each as a sum of two doubles."""
    table = np.empty((2 * _REACH + 1, 2))
    for k in range(_REACH + 1):
        high = float(10**k)
        table[_REACH + k] = high, float(10**k - int(high))
        high = 1 / 10**k
        top, bottom = high.as_integer_ratio()
        table[_REACH - k] = high, (bottom - top * 10**k) / (bottom * 10**k)
    return table


@kernel
def parse_number(data: Array, start: int, powers: Array) -> tuple[float, float, int]:
    """Parse the number at `start`; return its lower and upper bound, and where it ends.

    If there is no number, it ends at `start`. At least one byte must follow the number.
    """
    first = start + 1 if data[start] == 45 or data[start] == 43 else start  # - or +
    p, w, k = _parse_digits(data, first, 0)
    digits, truncated, point = p - first, k > 0, data[p] == 46
    if point:
        first = p + 1
        p, w, dropped = _parse_digits(data, first, w)
        digits += p - first
        k -= p - first - dropped
        truncated = truncated or dropped > 0
    if digits > 0:
        p, exponent = _parse_exponent(data, p)
        low, high = _round(w, k + exponent, truncated, powers)
    else:
        low, p = _parse_word(data, first)
        high = low
        if point or p == first:
            p = start
    if data[start] == 45:
        low, high = -high, -low
    return low, high, p


@kernel
def _parse_digits(data: Array, p: int, w: int) -> tuple[int, int, int]:
    """Append the digits from p on to w; return their end, w, and how many did not fit into w."""
    dropped = 0
    while 48 <= data[p] <= 57:
        if w < _LIMIT:
            w = 10 * w + int(data[p]) - 48
        else:
            dropped += 1
        p += 1
    return p, w, dropped


@kernel
def _parse_exponent(data: Array, p: int) -> tuple[int, int]:
    """Return where the exponent at p ends, and its value; p and 0 without an exponent."""
    if data[p] | 32 != 101:  # e or E
        return p, 0
    first = p + 2 if data[p + 1] == 45 or data[p + 1] == 43 else p + 1
    end, value, _ = _parse_digits(data, first, 0)
    if end == first:
        return p, 0
    return end, -value if data[p + 1] == 45 else value


@kernel
def _parse_word(data: Array, p: int) -> tuple[float, int]:
    """Parse nan, inf or infinity in any case; return its value and end (p if it is neither)."""
    if data[p] | 32 == 110 and data[p + 1] | 32 == 97 and data[p + 2] | 32 == 110:
        return math.nan, p + 3
    if data[p] | 32 != 105 or data[p + 1] | 32 != 110 or data[p + 2] | 32 != 102:
        return math.nan, p
    end = p + 3
    for c in (105, 110, 105, 116, 121):
        if data[end] | 32 != c:
            return math.inf, p + 3
        end += 1
    return math.inf, end


@kernel
def _round(w: int, k: int, truncated: bool, powers: Array) -> tuple[float, float]:
    """Return bounds of w 10^k; if digits were truncated, of all numbers from w to w + 1."""
    x = float(w)
    if w == 0 or (k == 0 and not truncated):
        return x, x
    if w < 2**53 and -_EXACT <= k <= _EXACT:
        x = x * powers[_REACH + k, 0] if k > 0 else x / powers[_REACH - k, 0]
        return x, x
    if k < -_REACH or k > _REACH:
        return -math.inf, math.inf
    ten, rest = powers[_REACH + k, 0], powers[_REACH + k, 1]
    product = x * ten
    error = _product_error(x, ten, product) + (x * rest + float(w - int(x)) * ten)
    total = product + error
    error -= total - product
    margin = total * (2e-17 if truncated else 2**-98)
    return total + (error - margin), total + (error + margin)


@kernel
def _product_error(a: float, b: float, product: float) -> float:
    """Return the exact rounding error of product = a * b (Dekker)."""
    a_high = a * _SPLIT - (a * _SPLIT - a)
    b_high = b * _SPLIT - (b * _SPLIT - b)
    a_low, b_low = a - a_high, b - b_high
    return a_low * b_low - (product - a_high * b_high - a_low * b_high - a_high * b_low)
