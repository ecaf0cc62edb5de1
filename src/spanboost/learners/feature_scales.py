"""The scale of a feature: the largest |x| seen, but no single value can ruin it.

A value more than `JUMP` times the scale is a stray. It leaves the scale as it is, and the learner
does not take it at its word. The scale follows strays once there are `PATIENCE` of them, unless
there are more than four times as many other rows in between. Before a feature has been seen in
`YOUNG` rows there are no strays.

A scale falls when `WINDOW` values in a row are below the share `FAINT` of it: the large values that
set it were a mistake, or belong to a past that is over.
"""

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel

JUMP = 4
YOUNG = 64
PATIENCE = 64
FAINT = 2.0**-16
WINDOW = 256
STRAY, LOW, PEAK, NEW = 0, 1, 2, 3  # columns of the doubts about a scale; all 0 if there are none
DOUBTS = 4


@kernel
def raise_scale(S: Array, doubts: Array, f: int, size: float, young: bool) -> float:
    """Count a value of feature f, and return the scale that it calls for.

    young: whether no feature has been seen in more than `YOUNG` rows.
    """
    scale, doubt = S[f], doubts[f]
    if scale == 0 and not young:
        doubt[NEW] = YOUNG
    if young or doubt[NEW] > 0 or not is_stray(size, S, f):
        if doubt[STRAY] > 0:
            doubt[STRAY] -= 1
        if doubt[NEW] > 0:
            doubt[NEW] -= 1
        return max(size, scale)
    doubt[STRAY] += 4
    if doubt[STRAY] < 4 * PATIENCE:
        return scale
    doubt[STRAY] = 0
    return size


@kernel
def is_stray(size: float, S: Array, f: int) -> bool:
    """Return whether a value is far beyond the scale of feature f."""
    return size > S.dtype.type(JUMP) * S[f]


@kernel
def lower_scale(S: Array, doubts: Array, f: int, size: float) -> float:
    """Count a value that may be far below the scale of feature f, and return the new scale."""
    scale, doubt = S[f], doubts[f]
    if size < S.dtype.type(FAINT) * scale:
        doubt[LOW] += 1
        doubt[PEAK] = max(doubt[PEAK], size)
        if doubt[LOW] < WINDOW:
            return scale
        scale = doubt[PEAK]
    if doubt[LOW] > 0:
        doubt[LOW], doubt[PEAK] = 0, 0
    return scale
