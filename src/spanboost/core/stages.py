"""Rows learned copy by copy: a copy learns a whole chunk of rows before the next copy begins.

In Algorithm 1, copy i learns row t from y_t^{i-1} and from its own state after the rows before t.
It needs nothing from the copies after it, unless gradients are taken at the answer (`at_final`). So
the loops over rows and copies can change places. Results are those of loop.py, bit for bit. The
state of one copy stays in the caches of the processor meanwhile, which matters for large copies
such as trees.

A bank that can be learned in this way has three more methods. `load_rows` keeps the rows of a chunk
and returns its end, `stage(i)` is the bank of copy i alone, which finds a row by its number in the
chunk, and `rewind` sets the number of learned rows back.
"""

from typing import Any

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.core.feedback import ScaledMode
from spanboost.core.loop import BoosterState, add_copies, learn_predicted


def has_stages(model: BoosterState) -> bool:
    """Return whether a booster can learn copy by copy."""
    if isinstance(model.mode, ScaledMode) or not hasattr(model.bank, "stage"):
        return False
    return not model.algorithm.at_final


def learn_stages(
    model: BoosterState, X: Any, labels: Array, weights: Array, out: Array, first: int, last: int
) -> None:
    """Learn as `learn` of loop.py does."""
    while first < last:
        stop = model.bank.load_rows(X, first, last)
        learn_chunk(model, labels, weights, out, first, stop)
        first = stop


@kernel
def learn_chunk(
    model: BoosterState, labels: Array, weights: Array, out: Array, first: int, last: int
) -> None:
    """Learn the rows first <= t < last, which are loaded; out[t] holds y_t^i after copy i."""
    learned = 0
    for t in range(first, last):
        model.algorithm.begin(model.trace)
        store_sum(model, out[t])
        learned += 1 if weights[t] > 0 else 0
    for i in range(model.trace.h.shape[1]):
        copy = stage_of(model, i)
        if i > 0:
            model.algorithm.rewind(learned)
            model.bank.rewind(learned)
        for t in range(first, last):
            for k in range(model.trace.output.number()):
                model.trace.y[k] = out[t, k]
            add_copies(copy, t - first)
            store_sum(model, out[t])
            if weights[t] > 0:
                learn_predicted(copy, t - first, labels[t], weights[t])
        copy.bank.finish()


@kernel
def stage_of(model: BoosterState, i: int) -> BoosterState:
    """Return the booster of copy i alone."""
    mode: Any = model.mode
    return BoosterState(
        model.algorithm.only(i),
        mode.only(i),
        model.loss,
        model.bank.stage(i),
        model.D,
        model.trace.only_one(),
    )


@kernel
def store_sum(model: BoosterState, out: Array) -> None:
    """Write the partial sum to out[d]."""
    for k in range(model.trace.output.number()):
        out[k] = model.trace.y[k]
