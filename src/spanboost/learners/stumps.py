"""Regression stumps: a linear function of every single feature, the best of them predicts.

Each feature f of a row, the constant among them, has a function of its own, U_f z_f (or, with an
intercept, U_f z_f + V_f), learned by the steps of descent.py as if it were alone. It predicts for
the rows where it is the *best-performing* one among the features present: that with the largest
advantage over predicting 0, summed over the rounds where it was present. Ties go to the first in
the row; the constant comes first, so an empty row is predicted by the constant alone.

Under linear feedback every single function is projected onto the D-bounded ones.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.learners.descent import Descent, Steps
from spanboost.learners.feature_weights import (
    LEAST,
    more,
    normalise,
    rescale_squares,
    shorten,
    widen,
)
from spanboost.learners.protocol import Feedback, Task
from spanboost.rows.block import Row


@dataclass(frozen=True)
class Stumps(Descent):
    """One weight for each feature and a constant; the best feature of a row predicts.

    intercept: whether each feature also has an intercept of its own.
    """

    intercept: bool = False

    def bank(self, task: Task) -> "StumpBank":
        """N copies, all weights and scores 0."""
        parts = 2 if self.intercept else 1
        shape = (task.d, task.n)
        return StumpBank(
            U=np.zeros((0, parts, *shape), self.dtype),
            G=np.zeros((0, parts, *shape), self.dtype),
            score=np.zeros((0, task.n)),
            seen=np.zeros((0, 2)),
            unseen=np.zeros(task.n),
            S=np.zeros(0, self.dtype),
            D=np.dtype(self.dtype).type(task.D),
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
    """What one feature of a row is reckoned with."""

    best: Array  # [N] the best score so far
    raw: Array  # [d, N] what the feature predicts
    value: Array  # [d, N] the same, cut to norm D where it is learned from
    slope: Array  # [d, N] of the losses there
    rate: Array  # [part, d, N] how far each weight steps along its gradient
    reach: Array  # [N] how far a unit of slope moves the prediction
    nothing: Array  # [N] loss of predicting 0
    own: Array  # [N] loss of the feature's prediction


@kernel
class StumpBank(NamedTuple):
    """N times one function a feature; part 0 is the feature's weight, part 1 its intercept."""

    U: Array  # [feature, part, d, N] weights of the normalised features
    G: Array  # [feature, part, d, N] summed squared gradients
    score: Array  # [feature, N] summed advantage over predicting 0
    unseen: Array  # [N] zeros, the score of a feature never seen
    seen: Array  # [feature, 2] rows learned with the feature, and the sum of its inputs squared
    S: Array  # [feature] largest |x| seen
    D: float  # bound of predictions as they are scored, and of functions under linear feedback
    steps: Steps
    scratch: StumpScratch

    @property
    def tables(self) -> tuple[str, ...]:
        """Fields with a row for each feature; S is 0 while it has not been seen."""
        return ("S", "U", "G", "score", "seen")

    def grown(self, features: int, width: int) -> "StumpBank":
        """The same functions, with room for more features and wider rows."""
        G = more(self.G, features)
        G[len(self.G) :, 1:] = LEAST  # the first sight of a feature says this of its weight alone
        return self._replace(
            U=more(self.U, features),
            G=G,
            score=more(self.score, features),
            seen=more(self.seen, features),
            S=more(self.S, features),
        )

    def rescale(self, a: float, b: float) -> None:
        """In wider units: functions times a, slopes times b."""
        seen = np.flatnonzero(self.S)
        self.U[seen] *= a
        self.score[seen] *= a * b
        rescale_squares(self.G, b * b, seen)

    def effects(self) -> tuple[Array, Array]:
        """The features seen, and how far each can move each copy's prediction [features, N].

        That is 0 unless it is the one that predicts where all of them are present.
        """
        seen = np.flatnonzero(self.S)
        score = self.score[seen]
        return seen, np.abs(self.U[seen]).sum(axis=(1, 2)) * (score == score.max(axis=0))

    def predict(self, x: Row, h: Array) -> None:
        """What the best feature says; one never seen has score 0 and says 0."""
        normalise(self.S, x)
        self.scratch.best.fill(-np.inf)
        for a in range(x.feature.shape[0]):
            f = x.feature[a]
            if f < self.score.shape[0]:
                self.say(f, x.z[a])
                self.choose(self.score[f], h)
            else:
                self.scratch.value.fill(0)
                self.choose(self.unseen, h)

    def say(self, f: int, z: float) -> None:
        """value = what feature f predicts."""
        for k in range(self.scratch.value.shape[0]):
            value, U = self.scratch.value[k], self.U[f, 0, k]
            for i in range(value.shape[0]):
                value[i] = U[i] * z
            if self.U.shape[1] == 2:
                V = self.U[f, 1, k]
                for i in range(value.shape[0]):
                    value[i] += V[i]

    def choose(self, score: Array, h: Array) -> None:
        """h = value in the copies where the score is the best so far."""
        best = self.scratch.best
        for k in range(h.shape[0]):
            out, value = h[k], self.scratch.value[k]
            for i in range(best.shape[0]):
                out[i] = value[i] if score[i] > best[i] else out[i]
        for i in range(best.shape[0]):
            best[i] = score[i] if score[i] > best[i] else best[i]

    def update(self, x: Row, h: Array, feedback: Feedback) -> None:
        """One step of every feature of the row, each by its own prediction."""
        raw, value = self.scratch.raw, self.scratch.value
        nothing, own = self.scratch.nothing, self.scratch.own
        value.fill(0)
        feedback.losses(value, nothing)
        for a in range(x.feature.shape[0]):
            f = x.feature[a]
            widen(self.S, self.G[f, 0].reshape(-1), x, a)
            z = x.z[a]
            self.say(f, z)
            for k in range(value.shape[0]):
                for i in range(value.shape[1]):
                    raw[k, i] = value[k, i]
            self.steps.output.project_columns(value, self.D)
            self.steps.ask(feedback, raw, value, self.scratch.slope)
            feedback.losses(value, own)
            score = self.score[f]
            for i in range(score.shape[0]):
                score[i] += nothing[i] - own[i]
            self.step(f, z, feedback.weight)
            feedback.restrain(self, f)

    def step(self, f: int, z: float, weight: float) -> None:
        """One step of feature f."""
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
                self.steps.gather(G, slope, v * v, weight, self.seen[f, 0], rate, reach)
            for i in range(slope.shape[0]):
                slope[i] *= self.steps.size(i, pace, weight, reach[i])
            for p in range(parts):
                v = z if p == 0 else one
                U, rate = self.U[f, p, k], self.scratch.rate[p, k]
                for i in range(slope.shape[0]):
                    U[i] -= slope[i] * v * rate[i]

    def hold(self, f: int) -> None:
        """Shrink feature f's functions that could exceed D."""
        shorten(self.U[f], self.D)
