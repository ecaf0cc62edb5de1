"""The feedback that a copy learns from: a loss function of its own prediction h.

`linear` feedback is that of the paper's algorithms, h -> (1/L_B) grad l(y^{i-1}) . h. Its slope is
the same at every h. `greedy` feedback is that of the supplement, h -> w l(offset + alpha h): the
loss itself, at the point that the partial sum reaches when h is added. Losses with a log link have
no useful bound on their curvature, so each row has its own unit (`ScaledMode`).

Both compute the slope and the loss at any h, for all N copies in one call. Arrays are indexed
[output, copy], so the copies are contiguous and the loops over them vectorise.
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.losses import VectorLoss
from spanboost.losses.log_link import ScaledLoss


@kernel
class LinearFeedback(NamedTuple):
    """Copy i receives h -> slope[:, i] . h."""

    slope: Array  # [d, N]
    weight: float = 1.0  # the weight of the row; the slope already contains it

    def slopes(self, h: Array, out: Array) -> None:
        """Set out[:, i] to the slope of copy i's loss at h[:, i]."""
        for k in range(h.shape[0]):
            for i in range(h.shape[1]):
                out[k, i] = self.slope[k, i]

    def losses(self, h: Array, out: Array) -> None:
        """Set out[i] to the loss of copy i at h[:, i]."""
        out.fill(0)
        for k in range(h.shape[0]):
            slope, h_k = self.slope[k], h[k]
            for i in range(out.shape[0]):
                out[i] += slope[i] * h_k[i]

    def watch(self, bank: Any, f: int, sign: float) -> None:
        """Update the bank's sum of |weights|, before (-1) and after (+1) a step of feature f."""
        bank.weigh(f, sign)

    def restrain(self, bank: Any, f: int) -> None:
        """Make the bank bound its functions: the slope never vanishes, so nothing else would.

        Banks call this through the feedback, so that greedy feedback does not even compile it.
        """
        bank.hold(f)

    def only(self, i: int) -> "LinearFeedback":
        """Return the feedback of copy i alone, as a copy that stays valid after the round."""
        return LinearFeedback(self.slope[:, i : i + 1].copy(), self.weight)


@kernel
class GreedyFeedback(NamedTuple):
    """Copy i receives h -> w l(offset[:, i] + alpha[i] h)."""

    loss: VectorLoss
    label: Array  # [d]
    weight: float
    offset: Array  # [d, N]
    alpha: Array  # [N]
    point: Array  # [d, N] scratch space

    def slopes(self, h: Array, out: Array) -> None:
        """Set out[:, i] to the slope of copy i's loss at h[:, i]; the chain rule adds alpha."""
        self.place(h)
        self.loss.gradients(self.label, self.point, out)
        for k in range(h.shape[0]):
            slope = out[k]
            for i in range(slope.shape[0]):
                slope[i] *= self.weight * self.alpha[i]

    def losses(self, h: Array, out: Array) -> None:
        """Set out[i] to the loss of copy i at h[:, i]."""
        self.place(h)
        self.loss.values(self.label, self.point, out)
        for i in range(out.shape[0]):
            out[i] *= self.weight

    def place(self, h: Array) -> None:
        """Set `point` to the partial sums after adding alpha h."""
        for k in range(h.shape[0]):
            point, offset, h_k = self.point[k], self.offset[k], h[k]
            for i in range(point.shape[0]):
                point[i] = offset[i] + self.alpha[i] * h_k[i]

    def watch(self, bank: Any, f: int, sign: float) -> None:
        """Do nothing: the bank needs no sum of |weights|."""

    def restrain(self, bank: Any, f: int) -> None:
        """Do nothing: the loss itself stops the functions from growing."""

    def only(self, i: int) -> "GreedyFeedback":
        """Return the feedback of copy i alone, as a copy that stays valid after the round."""
        offset = self.offset[:, i : i + 1].copy()
        alpha, point = self.alpha[i : i + 1], np.empty_like(offset)
        return GreedyFeedback(self.loss, self.label.copy(), self.weight, offset, alpha, point)


@kernel
class LinearMode(NamedTuple):
    """Linear feedback, as in the algorithms; `backward` has already computed the slopes."""

    def feedback(self, loss: VectorLoss, label: Array, weight: float, trace: Any) -> LinearFeedback:
        """Return the feedback of Algorithm 1, line 13 (Algorithm 2, line 11)."""
        return LinearFeedback(trace.slope, weight)

    def only(self, i: int) -> "LinearMode":
        """Return the mode of copy i alone."""
        return self


@kernel
class GreedyMode(NamedTuple):
    """Greedy feedback: fit the losses themselves (supplement), with a fixed step alpha."""

    alpha: Array  # [N]
    shrunk: bool  # whether the offset is the shrunken partial sum instead of y^{i-1}

    def feedback(self, loss: VectorLoss, label: Array, weight: float, trace: Any) -> GreedyFeedback:
        """Return the feedback that replaces that of line 13 (Algorithm 2: line 11)."""
        offset = trace.kept if self.shrunk else trace.before
        return GreedyFeedback(loss, label, weight, offset, self.alpha, trace.point)

    def only(self, i: int) -> "GreedyMode":
        """Return the mode of copy i alone."""
        return GreedyMode(self.alpha[i, None], self.shrunk)


@kernel
class ScaledMode(NamedTuple):
    """Greedy feedback for losses with a log link: w l is learned as (w c) (l / c).

    c is the curvature at the prediction. The losses l / c have a curvature of about 1, which
    learners can rely on, and their weighted sum has the same minimum. Of several lanes, the one
    with the largest curvature counts, so that no step is too long.
    """

    alpha: Array  # [N]
    shrunk: bool  # as in `GreedyMode`

    def feedback(self, loss: Any, label: Array, weight: float, trace: Any) -> GreedyFeedback:
        """Return the feedback that replaces that of line 13 (Algorithm 2: line 11)."""
        answers, c = trace.y.reshape(-1), 0.0
        for y in answers:
            c = max(c, loss.loss.curvature(np.float64(label[0]), np.float64(y)))
        real = answers.dtype.type
        offset = trace.kept if self.shrunk else trace.before
        scaled, heavy = ScaledLoss(loss, real(c)), real(weight * c)
        return GreedyFeedback(scaled, label, heavy, offset, self.alpha, trace.point)
