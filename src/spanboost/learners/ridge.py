"""Online least squares on the features themselves, with an intercept.

The fit is in square-root form, in float64 (least_squares.py). The forecast for a row x is
x . u / (1 + omega a), where u are the coefficients and a is the leverage of x at the mean weight.
At omega = 1 this is the forecast of Vovk, Azoury and Warmuth, which includes x with label 0 in the
fit; at 0 it is plain ridge regression. Here omega is the share of the squared targets that the
forecasts have missed so far. So an exact linear rule is not shrunk, and an unknown one is predicted
with care. `regret_bound` in least_squares.py states the bound.

The prior of a column is the number `ridge` times its squared range so far, so units do not matter.
It starts at almost 0, because the range of a column is unknown in its first row, and grows with the
range. A missing number counts as the mean of its column (columns.py).

A column waits until it has a second number. While all its numbers are equal, it is a multiple of
the constant. The two would divide the effect between them, and the forecast for another number
would be at random.

A copy with a curved loss fits the targets of a full step along the slope, as trees do (trees.py).
For squared loss these are the labels, or the residuals that earlier copies leave. For a loss with a
kink, the target is where the tangent is 0, and the weight of a row is multiplied by its squared
slope and divided by its loss. For absolute loss this is the label, with a weight proportional to
1 / |residual|, so the fit approaches the median. The unit of losses is their mean so far. A loss
below the mean counts as the mean, so that no row gets all the weight.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spanboost.checks import is_integer, is_number
from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.errors import ParameterError
from spanboost.learners.columns import WAITING, Columns, new_columns
from spanboost.learners.constructors import own_constructor
from spanboost.learners.least_squares import Fits
from spanboost.learners.protocol import Feedback, ReadsFeatures, Task
from spanboost.rows.block import BlockWithMissing, Row, block_of

MISSED, WHOLE, LOSS, WEIGHT = 0, 1, 2, 3  # the sums over all rows
SUMS = 4


@own_constructor({"alpha": "ridge"})
@dataclass(frozen=True, repr=False)
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
    dtype: type[np.floating[Any]] = np.float64

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
        lanes = task.d * task.n // fits
        bank = RidgeBank(
            columns=new_columns(int(self.columns)),
            fits=Fits(np.zeros((fits, 0, 0)), np.zeros((fits, 0, lanes))),
            mass=np.zeros(fits),
            sums=np.zeros((SUMS, task.n)),
            step=1 / task.smoothness if curved else task.lipschitz**-2.0,
            curved=curved,
            ridge=np.float64(self.ridge),
            scratch=RidgeScratch(
                x=np.zeros(0),
                q=np.zeros((fits, 0)),
                leverage=np.zeros(fits),
                slope=np.zeros((task.d, task.n), self.dtype),
                loss=np.zeros(task.n),
                stride=np.zeros(task.n),
                target=np.zeros(lanes),
            ),
        )
        return bank.grown(1, 0)


class RidgeScratch(NamedTuple):
    """Scratch space, from `predict` to `update`."""

    x: Array  # [K] the row
    q: Array  # [fit, K] the row after the triangular solve; in `update`, a row to add
    leverage: Array  # [fit]
    slope: Array  # [d, N] slopes of the losses
    loss: Array  # [N] losses
    stride: Array  # [N] distance of the target from the prediction, per unit of slope
    target: Array  # [lane] targets of a row to add


@kernel
class RidgeBank(NamedTuple):
    """N linear functions with d outputs each.

    All copies share one fit if their rows have equal weights; then a lane is output k of copy i,
    number k N + i. Otherwise each copy has a fit of its own, and a lane is an output.
    """

    columns: Columns
    fits: Fits
    mass: Array  # [fit] total weight of the rows
    sums: Array  # [SUMS, N] weighted sums of squared errors, squared targets, losses; of weights
    step: Array  # [N] one over the smoothness; for losses with a kink, over the largest slope^2
    curved: bool  # whether all losses are curved
    ridge: float
    scratch: RidgeScratch

    @property
    def predicts_with(self) -> tuple[str, ...]:
        """Names of the arrays that predictions depend on."""
        columns = ("place", "S", "used", "rows", "total", "low", "high")
        return (*(f"columns.{name}" for name in columns), "fits.R", "fits.c", "mass", "sums")

    def grown(self, features: int, width: int) -> "RidgeBank":
        """Return the same functions with room for more features."""
        columns = self.columns.grown(features, width)
        K = len(columns.prior)
        scratch = self.scratch._replace(x=np.zeros(K), q=np.zeros((len(self.fits.R), K)))
        return self._replace(columns=columns, fits=self.fits.widened(K), scratch=scratch)

    def rescale(self, a: float, b: float) -> None:
        """Multiply functions by a, slopes by b and losses by a b."""
        self.fits.c[...] *= a
        self.sums[:LOSS] *= a * a
        self.sums[LOSS] *= a * b

    @property
    def sound(self) -> bool:
        """Whether no column that is in use would divide by 0."""
        used = int(self.columns.used[0])
        return bool((np.diagonal(self.fits.R, axis1=1, axis2=2)[:, :used] > 0).all())

    def weights(self) -> Array:
        """Return the coefficients of the columns in use, [column, d, N]."""
        u = self.fits.coefficients(int(self.columns.used[0]))
        shape = u.shape[1], *self.scratch.slope.shape
        return u.reshape(shape) if len(u) == 1 else np.moveaxis(u, 0, 2)

    def effects(self) -> tuple[Array, Array]:
        """Return the features seen, and how far each can move the predictions [features, N]."""
        seen = np.flatnonzero((self.columns.place != 0) & (self.columns.place != WAITING))
        place = self.columns.place[seen]
        reach = np.where(place > 0, self.columns.S[seen], 1.0)
        return seen, np.abs(self.weights()[np.abs(place) - 1]).sum(axis=1) * reach[:, None]

    def predict(self, x: Row, h: Array) -> None:
        """Predict with all copies."""
        self.load_row(x)
        used, fits, n = self.columns.used[0], self.fits.R.shape[0], h.shape[1]
        for j in range(used):
            if self.waits(j):
                self.scratch.x[j] = 0
        for m in range(fits):
            size = self.fits.solve_row(m, self.scratch.x[:used], self.scratch.q[m, :used])
            self.scratch.leverage[m] = size * self.mean_weight(m)
        for i in range(n):
            m = 0 if fits == 1 else i
            shrink = 1 + self.missed(i) * self.scratch.leverage[m]
            for k in range(h.shape[0]):
                lane = k * n + i if fits == 1 else k
                h[k, i] = self.fits.combine(m, self.scratch.q[m, :used], lane) / shrink

    def missed(self, i: int) -> float:
        """Return the share of the squared targets of copy i that its forecasts have missed."""
        missed, whole = self.sums[MISSED, i], self.sums[WHOLE, i]
        return missed / whole if missed < whole else 1.0

    def mean_weight(self, m: int) -> float:
        """Return the mean weight of the rows that fit m has learned."""
        return self.mass[m] / max(self.columns.rows[0], 1)

    def load_row(self, x: Row) -> None:
        """Write the numbers of the row to their columns."""
        row = self.scratch.x
        for j in range(self.columns.used[0]):
            row[j] = 0
        for a in range(x.feature.shape[0]):
            f = x.feature[a]
            j = self.columns.find_column(f)
            if j >= 0:
                row[j] += self.columns.number_of(f, np.float64(x.x[a]))

    def update(self, x: Row, h: Array, feedback: Feedback) -> None:
        """Add the row to every fit."""
        weight = np.float64(feedback.weight)
        feedback.slopes(h, self.scratch.slope)
        feedback.losses(h, self.scratch.loss)
        self.meet_features(x)
        self.load_row(x)
        used = self.columns.used[0]
        row, target = self.scratch.x[:used], self.scratch.target
        self.join_fits(row)
        self.columns.update_ranges(row)
        for m in range(self.fits.R.shape[0]):
            share = self.weigh_row(m, weight)
            self.raise_priors(m, share, weight)
            self.set_targets(m, h, share)
            root, q = math.sqrt(share), self.scratch.q[m, :used]
            for j in range(used):
                q[j] = 0 if self.waits(j) else root * row[j]
            for lane in range(target.shape[0]):
                target[lane] *= root
            self.fits.add_row(m, q, target, 0)
            self.mass[m] += share
        self.columns.finish_row(row)

    def waits(self, j: int) -> bool:
        """Return whether column j has had one number only, and is not in the fits."""
        constant = j > 0 and self.columns.low[j] == self.columns.high[j]
        return constant and self.fits.R[0, 0, j] == 0  # files of early versions have it in the fits

    def join_fits(self, row: Array) -> None:
        """Add the columns to the fits that get their second number in this row."""
        for j in range(row.shape[0]):
            if self.waits(j) and row[j] != self.columns.low[j]:
                for m in range(self.fits.R.shape[0]):  # it was a multiple of the constant
                    self.fits.R[m, 0, j] = self.columns.low[j] * self.fits.R[m, 0, 0]

    def meet_features(self, x: Row) -> None:
        """Update the scales of the row's features; new ones get columns."""
        for a in range(x.feature.shape[0]):
            f, v = x.feature[a], np.float64(x.x[a])
            if self.columns.meet_number(f, v):
                self.restart(self.columns.place[f] - 1, self.columns.number_of(f, v))

    def restart(self, j: int, number: float) -> None:
        """Forget column j, and the constant with it: it depends on the mean of the column."""
        row = self.scratch.q[0, : self.columns.used[0]]
        for m in range(self.fits.R.shape[0]):
            self.fits.restart_column(m, j, row, self.scratch.target)
        self.columns.restart_range(0, 1.0)
        self.columns.restart_range(j, number)

    def weigh_row(self, m: int, weight: float) -> float:
        """Set the strides of the copies of fit m, and return the weight of the row in it."""
        stride = self.scratch.stride
        if self.curved:
            for i in range(stride.shape[0]):
                stride[i] = self.step[i] / weight
            return weight
        self.sums[LOSS, m] += self.scratch.loss[m]
        self.sums[WEIGHT, m] += weight
        square = 0.0
        for k in range(self.scratch.slope.shape[0]):
            slope = self.scratch.slope[k, m] / weight
            square += slope * slope
        mean = self.sums[LOSS, m] / self.sums[WEIGHT, m]
        stride[m] = 0
        if square == 0 or mean == 0:
            return 0.0
        loss = max(self.scratch.loss[m] / weight, mean)
        stride[m] = loss / square / weight
        return weight * (square * self.step[m]) * (mean / loss)

    def raise_priors(self, m: int, share: float, weight: float) -> None:
        """Raise the priors of columns whose range has doubled, or which are new.

        A prior is as strong as `ridge` rows of mean weight.
        """
        used, target = self.columns.used[0], self.scratch.target
        unit = self.scratch.q[m, :used]
        level = max(self.mean_weight(m), share)
        strength = self.ridge * (level if level > 0 else weight)
        for j in range(used):
            old, new = self.columns.prior[j], self.columns.next_prior(j)
            if new > old:
                unit.fill(0)
                target.fill(0)
                unit[j] = math.sqrt(strength * (new * new - old * old))
                self.fits.add_row(m, unit, target, j)

    def set_targets(self, m: int, h: Array, share: float) -> None:
        """Set the targets of fit m, and compare them with the predictions."""
        d, n = h.shape
        for i in range(n):
            if not (self.curved or i == m):
                continue
            for k in range(d):
                distance = self.scratch.slope[k, i] * self.scratch.stride[i]
                target = h[k, i] - distance
                self.scratch.target[k * n + i if self.curved else k] = target
                self.sums[MISSED, i] += share * distance * distance
                self.sums[WHOLE, i] += share * target * target
