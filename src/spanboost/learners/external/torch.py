"""Modules of PyTorch."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from spanboost.learners.external import numbers
from spanboost.learners.objects import CopyLoss


class TorchModule:
    """A module of PyTorch with an optimiser: the weak learner's loss flows back into it.

    module: from a row, a vector of float32, to as many numbers as there are outputs.
    optimiser: makes an optimiser for the parameters of one copy.

    Every loss and both kinds of feedback will do: a copy steps along the slope of its loss, in
    units of the loss's curvature (of its largest slope where it has none), so that one learning
    rate suits all copies; squared losses are (h - target)^2 / 2. The copies start as copies of the
    module, and predict as modules do that are not being trained.

    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> from spanboost import HullBoost, TorchModule
    >>> def optimiser(parameters):
    ...     return torch.optim.SGD(parameters, lr=0.1)
    >>> model = HullBoost(TorchModule(torch.nn.Linear(2, 1), optimiser), n=4)
    >>> predictions = model.learn_many(np.ones((200, 2)), np.full(200, 0.5))
    >>> round(float(predictions[-1]), 1)
    0.5
    """

    def __init__(self, module: Any, optimiser: Callable[[Any], Any]) -> None:
        if not callable(optimiser):
            raise TypeError(
                f"{type(optimiser).__name__} is the optimiser of one module, and each copy has its "
                "own: give what makes one, such as "
                "lambda parameters: torch.optim.SGD(parameters, lr=0.1)"
            )
        self.module, self.make = module, optimiser
        self.optimiser = optimiser(module.parameters())

    def __deepcopy__(self, memo: Any) -> "TorchModule":
        # an optimiser copied as it is would go on changing the parameters of the original
        twin = TorchModule(copy.deepcopy(self.module, memo), self.make)
        twin.optimiser.load_state_dict(copy.deepcopy(self.optimiser.state_dict(), memo))
        return twin

    def predict(self, x: Any) -> Any:
        """The module's answer to one row."""
        import torch

        trained = [part for part in self.module.modules() if part.training]
        for part in trained:
            part.training = False  # no dropout, and no other chance
        try:
            with torch.no_grad():
                return self.module(self._row(x)).reshape(-1).numpy().astype(np.float64)
        finally:
            for part in trained:
                part.training = True

    def update(self, x: Any, loss: CopyLoss) -> None:
        """One step of the optimiser along the slope of the loss."""
        import torch

        self.optimiser.zero_grad()
        answer = self.module(self._row(x)).reshape(-1)
        slope = np.atleast_1d(loss.slope(answer.detach().numpy().astype(np.float64)))
        unit = loss.smoothness if 0 < loss.smoothness < np.inf else loss.lipschitz
        answer.backward(torch.from_numpy(slope / unit).to(answer.dtype))
        self.optimiser.step()

    def _row(self, x: Any) -> Any:
        import torch

        return torch.from_numpy(numbers(x, self.module).astype(np.float32))
