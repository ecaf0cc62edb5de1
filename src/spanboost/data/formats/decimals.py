"""Decimal numbers in text, read as Python's float() reads them, in compiled code.

Of a number the first 18 digits are kept, as a whole number w, so that it is w * 10^k. Where both
are small that is one exact operation; elsewhere the product is computed in pairs of doubles, to
some 100 bits, which tells between which two doubles the number lies: nearly always twice the same.
Where it is not (a number half-way between two doubles, one of size 1e-200), the number is in doubt,
and Python is asked: see `linewise`.
"""

import functools
import math

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel

_REACH = 80  # powers of ten from -80 to 80
_EXACT = 22  # the largest that is a double
_FULL = 10**17  # w has no room for more digits
_SPLIT = 134217729.0  # 2^27 + 1: splits a double into two halves


@functools.cache
def powers_of_ten() -> Array:
    """10^k for k = -80, ..., 80, each as a sum of two doubles."""
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
    """The number that begins at `start`: the doubles it lies between, and where it ends.

    It ends at `start` if there is none. What follows is not looked at, but something must.
    """
    begin = start + 1 if data[start] == 45 or data[start] == 43 else start  # - or +
    p, w, k = _digits(data, begin, 0)
    digits, cut, point = p - begin, k > 0, data[p] == 46
    if point:
        begin = p + 1
        p, w, lost = _digits(data, begin, w)
        digits += p - begin
        k -= p - begin - lost
        cut = cut or lost > 0
    if digits > 0:
        p, exponent = _exponent(data, p)
        low, high = _rounded(w, k + exponent, cut, powers)
    else:
        low, p = _word(data, begin)
        high = low
        if point or p == begin:
            p = start
    if data[start] == 45:
        low, high = -high, -low
    return low, high, p


@kernel
def _digits(data: Array, p: int, w: int) -> tuple[int, int, int]:
    """Digits from p on, put behind those of w: their end, w, how many found no room in it."""
    lost = 0
    while 48 <= data[p] <= 57:
        if w < _FULL:
            w = 10 * w + int(data[p]) - 48
        else:
            lost += 1
        p += 1
    return p, w, lost


@kernel
def _exponent(data: Array, p: int) -> tuple[int, int]:
    """Where an exponent at p ends, and its value: p and 0 if there is none."""
    if data[p] | 32 != 101:  # e or E
        return p, 0
    begin = p + 2 if data[p + 1] == 45 or data[p + 1] == 43 else p + 1
    end, value, _ = _digits(data, begin, 0)
    if end == begin:
        return p, 0
    return end, -value if data[p + 1] == 45 else value


@kernel
def _word(data: Array, p: int) -> tuple[float, int]:
    """nan, inf or infinity, whatever the case, and its end; p if it is none of them."""
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
def _rounded(w: int, k: int, cut: bool, powers: Array) -> tuple[float, float]:
    """The doubles between which w 10^k lies, or, if digits were cut off, any of w to w + 1."""
    x = float(w)
    if w == 0 or (k == 0 and not cut):
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
    doubt = total * (2e-17 if cut else 2**-98)
    return total + (error - doubt), total + (error + doubt)


@kernel
def _product_error(a: float, b: float, product: float) -> float:
    """What a * b lacks, exactly (Dekker)."""
    a_high = a * _SPLIT - (a * _SPLIT - a)
    b_high = b * _SPLIT - (b * _SPLIT - b)
    a_low, b_low = a - a_high, b - b_high
    return a_low * b_low - (product - a_high * b_high - a_low * b_high - a_high * b_low)
