"""The loop that passes rows through a booster.

A `Caller` (compiling/kernels.py) runs `predict` and `learn`: compiled if the weak learners are
arrays, as plain Python if they are objects.
"""

from typing import Any, NamedTuple

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.core.feedback import GreedyMode, LinearMode, ScaledMode
from spanboost.losses import VectorLoss


class BoosterState(NamedTuple):
    """The state of a booster: arrays only, if its bank consists of arrays."""

    algorithm: Any  # Span or Hull
    mode: LinearMode | GreedyMode | ScaledMode
    loss: VectorLoss
    bank: Any
    D: float
    trace: Any  # Trace, or one of several boosters


@kernel
def predict_row(model: BoosterState, x: Any) -> None:
    """Receive x_t, let every copy predict, and leave the answer in trace.y."""
    model.algorithm.begin(model.trace)
    add_copies(model, x)


@kernel
def add_copies(model: BoosterState, x: Any) -> None:
    """Let every copy predict, and add the predictions to the partial sum in trace.y."""
    model.bank.predict(x, model.trace.h)
    # the paper assumes ||A(x)|| <= D
    model.trace.output.project_columns(model.trace.h, model.D)
    model.algorithm.forward(model.trace)


@kernel
def learn_row(model: BoosterState, x: Any, label: Array, weight: float) -> None:
    """Run one round: predict, then learn from the label. A row of weight 0 is only predicted."""
    predict_row(model, x)
    if weight > 0:
        learn_predicted(model, x, label, weight)


@kernel
def learn_predicted(model: BoosterState, x: Any, label: Array, weight: float) -> None:
    """Learn from the label of the row that was predicted last."""
    model.algorithm.backward(model.loss, label, weight, model.trace)
    feedback = model.mode.feedback(model.loss, label, weight, model.trace)
    model.bank.update(x, model.trace.h, feedback)


def predict(model: BoosterState, X: Any, out: Array, first: int, last: int) -> None:
    """Set out[t] to the prediction for row t, for the rows first <= t < last."""
    for t in range(first, last):
        predict_row(model, X.row(t))
        for k in range(out.shape[1]):
            out[t, k] = model.trace.y[k]


def learn(
    model: BoosterState, X: Any, labels: Array, weights: Array, out: Array, first: int, last: int
) -> None:
    """Predict as `predict` does, and learn each row after its prediction."""
    for t in range(first, last):
        learn_row(model, X.row(t), labels[t], weights[t])
        for k in range(out.shape[1]):
            out[t, k] = model.trace.y[k]


def learn_recorded(
    model: BoosterState, X: Any, labels: Array, weights: Array, out: Array, first: int, last: int
) -> None:
    """Learn as `learn` does, and write the stages of each prediction to out[t].

    out[t] holds y [d], then y^{i-1}, the shrunken y^{i-1} and h, [d, N] each.
    """
    for t in range(first, last):
        x, trace = X.row(t), model.trace
        predict_row(model, x)
        d, N = trace.h.shape
        for k in range(d):
            out[t, k] = trace.y[k]
            for i in range(N):
                place = d + k * N + i
                out[t, place] = trace.before[k, i]
                out[t, place + d * N] = trace.kept[k, i]
                out[t, place + 2 * d * N] = trace.h[k, i]
        if weights[t] > 0:
            learn_predicted(model, x, labels[t], weights[t])


def record_size(d: int, N: int) -> int:
    """Return the number of columns that `learn_recorded` writes."""
    return d + 3 * d * N
