"""What a copy receives: not a number but a loss function of its own prediction h.

`linear` feedback is the printed one, h -> (1/L_B) grad l(y^{i-1}) . h, the same slope everywhere.
`greedy` feedback is the supplement's, h -> w l(offset + alpha h): the loss itself, at the place
where h will be added. A bank asks either for slopes and losses at any h, all N copies in one call;
arrays are [output, copy] throughout, so the copies are contiguous and vectorise.
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.losses import VectorLoss


@kernel
class LinearFeedback(NamedTuple):
    """Copy i receives h -> slope[:, i] . h."""

    slope: Array  # [d, N]
    weight: float = 1.0  # of the row; already in the slope

    def slopes(self, h: Array, out: Array) -> None:
        """Slope of each copy's loss at its own h."""
        for k in range(h.shape[0]):
            for i in range(h.shape[1]):
                out[k, i] = self.slope[k, i]

    def losses(self, h: Array, out: Array) -> None:
        """out[i] = what copy i would lose by predicting h[:, i]."""
        out.fill(0)
        for k in range(h.shape[0]):
            slope, h_k = self.slope[k], h[k]
            for i in range(out.shape[0]):
                out[i] += slope[i] * h_k[i]

    def watch(self, bank: Any, f: int, sign: float) -> None:
        """Before (-1) and after (+1) a step of feature f: the bank keeps count of its weights."""
        bank.weigh(f, sign)

    def restrain(self, bank: Any, f: int) -> None:
        """The slope never vanishes and nothing else stops the weights: the bank must.

        Asked of the feedback, so that under greedy feedback none of it is even compiled.
        """
        bank.hold(f)

    def only(self, i: int) -> "LinearFeedback":
        """The feedback of copy i alone, which outlives the round."""
        return LinearFeedback(self.slope[:, i : i + 1].copy(), self.weight)


@kernel
class GreedyFeedback(NamedTuple):
    """Copy i receives h -> w l(offset[:, i] + alpha[i] h)."""

    loss: VectorLoss
    label: Array  # [d]
    weight: float
    offset: Array  # [d, N]
    alpha: Array  # [N]
    point: Array  # [d, N] scratch

    def slopes(self, h: Array, out: Array) -> None:
        """Slope of each copy's loss at its own h: the chain rule brings a factor alpha."""
        self.place(h)
        self.loss.gradients(self.label, self.point, out)
        for k in range(h.shape[0]):
            slope = out[k]
            for i in range(slope.shape[0]):
                slope[i] *= self.weight * self.alpha[i]

    def losses(self, h: Array, out: Array) -> None:
        """out[i] = what copy i would lose by predicting h[:, i]."""
        self.place(h)
        self.loss.values(self.label, self.point, out)
        for i in range(out.shape[0]):
            out[i] *= self.weight

    def place(self, h: Array) -> None:
        """Where predictions h would take the partial sums."""
        for k in range(h.shape[0]):
            point, offset, h_k = self.point[k], self.offset[k], h[k]
            for i in range(point.shape[0]):
                point[i] = offset[i] + self.alpha[i] * h_k[i]

    def watch(self, bank: Any, f: int, sign: float) -> None:
        """Nobody needs to know."""

    def restrain(self, bank: Any, f: int) -> None:
        """The loss itself brings functions back."""

    def only(self, i: int) -> "GreedyFeedback":
        """The feedback of copy i alone, which outlives the round."""
        offset = self.offset[:, i : i + 1].copy()
        alpha, point = self.alpha[i : i + 1], np.empty_like(offset)
        return GreedyFeedback(self.loss, self.label.copy(), self.weight, offset, alpha, point)


@kernel
class LinearMode(NamedTuple):
    """Feedback as printed: the booster's backward pass has already made the slopes."""

    def feedback(self, loss: VectorLoss, label: Array, weight: float, trace: Any) -> LinearFeedback:
        """Alg 1 line 13, Alg 2 line 11."""
        return LinearFeedback(trace.slope, weight)


@kernel
class GreedyMode(NamedTuple):
    """Feedback by fitting to the actual losses (supplement), with a step alpha fixed in advance."""

    alpha: Array  # [N]
    shrunk: bool  # offset: the partial sum h is really added to, instead of the printed y^{i-1}

    def feedback(self, loss: VectorLoss, label: Array, weight: float, trace: Any) -> GreedyFeedback:
        """Alg 1 line 13, Alg 2 line 11, with an offset."""
        offset = trace.kept if self.shrunk else trace.before
        return GreedyFeedback(loss, label, weight, offset, self.alpha, trace.point)
