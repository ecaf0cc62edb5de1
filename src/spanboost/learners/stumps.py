"""Regression stumps: one linear function per feature, of which the best one predicts.

Each feature f, including the constant, has a function of its own, U_f z_f (with an intercept,
U_f z_f + V_f). It is learned by the steps of descent.py as if it were the only one. The prediction
for a row is that of the *best-performing* feature in the row. Two rankings define which one that
is, over the rounds where a feature was present:

- "advantage": the largest summed advantage over predicting 0.
- "loss": the least summed loss, as in the experiments of the paper. A rare feature has little loss,
  so it predicts the rows that have it.

Ties go to the first feature in the row. The constant comes first, so an empty row is predicted by
the constant alone.

Under linear feedback every function is kept D-bounded.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.errors import ParameterError
from spanboost.learners.descent import Descent, Steps
from spanboost.learners.feature_scales import DOUBTS, YOUNG, lower_scale
from spanboost.learners.feature_weights import (
    LEAST,
    grow_table,
    normalise,
    rescale_squares,
    shrink_to_bound,
    update_scale,
)
from spanboost.learners.protocol import BankSize, Feedback, Task
from spanboost.rows.block import Row

RANKINGS = {"advantage": 1.0, "loss": 0.0}  # the part of the loss of predicting 0 in the scores


@dataclass(frozen=True, repr=False)
class Stumps(Descent):
    """Stumps: one weight for each feature, and a constant; the best feature of a row predicts.

    intercept: whether each feature also has its own intercept.
    ranking: which feature is the best one: "advantage" (largest summed advantage over predicting 0)
        or "loss" (least summed loss, the rule of the paper's experiments).
    """

    intercept: bool = False
    ranking: str = "advantage"

    def check(self, task: Task) -> None:
        """Raise a ValueError if a parameter is out of range."""
        super().check(task)
        if self.ranking not in RANKINGS:
            names = " or ".join(map(repr, RANKINGS))
            raise ParameterError("ranking", f"must be {names} (got {self.ranking!r})")

    def bank_size(self, n: int, d: int, features: int) -> BankSize:
        """Return the numbers in n copies: the sums of intercepts do not start at 0."""
        return BankSize(n, n * d * features if self.intercept else 0)

    def bank(self, task: Task) -> "StumpBank":
        """Return N copies with all weights and scores 0."""
        parts = 2 if self.intercept else 1
        shape = (task.d, task.n)
        return StumpBank(
            U=np.zeros((0, parts, *shape), self.dtype),
            G=np.zeros((0, parts, *shape), self.dtype),
            score=np.zeros((0, task.n)),
            seen=np.zeros((0, 2)),
            unseen=np.zeros(task.n),
            S=np.zeros(0, self.dtype),
            doubts=np.zeros((0, DOUBTS), self.dtype),
            D=np.dtype(self.dtype).type(task.D),
            against=RANKINGS[self.ranking],
            steps=self.steps(task),
            scratch=StumpScratch(
                best=np.zeros(task.n),
                raw=np.zeros(shape, self.dtype),
                value=np.zeros(shape, self.dtype),
                slope=np.zeros(shape, self.dtype),
                rate=np.zeros((parts, *shape), self.dtype),
                reach=np.zeros(task.n, self.dtype),
                nothing=np.zeros(task.n),
                own=np.zeros(task.n),
            ),
        )


class StumpScratch(NamedTuple):
    """Scratch space for one feature of a row."""

    best: Array  # [N] the best score among the features so far
    raw: Array  # [d, N] the prediction of the feature
    value: Array  # [d, N] the same; in `update`, projected to norm D
    slope: Array  # [d, N] slopes of the losses at `value`
    rate: Array  # [part, d, N] step factors of the weights
    reach: Array  # [N] how far a unit of slope moves the prediction
    nothing: Array  # [N] loss of predicting 0
    own: Array  # [N] loss of the feature's prediction


@kernel
class StumpBank(NamedTuple):
    """N functions per feature; part 0 is the weight of the feature, part 1 its intercept."""

    U: Array  # [feature, part, d, N] weights of the normalised features
    G: Array  # [feature, part, d, N] summed squared gradients
    score: Array  # [feature, N] the feature with the largest score predicts
    unseen: Array  # [N] zeros: the scores of a feature never seen
    seen: Array  # [feature, 2] weight of the rows with the feature, sum of its squared inputs
    S: Array  # [feature] scale: the largest |x| seen, without strays (feature_scales.py)
    doubts: Array  # [feature, DOUBTS] doubts about the scale
    D: float  # bound on predictions that are scored; under linear feedback, on functions
    against: float  # 1 if scores are advantages over predicting 0, 0 if they are losses
    steps: Steps
    scratch: StumpScratch

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the fields with a row per feature; S is 0 until the feature is seen."""
        return ("S", "U", "G", "score", "seen", "doubts")

    @property
    def omitted_zeros(self) -> tuple[str, ...]:
        """Names of the fields that files leave out if they are 0; version 0.1.0 lacks them."""
        return ("doubts",)

    @property
    def predicts_with(self) -> tuple[str, ...]:
        """Names of the arrays that predictions depend on."""
        return ("S", "U", "score")

    def grown(self, features: int, width: int) -> "StumpBank":
        """Return the same functions with room for more features and wider rows."""
        G = grow_table(self.G, features)
        G[len(self.G) :, 1:] = LEAST  # `update_scale` initialises part 0 only
        return self._replace(
            U=grow_table(self.U, features),
            G=G,
            score=grow_table(self.score, features),
            seen=grow_table(self.seen, features),
            S=grow_table(self.S, features),
            doubts=grow_table(self.doubts, features),
        )

    def rescale(self, a: float, b: float) -> None:
        """Multiply the functions by a, past slopes by b and scores by a b."""
        seen = np.flatnonzero(self.S)
        self.U[seen] *= a
        self.score[seen] *= a * b
        rescale_squares(self.G, b * b, seen)

    def effects(self) -> tuple[Array, Array]:
        """Return the features seen, and how far each can move the predictions [features, N].

        That is 0 for all but the feature that predicts if all of them are present.
        """
        seen = np.flatnonzero(self.S)
        score = self.score[seen]
        best = score.max(axis=0, initial=-np.inf)  # no feature was seen before the first label
        return seen, np.abs(self.U[seen]).sum(axis=(1, 2)) * (score == best)

    def predict(self, x: Row, h: Array) -> None:
        """Predict with the best feature; one never seen has score 0 and predicts 0."""
        normalise(self.S, x)
        self.scratch.best.fill(-np.inf)
        for a in range(x.feature.shape[0]):
            f = x.feature[a]
            if f < self.score.shape[0]:
                self.predict_feature(f, x.z[a])
                self.update_best(self.score[f], h)
            else:
                self.scratch.value.fill(0)
                self.update_best(self.unseen, h)

    def predict_feature(self, f: int, z: float) -> None:
        """Set `value` to the prediction of feature f."""
        for k in range(self.scratch.value.shape[0]):
            value, U = self.scratch.value[k], self.U[f, 0, k]
            for i in range(value.shape[0]):
                value[i] = U[i] * z
            if self.U.shape[1] == 2:
                V = self.U[f, 1, k]
                for i in range(value.shape[0]):
                    value[i] += V[i]

    def update_best(self, score: Array, h: Array) -> None:
        """Set h to `value` in the copies where the score is the best so far."""
        best = self.scratch.best
        for k in range(h.shape[0]):
            out, value = h[k], self.scratch.value[k]
            for i in range(best.shape[0]):
                out[i] = value[i] if score[i] > best[i] else out[i]
        for i in range(best.shape[0]):
            best[i] = score[i] if score[i] > best[i] else best[i]

    def update(self, x: Row, h: Array, feedback: Feedback) -> None:
        """Score every feature of the row and move it by one step, based on its own prediction."""
        raw, value = self.scratch.raw, self.scratch.value
        nothing, own = self.scratch.nothing, self.scratch.own
        value.fill(0)
        feedback.losses(value, nothing)
        for a in range(x.feature.shape[0]):
            f = x.feature[a]
            young = self.seen[f, 0] < YOUNG * feedback.weight
            update_scale(self.S, self.doubts, self.G[f, 0].reshape(-1), x, a, young)
            z = x.z[a]
            self.predict_feature(f, z)
            for k in range(value.shape[0]):
                for i in range(value.shape[1]):
                    raw[k, i] = value[k, i]
            self.steps.output.project_columns(value, self.D)
            self.steps.find_slopes(feedback, raw, value, self.scratch.slope)
            feedback.losses(value, own)
            score = self.score[f]
            for i in range(score.shape[0]):
                score[i] += self.against * nothing[i] - own[i]
            self.step(f, z, feedback.weight)
            shrink = lower_scale(self.S, self.doubts, f)
            if shrink < 1:  # the function stays the same
                for k in range(value.shape[0]):
                    for i in range(value.shape[1]):
                        self.U[f, 0, k, i] *= shrink
            feedback.restrain(self, f)

    def step(self, f: int, z: float, weight: float) -> None:
        """Move the weights of feature f by one step."""
        parts, one = self.U.shape[1], self.scratch.slope.dtype.type(1)
        self.seen[f, 0] += weight
        for p in range(parts):
            v = z if p == 0 else one
            self.seen[f, 1] += weight * (v * v)
        pace = self.steps.pace(self.seen[f, 0], self.seen[f, 1])
        for k in range(self.scratch.slope.shape[0]):
            slope, reach = self.scratch.slope[k], self.scratch.reach
            reach.fill(0)
            for p in range(parts):
                v = z if p == 0 else one
                G, rate = self.G[f, p, k], self.scratch.rate[p, k]
                self.steps.accumulate(G, slope, v * v, weight, self.seen[f, 0], rate, reach)
            self.steps.scale_slopes(pace, weight, reach, slope)
            for p in range(parts):
                v = z if p == 0 else one
                U, rate = self.U[f, p, k], self.scratch.rate[p, k]
                for i in range(slope.shape[0]):
                    U[i] -= slope[i] * v * rate[i]

    def hold(self, f: int) -> None:
        """Scale down the functions of feature f that could exceed D."""
        shrink_to_bound(self.U[f], self.D)
