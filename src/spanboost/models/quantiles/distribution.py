"""The distribution that quantiles describe: its distribution function, and samples from it.

Between two levels, quantiles are linear in the log-odds of the level. Beyond the outermost levels,
the distribution ends: their quantiles hold the rest of the probability.
"""

from collections.abc import Sequence

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.models.quantiles.asked_levels import interpolate_levels, log_odds


def distribution_function(quantiles: Array, levels: Sequence[float], values: Array) -> Array:
    """Return the probability that a label is at most each value, [rows, values].

    quantiles: [rows, levels], increasing in each row. values: [values].
    """
    odds, last = log_odds(levels), len(levels) - 1
    below = (quantiles[:, None, :] <= values[None, :, None]).sum(axis=2)  # [rows, values]
    left, right = np.clip(below - 1, 0, last), np.clip(below, 0, last)
    low, high = (np.take_along_axis(quantiles, place, axis=1) for place in (left, right))
    with np.errstate(all="ignore"):
        share = np.nan_to_num((values - low) / (high - low))  # 0 next to infinite quantiles
    between = odds[left] + share * (odds[right] - odds[left])
    inner = 1 / (1 + np.exp(-between))
    return np.where(below == 0, 0.0, np.where(below > last, 1.0, inner))


def draw_samples(quantiles: Array, levels: Sequence[float], n: int, seed: int | None) -> Array:
    """Return n samples for each row, [rows, n]; the same seed gives the same samples.

    They are between the outermost finite quantiles; every row has one.
    """
    finite = np.where(np.isfinite(quantiles), quantiles, np.nan)
    ends = (np.nanmin(finite, axis=1), np.nanmax(finite, axis=1)) if len(finite) else (0.0, 0.0)
    quantiles = np.clip(quantiles.T, *ends).T
    random = np.random.default_rng(seed)
    tiny = np.finfo(np.float64).tiny
    drawn = np.clip(random.random((len(quantiles), n)), tiny, 1 - 2**-53)
    return np.vstack(
        [
            interpolate_levels(row[None], levels, shares.tolist())
            for row, shares in zip(quantiles, drawn, strict=True)
        ]
        or [np.empty((0, n))]
    )
