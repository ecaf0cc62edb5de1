"""Boosters side by side: a bank with the copies of all, one pass over the rows for all of them."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.core.algorithms import Span
from spanboost.core.feedback import GreedyMode, LinearMode
from spanboost.core.loop import BoosterState
from spanboost.learners.descent import Descent
from spanboost.learners.protocol import Task
from spanboost.models.booster import Booster, CheckedBlock
from spanboost.rows.block import as_rows
from spanboost.rows.encoder import EncodedBlock
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


class StackedBoosters(Booster):
    """Configurations of one kind, `members`, in one bank: they differ in numbers alone.

    Members are fresh boosters with as many copies each, of one class, loss, feedback and learner,
    up to their steps, scales and the learner's rate. What they would learn each on its own is
    learned here, bit for bit. It can be sent to another process at any time, and shares nothing.
    """

    _default_offset = ""  # members have their own

    def __init__(self, members: Sequence[Booster]) -> None:
        first = members[0]
        self.members, self.N = list(members), first.n
        super().__init__(
            _of_all([member.learner for member in members], self.N),
            self.N * len(members),
            loss=first.loss,
            feedback=first.feedback,
            alpha=None,
            offset=first.offset,
            scale=first.scale,
            D=first.D,
            label_range=first.label_range,
            replay=first.replay,
            memory=first.memory,
            seed=first.seed,
        )
        tasks, modes = [m._task for m in members], [m._mode for m in members]
        self._task = Task(
            **tasks[0]._asdict() | {"n": self.n} | _joined(tasks, "lipschitz", "smoothness", "copy")
        )
        self._mode: LinearMode | GreedyMode = modes[0]
        if isinstance(modes[0], GreedyMode):
            self._mode = modes[0]._replace(alpha=_joined(modes, "alpha")["alpha"])
        self.sums = np.zeros(self.n)  # of losses, in the labels' units, as `Scores` has them
        self.weight = np.zeros(1)  # of the rows
        self._point, self._value = np.empty((self._d, self.n)), np.empty(self.n)  # scratch
        self._marked: tuple[Array, Array] | None = None

    def learn(self, X: Any, y: Any, weights: Any = None) -> None:
        """Learn and score a block of rows; it is checked first, as by `learn_many`."""
        self.learn_block(self.checked(X, y, weights), y, weights)

    def learn_block(self, block: CheckedBlock, y: Any, weights: Any = None) -> None:
        """Learn and score a block that was checked, with labels and weights as they were given."""
        reading, labels, learned, widenings = block
        self._accept(reading, int(np.count_nonzero(learned)))
        given = labels if self._labels.scores else to_numbers(y)
        score = np.column_stack(
            [
                np.ones(len(labels)) if weights is None else to_numbers(weights),
                np.array(given, np.float64).reshape(labels.shape),
            ]
        )
        first = 0
        for new in widenings:  # as in `learn_checked`: answered and scored, then learned
            self._learn(reading, labels, learned, score, first, new.row)
            self._learn(reading, labels, 0 * learned, score, new.row, new.row + 1)
            score[new.row, 0], first = 0, new.row
            self._widen(new)
        self._learn(reading, labels, learned, score, first, len(labels))

    def mark(self) -> None:
        """The rows that parameters are chosen on end here."""
        self._marked = self.sums.copy(), self.weight.copy()

    def averages(self) -> tuple[Array, Array]:
        """Losses [C, N] on average before the mark and after it; all are before, if there is none.

        NaN over no weight.
        """
        sums, weight = self._marked or (self.sums, self.weight)
        shape = len(self.members), self.N
        with np.errstate(invalid="ignore", divide="ignore"):
            before, after = sums / weight, (self.sums - sums) / (self.weight - weight)
        return before.reshape(shape), after.reshape(shape)

    def cut(self, c: int, alone: Booster, labels: Labels) -> Booster:
        """Fill a fresh booster with what configuration c has learned in its first copies.

        labels: those of the stream, which all of its models share.
        """
        alone._labels, alone.schema = copy.deepcopy(labels), self.schema
        alone._reader.kind = self._reader.kind
        alone._reader.names = copy.deepcopy(self._reader.names)
        alone._memory = copy.deepcopy(self._memory)
        alone._features, alone._width = self._features, self._width
        if self._model is None or self._reader.kind is None:
            return alone
        first = c * self.N
        algorithm = alone._algorithm()
        if isinstance(algorithm, Span):
            each = self._model.algorithm.each
            algorithm.sigma[...] = each.sigma[first : first + alone.n]
            algorithm.t[...] = each.t[c]
        rows = self._reader.blank(self._reader.kind)
        fresh = [one._learner.bank(one._task._replace(rows=rows)) for one in (self, alone)]
        copies = np.arange(first, first + alone.n)
        bank = _only(self._model.bank, *fresh, copies=copies, number=self.n)
        alone._model = BoosterState(
            algorithm, alone._mode, alone._vector_loss, bank, self._model.D, alone._trace()
        )
        return alone

    def _learn(
        self,
        reading: EncodedBlock,
        labels: Array,
        weights: Array,
        out: Array,
        first: int,
        last: int,
    ) -> None:
        """Likewise; `out` holds the weights and labels [rows, 1 + d] by which rows are scored."""
        if self._memory is None:
            self._run(reading.rows, labels, weights, out, first, last)
            return
        for piece in self._memory.pieces(reading.encoded, labels, weights, first, last):
            score = np.zeros((len(piece.labels), out.shape[1]))  # rows that come again count 0
            score[piece.place] = out[piece.first : piece.last]
            rows, rounds = as_rows(piece.rows), len(score)
            self._run(rows, piece.labels, piece.weights, score, 0, rounds)

    def _run(
        self, rows: Any, labels: Array, weights: Array, score: Array, first: int, last: int
    ) -> None:
        centre, half = self._labels.centre, float(self._labels.half)
        if self._labels.scores:  # they are not in the units of labels
            centre, half = np.zeros(self._d), 1.0
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
        self._call(learn_scored, self._model, rows, labels, weights, scores, first, last)

    def _algorithm(self) -> StackedAlgorithm:
        each = [member._algorithm() for member in self.members]
        one = each[0]
        if isinstance(one, Span):
            parts = _joined(each, "eta", "sigma", "t", "B", "L_B", "scale")
            return StackedAlgorithm(Spans(**parts, at_final=one.at_final), self.N)
        parts = _joined(each, "eta", "L_D", "scale")
        return StackedAlgorithm(Hulls(**parts, at_final=one.at_final, linear=one.linear), self.N)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self._model is not None:  # its parts share memory, which copies and pickles forget
            self._model = self._model._replace(trace=self._trace())

    def _trace(self) -> Any:
        return new_stacked_trace(self._d, len(self.members), self.N, self._dtype)


def stacking_key(booster: Booster) -> tuple[Any, ...]:
    """What members of the same `StackedBoosters` have in common."""
    learner = booster.learner
    if isinstance(learner, Descent):
        learner = replace(learner, rate=0.5)
    same = booster.n, booster.feedback, booster.offset_, booster.D, booster.seed
    return type(booster), learner, *same


def _of_all(learners: Sequence[Any], N: int) -> Any:
    """One learner with the rates of all."""
    if not isinstance(learners[0], Descent):
        return learners[0]
    rates = [np.broadcast_to(learner.rate, N) for learner in learners]
    return replace(learners[0], rate=tuple(np.concatenate(rates).tolist()))


def _joined(parts: Sequence[Any], *names: str) -> dict[str, Array]:
    """Fields of all of them, one after the other."""
    return {
        name: np.concatenate([np.atleast_1d(getattr(part, name)) for part in parts])
        for name in names
    }


def _only(bank: Any, fresh: Any, wanted: Any, *, copies: Array, number: int) -> Any:
    """Some of the copies of a bank, which has so many.

    Two banks without features, one like it and one like what is wanted, differ in the length of
    those axes that copies lie on.
    """
    if hasattr(bank, "_fields"):
        parts = zip(bank, fresh, wanted, strict=True)
        return type(bank)(*(_only(*part, copies=copies, number=number) for part in parts))
    if not isinstance(bank, np.ndarray):
        return bank
    if fresh.shape == wanted.shape:
        return bank.copy()
    axis = [a == b for a, b in zip(fresh.shape, wanted.shape, strict=True)].index(False)
    blocks = fresh.shape[axis] // number  # copies lie side by side in each: outputs, or units
    lanes = (number * np.arange(blocks)[:, None] + copies).ravel()
    return np.ascontiguousarray(bank.take(lanes, axis))
