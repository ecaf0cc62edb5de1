"""Stacked boosters: one bank holds the copies of many boosters, which learn together."""

import copy
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.core.algorithms import Span
from spanboost.learners.descent import Descent
from spanboost.learners.tree_bank import TreeBank
from spanboost.learners.tree_selection import select_trees
from spanboost.losses import has_log_link
from spanboost.models.booster import Booster
from spanboost.models.booster_core import CheckedBlock
from spanboost.models.stacking import renew_trace, stack_cores
from spanboost.rows.labels import Labels
from spanboost.rows.validation import to_numbers
from spanboost.tuning.stacked_loop import Scores, learn_scored

# Parameters that members may differ in, or that are compared in another way. All configurations of
# a grid have the same loss and label range.
_MAY_DIFFER = {"learner", "eta", "scale", "alpha", "B", "offset", "loss", "label_range"}


class StackedBoosters:
    """Boosters of one kind, `members`, that learn together in one bank.

    Members are fresh boosters with the same number of copies, class, loss, feedback and learner;
    they differ only in their steps, their scales and the learner's rate. Each learns exactly what
    it would learn alone. A stack shares nothing with others, so it can be pickled at any time.
    """

    def __init__(self, members: Sequence[Booster]) -> None:
        self.members, self.N = list(members), members[0].n
        self.n = self.N * len(members)
        self.schema: Any = None
        self.core = stack_cores(members)
        # since the mark: losses in the units of the labels (see `Scores.sums`), and weights
        self.sums, self.weight = np.zeros(self.n), np.zeros(1)
        self._point, self._value = np.empty((self.core.d, self.n)), np.empty(self.n)  # scratch
        self._marked: tuple[Array, Array] | None = None

    def learn(self, X: Any, y: Any, weights: Any = None) -> None:
        """Check a block of rows as `learn_many` does, then learn and score it."""
        self.learn_block(self.core.check(X, y, weights), weights)

    def learn_block(self, block: CheckedBlock, weights: Any = None) -> None:
        """Learn and score a checked block; the weights are as the caller gave them.

        The labels are scored as they are learned. An absurd label does not decide which
        configuration is the best.
        """
        labels = block.labels
        given = labels if self.core.labels.scores else block.learned
        score = np.column_stack(  # weights and labels for scoring
            [
                np.ones(len(labels)) if weights is None else to_numbers(weights),
                np.array(given, np.float64).reshape(labels.shape),
            ]
        )

        def skip_score(row: int) -> None:
            score[row, 0] = 0  # it is predicted again in the new label range, but scored once

        self.core.learn(block, score, self._run, skip_score)

    def mark(self) -> None:
        """End the first part of the rows, which chooses the parameters."""
        self._marked = self.sums, self.weight
        self.sums, self.weight = np.zeros(self.n), np.zeros(1)

    def averages(self) -> tuple[Array, Array]:
        """Return average losses [C, N] before and after the mark; without a mark, all are before.

        They are NaN where the rows have weight 0.
        """
        parts = (self.sums, self.weight), (np.zeros(self.n), np.zeros(1))
        if self._marked is not None:
            parts = self._marked, parts[0]
        with np.errstate(invalid="ignore", divide="ignore"):
            before, after = (sums / weight for sums, weight in parts)
        shape = len(self.members), self.N
        return before.reshape(shape), after.reshape(shape)

    def extract(self, c: int, alone: Booster, labels: Labels) -> Booster:
        """Copy the first copies of configuration c into a fresh booster, `alone`, and return it.

        labels: the label encoder of the stream, which all configurations share.
        """
        core, target = self.core, alone.core
        target.labels, alone.schema = copy.deepcopy(labels), self.schema
        target.encoder.kind = core.encoder.kind
        target.encoder.names = copy.deepcopy(core.encoder.names)
        target.encoder.columns = core.encoder.columns
        target.memory, target.sample = copy.deepcopy((core.memory, core.sample))
        target.features, target.width = core.features, core.width
        if not core.started:
            return alone
        first = c * self.N
        algorithm = target.state.algorithm
        if isinstance(algorithm, Span):
            each = core.state.algorithm.each
            algorithm.sigma[...] = each.sigma[first : first + alone.n]
            algorithm.t[...] = each.t[c]
        copies = np.arange(first, first + alone.n)
        fresh = core.fresh_bank(), target.fresh_bank()
        bank = _select_copies(core.state.bank, *fresh, copies=copies, number=self.n)
        target.state = target.state._replace(bank=bank)
        return alone

    def _run(
        self, rows: Any, labels: Array, weights: Array, score: Array, first: int, last: int
    ) -> None:
        stream = self.core.labels
        centre, half = stream.centre, float(stream.half)
        if stream.scores:  # scores have no unit
            centre, half = np.zeros(self.core.d), 1.0
        if stream.log_link:
            centre, half = np.log([half]), 1.0
        scores = Scores(
            labels=np.ascontiguousarray(score[:, 1:]),
            weights=np.ascontiguousarray(score[:, 0]),
            centre=centre,
            half=half,
            sums=self.sums,
            total=self.weight,
            point=self._point,
            value=self._value,
        )
        state = self.core.state
        self.core.call(learn_scored, state, rows, labels, weights, scores, first, last)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        renew_trace(self.core, self.N)


def stacking_key(booster: Booster) -> tuple[Any, ...]:
    """Return a key that is equal for boosters that can be members of one `StackedBoosters`."""
    learner = booster.learner
    if isinstance(learner, Descent):
        learner = replace(learner, rate=0.5)
    same = [getattr(booster, one.name) for one in fields(booster) if one.name not in _MAY_DIFFER]
    # with a log link, what a lane learns depends on the others
    own = [id(booster)] if has_log_link(booster.loss_) else []
    return type(booster), learner, booster.offset_, *same, *own


def _select_copies(bank: Any, fresh: Any, wanted: Any, *, copies: Array, number: int) -> Any:
    """Return some of the `number` copies of a bank.

    fresh, wanted: banks without features, the first with `number` copies and the second with as
        many as wanted. Their shapes differ in the axis of the copies, which tells which axis it is.
    """
    if isinstance(bank, TreeBank):
        return select_trees(bank, copies)
    if hasattr(bank, "_fields"):
        parts = zip(bank, fresh, wanted, strict=True)
        return type(bank)(*(_select_copies(*part, copies=copies, number=number) for part in parts))
    if not isinstance(bank, np.ndarray):
        return bank
    if fresh.shape == wanted.shape:
        return bank.copy()
    axis = [a == b for a, b in zip(fresh.shape, wanted.shape, strict=True)].index(False)
    blocks = fresh.shape[axis] // number  # one block of copies for each output or hidden unit
    indices = (number * np.arange(blocks)[:, None] + copies).ravel()
    return np.ascontiguousarray(bank.take(indices, axis))
