"""The one loop: rows through a booster, compiled for array banks, plain Python for any other."""

from typing import Any, NamedTuple

import numpy as np

from spanboost._jit import jit, kernel
from spanboost.algorithms import Trace
from spanboost.arrays import Array
from spanboost.feedback import GreedyMode, LinearMode
from spanboost.losses import VectorLoss
from spanboost.outputs import Many, One
from spanboost.projection import project_columns


class Model(NamedTuple):
    """A booster at work: nothing but arrays, when its bank is."""

    algorithm: Any  # Span or Hull
    mode: LinearMode | GreedyMode
    loss: VectorLoss
    bank: Any
    D: float


def new_trace(model: Model, d: int) -> Trace:
    """Room for one round."""
    eta = model.algorithm.eta
    shape = (d, eta.shape[0])
    return Trace(
        One() if d == 1 else Many(d),
        np.zeros(shape, eta.dtype),
        np.zeros(shape, eta.dtype),
        np.zeros(shape, eta.dtype),
        np.zeros(d, eta.dtype),
        np.zeros(shape, eta.dtype),
        np.zeros(shape, eta.dtype),
    )


@kernel
def predict_row(model: Model, x: Any, trace: Trace) -> None:
    """Receive x_t, ask every copy, answer trace.y."""
    model.bank.predict(x, trace.h)
    project_columns(trace.h, model.D)  # the paper's normalisation: ||A(x)|| <= D
    model.algorithm.forward(trace)


@kernel
def learn_row(model: Model, x: Any, label: Array, weight: float, trace: Trace) -> None:
    """One round: answer first, then see the label. A row of weight 0 is answered, not learned."""
    predict_row(model, x, trace)
    if weight > 0:
        model.algorithm.backward(model.loss, label, weight, trace)
        feedback = model.mode.feedback(model.loss, label, weight, trace)
        model.bank.update(x, trace.h, feedback)


@jit
def predict(model: Model, X: Any, trace: Trace, out: Array) -> None:
    """out[t] = the answer to row t."""
    for t in range(out.shape[0]):
        predict_row(model, X.row(t), trace)
        for k in range(out.shape[1]):
            out[t, k] = trace.y[k]


@jit
def learn(model: Model, X: Any, labels: Array, weights: Array, trace: Trace, out: Array) -> None:
    """out[t] = the answer to row t, given before its label was learned."""
    for t in range(out.shape[0]):
        learn_row(model, X.row(t), labels[t], weights[t], trace)
        for k in range(out.shape[1]):
            out[t, k] = trace.y[k]
