"""Online least squares on the features themselves, with an intercept.

The bank keeps the regression in its square-root form, in float64: a triangular matrix R and
vectors c, such that R'R = prior + sum of w x x' and R'c = sum of w y x, over the rows so far. A row
is added by Givens rotations, which are backward stable: nearly collinear columns and scales from
1e-9 to 1e9 do no harm, and errors do not accumulate. Both a forecast and an update cost O(K^2).

The forecast for x is x . u / (1 + omega a), where R u = c, and a is the leverage x' (R'R)^-1 x for
a row of mean weight. At omega = 1 this is the forecast of Vovk, Azoury and Warmuth, which includes
x with label 0 in the fit; at 0 it is plain ridge regression. Here omega is the share of the squared
labels that the forecasts have missed so far. So an exact linear rule is not shrunk, and an unknown
one is predicted with care. `regret_bound` states the bound.

The prior of a column is the number `ridge` times its squared range so far, so units do not matter.
It starts at almost 0, because the range of a column is unknown in its first row, and grows with
the range. A missing number counts as the mean of its column.

Rows may have any number of features. The first ones have columns of their own; when all columns are
taken, further features share the second half of the columns, each with a pseudo-random sign.

A copy with a curved loss fits the targets of a full step along the slope, as trees do (trees.py).
For squared loss these are the labels, or the residuals that earlier copies leave. For a loss with a
kink, a row is weighted by its squared slope over its loss, and its target is where the tangent is
0. For absolute loss this is the label with weight 1 / |residual|, so the fit approaches the median.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spanboost.checks import is_integer, is_number
from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.errors import ParameterError
from spanboost.learners.feature_scales import DOUBTS, YOUNG, lower_scale, pull_stray, raise_scale
from spanboost.learners.feature_weights import grow_table
from spanboost.learners.protocol import Feedback, ReadsFeatures, Task
from spanboost.rows.block import BlockWithMissing, Row, block_of

LARGEST = 1e100  # larger numbers are clipped, so that squares do not overflow
NARROW = 1e-10  # the least range of a column, relative to its largest number
SHARP = 0.25  # losses below this share of the mean loss do not raise a row's weight further


@dataclass(frozen=True)
class Ridge(ReadsFeatures):
    """Online least squares: linear functions of the features, which need no scaling.

    ridge: strength of the regularisation, relative to the squared range of each feature.
    columns: size of the matrix, including the constant. With more features than that, the later
        ones share columns. A row takes time proportional to the square of the columns in use.
    bits: None for a column per feature; otherwise features are first hashed into 2^bits.
    dtype: type of rows, labels and predictions, float32 or float64. The regression is in float64.
    """

    ridge: float = 0.01
    columns: int = 256
    bits: int | None = None
    dtype: Any = np.float64

    @property
    def greedy_step(self) -> float:
        """The step alpha: copies fit the plain residual, and the booster's step shrinks it."""
        return 1.0

    def check(self, task: Task) -> None:
        """Raise a ValueError if a parameter is out of range, or if the feedback is linear."""
        ridge, columns, bits = self.ridge, self.columns, self.bits
        for name, good, allowed in (
            (
                "ridge",
                is_number(ridge) and 1e-12 <= ridge <= 1e12,
                "a number between 1e-12 and 1e12",
            ),
            ("columns", is_integer(columns) and 2 <= columns <= 4096, "an integer from 2 to 4096"),
            (
                "bits",
                bits is None or (is_integer(bits) and 1 <= bits <= 30),
                "None or an integer from 1 to 30",
            ),
        ):
            if not good:
                raise ParameterError(name, f"must be {allowed} (got {getattr(self, name)!r})")
        if task.linear:
            raise ParameterError(
                "feedback", "must be 'greedy': least squares has no targets under linear feedback"
            )

    def encode(self, X: Any, D: float = math.inf) -> BlockWithMissing:
        """Return the block, to be read as active and missing features."""
        return BlockWithMissing(*block_of(X, self.dtype, self.bits))

    def bank(self, task: Task) -> "RidgeBank":
        """Return N copies that predict 0."""
        curved = bool((np.isfinite(task.smoothness) & (task.smoothness > 0)).all())
        fits = 1 if curved else task.n
        shape = (task.d, task.n)
        bank = RidgeBank(
            column=np.zeros(0, np.int64),
            S=np.zeros(0),
            doubts=np.zeros((0, DOUBTS)),
            used=np.zeros(1, np.int64),
            rows=np.zeros(1, np.int64),
            low=np.zeros(0),
            high=np.zeros(0),
            prior=np.zeros(0),
            R=np.zeros((fits, 0, 0)),
            c=np.zeros((fits, 0, task.d * task.n // fits)),
            sums=np.zeros((SUMS, task.n)),
            step=1 / task.smoothness if curved else task.D / task.lipschitz,
            curved=curved,
            ridge=np.float64(self.ridge),
            limit=int(self.columns),
            scratch=RidgeScratch(
                x=np.zeros(0),
                q=np.zeros((fits, 0)),
                unit=np.zeros(0),
                leverage=np.zeros(fits),
                slope=np.zeros(shape, self.dtype),
                loss=np.zeros(task.n),
                target=np.zeros(task.d * task.n // fits),
                nothing=np.zeros(task.d * task.n // fits),
            ),
        )
        return bank.grown(1, 0)


MISSED, WHOLE, LOSS, WEIGHT = 0, 1, 2, 3  # the sums over all rows
SUMS = 4


class RidgeScratch(NamedTuple):
    """Scratch space, from `predict` to `update`."""

    x: Array  # [K] the row
    q: Array  # [fit, K] the row after the triangular solve; in `update`, the row to absorb
    unit: Array  # [K] a row of the prior
    leverage: Array  # [fit]
    slope: Array  # [d, N] slopes of the losses
    loss: Array  # [N] losses
    target: Array  # [lane] targets of one fit
    nothing: Array  # [lane] targets of a row of the prior


@kernel
class RidgeBank(NamedTuple):
    """N linear functions with d outputs each.

    All copies share one matrix if their rows have equal weights; then a lane is output k of copy i,
    number k N + i. Otherwise each copy has a fit of its own, and a lane is an output.
    """

    column: Array  # [feature] 1 + its column, negative if others share it; 0 until it is seen
    S: Array  # [feature] scale (feature_scales.py)
    doubts: Array  # [feature, DOUBTS] doubts about the scale
    used: Array  # [1] number of columns in use
    rows: Array  # [1] number of rows learned
    low: Array  # [K] smallest number in each column
    high: Array  # [K] largest number in each column
    prior: Array  # [K] the range that the prior of each column is for
    R: Array  # [fit, K, K] upper triangular
    c: Array  # [fit, K, lane]
    sums: Array  # [SUMS, N] weighted sums of squared errors, squared targets, losses; of weights
    step: Array  # [N] one over the smoothness; for losses with a kink, D over the slope's bound
    curved: bool  # whether all losses are curved
    ridge: float
    limit: int  # most columns
    scratch: RidgeScratch

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the fields with a row per feature; `column` is 0 until it is seen."""
        return ("column", "S", "doubts")

    def grown(self, features: int, width: int) -> "RidgeBank":
        """Return the same functions with room for more features.

        The number of columns depends on the number of features alone, not on how it grew.
        """
        K, size = len(self.prior), max(features, len(self.prior), 1)
        K = max(K, min(self.limit, 1 << (size - 1).bit_length()))
        more = K - len(self.prior)

        def widen(table: Array, *axes: int) -> Array:
            return np.pad(table, [(0, more if a in axes else 0) for a in range(table.ndim)])

        return self._replace(
            column=grow_table(self.column, features),
            S=grow_table(self.S, features),
            doubts=grow_table(self.doubts, features),
            low=widen(self.low, 0),
            high=widen(self.high, 0),
            prior=widen(self.prior, 0),
            R=widen(self.R, 1, 2),
            c=widen(self.c, 1),
            scratch=self.scratch._replace(
                x=np.zeros(K), q=np.zeros((len(self.R), K)), unit=np.zeros(K)
            ),
        )

    def rescale(self, a: float, b: float) -> None:
        """Multiply functions by a, slopes by b and losses by a b."""
        self.c[...] *= a
        self.sums[:LOSS] *= a * a
        self.sums[LOSS] *= a * b
        if not self.curved and a > 0:  # weights are squared slopes over losses
            self.R[...] *= math.sqrt(b / a)
            self.c[...] *= math.sqrt(b / a)

    @property
    def sound(self) -> bool:
        """Whether all indices are in range; compiled code does not check."""
        used = int(self.used[0])
        return (
            0 <= used <= len(self.prior)
            and int(np.abs(self.column).max(initial=0)) <= used
            and bool((np.diagonal(self.R, axis1=1, axis2=2)[:, :used] > 0).all())
        )

    def weights(self) -> Array:
        """Return the coefficients of the columns, [K, d, N]."""
        used, (d, n) = int(self.used[0]), self.scratch.slope.shape
        u = np.zeros((used, d, n))
        for m in range(len(self.R)):
            fit = np.linalg.solve(self.R[m, :used, :used], self.c[m, :used]) if used else u[:, 0]
            if len(self.R) == 1:
                u[...] = fit.reshape(used, d, n)
            else:
                u[:, :, m] = fit
        return u

    def effects(self) -> tuple[Array, Array]:
        """Return the features seen, and how far each can move the predictions [features, N]."""
        seen = np.flatnonzero(self.column)
        column = np.abs(self.column[seen]) - 1
        reach = np.where(self.column[seen] > 0, self.S[seen], 1.0)
        return seen, np.abs(self.weights()[column]).sum(axis=1) * reach[:, None]

    def predict(self, x: Row, h: Array) -> None:
        """Predict with all copies; columns are solved once per fit."""
        self.load_row(x)
        used, fits = self.used[0], self.R.shape[0]
        for m in range(fits):
            self.solve(m, used)
        for k in range(h.shape[0]):
            for i in range(h.shape[1]):
                m, lane = (0, k * h.shape[1] + i) if fits == 1 else (i, k)
                total = 0.0
                for j in range(used):
                    total += self.scratch.q[m, j] * self.c[m, j, lane]
                h[k, i] = total / (1 + self.missed(i) * self.scratch.leverage[m])

    def missed(self, i: int) -> float:
        """Return the share of the squared targets of copy i that its forecasts have missed."""
        missed, whole = self.sums[MISSED, i], self.sums[WHOLE, i]
        return missed / whole if missed < whole else 1.0

    def load_row(self, x: Row) -> None:
        """Write the numbers of the row to their columns."""
        row, used = self.scratch.x, self.used[0]
        for j in range(used):
            row[j] = 0
        for a in range(x.feature.shape[0]):
            f = x.feature[a]
            place = self.column[f] if f < self.column.shape[0] else 0
            if place != 0:
                S, j = self.S[f], abs(place) - 1
                v = pull_stray(np.float64(x.x[a]), S)
                if np.isnan(x.x[a]):
                    v = self.R[0, 0, j] / self.R[0, 0, 0] if place > 0 else 0.0
                row[j] += v if place > 0 else random_sign(f) * (v / S)

    def solve(self, m: int, used: int) -> None:
        """Set q to the solution of R' q = x, and the leverage to q . q for a mean weight."""
        R, x, q = self.R[m], self.scratch.x, self.scratch.q[m]
        size = 0.0
        for j in range(used):
            q[j] = x[j]
        for j in range(used):
            v = q[j] / R[j, j]
            q[j] = v
            size += v * v
            rest, row = q[j + 1 : used], R[j, j + 1 : used]  # slices, so that the loop vectorises
            for k in range(rest.shape[0]):
                rest[k] -= row[k] * v
        self.scratch.leverage[m] = size * self.mean_weight(m) if used > 0 else 0.0

    def mean_weight(self, m: int) -> float:
        """Return the mean weight of the rows that fit m has learned."""
        return self.R[m, 0, 0] * self.R[m, 0, 0] / max(self.rows[0], 1)

    def update(self, x: Row, h: Array, feedback: Feedback) -> None:
        """Add the row to every fit."""
        feedback.slopes(h, self.scratch.slope)
        feedback.losses(h, self.scratch.loss)
        self.meet_features(x)
        self.load_row(x)
        self.update_ranges()
        for m in range(self.R.shape[0]):
            weight = self.set_targets(m, h, feedback.weight)
            self.raise_priors(m, weight, feedback.weight)
            self.absorb_row(m, weight)
        for j in range(self.used[0]):
            self.prior[j] = self.next_prior(j)
        self.rows[0] += 1

    def meet_features(self, x: Row) -> None:
        """Give columns to the new features of the row, and update the scales of all its features.

        A feature whose scale falls is forgotten: the large numbers that were a mistake have left
        no trace of the others in its column.
        """
        young = self.rows[0] < YOUNG
        for a in range(x.feature.shape[0]):
            f, size = x.feature[a], min(abs(np.float64(x.x[a])), LARGEST)
            if np.isnan(x.x[a]):
                continue
            if self.column[f] == 0:
                self.add_column(f, x.x[a])
            self.S[f] = raise_scale(self.S, self.doubts, f, size, young)
            scale = lower_scale(self.S, self.doubts, f, size)
            if scale < self.S[f]:
                self.S[f] = scale
                if self.column[f] > 0:
                    self.forget(self.column[f] - 1)

    def add_column(self, f: int, v: float) -> None:
        """Give feature f a column: one of its own, or if there is none left, one that is shared."""
        j = self.used[0]
        if j < self.limit:
            self.column[f] = 1 + j
            self.used[0] = j + 1
            if self.rows[0] == 0:
                self.low[j], self.high[j] = v, v
        else:
            half = self.limit // 2
            self.column[f] = -(1 + half + (scramble(f) >> 1) % (self.limit - half))

    def forget(self, j: int) -> None:
        """Remove column j from every fit, as if its feature had always been 0."""
        used, nothing = self.used[0], self.scratch.nothing
        for m in range(self.R.shape[0]):
            R, c, row = self.R[m], self.c[m], self.scratch.q[m]
            for k in range(j):
                R[k, j] = 0
            R[j, j], row[j] = 0, 0
            for k in range(j + 1, used):
                row[k], R[j, k] = R[j, k], 0
            for lane in range(c.shape[1]):
                nothing[lane], c[j, lane] = c[j, lane], 0
            self.absorb(m, row, nothing, j + 1)
        self.low[j], self.high[j], self.prior[j] = 0, 0, 0

    def update_ranges(self) -> None:
        """Extend the range of every column to the number in the row."""
        row = self.scratch.x
        for j in range(self.used[0]):
            self.low[j] = min(self.low[j], row[j])
            self.high[j] = max(self.high[j], row[j])

    def set_targets(self, m: int, h: Array, weight: float) -> float:
        """Set the targets of fit m, and return the weight of the row in it."""
        d, n = h.shape
        if self.curved:
            for i in range(n):
                for k in range(d):
                    self.set_target(k * n + i, k, i, h, self.step[i] / weight, weight)
            return weight
        curvature = self.kink_curvature(m, weight)
        share = weight * curvature * self.step[m]
        for k in range(d):
            self.set_target(k, k, m, h, 1 / (curvature * weight) if curvature > 0 else 0.0, share)
        return share

    def set_target(
        self, lane: int, k: int, i: int, h: Array, step: float, weight: float
    ) -> None:
        """Set the target of output k of copy i, and compare it with the prediction."""
        target = h[k, i] - self.scratch.slope[k, i] * step
        self.scratch.target[lane] = target
        self.sums[MISSED, i] += weight * (target - h[k, i]) * (target - h[k, i])
        self.sums[WHOLE, i] += weight * target * target

    def kink_curvature(self, i: int, weight: float) -> float:
        """Return the squared slope over the loss of copy i; 0 where the slope is 0."""
        loss, square = self.scratch.loss[i], 0.0
        self.sums[LOSS, i] += loss
        self.sums[WEIGHT, i] += weight
        for k in range(self.scratch.slope.shape[0]):
            slope = self.scratch.slope[k, i] / weight
            square += slope * slope
        least = SHARP * self.sums[LOSS, i] / self.sums[WEIGHT, i]
        return square / max(loss / weight, least) if square > 0 else 0.0

    def raise_priors(self, m: int, weight: float, given: float) -> None:
        """Raise the priors of columns whose range has doubled, or which are new."""
        unit, nothing = self.scratch.unit, self.scratch.nothing
        level = max(self.mean_weight(m), weight)
        strength = self.ridge * (level if level > 0 else given)
        for j in range(self.used[0]):
            old, new = self.prior[j], self.next_prior(j)
            if new > old:
                for k in range(j, self.used[0]):
                    unit[k] = 0
                for lane in range(nothing.shape[0]):
                    nothing[lane] = 0
                unit[j] = math.sqrt(strength * (new * new - old * old))
                self.absorb(m, unit, nothing, j)

    def next_prior(self, j: int) -> float:
        """Return the range that the prior of column j has to be for."""
        largest = max(abs(self.low[j]), abs(self.high[j]))
        due = max(self.high[j] - self.low[j], NARROW * largest)
        return due if due > 2 * self.prior[j] else self.prior[j]

    def absorb_row(self, m: int, weight: float) -> None:
        """Add the current row to fit m."""
        root, row, target = math.sqrt(weight), self.scratch.q[m], self.scratch.target
        for j in range(self.used[0]):
            row[j] = root * self.scratch.x[j]
        for lane in range(self.c.shape[2]):
            target[lane] *= root
        self.absorb(m, row, target, 0)

    def absorb(self, m: int, row: Array, target: Array, first: int) -> None:
        """Add a row of weight 1 to fit m, which is 0 before column `first`; this overwrites it."""
        R, c, used = self.R[m], self.c[m], self.used[0]
        for j in range(first, used):
            v = row[j]
            if v == 0:
                continue
            length = math.sqrt(R[j, j] * R[j, j] + v * v)
            cosine, sine = R[j, j] / length, v / length
            R[j, j] = length
            rotate(R[j, j + 1 : used], row[j + 1 : used], cosine, sine)
            rotate(c[j], target, cosine, sine)


@kernel
def rotate(above: Array, row: Array, cosine: float, sine: float) -> None:
    """Rotate two vectors."""
    for k in range(above.shape[0]):
        r, x = above[k], row[k]
        above[k] = cosine * r + sine * x
        row[k] = cosine * x - sine * r


@kernel
def scramble(f: int) -> int:
    """Return a pseudo-random number below 2^31; all products stay below 2^53."""
    return (f % 2147483647 + 1) * 48271 % 2147483647


@kernel
def random_sign(f: int) -> float:
    """Return 1 or -1, at random for each feature."""
    return 1.0 if scramble(f) % 2 == 0 else -1.0
