"""The one loop: rows through a booster, compiled for array banks, plain Python for any other.

`predict` and `learn` are run by a `Caller` (_jit.py), which compiles them where it can.
"""

from typing import Any, NamedTuple

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.core.feedback import GreedyMode, LinearMode
from spanboost.losses import VectorLoss


class BoosterState(NamedTuple):
    """A booster at work: nothing but arrays, when its bank is."""

    algorithm: Any  # Span or Hull
    mode: LinearMode | GreedyMode
    loss: VectorLoss
    bank: Any
    D: float
    trace: Any  # Trace, or one of several boosters


@kernel
def predict_row(model: BoosterState, x: Any) -> None:
    """Receive x_t, ask every copy, answer trace.y."""
    model.bank.predict(x, model.trace.h)
    # the paper's normalisation: ||A(x)|| <= D
    model.trace.output.project_columns(model.trace.h, model.D)
    model.algorithm.forward(model.trace)


@kernel
def learn_row(model: BoosterState, x: Any, label: Array, weight: float) -> None:
    """One round: answer first, then see the label. A row of weight 0 is answered, not learned."""
    predict_row(model, x)
    if weight > 0:
        model.algorithm.backward(model.loss, label, weight, model.trace)
        feedback = model.mode.feedback(model.loss, label, weight, model.trace)
        model.bank.update(x, model.trace.h, feedback)


def predict(model: BoosterState, X: Any, out: Array, first: int, last: int) -> None:
    """out[t] = the answer to row t, for the rows from `first` to before `last`."""
    for t in range(first, last):
        predict_row(model, X.row(t))
        for k in range(out.shape[1]):
            out[t, k] = model.trace.y[k]


def learn(
    model: BoosterState, X: Any, labels: Array, weights: Array, out: Array, first: int, last: int
) -> None:
    """As `predict`; each row is learned once it has been answered."""
    for t in range(first, last):
        learn_row(model, X.row(t), labels[t], weights[t])
        for k in range(out.shape[1]):
            out[t, k] = model.trace.y[k]
