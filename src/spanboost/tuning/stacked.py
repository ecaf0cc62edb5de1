"""Boosters side by side: one bank holds the copies of all, one pass over the rows learns them."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.core.algorithms import Span
from spanboost.core.feedback import GreedyMode
from spanboost.core.loop import BoosterState
from spanboost.learners.descent import Descent
from spanboost.learners.objects import as_learner
from spanboost.models.booster import Booster
from spanboost.models.booster_core import BoosterCore, CheckedBlock
from spanboost.rows.labels import Labels
from spanboost.rows.validation import to_numbers
from spanboost.tuning.stacked_loop import (
    Hulls,
    Scores,
    Spans,
    StackedAlgorithm,
    learn_scored,
    new_stacked_trace,
)


class StackedBoosters:
    """Configurations of one kind, `members`, in one bank: they differ in numbers alone.

    Members are fresh boosters with equally many copies, of one class, loss, feedback and learner,
    up to their steps, scales and the learner's rate. They learn exactly what each would learn on
    its own. A stack can be sent to another process at any time; it shares nothing.
    """

    def __init__(self, members: Sequence[Booster]) -> None:
        self.members, self.N = list(members), members[0].n
        self.n = self.N * len(members)
        self.schema: Any = None
        cores = [member.core for member in members]
        first = cores[0]
        learner = as_learner(_with_all_rates([member.learner for member in members], self.N))
        tasks = [core.task for core in cores]
        task = tasks[0]._replace(n=self.n, **_concatenate(tasks, "lipschitz", "smoothness", "copy"))
        modes = [core.state.mode for core in cores]
        mode = modes[0]
        if isinstance(mode, GreedyMode):
            mode = mode._replace(**_concatenate(modes, "alpha"))
        state = BoosterState(
            algorithm=_stacked_algorithm([core.state.algorithm for core in cores], self.N),
            mode=mode,
            loss=first.state.loss,
            bank=None,
            D=first.state.D,
            trace=new_stacked_trace(first.d, len(members), self.N, first.dtype),
        )
        labels, memory = copy.deepcopy((first.labels, first.memory))
        self.core = BoosterCore(learner, task, state, labels, memory)
        self.sums = np.zeros(self.n)  # of losses, in the labels' units, as `Scores` has them
        self.weight = np.zeros(1)  # of the rows
        self._point, self._value = np.empty((first.d, self.n)), np.empty(self.n)  # scratch
        self._marked: tuple[Array, Array] | None = None

    def learn(self, X: Any, y: Any, weights: Any = None) -> None:
        """Learn and score a block of rows; it is checked first, as by `learn_many`."""
        self.learn_block(self.core.check(X, y, weights), y, weights)

    def learn_block(self, block: CheckedBlock, y: Any, weights: Any = None) -> None:
        """Learn and score a block that was checked, with labels and weights as they were given."""
        labels = block.labels
        given = labels if self.core.labels.scores else to_numbers(y)
        score = np.column_stack(  # the weights and labels by which rows are scored
            [
                np.ones(len(labels)) if weights is None else to_numbers(weights),
                np.array(given, np.float64).reshape(labels.shape),
            ]
        )

        def scored(row: int) -> None:
            score[row, 0] = 0  # it is answered again, in the wider range, and counts once

        self.core.learn(block, score, self._run, scored)

    def mark(self) -> None:
        """End the rows that parameters are chosen on."""
        self._marked = self.sums.copy(), self.weight.copy()

    def averages(self) -> tuple[Array, Array]:
        """Return average losses [C, N] before the mark and after it; without a mark all are before.

        NaN over no weight.
        """
        sums, weight = self._marked or (self.sums, self.weight)
        shape = len(self.members), self.N
        with np.errstate(invalid="ignore", divide="ignore"):
            before, after = sums / weight, (self.sums - sums) / (self.weight - weight)
        return before.reshape(shape), after.reshape(shape)

    def extract(self, c: int, alone: Booster, labels: Labels) -> Booster:
        """Fill a fresh booster with what configuration c has learned in its first copies.

        labels: those of the stream, which all of its models share.
        """
        core, target = self.core, alone.core
        target.labels, alone.schema = copy.deepcopy(labels), self.schema
        target.encoder.kind = core.encoder.kind
        target.encoder.names = copy.deepcopy(core.encoder.names)
        target.memory = copy.deepcopy(core.memory)
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
        if stream.scores:  # they are not in the units of labels
            centre, half = np.zeros(self.core.d), 1.0
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
        # the parts of a trace share memory, which copies and pickles forget
        core = self.core
        trace = new_stacked_trace(core.d, len(self.members), self.N, core.dtype)
        core.state = core.state._replace(trace=trace)


def _stacked_algorithm(each: Sequence[Any], N: int) -> StackedAlgorithm:
    first = each[0]
    if isinstance(first, Span):
        parts = _concatenate(each, "eta", "sigma", "t", "B", "L_B", "scale")
        return StackedAlgorithm(Spans(**parts, at_final=first.at_final), N)
    parts = _concatenate(each, "eta", "L_D", "scale")
    return StackedAlgorithm(Hulls(**parts, at_final=first.at_final, linear=first.linear), N)


def stacking_key(booster: Booster) -> tuple[Any, ...]:
    """What members of the same `StackedBoosters` have in common."""
    learner = booster.learner
    if isinstance(learner, Descent):
        learner = replace(learner, rate=0.5)
    same = booster.n, booster.feedback, booster.offset_, booster.D, booster.seed
    return type(booster), learner, *same


def _with_all_rates(learners: Sequence[Any], N: int) -> Any:
    """One learner with the rates of all."""
    if not isinstance(learners[0], Descent):
        return learners[0]
    rates = [np.broadcast_to(learner.rate, N) for learner in learners]
    return replace(learners[0], rate=tuple(np.concatenate(rates).tolist()))


def _concatenate(parts: Sequence[Any], *names: str) -> dict[str, Any]:
    """Fields of all of them, one after the other."""
    return {
        name: np.concatenate([np.atleast_1d(getattr(part, name)) for part in parts])
        for name in names
    }


def _select_copies(bank: Any, fresh: Any, wanted: Any, *, copies: Array, number: int) -> Any:
    """Some of the copies of a bank, which has so many.

    Two banks without features, one like it and one like what is wanted, differ in the length of
    those axes that copies lie on.
    """
    if hasattr(bank, "_fields"):
        parts = zip(bank, fresh, wanted, strict=True)
        return type(bank)(*(_select_copies(*part, copies=copies, number=number) for part in parts))
    if not isinstance(bank, np.ndarray):
        return bank
    if fresh.shape == wanted.shape:
        return bank.copy()
    axis = [a == b for a, b in zip(fresh.shape, wanted.shape, strict=True)].index(False)
    blocks = fresh.shape[axis] // number  # copies lie side by side in each: outputs, or units
    lanes = (number * np.arange(blocks)[:, None] + copies).ravel()
    return np.ascontiguousarray(bank.take(lanes, axis))
