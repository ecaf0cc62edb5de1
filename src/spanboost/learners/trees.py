"""Regression trees that grow while the stream goes by.

docs/trees.md says how they work and why they are as they are.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spanboost._jit import kernel
from spanboost.arrays import Array
from spanboost.block import Cells, Row, block_of
from spanboost.learners.candidates import SUMS, THRESHOLD, WEIGHT, Candidates, new_candidates
from spanboost.learners.inputs import more
from spanboost.learners.protocol import Feedback, Task


@dataclass(frozen=True)
class Trees:
    depth: int = 8
    candidates: int = 64
    grace: int = 64
    delta: float = 10.0
    least: float = 5.0
    rank: int = 2
    fade: int = 1
    stage: int = 0
    dtype: Any = np.float32

    @property
    def greedy_step(self) -> float:
        return 1.0

    @property
    def deterministic(self) -> bool:
        return False

    @property
    def named(self) -> bool:
        return True

    @property
    def scalable(self) -> bool:
        return True

    def check(self, task: Task) -> None:
        pass

    def encode(self, X: Any, D: float = math.inf) -> Cells:
        return Cells(*block_of(X, self.dtype, None))

    def bank(self, task: Task) -> "TreeBank":
        n, d, nodes = task.n, task.d, 2 ** (self.depth + 1) - 1
        number = np.dtype(self.dtype).type

        def zeros(*shape: int) -> Array:
            return np.zeros(shape, self.dtype)

        return TreeBank(
            place=np.full((n, nodes), -1, np.int32),
            threshold=zeros(n, nodes),
            weight=zeros(n, nodes),
            mean=zeros(n, nodes, d),
            spread=zeros(n, nodes),
            candidates=new_candidates(
                task.copy, 2 ** (self.depth - 1), self.candidates, d,
                self.grace, self.least, task.seed, self.dtype,
            ),
            aim=_aim(task, self.dtype),
            delta=number(self.delta),
            rank=np.int64(self.rank),
            fade=np.int64(self.fade),
            stage=np.int64(self.stage),
            rounds=np.zeros(1,np.int64),
            scratch=TreeScratch(
                values=zeros(0),
                laid=np.zeros(0, np.int64),
                laid_out=np.zeros(1, np.int64),
                node=np.zeros(n, np.int64),
                leaf=np.zeros(n, np.int64),
                slope=zeros(d, n),
                target=zeros(d),
            ),
        )


def _aim(task: Task, dtype: Any) -> Any:
    if task.linear:
        return Pulled(np.dtype(dtype).type(task.D))
    smooth = np.isfinite(task.smoothness) & (task.smoothness > 0)
    pull = np.where(smooth, 1 / np.where(smooth, task.smoothness, 1), task.D / task.lipschitz)
    return Fitted(pull.astype(dtype))


@kernel
class Fitted(NamedTuple):
    """Greedy feedback."""

    pull: Array  # [N] how far a unit of slope moves the target

    def target(self, i: int, h: float, slope: float, weight: float) -> float:
        return h - slope / weight * self.pull[i]

    def say(self, i: int, mean: Array, weight: float, spread: float, h: Array) -> None:
        for k in range(mean.shape[0]):
            h[k, i] = mean[k]


@kernel
class Pulled(NamedTuple):
    """Linear feedback."""

    D: float

    def target(self, i: int, h: float, slope: float, weight: float) -> float:
        return -slope / weight

    def say(self, i: int, mean: Array, weight: float, spread: float, h: Array) -> None:
        square = spread
        for k in range(mean.shape[0]):
            square += weight * mean[k] * mean[k]
        far = self.D * weight / np.sqrt(square + square) if square > 0 else square
        for k in range(mean.shape[0]):
            h[k, i] = far * mean[k]


class TreeScratch(NamedTuple):
    values: Array
    laid: Array
    laid_out: Array
    node: Array
    leaf: Array
    slope: Array
    target: Array


@kernel
class TreeBank(NamedTuple):
    place: Array  # [N, node]
    threshold: Array
    weight: Array
    mean: Array
    spread: Array
    candidates: Candidates
    aim: Any
    delta: float
    rank: int
    fade: int
    stage: int
    rounds: Array
    scratch: TreeScratch

    def grown(self, features: int, width: int) -> "TreeBank":
        scratch = self.scratch._replace(
            values=more(self.scratch.values, 2 * features), laid=more(self.scratch.laid, width)
        )
        return self._replace(scratch=scratch)

    def rescale(self, a: float, b: float) -> None:
        pass

    def predict(self, x: Row, h: Array) -> None:
        self.lay_out(x)
        for i in range(h.shape[1]):
            v = self.find(i)
            self.aim.say(i, self.mean[i, v], self.weight[i, v], self.spread[i, v], h)

    def lay_out(self, x: Row) -> None:
        values, laid = self.scratch.values, self.scratch.laid
        for a in range(self.scratch.laid_out[0]):
            values[laid[a]] = 0
            values[laid[a] + 1] = 0
        low, high = values.dtype.type(-np.inf), values.dtype.type(np.inf)
        known = 0
        for a in range(x.feature.shape[0]):
            p, v = 2 * x.feature[a], x.x[a]
            if p < values.shape[0]:
                values[p] = low if np.isnan(v) else v
                values[p + 1] = high if np.isnan(v) else v
                laid[known] = p
                known += 1
        self.scratch.laid_out[0] = known

    def find(self, i: int) -> int:
        place, threshold, values = self.place[i], self.threshold[i], self.scratch.values
        v, leaf, width = 0, 0, self.candidates.seen.shape[1]
        while place[v] >= 0:
            p = place[v]
            x, t = values[p], threshold[v]
            left = x == t if p & 2 else x <= t
            v = 2 * v + (1 if left else 2)
            width >>= 1
            leaf += 0 if left else width
        self.scratch.node[i] = v
        self.scratch.leaf[i] = leaf if width > 0 else -1
        return v

    def update(self, x: Row, h: Array, feedback: Feedback) -> None:
        self.lay_out(x)
        slope, target, weight = self.scratch.slope, self.scratch.target, feedback.weight
        feedback.slopes(h, slope)
        self.rounds[0] += 1
        for i in range(h.shape[1]):
            if self.rounds[0] < i * self.stage:
                continue
            for k in range(h.shape[0]):
                target[k] = self.aim.target(i, h[k, i], slope[k, i], weight)
            v, s = self.scratch.node[i], self.scratch.leaf[i]
            self.learn(i, v, weight)
            if s >= 0:
                if self.candidates.seen[i, s] == 0:
                    self.candidates.open(i, s, x.feature)
                if self.candidates.count(i, s, self.scratch.values, target, weight):
                    self.look(i, v, s)

    def learn(self, i: int, v: int, weight: float) -> None:
        mean, target = self.mean[i, v], self.scratch.target
        self.weight[i, v] += weight
        share = weight / self.weight[i, v]
        one = self.mean.dtype.type(1)
        rest = one - share
        power = one
        for _ in range(self.rank):
            power *= rest
        share = one - power
        for k in range(mean.shape[0]):
            far = target[k] - mean[k]
            mean[k] += far * share
            self.spread[i, v] += weight * far * (target[k] - mean[k])

    def look(self, i: int, v: int, s: int) -> None:
        c, gain = self.candidates.best(i, s)
        if c >= 0 and gain > self.delta * self.spread[i, v] / self.weight[i, v]:
            self.split(i, v, s, c, gain)
        elif self.fade > 0:
            looks = (self.candidates.seen[i, s] - 4) // self.candidates.grace
            f = self.mean.dtype.type(looks / (looks + self.fade))
            t = self.candidates.table[i, s]
            for p in range(1, t.shape[0]):
                for c in range(t.shape[1]):
                    t[p, c] *= f
            for p in range(self.candidates.total.shape[2]):
                self.candidates.total[i, s, p] *= f

    def split(self, i: int, v: int, s: int, c: int, gain: float) -> None:
        table, total = self.candidates.table[i, s], self.candidates.total[i, s]
        self.place[i, v] = self.candidates.place[i, s, c // 4]
        self.threshold[i, v] = table[THRESHOLD, c]
        left, right = 2 * v + 1, 2 * v + 2
        n, m = total[0], table[WEIGHT, c]
        rest = max(self.spread[i, v] / self.weight[i, v] - gain / n, self.mean.dtype.type(0))
        self.weight[i, left], self.weight[i, right] = m, n - m
        self.spread[i, left], self.spread[i, right] = rest * m, rest * (n - m)
        for k in range(self.mean.shape[2]):
            self.mean[i, left, k] = table[SUMS + k, c] / m
            self.mean[i, right, k] = (total[1 + k] - table[SUMS + k, c]) / (n - m)
        self.candidates.seen[i, s] = 0
