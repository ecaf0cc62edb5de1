"""Stochastic gradient descent, as the linear, stump and network learners use it.

The steps are

- *normalised* (feature_weights.py): S_f is the largest |x| seen of feature f, and the weights
  multiply z_f = x / S_f in [-1, 1], so the scale of a feature does not matter. When S_f grows, the
  weight stays the same. Predictions clip x to the scale so far (S. Ross, P. Mineiro, J. Langford,
  *Normalized Online Learning*, UAI 2013). feature_scales.py treats values that are absurdly large;
- *adaptive*: each weight's step is divided by the root of the sum of its squared gradients
  (J. Duchi, E. Hazan, Y. Singer, *Adaptive Subgradient Methods*, JMLR 2011);
- *importance-invariant*: a step follows the gradient flow of the loss for a time given by the rate.
  A row of weight 2 has almost the effect of two rows of weight 1, and no step overshoots
  (N. Karampatziakis, J. Langford, *Online Importance Weight Aware Updates*, UAI 2011). With
  curvature c the prediction moves by -slope (1 - exp(-c u)) / c, where u is the rate times the
  distance that a unit of slope moves the prediction.

The slope is taken at the prediction projected to norm D. Its part that would lead the prediction
further out is removed, so a copy whose loss asks for more than D stays at D.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spanboost.checks import is_integer, is_number
from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.core.projection import Output, output_of
from spanboost.errors import ParameterError
from spanboost.learners.protocol import Feedback, ReadsFeatures, Task
from spanboost.rows.block import Block, block_of


@dataclass(frozen=True, repr=False)
class Descent(ReadsFeatures):
    """Stochastic gradient descent on features, which need no scaling; missing ones are skipped.

    rate: learning rate; a number, or one number per copy.
    decay: None for adaptive steps; otherwise steps shrink like t^-decay (0: constant steps).
    bits: None for a table that grows with the features seen; otherwise features are hashed into a
        table of 2^bits rows.
    dtype: type of all state, float32 or float64.
    """

    rate: float | Sequence[float] = 0.5
    decay: float | None = None
    bits: int | None = None
    dtype: type[np.floating[Any]] = np.float32

    def check(self, task: Task) -> None:
        """Raise a ValueError if a parameter is out of range."""
        rates, decay, bits = _as_array(self.rate), self.decay, self.bits
        good = rates.dtype.kind in "iuf" and bool(((rates > 1e-30) & (rates < 1e30)).all())
        for name, fits, allowed in (
            (
                "rate",
                good and rates.shape in ((), (task.n,)),
                "a number between 1e-30 and 1e30, or one per copy",
            ),
            (
                "decay",
                decay is None or (is_number(decay) and 0 <= decay <= 1),
                "None or a number from 0 to 1",
            ),
            (
                "bits",
                bits is None or (is_integer(bits) and 1 <= bits <= 30),
                "None or an integer from 1 to 30",
            ),
        ):
            if not fits:
                raise ParameterError(name, f"must be {allowed} (got {getattr(self, name)!r})")

    def encode(self, X: Any, D: float = math.inf) -> Block:
        """Return the block, to be read as active features."""
        return block_of(X, self.dtype, self.bits)

    def steps(self, task: Task) -> "Steps":
        """Return the step sizes of N copies."""
        curvature = np.where(np.isfinite(task.smoothness), task.smoothness, 0.0)
        return Steps(
            rate=np.broadcast_to(self.rate, task.n).astype(self.dtype),
            curvature=curvature.astype(self.dtype),
            decay=np.float64(-1 if self.decay is None else self.decay),
            output=output_of(task.d),
        )


def _as_array(rate: Any) -> Array:
    try:
        return np.asarray(rate)
    except ValueError:  # lists of different lengths
        return np.empty(0, object)


@kernel
class Steps(NamedTuple):
    """The step sizes of N copies."""

    rate: Array  # [N] learning rates
    curvature: Array  # [N] curvature of the losses at weight 1
    decay: float  # steps shrink like t^-decay; negative for adaptive steps
    output: Output

    def find_slopes(self, feedback: Feedback, raw: Array, h: Array, slope: Array) -> None:
        """Set the slopes at h, the projection of `raw`, without their outward part."""
        feedback.slopes(h, slope)
        self.output.remove_outward(raw, h, slope)

    def pace(self, rows: float, squares: float) -> float:
        """Return the factor that makes up for the number and size of the features in a row.

        `rows` is the weight of the rows learned, `squares` the sum of z^2 in them.
        """
        ratio = rows / squares
        return self.rate.dtype.type(np.sqrt(ratio) if self.decay < 0 else ratio)

    def accumulate(
        self,
        G: Array,
        slope: Array,
        square: float,
        weight: float,
        rows: float,
        rate: Array,
        reach: Array,
    ) -> None:
        """Add the squared gradients of one input to G, and set the input's step factors.

        `square` is the square of the input. Each lane will step along its gradient by `rate`.
        `reach` accumulates how far a unit of slope then moves the prediction.
        """
        if self.decay < 0:
            one, gain = G.dtype.type(1), square / weight
            for i in range(G.shape[0]):
                G[i] += slope[i] * (slope[i] * gain)  # slope^2 alone could overflow
                rate[i] = one / np.sqrt(G[i])
                reach[i] += square * rate[i]
        else:
            step = self.decayed_step(rows)
            for i in range(G.shape[0]):
                rate[i] = step
                reach[i] += square * step

    def decayed_step(self, rows: float) -> float:
        """Return the step along a gradient after `rows` rows, if steps are not adaptive."""
        return self.rate.dtype.type(math.pow(rows, -self.decay))

    def step_size(self, i: int, pace: float, weight: float, reach: float) -> float:
        """Return the step size of copy i.

        `reach` is how far a step of size 1 moves the prediction, for a slope of 1.
        """
        u, c = self.rate[i] * pace, self.curvature[i]
        exponent = c * weight * u * reach
        # where c is 0, an infinite reach would make the exponent NaN
        return u * flow(exponent if c > 0 else c, self.rate)

    def scale_slopes(self, pace: float, weight: float, reach: Array, slope: Array) -> None:
        """Multiply the slope of every copy by its step size."""
        if self.curvature[0] == 0:  # then it is 0 in all copies: linear feedback
            for i in range(slope.shape[0]):
                slope[i] *= self.rate[i] * pace
        else:
            for i in range(slope.shape[0]):
                slope[i] *= self.step_size(i, pace, weight, reach[i])


@kernel
def flow(v: float, like: Array) -> float:
    """Return (1 - exp(-v)) / v for v >= 0."""
    one = like.dtype.type(1)
    return (
        (one - one / exponential(v, like)) / v
        if v > like.dtype.type(0.01)
        else one - v * like.dtype.type(0.5)
    )


@kernel
def exponential(v: float, like: Array) -> float:
    """Return exp(v) for v >= 0, from + and x alone, so it vectorises with the same bits anywhere.

    This is the fourth-order series at v / 16, squared four times. Its relative error grows with v
    and is 1 % at 10, where exp(-v) hardly matters any more: `flow` has an error of at most 2e-5,
    the sigmoid of the networks of at most 5e-6.
    """
    one = like.dtype.type(1)
    y = min(v, like.dtype.type(64)) * like.dtype.type(0.0625)
    e = one + y * like.dtype.type(0.25)
    e = one + y * like.dtype.type(1 / 3) * e
    e = one + y * like.dtype.type(0.5) * e
    e = one + y * e
    e *= e
    e *= e
    e *= e
    e *= e
    return e
