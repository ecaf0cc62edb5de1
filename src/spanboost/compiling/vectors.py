"""Sums over vectors of outputs, in four lanes.

An addition waits for the one before it. Four sums do not wait for each other, so they take a
quarter of the time. The order of additions is fixed, so plain Python and compiled code give the
same bits.
"""

from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array, unsigned
from spanboost.compiling.kernels import kernel


@kernel
def dot(a: Array, b: Array) -> Any:
    """Return the inner product of two vectors."""
    d, zero = a.shape[0], a.dtype.type(0)
    s0, s1, s2, s3 = zero, zero, zero, zero
    for k in range(0, d - 3, 4):
        j0, j1, j2, j3 = unsigned(k), unsigned(k + 1), unsigned(k + 2), unsigned(k + 3)
        s0 += a[j0] * b[j0]
        s1 += a[j1] * b[j1]
        s2 += a[j2] * b[j2]
        s3 += a[j3] * b[j3]
    for k in range(d // 4 * 4, d):
        s0 += a[unsigned(k)] * b[unsigned(k)]
    return (s0 + s1) + (s2 + s3)


@kernel
def total(a: Array) -> float:
    """Return the sum of a vector, in double precision."""
    d, s0, s1, s2, s3 = a.shape[0], 0.0, 0.0, 0.0, 0.0
    for k in range(0, d - 3, 4):
        s0 += np.float64(a[unsigned(k)])
        s1 += np.float64(a[unsigned(k + 1)])
        s2 += np.float64(a[unsigned(k + 2)])
        s3 += np.float64(a[unsigned(k + 3)])
    for k in range(d // 4 * 4, d):
        s0 += np.float64(a[unsigned(k)])
    return (s0 + s1) + (s2 + s3)


@kernel
def largest(a: Array) -> Any:
    """Return the largest number in a vector."""
    d, m0, m1, m2, m3 = a.shape[0], a[0], a[0], a[0], a[0]
    for k in range(0, d - 3, 4):
        m0, m1 = max(m0, a[unsigned(k)]), max(m1, a[unsigned(k + 1)])
        m2, m3 = max(m2, a[unsigned(k + 2)]), max(m3, a[unsigned(k + 3)])
    for k in range(d // 4 * 4, d):
        m0 = max(m0, a[unsigned(k)])
    return max(m0, m1, m2, m3)
