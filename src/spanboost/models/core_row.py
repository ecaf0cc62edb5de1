"""One row of one booster, in arrays that are used again."""

from collections.abc import Callable
from functools import partial
from typing import Any

from spanboost.compiling.arrays import Array
from spanboost.core.loop import predict
from spanboost.models.booster_core import BoosterCore
from spanboost.rows.encoder import EncodedBlock


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
        self._predict: Callable[[], None]
        self._learn: Callable[[], None]
        core.prepare(block, 0)

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
        core, row = self.core, (self._label, self._weight, self.out)
        if core.memory is not None:
            core.learn_span(self.block, *row, core.learn_rows, 0, 1)
            return
        if core.state is not self._learned:
            self._learn, self._learned = core.bound_loop(self.block.rows, *row, 0, 1), core.state
        self._learn()
