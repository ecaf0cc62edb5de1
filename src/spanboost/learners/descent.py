"""What the learners of features share: parameters, normalised features, the size of a step.

- *normalised* (inputs.py): S_f is the largest |x| seen of feature f, and weights are those of
  z_f = x / S_f in [-1, 1], so the scale of a feature does not matter. When it grows the weight
  stays, and the prediction is what it would be had x been cut to the old scale (S. Ross,
  P. Mineiro, J. Langford, *Normalized Online Learning*, UAI 2013);
- *adaptive*: squared gradients are summed, and steps shrink with the root (J. Duchi, E. Hazan,
  Y. Singer, *Adaptive Subgradient Methods*, JMLR 2011);
- *importance-invariant*: a step follows the gradient flow of the loss for as long as the rate says,
  so a row of weight 2 is much like two rows of weight 1 and no step overshoots (N. Karampatziakis,
  J. Langford, *Online Importance Weight Aware Updates*, UAI 2011). With curvature c the prediction
  moves by -slope (1 - exp(-c u)) / c, where u is rate times what a unit of slope moves it.

The slope is that at the prediction cut to norm D, and none where a step would only lead it further
out: a copy whose loss asks for more than D stays at D.
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
from spanboost.learners.protocol import Feedback, ReadsFeatures, Task
from spanboost.rows.block import Block, block_of


@dataclass(frozen=True)
class Descent(ReadsFeatures):
    """Stochastic gradient descent on features; they need no scaling, missing ones are absent.

    rate: learning rate; a number, or one for each copy.
    decay: None for adaptive steps; else steps shrink like t^-decay (0: constant).
    bits: None for a table that grows with the features seen; else a hashed one of 2^bits rows.
    dtype: of all state, float32 or float64.
    """

    rate: float | Sequence[float] = 0.5
    decay: float | None = None
    bits: int | None = None
    dtype: Any = np.float32

    def check(self, task: Task) -> None:
        """Refuse parameters out of range."""
        rates, decay, bits = _as_array(self.rate), self.decay, self.bits
        good = rates.dtype.kind in "iuf" and bool(((rates > 1e-30) & (rates < 1e30)).all())
        for name, fits, allowed in (
            (
                "rate",
                good and rates.shape in ((), (task.n,)),
                "between 1e-30 and 1e30, or one a copy",
            ),
            (
                "decay",
                decay is None or (is_number(decay) and 0 <= decay <= 1),
                "None, or from 0 to 1",
            ),
            (
                "bits",
                bits is None or (is_integer(bits) and 1 <= bits <= 30),
                "None, or from 1 to 30",
            ),
        ):
            if not fits:
                raise ValueError(f"{name}={getattr(self, name)!r} is not allowed: {allowed}")

    def encode(self, X: Any, D: float = math.inf) -> Block:
        """A block read as active features."""
        return block_of(X, self.dtype, self.bits)

    def steps(self, task: Task) -> "Steps":
        """How large the steps of N copies are."""
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
    except ValueError:  # lists of several lengths
        return np.empty(0, object)


@kernel
class Steps(NamedTuple):
    """How large the steps of N copies are."""

    rate: Array  # [N]
    curvature: Array  # [N] of the losses, at weight 1
    decay: float  # steps shrink like t^-decay; negative: adaptively
    output: Output

    def ask(self, feedback: Feedback, raw: Array, h: Array, slope: Array) -> None:
        """Slopes at what was predicted, `raw` cut to `h`; none where it could only be cut more."""
        feedback.slopes(h, slope)
        self.output.remove_outward(raw, h, slope)

    def pace(self, rows: float, squares: float) -> float:
        """Steps are the larger the fewer features rows have, and the smaller these are."""
        ratio = rows / squares
        return self.rate.dtype.type(np.sqrt(ratio) if self.decay < 0 else ratio)

    def gather(
        self,
        G: Array,
        slope: Array,
        square: float,
        weight: float,
        rows: float,
        rate: Array,
        reach: Array,
    ) -> None:
        """Learn the squared gradients G of one input, square = its square.

        Each lane will step along its gradient by `rate`, and that adds to its `reach`.
        """
        if self.decay < 0:
            one, gain = G.dtype.type(1), square / weight
            for i in range(G.shape[0]):
                G[i] += slope[i] * (slope[i] * gain)  # slope^2 alone might overflow
                rate[i] = one / np.sqrt(G[i])
                reach[i] += square * rate[i]
        else:
            slowed = self.slowed(rows)
            for i in range(G.shape[0]):
                rate[i] = slowed
                reach[i] += square * slowed

    def slowed(self, rows: float) -> float:
        """The step along a gradient after so many rows, where steps are not adaptive."""
        return self.rate.dtype.type(math.pow(rows, -self.decay))

    def size(self, i: int, pace: float, weight: float, reach: float) -> float:
        """The step of copy i; a unit of it and of slope moves the prediction by reach."""
        u, c = self.rate[i] * pace, self.curvature[i]
        turn = c * weight * u * reach
        return u * flow(turn if c > 0 else c, self.rate)  # without curvature however far it is


@kernel
def flow(v: float, like: Array) -> float:
    """(1 - exp(-v)) / v for v >= 0."""
    one = like.dtype.type(1)
    return (
        (one - one / exponential(v, like)) / v
        if v > like.dtype.type(0.01)
        else one - v * like.dtype.type(0.5)
    )


@kernel
def exponential(v: float, like: Array) -> float:
    """exp(v) for v >= 0, of + and x alone, so that it vectorises with the same bits everywhere.

    The fourth-order series at v / 16, squared four times. It falls behind as v grows, by 1 % at 10,
    where exp(-v) hardly counts any more: `flow` is right to 2e-5, the sigmoid to 5e-6.
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
