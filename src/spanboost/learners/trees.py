"""Regression trees that grow while the stream goes by (docs/trees.md: how, why, and how well).

A leaf keeps the mean of the targets of its rows, and tries out splits (candidates.py). Every
`grace` rows it looks at the best of them. Its gain is compared with the variance of the targets,
which a split that parts rows at random gains on average: a leaf splits when

    gain > evidence * variance * sqrt(grace / rows counted),

so that it asks for a clear case while it is young, and settles for less as it waits. What is summed
up are distances of targets from the mean as it was: they stay small, and targets may wander while
the copies before learn. The children start at the mean, moved by what was summed up on their sides.
Weights matter relative to each other: in units of their mean among the rows counted.

The target is what the row's loss asks of the leaf. Greedy feedback: the leaf's prediction after a
full step along the slope, one over the smoothness; for squared loss that is the residual, and the
leaf predicts the mean residual. Losses with a kink step by D in the direction of the slope. Linear
feedback: minus the slope, and the leaf follows the regularised leader, -D G / sqrt(2 Q) for slopes
that sum up to G and have squares that sum up to Q, cut to norm D.

Trees are complete binary ones in arrays: the children of node v are 2 v + 1 and 2 v + 2.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spanboost.checks import is_integer, is_number
from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.learners.candidates import (
    GROUP,
    SUMS,
    THRESHOLD,
    WEIGHT,
    Candidates,
    is_code,
    new_candidates,
)
from spanboost.learners.feature_weights import more
from spanboost.learners.protocol import Feedback, ReadsFeatures, Task
from spanboost.rows.block import Cells, Row, block_of

FLOOR = 1e-7  # a variance too small for a split, among labels in [-1, 1]


@dataclass(frozen=True)
class Trees(ReadsFeatures):
    """Online regression trees on numbers, categories and missing values.

    depth: most splits between the root and a leaf.
    candidates: splits that a leaf tries out at a time; an even number.
    evidence: for a split, as above; more for noisy labels, less for exact ones.
    grace: rows between two looks of a leaf.
    delay: copy i begins after delay * i rows, when those before it have learned something.
    recency: 1 for the plain mean in a leaf; p weighs its rows by the (p - 1)th power of their
        number, so that old ones count less: for streams that drift.
    dtype: of all state, float32 or float64.
    bits: None to tell all columns of sparse rows apart; else they are hashed into 2^bits.

    A tree's memory is 2^(depth - 1) times 4 (2 + d) + 2 bytes for each candidate, and little more:
    100 trees of the default size with one output take 13 MB.
    """

    depth: int = 8
    candidates: int = 64
    evidence: float = 10.0
    grace: int = 32
    delay: int = 5
    recency: int = 1
    dtype: Any = np.float32
    bits: int | None = None

    @property
    def greedy_step(self) -> float:
        """Alpha: trees fit the plain residual, and the booster's step shrinks it."""
        return 1.0

    def check(self, task: Task) -> None:
        """Refuse parameters out of range."""
        C, bits = self.candidates, self.bits
        for name, good, allowed in (
            ("depth", is_integer(self.depth) and 1 <= self.depth <= 20, "from 1 to 20"),
            ("candidates", is_integer(C) and C > 0 and C % GROUP == 0, "an even number"),
            ("evidence", is_number(self.evidence) and 0 <= self.evidence < 1e30, "from 0 to 1e30"),
            ("grace", is_integer(self.grace) and 1 <= self.grace < 2**31, "a whole number of rows"),
            ("delay", is_integer(self.delay) and 0 <= self.delay < 2**31, "a whole number of rows"),
            ("recency", is_integer(self.recency) and 1 <= self.recency <= 100, "from 1 to 100"),
            (
                "bits",
                bits is None or (is_integer(bits) and 1 <= bits <= 28),
                "None, or from 1 to 28",
            ),
        ):
            if not good:
                raise ValueError(f"{name}={getattr(self, name)!r} is not allowed: {allowed}")

    def encode(self, X: Any, D: float = math.inf) -> Cells:
        """A block read as cells."""
        return Cells(*block_of(X, self.dtype, self.bits))

    def bank(self, task: Task) -> "TreeBank":
        """N copies, each a root that has seen nothing."""
        n, d, nodes = task.n, task.d, 2 ** (self.depth + 1) - 1

        def zeros(*shape: int) -> Array:
            return np.zeros(shape, self.dtype)

        return TreeBank(
            place=np.full((n, nodes), -1, np.int32),
            threshold=zeros(n, nodes),
            weight=zeros(n, nodes),
            mean=zeros(n, nodes, d),
            spread=zeros(n, nodes),
            candidates=new_candidates(
                task.copy,
                2 ** (self.depth - 1),
                int(self.candidates),
                d,
                seed=task.seed,
                dtype=self.dtype,
            ),
            rounds=np.zeros(1, np.int64),
            start=self.delay * task.rounds * task.copy.astype(np.int64),
            aim=_aim(task, self.dtype),
            # of rows that come again, gains and counts are so many times what they should be
            evidence=np.dtype(self.dtype).type(self.evidence * task.rounds**1.5),
            grace=int(self.grace),
            recency=int(self.recency),
            scratch=TreeScratch(
                values=zeros(2),  # room for one: leaves look at it, to no effect
                filled=np.zeros(0, np.int64),
                cells=np.zeros(1, np.int64),
                node=np.zeros(n, np.int64),
                leaf=np.zeros(n, np.int64),
                slope=zeros(d, n),
                target=zeros(d),
            ),
        )


def _aim(task: Task, dtype: Any) -> "Fitted | Pulled":
    if task.linear:
        return Pulled(np.dtype(dtype).type(task.D))
    curved = np.isfinite(task.smoothness) & (task.smoothness > 0)
    step = np.divide(1, task.smoothness, out=task.D / task.lipschitz, where=curved)
    return Fitted(step.astype(dtype))


@kernel
class Fitted(NamedTuple):
    """Leaves under greedy feedback: targets are predictions, and a leaf predicts their mean."""

    step: Array  # [N] from the slope to the target

    def target(self, i: int, h: float, slope: float, weight: float) -> float:
        """What a row asks of copy i, which predicts h."""
        return h - slope / weight * self.step[i]

    def square(self, target: float, before: float, after: float) -> float:
        """What a row of weight 1 adds to the spread, given the mean before and after it."""
        return (target - before) * (target - after)

    def predict_leaf(self, i: int, mean: Array, weight: float, spread: float, h: Array) -> None:
        """h[:, i] = what a leaf of copy i predicts."""
        for k in range(mean.shape[0]):
            h[k, i] = mean[k]


@kernel
class Pulled(NamedTuple):
    """Leaves under linear feedback: targets are slopes, and a leaf follows their sum."""

    D: float

    def target(self, i: int, h: float, slope: float, weight: float) -> float:
        """What a row asks of copy i, whatever it predicts."""
        return -slope / weight

    def square(self, target: float, before: float, after: float) -> float:
        """What a row of weight 1 adds to the spread: around 0, whatever the mean."""
        return target * target

    def predict_leaf(self, i: int, mean: Array, weight: float, spread: float, h: Array) -> None:
        """h[:, i] = what a leaf of copy i predicts, yet to be cut to norm D."""
        far = self.D * weight / np.sqrt(spread + spread) if spread > 0 else spread
        for k in range(mean.shape[0]):
            h[k, i] = far * mean[k]


class TreeScratch(NamedTuple):
    """The row, and where it led."""

    values: Array  # [2 * features] of the row, as candidates.py reads them
    filled: Array  # [width] places of them that are not 0
    cells: Array  # [1] how many
    node: Array  # [N] the leaf it reached
    leaf: Array  # [N] its number among the growing ones; -1 if it is as deep as can be
    slope: Array  # [d, N] of the losses
    target: Array  # [d] of one copy


@kernel
class TreeBank(NamedTuple):
    """N trees; a node without a split is a leaf."""

    place: Array  # [N, node] where in the values of a row its split looks; -1 for a leaf
    threshold: Array  # [N, node] rows up to it, or of this category, go left
    weight: Array  # [N, node] of the rows it has learned
    mean: Array  # [N, node, d] of their targets
    spread: Array  # [N, node] summed squared distances from it; of slopes, from 0; of a node that
    # was split, how much the split gained
    candidates: Candidates
    rounds: Array  # [1] rows learned
    start: Array  # [N] how many of them a copy sits out
    aim: Fitted | Pulled
    evidence: float
    grace: int
    recency: int
    scratch: TreeScratch

    @property
    def tables(self) -> tuple[str, ...]:
        """Fields of nodes; those that are not there yet have no weight."""
        return ("weight", "place", "threshold", "mean", "spread")

    def grown(self, features: int, width: int) -> "TreeBank":
        """The same trees, with room for more features and wider rows."""
        if features > 2**29:
            raise ValueError("a column's number is too large for trees")
        values, filled = self.scratch.values, self.scratch.filled
        return self._replace(
            scratch=self.scratch._replace(
                values=more(values, 2 * features), filled=more(filled, width)
            )
        )

    def rescale(self, a: float, b: float) -> None:
        """In wider units. What slopes sum up to is a function value times the root of squares."""
        sums, squares = (a * b, b * b) if isinstance(self.aim, Pulled) else (a, a * a)
        self.mean[...] *= sums
        self.spread[...] *= squares
        self.candidates.table[:, :, SUMS:] *= sums
        self.candidates.total[:, :, 1:] *= sums

    @property
    def sound(self) -> bool:
        """Whether all that is looked up lies within its bounds: machine code does not ask."""
        places, leaves = len(self.scratch.values), self.candidates.seen.shape[1]
        return bool(
            (self.place >= -1).all()
            and (self.place < places).all()
            and (self.place[:, 2 * leaves - 1 :] == -1).all()
            and (self.candidates.place >= 0).all()
            and (self.candidates.place < places).all()
            and (self.candidates.seen >= 0).all()
            and (self.candidates.seen < 2**62).all()
            and (self.candidates.phases <= self.candidates.place.shape[2]).all()
            and (self.candidates.phases[self.candidates.seen > 0] > 0).all()
        )

    @property
    def gains(self) -> Array:
        """[feature] what the splits of all trees gained, by the numbers of `Cells`."""
        inner = self.place >= 0
        return np.bincount(self.place[inner] // 2, self.spread[inner])

    def predict(self, x: Row, h: Array) -> None:
        """What the leaves say that the row reaches."""
        self.lay_out(x)
        self.descend()
        for i in range(h.shape[1]):
            v = self.scratch.node[i]
            self.aim.predict_leaf(i, self.mean[i, v], self.weight[i, v], self.spread[i, v], h)

    def lay_out(self, x: Row) -> None:
        """The row's values, each in its two places; 0 in all others."""
        values, filled, cells = self.scratch.values, self.scratch.filled, self.scratch.cells
        low, high = values.dtype.type(-np.inf), values.dtype.type(np.inf)
        for a in range(cells[0]):
            values[filled[a]], values[filled[a] + 1] = 0, 0
        cells[0] = 0
        for a in range(x.feature.shape[0]):
            p, v = 2 * x.feature[a], x.x[a]
            if p < values.shape[0]:  # of a feature never learned no split knows
                values[p], values[p + 1] = (low, high) if np.isnan(v) else (v, v)
                filled[cells[0]] = p
                cells[0] += 1

    def descend(self) -> None:
        """The leaves that the row reaches: all trees a level at a time, and nothing to foresee.

        (Tree by tree, and with a branch at each node, takes twice as long.) The growing leaves are
        numbered as if each stood for the first of the nodes below it that are one split short of
        the full depth: no two have the same number.
        """
        values, node, leaf = self.scratch.values, self.scratch.node, self.scratch.leaf
        below = self.candidates.seen.shape[1]
        moved: Any = 1
        node.fill(0)
        leaf.fill(0)
        while moved > 0 and below > 0:
            moved = 0
            below //= 2
            for i in range(node.shape[0]):
                v = node[i]
                p, t = self.place[i, v], self.threshold[i, v]
                inner = np.int64(p >= 0)  # int() would branch
                x = values[max(p, 0)]
                right = np.int64(x != t) if is_code(p) else np.int64(x > t)
                node[i] = v + inner * (v + 1 + right)
                leaf[i] += inner * right * below
                moved += inner
        deepest = 2 * self.candidates.seen.shape[1] - 1
        for i in range(node.shape[0]):
            leaf[i] = leaf[i] if node[i] < deepest else -1

    def update(self, x: Row, h: Array, feedback: Feedback) -> None:
        """One more row in the leaves it reached."""
        self.lay_out(x)  # features that are new have a place now
        slope, target, weight = self.scratch.slope, self.scratch.target, feedback.weight
        feedback.slopes(h, slope)
        for i in range(h.shape[1]):
            if self.rounds[0] < self.start[i]:
                continue
            for k in range(h.shape[0]):
                target[k] = self.aim.target(i, h[k, i], slope[k, i], weight)
            v, s = self.scratch.node[i], self.scratch.leaf[i]
            self.learn(i, v, weight)
            if s >= 0:
                values = self.scratch.values
                rows = self.candidates.tally(i, s, x.feature, values, target, weight)
                if rows > 0 and rows % self.grace == 0:
                    self.look(i, v, s, rows)
        self.rounds[0] += 1

    def learn(self, i: int, v: int, weight: float) -> None:
        """The target into the mean of a leaf; what is left of it is the distance from there."""
        mean, target, one = self.mean[i, v], self.scratch.target, self.mean.dtype.type(1)
        self.weight[i, v] += weight
        old = one - weight / self.weight[i, v]
        kept = old
        for _ in range(1, self.recency):
            kept *= old
        for k in range(mean.shape[0]):
            before = mean[k]
            mean[k] += (target[k] - before) * (one - kept)
            self.spread[i, v] += weight * self.aim.square(target[k], before, mean[k])
            target[k] -= before

    def look(self, i: int, v: int, s: int, rows: int) -> None:
        """Split a leaf if there is evidence for its best candidate."""
        real = self.mean.dtype.type
        unit = self.candidates.total[i, s, 0] / real(rows)
        c, gain = self.candidates.best(i, s, unit)
        chance = unit * (self.spread[i, v] / self.weight[i, v] + real(FLOOR))
        if c >= 0 and gain > self.evidence * chance * np.sqrt(real(self.grace) / real(rows)):
            self.split(i, v, s, c)
            self.spread[i, v] = gain

    def split(self, i: int, v: int, s: int, c: int) -> None:
        """Leaf v by its candidate c; the children begin with what it has counted."""
        table, total = self.candidates.table[i, s], self.candidates.total[i, s]
        n, m = total[0], table[WEIGHT, c]
        variance = self.spread[i, v] / self.weight[i, v]
        for child, weight in ((2 * v + 1, m), (2 * v + 2, n - m)):
            self.weight[i, child] = weight
            self.spread[i, child] = weight * variance
        for k in range(self.mean.shape[2]):
            left, middle = table[SUMS + k, c], self.mean[i, v, k] - total[1 + k] / n
            self.mean[i, 2 * v + 1, k] = middle + left / m
            self.mean[i, 2 * v + 2, k] = middle + (total[1 + k] - left) / (n - m)
        self.place[i, v] = self.candidates.place[i, s, c // GROUP]
        self.threshold[i, v] = table[THRESHOLD, c]
        self.candidates.clear(i, s)  # the left child inherits the leaf's number
