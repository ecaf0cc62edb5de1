"""One row of one booster, in arrays that are used again."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.core.loop import predict
from spanboost.models.booster_core import BoosterCore
from spanboost.rows.encoder import EncodedBlock
from spanboost.rows.replay import ReplayMemory
from spanboost.rows.replay_row import ReplayRow, can_replay_single


class CoreRow:
    """The calls that predict and learn one row, with all of their arguments.

    block: the row as the booster reads it; later rows are written into the same arrays.
    label, weight: of the row; out: [1, 1] its prediction, in the model's units.
    """

    def __init__(
        self, core: BoosterCore, block: EncodedBlock, label: Array, weight: Array, out: Array
    ) -> None:
        self.core, self.block, self.out = core, block, out
        self._label, self._weight = label, weight
        # the states for which there are calls: a state has other arrays once it has more room
        self._predicted: Any = None
        self._learned: Any = None
        self._replay: ReplayRow | None = None
        self._predict: Callable[[], None]
        self._learn: Callable[[], None]
        core.prepare(block, 0)
        if core.memory is not None and can_replay_single(core.memory):
            self._prepare_replay(core.memory)

    def predict(self) -> None:
        """Set the prediction; learn nothing."""
        core = self.core
        if core.state is not self._predicted:
            args = core.state, self.block.rows, self.out, 0, 1
            self._predict, self._predicted = (
                partial(core.call.find(predict, *args), *args),
                core.state,
            )
        self._predict()

    def accept(self) -> None:
        """Make room for the row, which is about to be learned."""
        self.core.accept(self.block)

    def learn(self) -> None:
        """Set the prediction, and learn the label."""
        core = self.core
        if core.memory is not None:
            self._learn_and_replay(core.memory)
            return
        if core.state is not self._learned:
            self._bind_loop(self.block.rows, self._label, self._weight, self.out)
        self._learn()

    def _learn_and_replay(self, memory: ReplayMemory) -> None:
        """Learn the label, and the rows that are replayed after it."""
        core, label, weight = self.core, self._label, self._weight
        if not can_replay_single(memory):
            core.learn_span(self.block, label, weight, self.out, core.learn_rows, 0, 1)
            return
        replay = self._replay or self._prepare_replay(memory)
        replay.write()
        if core.state is not self._learned:
            self._bind_loop(replay.rows, replay.labels, replay.weights, self._outs)
        self._learn()
        replay.count()
        self.out[0] = self._outs[0]

    def _prepare_replay(self, memory: ReplayMemory) -> ReplayRow:
        """Create the arrays of the rows that are replayed."""
        self._replay = ReplayRow(
            memory, self.block.encoded, self._label, self._weight, self.core.call
        )
        self._outs = np.zeros((1 + memory.times, 1), self.out.dtype)
        return self._replay

    def _bind_loop(self, rows: Any, labels: Array, weights: Array, outs: Array) -> None:
        """Create the call that learns these rows in the current state."""
        self._learn = self.core.bound_loop(rows, labels, weights, outs, 0, len(outs))
        self._learned = self.core.state
