"""Linear functions by stochastic gradient descent: adaptive, normalised, importance-invariant.

The learner of the paper's experiments, "VW's default linear learner". Of feature f with value x:

- *normalised*: S_f is the largest |x| seen, and the function is a sum of U_f z_f, z = x / S_f in
  [-1, 1], so the scale of a feature does not matter. When it grows the weight U_f stays, and the
  prediction is what it would be had x been cut to the old scale (S. Ross, P. Mineiro, J. Langford,
  *Normalized Online Learning*, UAI 2013);
- *adaptive*: G_f sums the squared gradients, and steps shrink with its root (J. Duchi, E. Hazan,
  Y. Singer, *Adaptive Subgradient Methods*, JMLR 2011);
- *importance-invariant*: a step follows the gradient flow of the loss for as long as the rate says,
  so a row of weight 2 is two rows of weight 1 and no step overshoots (N. Karampatziakis,
  J. Langford, *Online Importance Weight Aware Updates*, UAI 2011). With curvature c the prediction
  moves by -slope (1 - exp(-c u)) / c, where u is rate times what a unit of slope moves it.

Under linear feedback the slope never vanishes and nothing stops the weights, so there the functions
themselves are kept D-bounded: sum_f |U_f| <= D, by shrinking all weights of a copy together.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spanboost._jit import kernel
from spanboost.arrays import Array
from spanboost.block import Block, Row, block_of, features_of
from spanboost.learners.protocol import Feedback, Task

_LEAST = 1e-20  # of G: steps stay finite before the first gradient


@dataclass(frozen=True)
class LinearSGD:
    """One weight for each feature and a constant; features need no scaling, missing are absent.

    rate: learning rate.
    decay: None for adaptive steps; else steps shrink like t^-decay (0: constant).
    bits: None for a table that grows with the features seen; else a hashed one of 2^bits rows.
    dtype: of all state, float32 or float64.
    """

    rate: float = 0.5
    decay: float | None = None
    bits: int | None = None
    dtype: Any = np.float32

    @property
    def scalable(self) -> bool:
        """The label range may grow."""
        return True

    def check(self, task: Task) -> None:
        """Refuse parameters out of range."""
        for name, good, allowed in (
            ("rate", 0 < self.rate < math.inf, "a number above 0"),
            ("decay", self.decay is None or 0 <= self.decay <= 1, "None, or a number from 0 to 1"),
            ("bits", self.bits is None or 1 <= self.bits <= 30, "None, or from 1 to 30"),
            ("dtype", np.dtype(self.dtype) in (np.float32, np.float64), "float32 or float64"),
        ):
            if not good:
                raise ValueError(f"{name}={getattr(self, name)!r} is not allowed: {allowed}")

    def encode(self, X: Any, D: float = math.inf) -> Block:
        """A block read as active features."""
        return block_of(X, self.dtype, self.bits)

    def bank(self, task: Task) -> "LinearBank":
        """N copies, all weights 0."""
        lanes = task.d * task.n
        shape = (features_of(task.rows), lanes)
        curvature = np.where(np.isfinite(task.smoothness), task.smoothness, 0.0)
        return LinearBank(
            U=np.zeros(shape, self.dtype),
            G=np.full(shape, _LEAST, self.dtype),
            S=np.zeros(shape[0], self.dtype),
            seen=np.zeros(2),
            keep=np.ones(lanes, self.dtype),
            mass=np.zeros(task.n),
            raw=np.zeros((task.d, task.n), self.dtype),
            rate=np.full(lanes, self.rate, self.dtype),
            curvature=np.tile(curvature, task.d).astype(self.dtype),
            decay=np.float64(-1 if self.decay is None else self.decay),
            D=np.float64(task.D if task.linear else np.inf),
        )


@kernel
class LinearBank(NamedTuple):
    """N linear functions, of d outputs each: d N lanes, those of one feature side by side."""

    U: Array  # [feature, lane] weights of the normalised features, to be multiplied by `keep`
    G: Array  # [feature, lane] summed squared gradients
    S: Array  # [feature] largest |x| seen
    seen: Array  # [2] rows learned, and the sum of z^2 in them
    keep: Array  # [lane] the same for all outputs of a copy
    mass: Array  # [N] sum of |U|, kept where the functions are bounded
    raw: Array  # [d, N] what was predicted, before it was cut to norm D
    rate: Array  # [lane]
    curvature: Array  # [lane] of the losses, at weight 1
    decay: float  # steps shrink like t^-decay; negative: adaptively
    D: float  # bound of the functions; infinite: none

    def grown(self, features: int) -> "LinearBank":
        """The same functions, with room for more features."""
        if features <= len(self.S):
            return self
        more = max(features, 2 * len(self.S)) - len(self.S)
        room = np.zeros((more, self.U.shape[1]), self.U.dtype)
        return self._replace(
            U=np.concatenate([self.U, room]),
            G=np.concatenate([self.G, room + self.U.dtype.type(_LEAST)]),
            S=np.concatenate([self.S, np.zeros(more, self.S.dtype)]),
        )

    def rescale(self, a: float, b: float) -> None:
        """In wider units: functions times a, slopes times b."""
        self.U[...] *= a
        self.mass[...] *= a
        self.G[...] *= b * b
        np.maximum(self.G, _LEAST, out=self.G)

    def predict(self, x: Row, h: Array) -> None:
        """keep * sum_f U_f z_f, for all lanes at once."""
        out, raw = h.reshape(-1), self.raw.reshape(-1)
        out.fill(0)
        for a in range(x.feature.shape[0]):
            f = x.feature[a]
            if f < self.S.shape[0] and self.S[f] > 0:
                z = max(min(x.x[a], self.S[f]), -self.S[f]) / self.S[f]
                U = self.U[f]
                for i in range(out.shape[0]):
                    out[i] += U[i] * z
        for i in range(out.shape[0]):
            out[i] *= self.keep[i]
            raw[i] = out[i]

    def update(self, x: Row, h: Array, feedback: Feedback) -> None:
        """One step of every copy."""
        slopes, z = np.empty_like(h), np.empty_like(x.x)
        feedback.slopes(self.raw, slopes)
        slope = slopes.reshape(-1)
        pace = self.normalise(x, feedback.weight, z)
        rates = np.empty((z.shape[0], slope.shape[0]), h.dtype)
        self.step_sizes(x, z, slope, feedback.weight, rates)
        reach = np.zeros_like(slope)
        for a in range(z.shape[0]):
            zz, r = z[a] * z[a], rates[a]
            for i in range(reach.shape[0]):
                reach[i] += zz * r[i]
        for i in range(slope.shape[0]):
            u = self.rate[i] * pace
            turn = self.curvature[i] * feedback.weight * u * reach[i]
            slope[i] *= u * flow(turn, h) / self.keep[i]
        for a in range(z.shape[0]):
            za, U, r = z[a], self.U[x.feature[a]], rates[a]
            if math.isfinite(self.D):
                for i in range(slope.shape[0]):
                    change = abs(U[i] - slope[i] * za * r[i]) - abs(U[i])
                    self.mass[i % self.mass.shape[0]] += change
            for i in range(slope.shape[0]):
                U[i] -= slope[i] * za * r[i]
        if math.isfinite(self.D):
            self.hold()

    def step_sizes(self, x: Row, z: Array, slope: Array, weight: float, rates: Array) -> None:
        """How far each lane steps along the gradient of each feature; learns the gradients."""
        one = z.dtype.type(1)
        if self.decay >= 0:
            rates.fill(math.pow(self.seen[0], -self.decay))
            return
        for a in range(z.shape[0]):
            G, r, gain = self.G[x.feature[a]], rates[a], z[a] * z[a] / weight
            for i in range(slope.shape[0]):
                G[i] += slope[i] * slope[i] * gain
                r[i] = one / np.sqrt(G[i])

    def normalise(self, x: Row, weight: float, z: Array) -> float:
        """z = x / S for the active features; returns the pace, by how few they are on average."""
        least = z.dtype.type(1e-20)
        square = np.float64(0)
        for a in range(z.shape[0]):
            f, size = x.feature[a], abs(x.x[a])
            if size > self.S[f]:
                shrink = self.S[f] / size
                G = self.G[f]
                for i in range(G.shape[0]):
                    G[i] = max(G[i] * shrink * shrink, least)
                self.S[f] = size
            z[a] = x.x[a] / self.S[f]
            square += np.float64(z[a]) * np.float64(z[a])
        self.seen[0] += weight
        self.seen[1] += weight * square
        ratio = self.seen[0] / self.seen[1]
        pace: float = z.dtype.type(np.sqrt(ratio) if self.decay < 0 else ratio)
        return pace

    def hold(self) -> None:
        """Shrink the copies whose functions could exceed D: by `keep`, now and then for good."""
        n = self.mass.shape[0]
        low = np.inf
        for i in range(self.keep.shape[0]):
            if self.keep[i] * self.mass[i % n] > self.D:
                self.keep[i] = self.D / self.mass[i % n]
            low = min(low, self.keep[i])
        if low < 1e-9:
            for f in range(self.U.shape[0]):
                U = self.U[f]
                for i in range(U.shape[0]):
                    U[i] *= self.keep[i]
            for i in range(n):
                self.mass[i] *= self.keep[i]
            self.keep.fill(1)


@kernel
def flow(v: float, like: Array) -> float:
    """(1 - exp(-v)) / v for v >= 0, of + x / alone, so that it vectorises and is exact.

    exp(v) is the fourth-order series at v / 16, squared four times: right to a millionth of what
    a step is. Beyond v = 64 nothing is left of exp(-v).
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
    part: float = (
        (one - one / e) / v if v > like.dtype.type(0.01) else one - v * like.dtype.type(0.5)
    )
    return part
