"""The recursion of the proofs with measured quantities: a bound on the regret of one pass.

The proofs of both theorems bound the error Delta_i of the partial sums y^i, their total loss minus
that of a function f, by the error of the partial sums before:

    Delta_i <= (1 - eta_i / W) Delta_{i-1} + eta_i R_i + eta_i S_i + C_i + P_i.

The theorems bound the last four terms for every stream. Here they are measured. With g the gradient
of the loss at y^{i-1}, h the prediction of copy i, u the partial sum before projection, and sums
over all rounds:

- copies, R_i: the sum of g . (h - f / W), the regret of copy i on its linear losses;
- sigma, S_i: the sum of g . y^{i-1} (1 / W - sigma), the regret of the shrinkage;
- curvature, C_i: the sum of l(u) - l(y^{i-1}) - g . (u - y^{i-1});
- projection, P_i: the sum of l(y^i) - l(u).

Only one inequality remains, l(f) >= l(y^{i-1}) + g . (f - y^{i-1}). It needs a convex loss and
nothing else: no bound on the learner, no fixed units of the labels, any feedback, and any
W >= eta_i. For linear losses it is an equality. docs/guarantees.md has the derivation.

Corollary 1 takes every g at the prediction y^N, and replaces the losses by their tangents there.
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import jit, kernel
from spanboost.losses import on_vectors, require_fixed_classes
from spanboost.models.booster import Booster
from spanboost.models.booster_core import StageRecord


class StageSums(NamedTuple):
    """Sums over the rounds, for each of the N stages; y^i is relative to the centre y^0."""

    loss: Array  # [N + 1] l(y^i), for i = 0..N
    along_copies: Array  # [N] g . h
    along_shrunk: Array  # [N] g . sigma y^{i-1}
    along_sums: Array  # [N] g . y^{i-1}
    along_centre: Array  # [N] g . y^0
    curvature: Array  # [N]
    projection: Array  # [N]


class MeasuredBound(NamedTuple):
    """A bound on the regret against one function, as a sum of its causes.

    An entry of an array is what stage i adds to the error of the last one: its own cost, times what
    the later stages leave of it.
    """

    f_norm: float  # W, the norm of the function by which the recursion divides it
    initial: float  # what the stages leave of Delta_0
    copies: Array  # [N]
    sigma: Array  # [N]
    curvature: Array  # [N]
    projection: Array  # [N]
    learns_sigma: bool  # Algorithm 1 does; in Algorithm 2, sigma is 1

    @property
    def stages(self) -> Array:
        """The cost of each stage, [N]."""
        total: Array = self.copies + self.sigma + self.curvature + self.projection
        return total

    @property
    def terms(self) -> dict[str, float]:
        """The bound by cause."""
        names = ("copies", "sigma", "curvature", "projection")
        return {"initial": self.initial} | {n: float(getattr(self, n).sum()) for n in names}

    @property
    def total(self) -> float:
        """The regret bound."""
        return sum(self.terms.values())


class Units(NamedTuple):
    """The constants of a measurement; a prediction y of the model is centre + half y."""

    centre: Array  # [d]
    half: float
    eta: Array  # [N]
    scale: float
    at_final: bool


class Round(NamedTuple):
    """Scratch space: the points of one round in the units of the losses, and their losses."""

    h: Array  # [d, N] the predictions of the copies, times lambda
    shrunk: Array  # [d, N] sigma y^{i-1}
    before: Array  # [d, N] y^{i-1}
    reached: Array  # [d, N] u, before projection
    end: Array  # [d, 1] y^N
    end_slope: Array  # [d, 1]
    at_before: Array  # [N]
    at_reached: Array  # [N]
    at_end: Array  # [1]


class Recursion:
    """Measures the stages of a booster's pass, in memory that does not grow with the pass.

    The booster records its stages from now on. After each block that it learns, call `add`.

    model_units: measure the losses of labels in [-1, 1], as the theorems do, and not in the units
        of the labels.
    """

    def __init__(self, booster: Booster, *, model_units: bool = False) -> None:
        booster.check_fixed("a measured bound")
        require_fixed_classes(booster.loss, "a measured bound")
        if booster.labels.log_link and not model_units:
            raise ValueError("a measured bound is not computed for losses with a log link")
        self.booster, self.model_units = booster, model_units
        self.loss = on_vectors(booster.loss_)
        self.d, self.N = int(self.loss.d), booster.n
        self.eta = booster.steps_
        self.at_final = bool(booster.core.state.algorithm.at_final)
        self.sums = StageSums(np.zeros(self.N + 1), *(np.zeros(self.N) for _ in range(6)))
        self.round = Round(
            *(np.empty((self.d, self.N)) for _ in range(4)),
            *(np.empty((self.d, 1)) for _ in range(2)),
            *(np.empty(size) for size in (self.N, self.N, 1)),
        )
        booster.core.records = []

    @property
    def recorded(self) -> int:
        """The number of rows that were learned and not added yet."""
        return sum(len(one.labels) for one in self.booster.core.records or [])

    def close(self) -> None:
        """Stop recording."""
        self.booster.core.records = None

    def add(self, labels: Array | None = None, weights: Array | None = None) -> tuple[Array, Array]:
        """Measure the block that was learned last; return its gradients and its predictions.

        labels: [rows, d] in the units of the losses; None if they are those that were learned.
        weights: [rows]; None if they are those that were learned.
        Returns the gradients [rows, d, N], times the weights, and the predictions [rows, d].
        """
        records, rows = self.booster.core.records or [], self.recorded
        slopes, answers, first = np.empty((rows, self.d, self.N)), np.empty((rows, self.d)), 0
        for one in records:
            part = slice(first, first + len(one.labels))
            first = part.stop
            centre, half = (0.0, 1.0) if self.model_units else (one.centre, one.half)
            centre = np.broadcast_to(np.asarray(centre, np.float64), self.d).copy()
            known = one.labels if labels is None else labels[part]
            w = one.weights if weights is None else weights[part]
            self._add(one, known, w, centre, half, slopes[part])
            answers[part] = centre + half * one.stages[:, : self.d].astype(np.float64)
        self.booster.core.records = []
        return slopes, answers

    def _add(
        self,
        one: StageRecord,
        labels: Array,
        weights: Array,
        centre: Array,
        half: float,
        slopes: Array,
    ) -> None:
        labels, weights = (np.ascontiguousarray(a, np.float64) for a in (labels, weights))
        units = Units(centre, float(half), self.eta, float(self.booster.scale), self.at_final)
        _measure(self.sums, self.loss, labels, weights, one.stages, units, self.round, slopes)

    def bound(self, along: Array, comparator_loss: float, f_norm: float) -> MeasuredBound:
        """Return the bound on the regret against a function f.

        along: [N] the sum over the rounds of g . f(x), for every stage.
        comparator_loss: the total loss of f.
        f_norm: W, at least every step eta_i. Theorem 1 has max{1, ||f||_1 / lambda}, theorem 2 has
            1. The bound holds for any value.
        """
        if not f_norm >= self.eta.max():
            raise ValueError(f"f_norm must be at least the step {self.eta.max():g} (got {f_norm})")
        sums, part = self.sums, self.eta / f_norm
        offset = along - sums.along_centre
        if self.at_final:  # the tangents at y^N stand for the losses
            comparator_loss = sums.loss[0] + float(offset[-1])
        left = np.cumprod(np.append(1.0, (1 - part)[::-1]))[::-1]  # [N + 1] by the stages from i
        return MeasuredBound(
            f_norm=float(f_norm),
            initial=float(left[0] * (sums.loss[0] - comparator_loss)),
            copies=left[1:] * self.eta * (sums.along_copies - offset / f_norm),
            sigma=left[1:] * self.eta * (sums.along_sums / f_norm - sums.along_shrunk),
            curvature=left[1:] * sums.curvature,
            projection=left[1:] * sums.projection,
            learns_sigma=self.booster.sigma_ is not None,
        )


def gradients(loss: Any, labels: Array, Y: Array) -> Array:
    """Return a subgradient of the loss at every row of Y [rows, d]."""
    out = np.empty_like(Y)
    _gradients(loss, labels, Y, out)
    return out


@jit
def _gradients(loss: Any, labels: Array, Y: Array, out: Array) -> None:
    for t in range(Y.shape[0]):
        loss.gradients(labels[t], Y[t].reshape((-1, 1)), out[t].reshape((-1, 1)))


@jit
def _measure(
    sums: StageSums,
    loss: Any,
    labels: Array,
    weights: Array,
    stages: Array,
    units: Units,
    now: Round,
    slopes: Array,
) -> None:
    """Add rows to the sums; set `slopes` [rows, d, N] to the gradients times the weights."""
    for t in range(stages.shape[0]):
        place_points(now, stages[t], units)
        loss.values(labels[t], now.end, now.at_end)
        if units.at_final:
            loss.gradients(labels[t], now.end, now.end_slope)
            follow_tangent(now, slopes[t])
        else:
            loss.values(labels[t], now.before, now.at_before)
            loss.values(labels[t], now.reached, now.at_reached)
            loss.gradients(labels[t], now.before, slopes[t])
        add_round(sums, now, slopes[t], weights[t], units)


@kernel
def place_points(now: Round, stages: Array, units: Units) -> None:
    """Set the points of a round, in the units of the losses."""
    d, N = now.before.shape
    for k in range(d):
        now.end[k, 0] = units.centre[k] + units.half * np.float64(stages[k])
        for i in range(N):
            y = np.float64(stages[d + k * N + i])
            kept = np.float64(stages[d + k * N + i + d * N])
            h = np.float64(stages[d + k * N + i + 2 * d * N])
            now.h[k, i] = units.half * (units.scale * h)
            now.shrunk[k, i] = units.half * (y - kept) / units.eta[i]
            now.before[k, i] = units.centre[k] + units.half * y
            step = units.eta[i] * (now.h[k, i] - now.shrunk[k, i])
            now.reached[k, i] = now.before[k, i] + step


@kernel
def follow_tangent(now: Round, g: Array) -> None:
    """Set the gradients and values of the tangent of the loss at y^N (corollary 1)."""
    d, N = now.before.shape
    for i in range(N):
        now.at_before[i] = now.at_reached[i] = now.at_end[0]
        for k in range(d):
            g[k, i] = now.end_slope[k, 0]
            now.at_before[i] += g[k, i] * (now.before[k, i] - now.end[k, 0])
            now.at_reached[i] += g[k, i] * (now.reached[k, i] - now.end[k, 0])


@kernel
def add_round(sums: StageSums, now: Round, g: Array, w: float, units: Units) -> None:
    """Add a round to the sums, and multiply its gradients by its weight."""
    d, N = now.before.shape
    for i in range(N):
        rise = 0.0  # g . (u - y^{i-1})
        for k in range(d):
            g[k, i] *= w
            rise += g[k, i] * units.eta[i] * (now.h[k, i] - now.shrunk[k, i])
            sums.along_copies[i] += g[k, i] * now.h[k, i]
            sums.along_shrunk[i] += g[k, i] * now.shrunk[k, i]
            sums.along_sums[i] += g[k, i] * (now.before[k, i] - units.centre[k])
            sums.along_centre[i] += g[k, i] * units.centre[k]
        after = now.at_before[i + 1] if i + 1 < N else now.at_end[0]
        sums.loss[i] += w * now.at_before[i]
        sums.curvature[i] += w * (now.at_reached[i] - now.at_before[i]) - rise
        sums.projection[i] += w * (after - now.at_reached[i])
    sums.loss[N] += w * now.at_end[0]
