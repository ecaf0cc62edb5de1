"""What the leaves of trees learn, and what they predict.

The target of a row depends on the feedback:

- Greedy feedback: the leaf's prediction after a full step along the slope, of length one over the
  smoothness. For squared loss that is the residual, so the leaf predicts the mean residual. For a
  loss with a kink, the step is D times the slope over the Lipschitz constant.
- Linear feedback: the negative slope. The leaf follows the regularised leader: it predicts
  -D G / sqrt(2 Q), projected to norm D, where G is the sum of the slopes and Q that of their
  squares.
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.learners.protocol import Task


def leaf_rule(task: Task, dtype: Any) -> "GreedyLeaves | LinearLeaves":
    """Return the rule for a task."""
    if task.linear:
        return LinearLeaves(np.dtype(dtype).type(task.D))
    curved = np.isfinite(task.smoothness) & (task.smoothness > 0)
    step = np.divide(1, task.smoothness, out=task.D / task.lipschitz, where=curved)
    return GreedyLeaves(step.astype(dtype))


@kernel
class GreedyLeaves(NamedTuple):
    """Leaves under greedy feedback: targets are predictions; a leaf predicts their mean."""

    step: Array  # [N] distance of the target from the prediction, per unit of slope

    def target(self, i: int, h: float, slope: float, weight: float) -> float:
        """Return the target of copy i, which predicts h."""
        return h - slope / weight * self.step[i]

    def square(self, target: float, before: float, after: float) -> float:
        """Return what a row of weight 1 adds to the spread, given the mean before and after."""
        return (target - before) * (target - after)

    def predict_mean(self, i: int, mean: Array, weight: float, spread: float, h: Array) -> None:
        """Set h[:, i] to the prediction of a leaf of copy i."""
        for k in range(mean.shape[0]):
            h[k, i] = mean[k]

    def leaf_number(self, mean: float, weight: float, spread: float) -> float:
        """Return the prediction of a leaf, if predictions are numbers."""
        return mean


@kernel
class LinearLeaves(NamedTuple):
    """Leaves under linear feedback: targets are negative slopes; a leaf follows their sum."""

    D: float  # bound on the predictions

    def target(self, i: int, h: float, slope: float, weight: float) -> float:
        """Return the target of copy i, whatever it predicts."""
        return -slope / weight

    def square(self, target: float, before: float, after: float) -> float:
        """Return what a row of weight 1 adds to the spread, which is around 0 here."""
        return target * target

    def predict_mean(self, i: int, mean: Array, weight: float, spread: float, h: Array) -> None:
        """Set h[:, i] to the prediction of a leaf of copy i, before the projection to norm D."""
        far = self.D * weight / np.sqrt(spread + spread) if spread > 0 else spread
        for k in range(mean.shape[0]):
            h[k, i] = far * mean[k]

    def leaf_number(self, mean: float, weight: float, spread: float) -> float:
        """Return the prediction of a leaf before the projection, if predictions are numbers."""
        far = self.D * weight / np.sqrt(spread + spread) if spread > 0 else spread
        return far * mean
