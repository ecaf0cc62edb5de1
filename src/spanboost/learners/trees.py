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

The trees themselves are in tree_bank.py.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spanboost.checks import is_integer, is_number
from spanboost.compiling.arrays import Array
from spanboost.errors import ParameterError
from spanboost.learners.candidates import (
    GROUP,
    new_candidates,
)
from spanboost.learners.constructors import own_constructor
from spanboost.learners.leaf_rules import leaf_rule
from spanboost.learners.protocol import BankSize, ReadsFeatures, Task
from spanboost.learners.split_sums import AllOutputs, Sketch, new_sketch
from spanboost.learners.tree_bank import TreeBank
from spanboost.learners.tree_rows import new_tree_scratch
from spanboost.rows.block import Cells, block_of
from spanboost.rows.room import new_room

DEEPEST = 20
MOST_BITS = 28  # of hashed columns
WIDEST = 64  # projections
MOST_MEANS = 2**24  # numbers in the nodes of sketched trees: 64 MiB in single precision


@own_constructor({})
@dataclass(frozen=True, repr=False)
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
    sketch: for losses with several outputs, such as softmax: the number of random projections of
        the targets that candidates sum up (split_sums.py). 0 sums up every output, so time and
        memory grow with their number. Otherwise memory is bounded: trees with many outputs are
        less deep, such as 6 levels for 100 trees with 1,000 classes.

    A leaf that can still split takes 4 (2 + s) + 2 bytes per candidate, and little more, where s is
    `sketch`, or the number of outputs if that is 0. 100 full trees of the default size with one
    output take 13 MB; young trees take much less.
    """

    depth: int = 8
    candidates: int = 64
    evidence: float = 10.0
    grace: int = 32
    delay: int = 5
    recency: int = 1
    dtype: type[np.floating[Any]] = np.float32
    bits: int | None = None
    sketch: int = field(default=0, metadata={"new": True})  # files of earlier versions lack it

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
            ("sketch", _is_in(self.sketch, 0, WIDEST), f"an integer from 0 to {WIDEST}"),
            (
                "bits",
                bits is None or _is_in(bits, 1, MOST_BITS),
                f"None or an integer from 1 to {MOST_BITS}",
            ),
        ):
            if not good:
                raise ParameterError(name, f"must be {allowed} (got {getattr(self, name)!r})")

    def encode(self, X: Any, D: float = math.inf) -> Cells:
        """Return the block, to be read as cells."""
        return Cells(*block_of(X, self.dtype, self.bits))

    def bank_size(self, n: int, d: int, features: int) -> BankSize:
        """Return the numbers in n copies; the room for nodes is limited, although it is zeros."""
        codes = n * d * min(max(int(self.sketch), 0), WIDEST)
        return BankSize(n, n * 2 ** (1 + min(max(int(self.depth), 0), DEEPEST)) + codes)

    def bank(self, task: Task) -> TreeBank:
        """Return N copies, each a root that has seen no rows."""
        n, d = task.n, task.d
        sums = self.sketch if d > 1 and self.sketch else d
        nodes = n * (2 ** (self.depth + 1) - 1)
        if nodes >= 2**31:
            raise ParameterError("depth", f"must be smaller for {n} copies (got {self.depth})")

        def zeros(*shape: int) -> Array:
            return new_room(shape, self.dtype)

        return TreeBank(
            link=new_room(nodes, np.int32),
            place=new_room(nodes, np.int32),
            threshold=zeros(nodes),
            weight=zeros(nodes),
            mean=zeros(nodes, d),
            spread=zeros(nodes),
            used=np.array([n], np.int64),
            candidates=new_candidates(
                task.copy,
                2 ** (self.depth - 1),
                int(self.candidates),
                sums,
                seed=task.seed,
                dtype=self.dtype,
            ),
            rounds=np.zeros(1, np.int64),
            start=self.delay * task.rounds * task.copy.astype(np.int64),
            aim=leaf_rule(task, self.dtype),
            sums=self._split_sums(task),
            # replayed rows inflate gains and counts by this factor
            evidence=np.dtype(self.dtype).type(self.evidence * task.rounds**1.5),
            depth=self._levels(task),
            grace=int(self.grace),
            recency=int(self.recency),
            scratch=new_tree_scratch(n, d, sums, int(self.candidates), 0, 0, self.dtype),
        )

    def _levels(self, task: Task) -> int:
        """Return the depth, or less if the leaves of sketched trees would hold too many numbers."""
        copies = 1 + int(task.copy.max())  # of one lane, if the bank has several
        room = MOST_MEANS // (copies * task.d)  # nodes of a tree
        return min(int(self.depth), max(room.bit_length() - 2, 1)) if self.sketch else self.depth

    def _split_sums(self, task: Task) -> AllOutputs | Sketch:
        """Return what candidates sum up."""
        if not self.sketch or task.d == 1:
            return AllOutputs()
        return new_sketch(task.copy, self.sketch, task.d, seed=task.seed, dtype=self.dtype)


def _is_in(value: Any, low: int, high: int) -> bool:
    return is_integer(value) and bool(low <= value <= high)
