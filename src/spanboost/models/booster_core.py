"""The working state of a booster: rows, labels, rows for replay, and the state of its copies.

`Booster` holds one core, and so does `StackedBoosters`, which learns many configurations at once.
They differ in the algorithm in the state and in the compiled loop that runs over a span of rows.
Everything around the loop is in this module.
"""

import copy
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from spanboost.checks import float_type
from spanboost.compiling.arrays import Array
from spanboost.compiling.interrupts import raise_interrupt
from spanboost.compiling.kernels import Caller
from spanboost.core.loop import BoosterState, learn, learn_recorded, record_size
from spanboost.core.scalar_stages import has_scalar_stages, learn_scalar_stages, scalar_state
from spanboost.core.stages import has_stages, learn_stages
from spanboost.learners.from_bank import NAN_IN_ROW, finite_rows
from spanboost.learners.protocol import Learner, Task
from spanboost.losses import Softmax, degree
from spanboost.rows.block import as_rows
from spanboost.rows.encoder import EncodedBlock, RowEncoder, RowKind
from spanboost.rows.label_ends import LabelEnds
from spanboost.rows.labels import Labels, RangeChange
from spanboost.rows.prediction_labels import PredictionLabels
from spanboost.rows.replay import ReplayMemory
from spanboost.rows.row_sample import RowMemory, RowSample
from spanboost.rows.weights import check_weights

# (rows, labels, weights, out, first, last): run the loop over the rows first to last - 1
Run = Callable[[Any, Array, Array, Array, int, int], None]


class CheckedBlock(NamedTuple):
    """A checked block, in the form that a booster can learn."""

    rows: EncodedBlock
    labels: Array  # [rows, d] in the model's units
    weights: Array  # [rows]
    learned: Array  # [rows, d] the labels that are learned, in the units of the user
    changes: list[RangeChange]
    history: Any  # what is known about the labels after the block
    ends: LabelEnds | None  # the smallest and the largest label of the block
    given: Any = None  # the labels as they were given


class StageRecord(NamedTuple):
    """The stages of the predictions for some rows with the same label range."""

    stages: Array  # [rows, record_size], as `learn_recorded` writes them
    labels: Array  # [rows, d] as they are learned, in the model's units
    weights: Array  # [rows]
    centre: Array | float  # a prediction in the units of the labels is centre + half y
    half: float


class Loop(NamedTuple):
    """The function that learns the rows of a booster."""

    learn: Callable[..., None]
    state: Any  # as the function takes it
    given: BoosterState


def _fastest_loop(state: BoosterState) -> Loop:
    if has_scalar_stages(state):
        return Loop(learn_scalar_stages, scalar_state(state), state)
    return Loop(learn_stages if has_stages(state) else learn, state, state)


class BoosterCore:
    """The state of a booster: what it knows about its stream.

    state: the state of the compiled loop. Its bank is None until the first rows show how wide
        rows are.
    features, width: number of features that the bank has room for, in total and in one row.
    records: the stages of the block that was learned last; None, the default, records nothing.
    sample: some of the rows, to measure features; None if another core of the model keeps them.
    fitted: the rows that `Refitted` fits its estimator to; None in other models.
    learned: number of rows of the last block that were learned: fewer than it has if a learner of
        your own raised an error, or if an interrupt came between two of its rows.
    """

    records: list[StageRecord] | None = None
    sample: RowSample | None = None
    fitted: RowMemory | None = None
    learned: int = 0
    _looped: "Loop | None" = None

    def __init__(
        self,
        learner: Learner,
        task: Task,
        state: BoosterState,
        labels: Labels,
        memory: ReplayMemory | None,
    ) -> None:
        self.learner, self.task, self.state = learner, task, state
        self.labels, self.memory = labels, memory
        self.d, self.dtype = task.d, float_type(getattr(learner, "dtype", np.float64))
        self.encoder = RowEncoder(learner, task.D)
        self.features, self.width = 0, 0
        self.sample = RowSample()
        self.call = Caller()

    @property
    def started(self) -> bool:
        """Whether the core has seen a row."""
        return self.state.bank is not None

    @property
    def kept_slots(self) -> int:
        """Number of rows that the core keeps at most, to learn them again."""
        replayed = 0 if self.memory is None else self.memory.ring + self.memory.piece
        return replayed + (0 if self.fitted is None else self.fitted.largest)

    @property
    def kept_cells(self) -> int:
        """Number of entries of the sparse rows that the core keeps."""
        return sum(one.cells for one in (self.memory, self.fitted) if one is not None)

    @property
    def compact(self) -> bool:
        """Whether the core predicts and does not learn."""
        return isinstance(self.labels, PredictionLabels)

    def restrict(self) -> None:
        """Keep only what predictions depend on, besides the bank."""
        self.labels, self.memory, self.sample = PredictionLabels(self.labels), None, None
        self.fitted = None
        self.call = Caller()  # the bank may have another type than before

    @property
    def is_data(self) -> bool:
        """Whether the bank consists of arrays; the state of a learner of your own may not."""
        return hasattr(self.state.bank, "_fields")

    def check(self, X: Any, y: Any, weights: Any = None) -> CheckedBlock:
        """Return a block that the model can learn; a `DataError` names the first bad row."""
        rows = self.encoder.read(X, learn=True)
        weighted = getattr(self.learner, "weighted", True)
        weights = check_weights(weights, rows.number, weighted, self.dtype)
        plan = self.labels.plan(y, weights)
        self.labels.weight_scale.warn(weights, self.labels.rows, self.labels.seen)
        labels = np.ascontiguousarray(plan.labels, self.dtype)
        after = plan.after, plan.ends, y
        return CheckedBlock(rows, labels, weights, plan.learned, plan.changes, *after)

    def fresh_bank(self) -> Any:
        """Return a bank that has learned nothing, for rows of the kind seen so far."""
        rows = None if self.encoder.kind is None else self.encoder.blank(self.encoder.kind)
        return self.learner.bank(self.task._replace(rows=rows))

    def prepare(self, rows: EncodedBlock, features: int) -> BoosterState:
        """Return the state with room for this block; the first block creates the bank.

        Prediction passes features=0: unknown features count as absent. The scratch space must
        still be wide enough for the rows.
        """
        state = self.state
        if state.bank is None:
            bank = self.learner.bank(self.task._replace(rows=rows.encoded))
            state = state._replace(bank=bank)
        if features > self.features or rows.width > self.width:
            room = max(features, self.features), max(rows.width, self.width)
            state = state._replace(bank=state.bank.grown(*room))
            self.features, self.width = room  # set last: compiled code relies on the room
        if self.memory is not None and rows.encoded is not None:
            self.memory.reserve(rows.encoded, self.d, self.dtype)
        self.state, self.encoder.kind = state, rows.kind
        return state

    def prepare_unread(self, kind: RowKind, features: int, width: int = 0) -> None:
        """Create the bank for rows of this kind without having rows, as when loading a file."""
        blank = self.encoder.blank(kind)
        self.prepare(EncodedBlock(blank, None, 0, features, width, kind, {}), features)

    def accept(self, rows: EncodedBlock) -> None:
        """Make room for rows that are about to be learned."""
        self.prepare(rows, rows.features)
        self.encoder.accept(rows)

    def count(self, block: CheckedBlock) -> None:
        """Count the rows of a block, which were learned."""
        if self.sample is not None:
            labels, seen = self.sampled_labels(block), self.labels.seen
            self.sample.offer(block.rows.encoded, labels, block.weights, seen)
        self.labels.count(block.weights, block.history, block.ends)

    def count_single(self, rows: EncodedBlock, y: float, label: float) -> None:
        """Count one accepted row of weight 1, which was learned.

        label: what `Labels.single` returned for y.
        """
        if self.sample is not None and self.sample.may_keep(self.labels.seen):
            kept = np.full((1, 1), label if self.labels.scores else y)
            self.sample.offer(rows.encoded, kept, np.ones(1), self.labels.seen)
        self.labels.count_single(y)

    def sampled_labels(self, block: CheckedBlock) -> Array:
        """Return the labels of a block as the sample keeps them: with classes as numbers."""
        if isinstance(self.labels.loss, Softmax):
            return block.labels.argmax(axis=1)[:, None]
        return block.labels if self.labels.scores else block.learned

    def learn_parts(
        self, block: CheckedBlock, run: Run, convert: Callable[[Array], Array]
    ) -> list[Array]:
        """Learn a checked block; return its predictions in parts with one label range each.

        `convert` turns predictions in the model's units into the result, while the labels still
        have the range in which these predictions were made.
        """
        parts = []
        for found in self.learn_parts_in_steps(block, run, convert, [len(block.labels)]):
            parts += found
        return parts

    def learn_parts_in_steps(
        self,
        block: CheckedBlock,
        run: Run,
        convert: Callable[[Array], Array],
        edges: Sequence[int],
    ) -> Iterator[list[Array]]:
        """Learn a block as `learn_parts` does; yield its result for the rows up to each edge."""
        columns = self.d if self.records is None else record_size(self.d, self.task.n)
        out: Array = np.empty((len(block.labels), columns), self.dtype)
        parts: list[Array] = []
        done = 0
        if self.records is not None:
            self.records, run = [], self._run_recorded

        def finish(row: int) -> None:
            nonlocal done
            rows = slice(done, row + 1)
            parts.append(convert(out[rows, : self.d]))
            if self.records is not None:
                self.records.append(self._record(block, rows, out[rows]))
            done = row + 1

        for edge in self.learn_steps(block, out, run, finish, edges):
            finish(edge - 1)
            yield parts
            parts = []

    def learn_rows(
        self, rows: Any, labels: Array, weights: Array, out: Array, first: int, last: int
    ) -> None:
        """Run the loop of a single booster, in the fastest order; all have the same result."""
        loop, state = self._loop()
        self.call(loop, state, rows, labels, weights, out, first, last)

    def bound_loop(
        self, rows: Any, labels: Array, weights: Array, out: Array, first: int, last: int
    ) -> Callable[[], None]:
        """Return a call of `learn_rows`, to repeat while the core has this state."""
        loop, state = self._loop()
        args = state, rows, labels, weights, out, first, last
        return partial(self.call.find(loop, *args), *args)

    def _loop(self) -> tuple[Callable[..., None], Any]:
        if self._looped is None or self._looped.given is not self.state:
            self._looped = _fastest_loop(self.state)
        return self._looped.learn, self._looped.state

    def _run_recorded(
        self, rows: Any, labels: Array, weights: Array, out: Array, first: int, last: int
    ) -> None:
        self.call(learn_recorded, self.state, rows, labels, weights, out, first, last)

    def _record(self, block: CheckedBlock, rows: slice, out: Array) -> StageRecord:
        centre, half = (0.0, 1.0) if self.labels.scores else (self.labels.centre, self.labels.half)
        # a copy, because the row that changes the range is predicted twice
        return StageRecord(out.copy(), block.labels[rows], block.weights[rows], centre, half)

    def learn(
        self, block: CheckedBlock, out: Array, run: Run, before_change: Callable[[int], None]
    ) -> None:
        """Run the loop over a checked block, in spans with one label range each.

        A row that changes the range is predicted first in the old range, as if its weight were 0.
        After the change it is learned, and predicted again. `before_change(row)` is called in
        between, while `out` up to and including this row is in the old units.
        """
        for _ in self.learn_steps(block, out, run, before_change, [len(out)]):
            pass

    def learn_steps(
        self,
        block: CheckedBlock,
        out: Array,
        run: Run,
        before_change: Callable[[int], None],
        edges: Sequence[int],
    ) -> Iterator[int]:
        """Learn a block as `learn` does; yield each edge when the rows before it are learned."""
        rows, labels, weights = block.rows, block.labels, block.weights
        self.accept(rows)
        before, self.learned = copy.copy(self.labels), 0
        changes = deque(block.changes)
        try:
            for edge in edges:
                while changes and changes[0].row < edge:
                    new = changes.popleft()
                    self.learn_span(rows, labels, weights, out, run, self.learned, new.row)
                    self.learn_span(rows, labels, 0 * weights, out, run, new.row, new.row + 1)
                    self.learned = new.row
                    before_change(new.row)
                    self.change_range(new)
                self.learn_span(rows, labels, weights, out, run, self.learned, edge)
                if edge == len(labels):
                    self.count(block)
                yield edge
        except BaseException:
            if self.learned < len(labels):
                self.count(self._first_rows(block, before))
            raise

    def _first_rows(self, block: CheckedBlock, before: Labels) -> CheckedBlock:
        """Return the rows of a block that were learned; `before` are the labels before it."""
        rows = slice(0, self.learned)
        weights = np.where(np.arange(len(block.weights)) < self.learned, block.weights, 0)
        plan = before.plan(block.given, weights)
        return block._replace(
            rows=block.rows._replace(number=self.learned),
            labels=block.labels[rows],
            weights=block.weights[rows],
            learned=block.learned[rows],
            history=plan.after,
            ends=plan.ends,
        )

    def change_range(self, new: RangeChange) -> None:
        """Change the label range; rescale what was learned if predictions are to stay the same."""
        a = self.labels.change(new)
        if not new.exact:
            return
        log_link = self.labels.log_link
        if self.memory is not None:
            self.memory.rescale(a, bounded=not log_link)
        # slopes have one degree less than the loss
        if self.state.bank is not None and not log_link:
            self.state.bank.rescale(a, a ** (degree(self.labels.loss) - 1))

    def learn_span(
        self,
        rows: EncodedBlock,
        labels: Array,
        weights: Array,
        out: Array,
        run: Run,
        first: int,
        last: int,
    ) -> None:
        """Run the loop over accepted rows, each followed by the rows that it replays.

        Rows of a learner that is an object are learned one by one, so that `learned` is exact.
        """
        if self.is_data:
            self._learn_span(rows, labels, weights, out, run, first, last)
            self.learned = finite_rows(self.learner, out, first, last)
            if self.learned < last:
                raise ValueError(NAN_IN_ROW.format(self.learned))
            return
        for t in range(first, last):
            raise_interrupt()
            try:
                self._learn_span(rows, labels, weights, out, run, t, t + 1)
            except Exception as error:
                if rows.number > 1:
                    error.add_note(f"this is row {t} of the block; the rows before it were learned")
                raise
            self.learned = t + 1

    def _learn_span(
        self,
        rows: EncodedBlock,
        labels: Array,
        weights: Array,
        out: Array,
        run: Run,
        first: int,
        last: int,
    ) -> None:
        """Run the loop over rows that can be learned in one go."""
        if self.memory is None:
            run(rows.rows, labels, weights, out, first, last)
            return
        for piece in self.memory.pieces(rows.encoded, labels, weights, first, last):
            piece_out = np.zeros((len(piece.labels), out.shape[1]), out.dtype)
            piece_out[piece.place] = out[piece.first : piece.last]
            replayed = as_rows(piece.rows)
            run(replayed, piece.labels, piece.weights, piece_out, 0, len(piece_out))
            out[piece.first : piece.last] = piece_out[piece.place]
