"""The scale of a feature: about the largest |x| seen, but no single value can ruin it.

One row may raise a scale by a factor of at most `JUMP`. A value beyond that is a stray and counts
as if it were at the edge of the scale. The scale follows strays once there are `PATIENCE` of them,
unless there are more than four times as many other rows in between. The first rows of a stream set
the scale without a limit.

A scale falls when `WINDOW` values in a row are below the share `FAINT` of it: the large values that
set it were a mistake, or belong to a past that is over.
"""

import math

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel

JUMP = 64  # the largest factor by which one row raises a scale
YOUNG = 64  # rows, of the weight of the current one, before the limit applies
PATIENCE = 64  # strays before the scale follows them
FAINT = 2.0**-16
WINDOW = 256
STRAY, LOW, PEAK = 0, 1, 2  # columns of the doubts about a scale; all 0 if there are none
DOUBTS = 3


@kernel
def raise_scale(S: Array, doubts: Array, f: int, size: float, young: bool) -> float:
    """Count a value of feature f, and return the scale that the value calls for."""
    scale, doubt, real = S[f], doubts[f], S.dtype.type
    if size <= scale or young or scale == 0 or size <= real(JUMP) * scale:
        if doubt[STRAY] > 0:
            doubt[STRAY] -= 1
        return max(size, scale)
    doubt[STRAY] += 4
    if doubt[STRAY] < 4 * PATIENCE:
        return scale
    doubt[STRAY] = 0
    return size


@kernel
def lower_scale(S: Array, doubts: Array, f: int, size: float) -> float:
    """Count a value that may be far below the scale of feature f, and return the new scale."""
    scale, doubt, real = S[f], doubts[f], S.dtype.type
    if size < real(FAINT) * scale:
        doubt[LOW] += 1
        doubt[PEAK] = max(doubt[PEAK], size)
        if doubt[LOW] < WINDOW:
            return scale
        scale = doubt[PEAK]
    if doubt[LOW] > 0:
        doubt[LOW], doubt[PEAK] = 0, 0
    return scale


@kernel
def pull_stray(x: float, scale: float) -> float:
    """Return the value of a feature, or the edge of its scale if the value is a stray."""
    return x if abs(x) <= JUMP * scale else math.copysign(scale, x)
