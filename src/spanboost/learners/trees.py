"""Regression trees that grow online (docs/trees.md describes the design and its accuracy).

A leaf holds the mean of the targets of its rows, and statistics of candidate splits
(candidates.py). Every `grace` rows it checks the candidate with the largest gain. A random split
gains one variance of the targets on average, so the leaf splits when

    gain > evidence * variance * sqrt(grace / rows counted).

A young leaf thus needs a clear case; the threshold falls as the leaf counts more rows. Candidates
sum up the distances of targets from the mean at the time. These numbers stay small, and they remain
valid if the targets shift while the earlier copies learn. The children start at the mean of the
leaf, shifted by the sums on their side. Weights are relative: they are measured in units of the
mean weight of the rows counted.

The target of a row depends on the feedback:

- Greedy feedback: the leaf's prediction after a full step along the slope, of length one over the
  smoothness. For squared loss that is the residual, so the leaf predicts the mean residual. For a
  loss with a kink, the step is D times the slope over the Lipschitz constant.
- Linear feedback: the negative slope. The leaf follows the regularised leader: it predicts
  -D G / sqrt(2 Q), projected to norm D, where G is the sum of the slopes and Q that of their
  squares.

Trees are complete binary trees in arrays: the children of node v are 2 v + 1 and 2 v + 2.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spanboost.checks import is_integer, is_number
from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.compiling.random_numbers import are_streams
from spanboost.errors import ParameterError
from spanboost.learners.candidates import (
    GROUP,
    SUMS,
    THRESHOLD,
    WEIGHT,
    Candidates,
    is_code,
    new_candidates,
)
from spanboost.learners.feature_weights import grow_table
from spanboost.learners.protocol import BankSize, Feedback, ReadsFeatures, Task
from spanboost.rows.block import Cells, Row, block_of

DEEPEST = 20
FLOOR = 1e-7  # added to the variance, so that tiny gains cause no split (labels are in [-1, 1])


@dataclass(frozen=True)
class Trees(ReadsFeatures):
    """Online regression trees on numbers, categories and missing values.

    depth: largest number of splits between the root and a leaf.
    candidates: number of candidate splits per leaf; an even number.
    evidence: the gain that a split needs, in variances of the targets; use more for noisy labels,
        less for exact ones.
    grace: number of rows between two checks of a leaf.
    delay: copy i starts to learn after delay * i rows, when the copies before it have learned
        something.
    recency: 1 for the plain mean in a leaf. For p > 1, the k-th row of a leaf counts about
        k^(p - 1) times, so old rows matter less; use it for streams that drift.
    dtype: type of all state, float32 or float64.
    bits: None to keep all columns of sparse rows apart; otherwise they are hashed into 2^bits.

    A tree takes 2^(depth - 1) times 4 (2 + d) + 2 bytes per candidate, and little more: 100 trees
    of the default size with one output take 13 MB.
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
        """The step alpha: trees fit the plain residual, and the booster's step shrinks it."""
        return 1.0

    def check(self, task: Task) -> None:
        """Raise a ValueError if a parameter is out of range."""
        C, bits = self.candidates, self.bits
        for name, good, allowed in (
            ("depth", _is_in(self.depth, 1, DEEPEST), f"an integer from 1 to {DEEPEST}"),
            ("candidates", is_integer(C) and C > 0 and C % GROUP == 0, "a positive even integer"),
            (
                "evidence",
                is_number(self.evidence) and 0 <= self.evidence < 1e30,
                "a number from 0 to 1e30",
            ),
            ("grace", _is_in(self.grace, 1, 2**31 - 1), "a positive integer below 2^31"),
            ("delay", _is_in(self.delay, 0, 2**31 - 1), "an integer from 0 to 2^31 - 1"),
            ("recency", _is_in(self.recency, 1, 100), "an integer from 1 to 100"),
            ("bits", bits is None or _is_in(bits, 1, 28), "None or an integer from 1 to 28"),
        ):
            if not good:
                raise ParameterError(name, f"must be {allowed} (got {getattr(self, name)!r})")

    def encode(self, X: Any, D: float = math.inf) -> Cells:
        """Return the block, to be read as cells."""
        return Cells(*block_of(X, self.dtype, self.bits))

    def bank_size(self, n: int, d: int, features: int) -> BankSize:
        """Return the numbers in n copies: the places of nodes start at -1."""
        return BankSize(n, n * 2 ** (1 + min(max(int(self.depth), 0), DEEPEST)))

    def bank(self, task: Task) -> "TreeBank":
        """Return N copies, each a root that has seen no rows."""
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
            aim=_leaf_rule(task, self.dtype),
            # replayed rows inflate gains and counts by this factor
            evidence=np.dtype(self.dtype).type(self.evidence * task.rounds**1.5),
            grace=int(self.grace),
            recency=int(self.recency),
            scratch=TreeScratch(
                values=zeros(2),  # one feature: find_leaves reads values[0] even at leaves
                filled=np.zeros(0, np.int64),
                cells=np.zeros(1, np.int64),
                node=np.zeros(n, np.int64),
                leaf=np.zeros(n, np.int64),
                slope=zeros(d, n),
                target=zeros(d),
            ),
        )


def _is_in(value: Any, low: int, high: int) -> bool:
    return is_integer(value) and bool(low <= value <= high)


def _leaf_rule(task: Task, dtype: Any) -> "GreedyLeaves | LinearLeaves":
    if task.linear:
        return LinearLeaves(np.dtype(dtype).type(task.D))
    curved = np.isfinite(task.smoothness) & (task.smoothness > 0)
    step = np.divide(1, task.smoothness, out=task.D / task.lipschitz, where=curved)
    return GreedyLeaves(step.astype(dtype))


@kernel
class GreedyLeaves(NamedTuple):
    """Leaves under greedy feedback: targets are predictions; a leaf predicts their mean."""

    step: Array  # [N] distance of the target from the prediction, per unit of slope

    def target(self, i: int, h: float, slope: float, weight: float) -> float:
        """Return the target of copy i, which predicts h."""
        return h - slope / weight * self.step[i]

    def square(self, target: float, before: float, after: float) -> float:
        """Return what a row of weight 1 adds to the spread, given the mean before and after."""
        return (target - before) * (target - after)

    def predict_leaf(self, i: int, mean: Array, weight: float, spread: float, h: Array) -> None:
        """Set h[:, i] to the prediction of a leaf of copy i."""
        for k in range(mean.shape[0]):
            h[k, i] = mean[k]


@kernel
class LinearLeaves(NamedTuple):
    """Leaves under linear feedback: targets are negative slopes; a leaf follows their sum."""

    D: float  # bound on the predictions

    def target(self, i: int, h: float, slope: float, weight: float) -> float:
        """Return the target of copy i, whatever it predicts."""
        return -slope / weight

    def square(self, target: float, before: float, after: float) -> float:
        """Return what a row of weight 1 adds to the spread, which is around 0 here."""
        return target * target

    def predict_leaf(self, i: int, mean: Array, weight: float, spread: float, h: Array) -> None:
        """Set h[:, i] to the prediction of a leaf of copy i, before the projection to norm D."""
        far = self.D * weight / np.sqrt(spread + spread) if spread > 0 else spread
        for k in range(mean.shape[0]):
            h[k, i] = far * mean[k]


class TreeScratch(NamedTuple):
    """The current row, and the leaves it reaches."""

    values: Array  # [2 * features] values of the row, as candidates.py reads them
    filled: Array  # [width] the places in `values` that are set
    cells: Array  # [1] number of these places
    node: Array  # [N] the leaf that the row reaches
    leaf: Array  # [N] its number among the growing leaves; -1 at the full depth
    slope: Array  # [d, N] slopes of the losses
    target: Array  # [d] target of one copy


@kernel
class TreeBank(NamedTuple):
    """N trees. A node without a split is a leaf."""

    place: Array  # [N, node] the place in the values of a row that its split reads; -1 for a leaf
    threshold: Array  # [N, node] rows with values up to it, or with this category, go left
    weight: Array  # [N, node] weight of the rows it has learned
    mean: Array  # [N, node, d] of their targets
    spread: Array  # [N, node] leaf: summed squared distances of targets from the mean (of slopes,
    # from 0); inner node: the gain of its split
    candidates: Candidates
    rounds: Array  # [1] number of rows learned
    start: Array  # [N] number of rows after which a copy starts to learn
    aim: GreedyLeaves | LinearLeaves
    evidence: float
    grace: int
    recency: int
    scratch: TreeScratch

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the fields with an entry per node; unused nodes have weight 0."""
        return ("weight", "place", "threshold", "mean", "spread")

    def grown(self, features: int, width: int) -> "TreeBank":
        """Return the same trees with room for more features and wider rows."""
        if features > 2**29:
            raise ValueError("a column number is too large for trees")
        values, filled = self.scratch.values, self.scratch.filled
        return self._replace(
            scratch=self.scratch._replace(
                values=grow_table(values, 2 * features), filled=grow_table(filled, width)
            )
        )

    def rescale(self, a: float, b: float) -> None:
        """Multiply function values by a and slopes by b.

        Under linear feedback a sum of slopes has the units of a function value times a slope.
        """
        sums, squares = (a * b, b * b) if isinstance(self.aim, LinearLeaves) else (a, a * a)
        self.mean[...] *= sums
        self.spread[...] *= squares
        self.candidates.table[:, :, SUMS:] *= sums
        self.candidates.total[:, :, 1:] *= sums

    @property
    def sound(self) -> bool:
        """Whether all indices are in range; compiled code does not check."""
        places, leaves = len(self.scratch.values), self.candidates.seen.shape[1]
        choices = self.candidates.place[self.candidates.phases != 0]  # the others are 0
        return bool(
            (self.place >= -1).all()
            and (self.place < places).all()
            and (self.place[:, 2 * leaves - 1 :] == -1).all()
            and (choices >= 0).all()
            and (choices < places).all()
            and are_streams(self.candidates.state)
            and (self.candidates.seen >= 0).all()
            and (self.candidates.seen < 2**62).all()
            and (self.candidates.phases <= self.candidates.place.shape[2]).all()
            and (self.candidates.phases[self.candidates.seen > 0] > 0).all()
        )

    @property
    def gains(self) -> Array:
        """The total gain of the splits on each feature, numbered as in `Cells`."""
        inner = self.place >= 0
        return np.bincount(self.place[inner] // 2, self.spread[inner])

    def predict(self, x: Row, h: Array) -> None:
        """Predict with the leaves that the row reaches."""
        self.load_row(x)
        self.find_leaves()
        for i in range(h.shape[1]):
            v = self.scratch.node[i]
            self.aim.predict_leaf(i, self.mean[i, v], self.weight[i, v], self.spread[i, v], h)

    def load_row(self, x: Row) -> None:
        """Write the values of the row, each to its two places, and 0 to all others."""
        values, filled, cells = self.scratch.values, self.scratch.filled, self.scratch.cells
        low, high = values.dtype.type(-np.inf), values.dtype.type(np.inf)
        for a in range(cells[0]):
            values[filled[a]], values[filled[a] + 1] = 0, 0
        cells[0] = 0
        for a in range(x.feature.shape[0]):
            p, v = 2 * x.feature[a], x.x[a]
            if p < values.shape[0]:  # else no split uses the feature
                values[p], values[p + 1] = (low, high) if np.isnan(v) else (v, v)
                filled[cells[0]] = p
                cells[0] += 1

    def find_leaves(self) -> None:
        """Find the leaf that the row reaches in each tree.

        All trees descend one level at a time, branch-free; one tree after the other, with a branch
        at each node, takes twice as long. The number of a growing leaf is that of its leftmost
        descendant one level above the full depth, counted from the left, so numbers are unique.
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
                inner = np.int64(p >= 0)  # int() would compile to a branch
                x = values[max(p, 0)]
                right = np.int64(x != t) if is_code(p) else np.int64(x > t)
                node[i] = v + inner * (v + 1 + right)
                leaf[i] += inner * right * below
                moved += inner
        deepest = 2 * self.candidates.seen.shape[1] - 1
        for i in range(node.shape[0]):
            leaf[i] = leaf[i] if node[i] < deepest else -1

    def update(self, x: Row, h: Array, feedback: Feedback) -> None:
        """Add the row to the leaves it reaches."""
        self.load_row(x)  # again, because there is room for new features now
        slope, target, weight = self.scratch.slope, self.scratch.target, feedback.weight
        feedback.slopes(h, slope)
        for i in range(h.shape[1]):
            if self.rounds[0] < self.start[i]:
                continue
            for k in range(h.shape[0]):
                target[k] = self.aim.target(i, h[k, i], slope[k, i], weight)
            v, s = self.scratch.node[i], self.scratch.leaf[i]
            self.update_leaf(i, v, weight)
            if s >= 0:
                values = self.scratch.values
                rows = self.candidates.count_row(i, s, x.feature, values, target, weight)
                if rows > 0 and rows % self.grace == 0:
                    self.try_split(i, v, s, rows)
        self.rounds[0] += 1

    def update_leaf(self, i: int, v: int, weight: float) -> None:
        """Add the target to the mean of leaf v, then replace it by its distance from the mean."""
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

    def try_split(self, i: int, v: int, s: int, rows: int) -> None:
        """Split leaf v if the gain of its best candidate is large enough."""
        real = self.mean.dtype.type
        unit = self.candidates.total[i, s, 0] / real(rows)
        c, gain = self.candidates.find_best(i, s, unit)
        chance = unit * (self.spread[i, v] / self.weight[i, v] + real(FLOOR))
        if c >= 0 and gain > self.evidence * chance * np.sqrt(real(self.grace) / real(rows)):
            self.split(i, v, s, c)
            self.spread[i, v] = gain

    def split(self, i: int, v: int, s: int, c: int) -> None:
        """Split leaf v by its candidate c; the children start with the statistics of c."""
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
        self.candidates.clear(i, s)  # the left child has the same number among the growing leaves
