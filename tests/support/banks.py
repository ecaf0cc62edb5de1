"""Test streams, and other implementations of the feature learners to compare them with."""

import dataclasses
import math

import naive
import naive_learners
import numpy as np
from scipy_free import Csr

from spanboost import LinearSGD, Network, Rows, SpanBoost, Stumps, Trees, losses
from spanboost.learners.objects import ObjectBank
from spanboost.learners.tree_bank import TreeBank
from spanboost.learners.tree_selection import select_trees
from spanboost.rows.block import ObjectRows, Row, as_rows

LEARNERS = {
    "linear": LinearSGD(0.3),
    "stumps": Stumps(0.3),
    "intercepts": Stumps(0.3, intercept=True),
    "network": Network(0.3, hidden=3),
}

WITH_TREES = LEARNERS | {
    "trees": Trees(depth=3, candidates=8, evidence=0.5, grace=5, delay=2),
}

LOSSES = {
    "squared": losses.Squared(),
    "absolute": losses.Absolute(),
    "logistic": losses.Logistic(),
    "euclidean2": losses.SquaredEuclidean(2),
}


def learner_of(name, **changes):
    return dataclasses.replace(WITH_TREES[name], **changes)


# --------------------------------------------------------------------------------------------
# Streams


def stream(T=60, seed=0, *, loss="squared", missing=True, centre=0.3):
    """Return rows and labels.

    The rows have zeros, missing values, and features of different scales, one of which grows.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((T, 4)) * [1, 10, 0.01, 1]
    X[rng.random((T, 4)) < 0.3] = 0
    if missing:
        X[rng.random((T, 4)) < 0.1] = np.nan
    X[T // 2 :, 3] *= 1e4
    numbers = np.nan_to_num(X)
    y = centre + 0.3 * numbers[:, 0] - 0.03 * numbers[:, 1] + 0.1 * rng.standard_normal(T)
    y = np.clip(y, -1, 1)
    if loss == "logistic":
        y = np.where(y > centre / 2, 1.0, -1.0)
    elif loss == "euclidean2":
        y = np.stack([0.7 * y, 0.6 * np.sin(4 * y)], axis=1)
    return X, y


def weights_for(T, seed=0):
    return np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 1.0, 3.0], T)


def codes_for(X):
    return np.abs(np.nan_to_num(X[:, :2]) * 3).astype(int) % 5 - 1


KINDS = {
    "dense": lambda X: X,
    "sparse": Csr,
    "codes": lambda X: Rows(X[:, 2:], codes_for(X)),
    "both": lambda X: Rows(Csr(X), codes_for(X)),
}


def active_rows(X, bits=None):
    """Return the rows of a dense block, or of one with codes, as a naive copy reads them."""
    if isinstance(X, Rows):
        pairs = zip(X.numbers.tolist(), X.codes.tolist(), strict=True)
        return [naive_learners.active(numbers, codes, bits) for numbers, codes in pairs]
    return [naive_learners.active(numbers, (), bits) for numbers in np.asarray(X).tolist()]


# --------------------------------------------------------------------------------------------
# N banks of one copy instead of one bank of N copies


class Separate:
    """A learner whose N copies are N banks of one copy each, run as objects."""

    def __init__(self, learner):
        self.learner, self.dtype = learner, getattr(learner, "dtype", np.float64)
        self.greedy_step = getattr(learner, "greedy_step", None)

    def check(self, task):
        self.learner.check(task)

    def encode(self, X, D):
        return RowByRow(self.learner.encode(X, D))

    def bank(self, task):
        return ObjectBank([OneCopy(self.learner, task, i) for i in range(task.n)], task)


class RowByRow:
    """Encoded rows of a type unknown to the booster, so that each copy must grow its own table."""

    def __init__(self, rows):
        self.rows = rows

    def row(self, t):
        return as_rows(self.rows).row(t)


def task_of_one(task, i, **changes):
    """Return the task of copy i alone."""
    only = slice(i, i + 1)
    return task._replace(
        n=1,
        lipschitz=task.lipschitz[only],
        smoothness=task.smoothness[only],
        copy=task.copy[only],
        **changes,
    )


class OneCopy:
    def __init__(self, learner, task, i):
        if isinstance(getattr(learner, "rate", None), tuple):
            learner = dataclasses.replace(learner, rate=learner.rate[i])
        self.bank = learner.bank(task_of_one(task, i, rows=task.rows.rows))
        self.h = np.zeros((task.d, 1), getattr(learner, "dtype", np.float64))

    def predict(self, x):
        self.x = x
        if isinstance(x, Row):
            self.x = Row(*map(np.copy, x))  # a copy, because the bank writes to it
            self.bank = self.bank.grown(0, len(x.x))
        self.bank.predict(self.x, self.h)
        return self.h[:, 0]

    def update(self, x, loss):
        self.h[:, 0] = loss.h
        if isinstance(x, Row):
            self.bank = self.bank.grown(1 + int(x.feature.max(initial=-1)), len(x.x))
        self.bank.update(self.x, self.h, loss._feedback)


# --------------------------------------------------------------------------------------------
# Naive copies in the library's boosters


class Oracles:
    """A learner whose copies are naive: `make(task, i)` is copy i.

    Rows are dense, or have codes. The library computes slopes and losses, in its own precision.
    """

    def __init__(self, make, dtype, bits=None):
        self.make, self.dtype, self.bits = make, dtype, bits

    def check(self, task):
        pass

    def encode(self, X, D):
        return ObjectRows(active_rows(X, self.bits))

    def bank(self, task):
        return OracleBank([self.make(task, i) for i in range(task.n)], self.dtype)


class OracleBank:
    def __init__(self, copies, dtype):
        self.copies, self.dtype = copies, dtype

    def predict(self, x, h):
        for i, copy in enumerate(self.copies):
            h[:, i] = copy.predict(x)

    def update(self, x, h, feedback):
        for i, copy in enumerate(self.copies):
            copy.update(x, CopyFeedback(feedback.only(i), self.dtype))


class CopyFeedback:
    """The feedback of one copy, in the form that a naive copy expects."""

    def __init__(self, feedback, dtype):
        self.feedback, self.dtype, self.weight = feedback, dtype, feedback.weight

    def column(self, h):
        return np.array(h, self.dtype).reshape(-1, 1)

    def slope(self, h):
        out = np.empty_like(self.column(h))
        self.feedback.slopes(self.column(h), out)
        return list(out[:, 0])

    def value(self, h):
        out = np.empty(1)
        self.feedback.losses(self.column(h), out)
        return out[0]


# --------------------------------------------------------------------------------------------
# State


def kept_fields(state):
    """Return the fields of a NamedTuple by name, without scratch space.

    The nodes of trees are in the order that files use, which does not depend on the sizes of
    blocks.
    """
    if isinstance(state, TreeBank):
        state = select_trees(state, np.arange(len(state.start)))
    fields = state._asdict().items()
    return {name: item for name, item in fields if name not in ("scratch", "trace")}


def arrays_of(state):
    """Return copies of all arrays and numbers of a model, in order."""
    if isinstance(state, np.ndarray):
        return [state.copy()]
    if isinstance(state, tuple):
        return [array for item in kept_fields(state).values() for array in arrays_of(item)]
    return [np.asarray(state)] if isinstance(state, int | float | np.number) else []


def bits_of(state):
    """Return the bytes of every field of a model, by path."""
    if isinstance(state, tuple):
        parts = {name: bits_of(item) for name, item in kept_fields(state).items()}
        return {(name, *rest): bits for name in parts for rest, bits in parts[name].items()}
    return {(): np.asarray(state).tobytes()}


def assert_same_state(first, second):
    pairs = list(zip(arrays_of(first), arrays_of(second), strict=True))
    assert pairs
    for a, b in pairs:
        np.testing.assert_array_equal(a, b)


# --------------------------------------------------------------------------------------------
# The listings of naive.py over naive copies


NAIVE_LOSSES = {
    "squared": naive.Squared(),
    "absolute": naive.Absolute(),
    "logistic": naive.Logistic(),
    "euclidean2": naive.SquaredEuclidean(),
}


def run_listing(booster, make, loss, X, y, weights):
    """Return the predictions of the listing in naive.py with the booster's parameters, [T, d].

    make(c, D, i) returns the naive copy i, with curvature c and bound D (or infinity).
    """
    naive_loss, d = NAIVE_LOSSES[loss], booster.core.d
    rows = active_rows(X, booster.learner.bits)
    rows = zip(rows, np.reshape(y, (-1, d)).tolist(), weights.tolist(), strict=True)
    rows = [(x, label if loss == "euclidean2" else label[0], w) for x, label, w in rows]
    bound = booster.D if booster.feedback == "linear" else math.inf
    common = {"D": booster.D, "feedback": booster.feedback, "scale": booster.scale}
    offset = {"d": d, "offset": booster.offset_}
    if isinstance(booster, SpanBoost):
        common |= {"eta": booster.eta_, "B": booster.B_}
        curvature = [
            naive.curvature_span(naive_loss, i + 1, N=booster.n, **common) for i in range(booster.n)
        ]
    else:
        curvature = [naive.curvature_hull(naive_loss, i + 1, **common) for i in range(booster.n)]
    copies = [make(c, bound, i) for i, c in enumerate(curvature)]
    run = naive.span if isinstance(booster, SpanBoost) else naive.hull
    return np.array(run(copies, rows, naive_loss, **offset, **common)[0])
