"""The state of online regression trees (trees.py): descend, update a leaf, split it.

All trees share one pool of nodes. Node i is the root of tree i. A split takes the next two nodes of
the pool as children, so the memory in use follows the nodes that exist. The order of nodes in the
pool depends on the sizes of blocks; tree_selection.py returns them in an order that does not.

Trees learn row by row (core/loop.py) or copy by copy (core/stages.py).
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array, unsigned
from spanboost.compiling.kernels import kernel
from spanboost.compiling.random_numbers import are_streams
from spanboost.learners.candidates import GROUP, SUMS, THRESHOLD, WEIGHT, Candidates, goes_right
from spanboost.learners.leaf_rules import GreedyLeaves, LinearLeaves
from spanboost.learners.protocol import Feedback
from spanboost.learners.split_sums import AllOutputs, Sketch
from spanboost.learners.tree_rows import WAITING, TreeScratch
from spanboost.rows.block import Row

FLOOR = 1e-7  # added to the variance, so that tiny gains cause no split (labels are in [-1, 1])
FEW = 4  # rows of a chunk whose leaves are fetched
LINE = 16  # numbers of 4 bytes in a line of the cache
FULL = -(2**31)  # the link of a leaf at full depth


@kernel
class TreeBank(NamedTuple):
    """N trees. A node without a split is a leaf."""

    link: Array  # [node] > 0: the left child, and the right one follows it; 0 or less: a leaf, and
    # -1 - link is its record among the candidates (0: it has none yet; FULL: it never has one)
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
    sums: AllOutputs | Sketch  # what candidates sum up
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
        """Copy and pickle the nodes in use only, and no scratch space."""
        from spanboost.learners.tree_selection import pack_trees, unpack_trees

        return unpack_trees, pack_trees(self)

    def grown(self, features: int, width: int) -> "TreeBank":
        """Return the same trees with room for more features and wider rows."""
        if features > 2**29:
            raise ValueError("a column number is too large for trees")
        number = len(self.start)
        scratch = self.scratch.renewed(number, features, width)
        scratch.node[:number] = self.scratch.node[:number]  # `update` may follow: keep the leaves
        return self._replace(scratch=scratch)

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
        places, pool = self.scratch.rows.values.shape[1], self.candidates
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
        self.scratch.rows.load(0, x)
        self.find_leaves(0, h.shape[1], 1)
        for i in range(h.shape[1]):
            self.predict_leaf(i, self.scratch.node[i], h)

    def update(self, x: Row, h: Array, feedback: Feedback) -> None:
        """Add the row to the leaves it reaches."""
        self.scratch.rows.load(0, x)  # again, because there is room for new features now
        slope = self.scratch.slope
        feedback.slopes(h, slope)
        for i in range(h.shape[1]):
            self.learn_leaf(i, self.scratch.node[i], 0, h[:, i], slope[:, i], feedback.weight)
        self.count_waiting()
        self.rounds[0] += 1

    def load_rows(self, X: Any, first: int, last: int) -> int:
        """Load a chunk of rows that starts with row `first`, and return its end."""
        last = min(last, first + self.scratch.rows.values.shape[0])
        for t in range(first, last):
            self.scratch.rows.load(t - first, X.row(t))
        self.scratch.rows.number[0] = last - first
        return last

    def stage(self, i: int) -> "TreeStage":
        """Return tree i alone, which reads the loaded rows."""
        rows = self.scratch.rows.number[0]
        trees = self.scratch.node.shape[0] // rows
        if i % trees == 0:
            trees_left = min(trees, self.start.shape[0] - i)
            self.find_leaves(i, trees_left, rows)
            if rows <= FEW:
                self.fetch_leaves(trees_left * rows)
        return TreeStage(self, i, i % trees * rows)

    def rewind(self, rounds: int) -> None:
        """Set the number of rows back, so that another tree can learn them."""
        self.rounds[0] -= rounds

    def find_leaves(self, first: int, trees: int, rows: int) -> None:
        """Find the leaf that each of the first rows reaches in some trees.

        All pairs of a row and a tree descend one level at a time, branch-free; one after the other,
        with a branch at each node, takes twice as long.
        """
        loaded, node = self.scratch.rows, self.scratch.node
        numbers, coded = loaded.numbers, loaded.coded[0]
        for i in range(trees):
            for t in range(rows):
                node[i * rows + t] = first + i
        moved: Any = 1
        while moved > 0:
            moved = 0
            for i in range(trees):
                for t in range(rows):
                    v = unsigned(node[i * rows + t])
                    p, left = self.place[v], np.int64(self.link[v])
                    x, threshold = numbers[t, unsigned(2 * p)], self.threshold[v]
                    right = goes_right(x, threshold, p) if coded else np.int64(x > threshold)
                    inner = np.int64(left > 0)  # int() would compile to a branch
                    node[i * rows + t] += inner * (left + right - node[i * rows + t])
                    moved += inner

    def fetch_leaves(self, number: int) -> None:
        """Read the first leaves that were found, and their records, into the cache.

        In a chunk of few rows, every tree waits for memory. Reading all trees at once waits for
        many lines at the same time.
        """
        pool, total = self.candidates, self.mean.dtype.type(0)
        for j in range(number):
            v = unsigned(self.scratch.node[j])
            total += self.weight[v] + self.spread[v] + self.mean[v, 0]
            if self.link[v] < 0 and self.link[v] > FULL:
                s = unsigned(-1 - self.link[v])
                total += pool.total[s, 0] + self.mean.dtype.type(pool.seen[s] + pool.phases[s])
                for g in range(0, pool.place.shape[1], LINE):
                    total += self.mean.dtype.type(pool.place[s, g])
                for k in range(pool.table.shape[1]):
                    for c in range(0, pool.table.shape[2], LINE):
                        total += pool.table[s, k, c]
        self.scratch.target[0] = total  # or else the compiler would leave out the reads

    def predict_leaf(self, c: int, v: int, h: Array) -> None:
        """Set h[:, c] to the prediction of leaf v."""
        v = unsigned(v)
        self.aim.predict_mean(c, self.mean[v], self.weight[v], self.spread[v], h)

    def learn_leaf(self, i: int, v: int, t: int, h: Array, slope: Array, weight: float) -> None:
        """Add row t to leaf v of tree i, which predicts h [d]."""
        if self.rounds[0] < self.start[i]:
            return
        for k in range(h.shape[0]):
            self.scratch.target[k] = self.aim.target(i, h[k], slope[k], weight)
        self.update_leaf(v, weight)
        self.try_growing(i, v, t, weight)

    def try_growing(self, i: int, v: int, t: int, weight: float) -> None:
        """Add row t to the candidates of leaf v of tree i, unless the leaf is at full depth."""
        if self.link[unsigned(v)] == 0:
            self.open_record(i, v, t)
        if self.link[unsigned(v)] > FULL:
            self.grow_leaf(i, v, t, weight)

    def open_record(self, i: int, v: int, t: int) -> None:
        """Open a record for leaf v of tree i, which row t reaches, unless it is at full depth."""
        level, node = 0, i
        while node != v:
            x, p = self.scratch.rows.values[t, self.place[node], 0], self.place[node]
            node = self.link[node] + goes_right(x, self.threshold[node], p)
            level += 1
        s = self.candidates.open(v) if level < self.depth else -1
        self.link[v] = -1 - s if s >= 0 else FULL

    def grow_leaf(self, i: int, v: int, t: int, weight: float) -> None:
        """Add row t to the candidates of leaf v of tree i, and split the leaf if it is due."""
        values, queue, s = self.scratch.rows, self.scratch.queue, -1 - self.link[unsigned(v)]
        cells = values.filled[t, : values.cells[t]]
        rows = self.candidates.admit_row(i, s, cells, values.values[t], self.scratch.drawn)
        if rows == 0:
            return
        self.candidates.fetch(s)
        e = queue.length[0]
        queue.row[e], queue.record[e], queue.weight[e] = t, s, weight
        self.sums.measure(i, self.scratch.target, queue.distance[e])
        queue.length[0] = e + 1
        due = rows % self.grace == 0
        if due or e + 1 == WAITING:
            self.count_waiting()
        if due:
            self.try_split(v, s, rows)

    def finish_rows(self, weights: Array) -> None:
        """End a chunk whose rows, in every tree, have these weights; 0: the row was not learned."""
        self.count_waiting()
        for t in range(weights.shape[0]):
            self.rounds[0] += np.int64(weights[t] > 0)

    def count_waiting(self) -> None:
        """Count the rows that wait in the queue."""
        self.candidates.count_rows(self.scratch.queue, self.scratch.rows)

    def update_leaf(self, v: int, weight: float) -> None:
        """Add the target to the mean of leaf v, then replace it by its distance from the mean."""
        share, v = self.add_weight(v, weight), unsigned(v)
        mean, target, square = self.mean[v], self.scratch.target, share - share
        for k in range(mean.shape[0]):
            before = mean[k]
            mean[k] = before + (target[k] - before) * share
            square += self.aim.square(target[k], before, mean[k])
            target[k] -= before
        self.spread[v] += weight * square

    def add_weight(self, v: int, weight: float) -> float:
        """Add a row of this weight to leaf v, and return its share of the mean."""
        one, v = self.mean.dtype.type(1), unsigned(v)
        self.weight[v] += weight
        old = one - weight / self.weight[v]
        kept = old
        for _ in range(1, self.recency):
            kept *= old
        return one - kept

    def move_number(self, v: int, target: float, weight: float, share: float) -> float:
        """Do as `update_leaf` if targets are numbers; return the distance from the mean."""
        v = unsigned(v)
        before = self.mean[v, 0]
        after = before + (target - before) * share
        self.mean[v, 0] = after
        self.spread[v] += weight * self.aim.square(target, before, after)
        return target - before

    def try_split(self, v: int, s: int, rows: int) -> None:
        """Split leaf v if the gain of its best candidate is large enough."""
        real = self.mean.dtype.type
        unit = self.candidates.total[s, 0] / real(rows)
        c, gain = self.candidates.find_best(s, unit, self.scratch.gain)
        chance = unit * (self.spread[v] / self.weight[v] + real(FLOOR))
        if c >= 0 and gain > self.evidence * chance * np.sqrt(real(self.grace) / real(rows)):
            self.split(v, s, c, unit)
            self.spread[v] = gain

    def split(self, v: int, s: int, c: int, unit: float) -> None:
        """Split leaf v by its candidate c; `unit` is the mean weight of a row."""
        table, total, first = self.candidates.table[s], self.candidates.total[s], self.used[0]
        if first + 1 >= self.link.shape[0]:
            return  # the pool is full, as only a forged file can make it
        self.used[0] = first + 2
        variance = self.spread[v] / self.weight[v]
        for child, weight in ((first, table[WEIGHT, c]), (first + 1, total[0] - table[WEIGHT, c])):
            self.weight[child] = self.sums.child_weight(weight, unit)
            self.spread[child] = self.weight[child] * variance
        self.sums.set_means(self.mean, v, first, table[WEIGHT:, c], total)
        self.place[v] = self.candidates.place[s, c // GROUP]
        self.threshold[v] = table[THRESHOLD, c]
        self.link[v] = first
        moved = self.candidates.close(s)
        if moved >= 0:
            self.link[moved] = -1 - s


@kernel
class TreeStage(NamedTuple):
    """One tree of a bank. It reads rows that the bank has loaded, by their numbers."""

    bank: TreeBank
    i: int
    first: int  # the place of the first row among the leaves that were found

    def predict(self, x: int, h: Array) -> None:
        """Predict with the leaf that row x reaches."""
        self.bank.predict_leaf(0, self.find_leaf(x), h)

    def find_leaf(self, x: int) -> int:
        """Return the leaf that row x reaches."""
        bank, node = self.bank, self.bank.scratch.node
        v = unsigned(node[self.first + x])
        while bank.link[v] > 0:  # the leaf has been split since it was found
            p = bank.place[v]
            value = bank.scratch.rows.values[x, unsigned(p), 0]
            v = unsigned(bank.link[v] + goes_right(value, bank.threshold[v], p))
            node[self.first + x] = v
        return v

    def predict_number(self, x: int) -> float:
        """Return the prediction for row x, if predictions are numbers."""
        bank, v = self.bank, self.find_leaf(x)
        return bank.aim.leaf_number(bank.mean[v, 0], bank.weight[v], bank.spread[v])

    def learn_number(self, x: int, learned: int, h: float, slope: float, weight: float) -> None:
        """Add row x, for which the tree predicted h, to the leaf it reaches.

        learned: how many rows of the chunk the tree has learned.
        """
        bank, i = self.bank, self.i
        if bank.rounds[0] + learned < bank.start[i]:
            return
        v = bank.scratch.node[self.first + x]
        target, share = bank.aim.target(i, h, slope, weight), bank.add_weight(v, weight)
        bank.scratch.target[0] = bank.move_number(v, target, weight, share)
        bank.try_growing(i, v, x, weight)

    def update(self, x: int, h: Array, feedback: Feedback) -> None:
        """Add row x to the leaf it reaches."""
        bank, v = self.bank, self.bank.scratch.node[self.first + x]
        d = h.shape[0]  # the slopes of one copy are next to each other
        slope = bank.scratch.slope.reshape(-1)[:d].reshape((d, 1))
        feedback.slopes(h, slope)
        bank.learn_leaf(self.i, v, x, h[:, 0], slope[:, 0], feedback.weight)
        bank.rounds[0] += 1

    def finish(self) -> None:
        """End the chunk."""
        self.bank.count_waiting()
