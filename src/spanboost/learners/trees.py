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

All trees share one pool of nodes. Node i is the root of tree i. A split takes the next two nodes of
the pool as children, so the memory in use follows the nodes that exist.
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
from spanboost.learners.leaf_rules import GreedyLeaves, LinearLeaves, leaf_rule
from spanboost.learners.pools import reduce_pool
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

    A leaf that can still split takes 4 (2 + d) + 2 bytes per candidate, and little more. 100 full
    trees of the default size with one output take 13 MB; young trees take much less.
    """

    depth: int = 8
    candidates: int = 64
    evidence: float = 10.0
    grace: int = 32
    delay: int = 5
    recency: int = 1
    dtype: type[np.floating[Any]] = np.float32
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
        """Return the numbers in n copies; the room for nodes is limited, although it is zeros."""
        return BankSize(n, n * 2 ** (1 + min(max(int(self.depth), 0), DEEPEST)))

    def bank(self, task: Task) -> "TreeBank":
        """Return N copies, each a root that has seen no rows."""
        n, d = task.n, task.d
        nodes = n * (2 ** (self.depth + 1) - 1)
        if nodes >= 2**31:
            raise ParameterError("depth", f"must be smaller for {n} copies (got {self.depth})")

        def zeros(*shape: int) -> Array:
            return np.zeros(shape, self.dtype)

        return TreeBank(
            link=np.zeros(nodes, np.int32),
            place=np.zeros(nodes, np.int32),
            threshold=zeros(nodes),
            weight=zeros(nodes),
            mean=zeros(nodes, d),
            spread=zeros(nodes),
            used=np.array([n], np.int64),
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
            aim=leaf_rule(task, self.dtype),
            # replayed rows inflate gains and counts by this factor
            evidence=np.dtype(self.dtype).type(self.evidence * task.rounds**1.5),
            depth=int(self.depth),
            grace=int(self.grace),
            recency=int(self.recency),
            scratch=TreeScratch(
                values=zeros(2),  # one feature: find_leaves reads values[0] even at leaves
                filled=np.zeros(0, np.int64),
                cells=np.zeros(1, np.int64),
                node=np.zeros(n, np.int64),
                level=np.zeros(n, np.int64),
                slope=zeros(d, n),
                target=zeros(d),
            ),
        )


def _is_in(value: Any, low: int, high: int) -> bool:
    return is_integer(value) and bool(low <= value <= high)


class TreeScratch(NamedTuple):
    """The current row, and the leaves it reaches."""

    values: Array  # [2 * features] values of the row, as candidates.py reads them
    filled: Array  # [width] the places in `values` that are set
    cells: Array  # [1] number of these places
    node: Array  # [N] the leaf that the row reaches
    level: Array  # [N] number of splits on the way to it
    slope: Array  # [d, N] slopes of the losses
    target: Array  # [d] target of one copy


@kernel
class TreeBank(NamedTuple):
    """N trees. A node without a split is a leaf."""

    link: Array  # [node] > 0: the left child, and the right one follows it; 0 or less: a leaf, and
    # -1 - link is its record among the candidates (0: it has none)
    place: Array  # [node] the place in the values of a row that its split reads; 0 for a leaf
    threshold: Array  # [node] rows with values up to it, or with this category, go left
    weight: Array  # [node] weight of the rows it has learned
    mean: Array  # [node, d] of their targets
    spread: Array  # [node] leaf: summed squared distances of targets from the mean (of slopes,
    # from 0); inner node: the gain of its split
    used: Array  # [1] number of nodes in use, which are the first ones
    candidates: Candidates
    rounds: Array  # [1] number of rows learned
    start: Array  # [N] number of rows after which a copy starts to learn
    aim: GreedyLeaves | LinearLeaves
    evidence: float
    depth: int
    grace: int
    recency: int
    scratch: TreeScratch

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the fields with an entry per node; unused nodes have weight 0."""
        return ("weight", "link", "place", "threshold", "mean", "spread")

    def __reduce__(self) -> Any:
        """Copy and pickle the nodes in use only."""
        return reduce_pool(self, int(self.used[0]))

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
        nodes, records = self.used[0], self.candidates.used[0]
        self.mean[:nodes] *= sums
        self.spread[:nodes] *= squares
        self.candidates.table[:records, SUMS:] *= sums
        self.candidates.total[:records, 1:] *= sums

    @property
    def sound(self) -> bool:
        """Whether all indices are in range; compiled code does not check."""
        places, pool = len(self.scratch.values), self.candidates
        nodes, records = int(self.used[0]), int(pool.used[0])
        if not (
            len(self.start) <= nodes <= len(self.link)
            and 0 <= records <= len(pool.owner)
            and not self.link[nodes:].any()
            and not pool.phases[records:].any()
        ):
            return False
        link, place, owner = self.link[:nodes], self.place[:nodes], pool.owner[:records]
        inner = np.flatnonzero(link > 0)
        return bool(
            # children come after their parents, so every path ends
            (link[inner] > inner).all()
            and (link[inner] < nodes - 1).all()
            and (place >= 0).all()
            and (place < places).all()
            and np.count_nonzero(link < 0) == records
            and (owner >= 0).all()
            and (owner < nodes).all()
            and (link[owner] == -1 - np.arange(records)).all()
            and (pool.place[:records] >= 0).all()
            and (pool.place[:records] < places).all()
            and (pool.seen[:records] >= 0).all()
            and (pool.seen[:records] < 2**62).all()
            and (pool.phases[:records] > 0).all()
            and (pool.phases[:records] <= pool.place.shape[1]).all()
            and are_streams(pool.state)
        )

    def predict(self, x: Row, h: Array) -> None:
        """Predict with the leaves that the row reaches."""
        self.load_row(x)
        self.find_leaves()
        for i in range(h.shape[1]):
            v = self.scratch.node[i]
            self.aim.predict_leaf(i, self.mean[v], self.weight[v], self.spread[v], h)

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
        at each node, takes twice as long.
        """
        values, node, level = self.scratch.values, self.scratch.node, self.scratch.level
        for i in range(node.shape[0]):
            node[i], level[i] = i, 0
        moved: Any = 1
        while moved > 0:
            moved = 0
            for i in range(node.shape[0]):
                v = node[i]
                p, t, left = self.place[v], self.threshold[v], np.int64(self.link[v])
                inner = np.int64(left > 0)  # int() would compile to a branch
                x = values[p]
                right = np.int64(x != t) if is_code(p) else np.int64(x > t)
                node[i] = v + inner * (left + right - v)
                level[i] += inner
                moved += inner

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
            v = self.scratch.node[i]
            self.update_leaf(v, weight)
            if self.scratch.level[i] < self.depth:
                self.grow_leaf(i, v, x, weight)
        self.rounds[0] += 1

    def grow_leaf(self, i: int, v: int, x: Row, weight: float) -> None:
        """Add the row to the candidates of leaf v of tree i, and split the leaf if it is due."""
        if self.link[v] == 0:
            self.link[v] = -1 - self.candidates.open(v)
        s = -1 - self.link[v]
        if s < 0:
            return  # the pool is full, as only a forged file can make it
        values, target = self.scratch.values, self.scratch.target
        rows = self.candidates.count_row(i, s, x.feature, values, target, weight)
        if rows > 0 and rows % self.grace == 0:
            self.try_split(v, s, rows)

    def update_leaf(self, v: int, weight: float) -> None:
        """Add the target to the mean of leaf v, then replace it by its distance from the mean."""
        mean, target, one = self.mean[v], self.scratch.target, self.mean.dtype.type(1)
        self.weight[v] += weight
        old = one - weight / self.weight[v]
        kept = old
        for _ in range(1, self.recency):
            kept *= old
        for k in range(mean.shape[0]):
            before = mean[k]
            mean[k] += (target[k] - before) * (one - kept)
            self.spread[v] += weight * self.aim.square(target[k], before, mean[k])
            target[k] -= before

    def try_split(self, v: int, s: int, rows: int) -> None:
        """Split leaf v if the gain of its best candidate is large enough."""
        real = self.mean.dtype.type
        unit = self.candidates.total[s, 0] / real(rows)
        c, gain = self.candidates.find_best(s, unit)
        chance = unit * (self.spread[v] / self.weight[v] + real(FLOOR))
        if c >= 0 and gain > self.evidence * chance * np.sqrt(real(self.grace) / real(rows)):
            self.split(v, s, c)
            self.spread[v] = gain

    def split(self, v: int, s: int, c: int) -> None:
        """Split leaf v by its candidate c; the children start with the statistics of c."""
        table, total, first = self.candidates.table[s], self.candidates.total[s], self.used[0]
        if first + 1 >= self.link.shape[0]:
            return  # the pool is full, as only a forged file can make it
        self.used[0] = first + 2
        n, m = total[0], table[WEIGHT, c]
        variance = self.spread[v] / self.weight[v]
        for child, weight in ((first, m), (first + 1, n - m)):
            self.weight[child] = weight
            self.spread[child] = weight * variance
        for k in range(self.mean.shape[1]):
            left, middle = table[SUMS + k, c], self.mean[v, k] - total[1 + k] / n
            self.mean[first, k] = middle + left / m
            self.mean[first + 1, k] = middle + (total[1 + k] - left) / (n - m)
        self.place[v] = self.candidates.place[s, c // GROUP]
        self.threshold[v] = table[THRESHOLD, c]
        self.link[v] = first
        moved = self.candidates.close(s)
        if moved >= 0:
            self.link[moved] = -1 - s
