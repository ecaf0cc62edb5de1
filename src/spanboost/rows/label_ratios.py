"""Compare labels of losses with a log link by their ratios: such labels are often skewed."""

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel

FAR = 32.0  # the recent range becomes at most this many times as wide when wild labels stay


@kernel
def is_far_above(y: float, low: float, high: float, level: float) -> bool:
    """Return whether a label is far above a range on a logarithmic scale.

    The level, a typical label, is added to all of them, so that labels of 0 have a logarithm. The
    distance is compared with the width of the range, or with that of a factor of `FAR`.
    """
    top, bottom = high + level, low + level
    times = min(top / bottom, FAR) if bottom > 0 else FAR
    return y + level > times * top


@kernel
def clipped_mean(values: Array, number: int, low: float, high: float) -> float:
    """Return the mean of the first numbers, each clipped to these ends."""
    total = 0.0
    for i in range(number):
        total += min(max(values[i], low), high) / number
    return total
