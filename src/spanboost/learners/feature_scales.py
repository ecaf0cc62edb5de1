"""The scale of a feature: the largest |x| seen, but no single value can ruin it.

A value more than `JUMP` times the scale is a stray. It leaves the scale as it is, and the learner
does not take it at its word. The scale follows strays once there are `PATIENCE` of them, unless
there are more than four times as many other rows in between. Before a feature has been seen in
`YOUNG` rows there are no strays.

A scale falls when `WINDOW` values in a row are below the share `FAINT` of it: the large values that
set it were a mistake, or belong to a past that is over. Values below the share `FAINTEST` count 8
times.

Most values raise no doubt. Learners check this first, with `is_in_doubt`.
"""

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel

JUMP = 4
YOUNG = 64
PATIENCE = 64
FAINT, FAINTEST = 2.0**-9, 2.0**-16
WINDOW = 256
OPEN, STRAY, LOW, PEAK, NEW = 0, 1, 2, 3, 4  # columns of the doubts about a scale
DOUBTS = 5


@kernel
def is_in_doubt(S: Array, doubts: Array, f: int, size: float) -> bool:
    """Return whether a value of feature f calls for `revise_scale`."""
    scale = S[f]
    return size > scale or size < S.dtype.type(FAINT) * scale or doubts[f, OPEN] > 0


@kernel
def revise_scale(S: Array, doubts: Array, f: int, size: float, young: bool) -> float:
    """Count a value of feature f, and return the scale that it calls for, which is not lower.

    young: whether no feature has been seen in more than `YOUNG` rows.
    """
    scale, doubt = S[f], doubts[f]
    if scale == 0 and not young:
        doubt[NEW] = YOUNG
    if size < S.dtype.type(FAINT) * scale:
        doubt[LOW] += 8 if size < S.dtype.type(FAINTEST) * scale else 1
        doubt[PEAK] = max(doubt[PEAK], size)
    else:
        doubt[LOW], doubt[PEAK] = 0, 0
    stray = not young and doubt[NEW] == 0 and is_stray(S, f, size)
    doubt[STRAY] = doubt[STRAY] + 4 if stray else max(doubt[STRAY] - 1, 0)
    doubt[NEW] = max(doubt[NEW] - 1, 0)
    if doubt[STRAY] >= 4 * PATIENCE:
        doubt[STRAY], stray = 0, False
    doubt[OPEN] = doubt[STRAY] + doubt[LOW] + doubt[NEW]
    return scale if stray else max(size, scale)


@kernel
def is_stray(S: Array, f: int, size: float) -> bool:
    """Return whether a value is far beyond the scale of feature f."""
    return size > S.dtype.type(JUMP) * S[f]


@kernel
def lower_scale(S: Array, doubts: Array, f: int) -> float:
    """Lower the scale of feature f if it is due; return the factor, which is 1 if it is not."""
    doubt, one = doubts[f], S.dtype.type(1)
    if doubt[LOW] < WINDOW:
        return one
    shrink = doubt[PEAK] / S[f]
    S[f] = doubt[PEAK]
    doubt[LOW], doubt[PEAK] = 0, 0
    return shrink
