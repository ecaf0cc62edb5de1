"""Adapter for PyTorch modules."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from spanboost.learners.external import to_vector
from spanboost.learners.objects import CopyLoss


class TorchModule:
    """A PyTorch module with an optimiser, trained by backpropagating the weak learner's loss.

    module: maps a row, a vector of float32, to one number per output.
    optimiser: takes the parameters of a copy and returns an optimiser for them.

    Every loss and both kinds of feedback work. A copy steps along the slope of its loss, divided by
    the curvature of the loss (by its Lipschitz constant if it has no curvature), so the same
    learning rate suits all copies; a squared loss becomes (h - target)^2 / 2. Every copy starts as
    a copy of the module. Predictions are made in evaluation mode.

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
                f"{type(optimiser).__name__} is an optimiser, but each copy needs its own: pass a "
                "function that creates one, such as "
                "lambda parameters: torch.optim.SGD(parameters, lr=0.1)"
            )
        self.module, self.make = module, optimiser
        self.optimiser = optimiser(module.parameters())

    def __deepcopy__(self, memo: Any) -> "TorchModule":
        # a plain copy of the optimiser would still update the parameters of the original
        twin = TorchModule(copy.deepcopy(self.module, memo), self.make)
        twin.optimiser.load_state_dict(copy.deepcopy(self.optimiser.state_dict(), memo))
        return twin

    def predict(self, x: Any) -> Any:
        """Return the module's prediction for one row."""
        import torch

        trained = [part for part in self.module.modules() if part.training]
        for part in trained:
            part.training = False  # no dropout or other randomness
        try:
            with torch.no_grad():
                return self.module(self._row(x)).reshape(-1).numpy().astype(np.float64)
        finally:
            for part in trained:
                part.training = True

    def update(self, x: Any, loss: CopyLoss) -> None:
        """Make one step of the optimiser along the slope of the loss."""
        import torch

        self.optimiser.zero_grad()
        answer = self.module(self._row(x)).reshape(-1)
        slope = np.atleast_1d(loss.slope(answer.detach().numpy().astype(np.float64)))
        unit = loss.smoothness if 0 < loss.smoothness < np.inf else loss.lipschitz
        answer.backward(torch.from_numpy(slope / unit).to(answer.dtype))
        self.optimiser.step()

    def _row(self, x: Any) -> Any:
        import torch

        return torch.from_numpy(to_vector(x, self.module).astype(np.float32))
