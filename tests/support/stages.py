"""Runs a booster round by round, and records the quantities of the proofs.

The weak learner is scripted: a row holds the predictions of all copies, so a test (or hypothesis)
chooses both the adversary and the learners. Its class consists of all functions bounded by D.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spanboost.compiling.kernels import plain
from spanboost.core.loop import learn_row


@dataclass(frozen=True)
class Scripted:
    d: int = 1

    def check(self, task):
        pass

    def encode(self, X, D):
        return np.asarray(X, dtype=np.float64)

    def bank(self, task):
        return ScriptedBank()


class ScriptedBank:
    def predict(self, x, h):
        h[:] = x.reshape(h.shape)

    def update(self, x, h, feedback):
        pass


class Rounds(NamedTuple):
    y: np.ndarray  # [T, N + 1, d] the partial sums y_t^0 .. y_t^N
    h: np.ndarray  # [T, N, d] predictions of the copies, times lambda
    passed: np.ndarray  # [T, N, d] slopes of the linear losses passed to the copies
    sigma: np.ndarray  # [T, N] the values used in round t
    labels: np.ndarray  # [T, d]
    weights: np.ndarray  # [T]


def run_rounds(booster, X, y, weights=None):
    """Run all rounds of a new booster as plain Python, and return their values."""
    block, labels = booster.encoder.read(X), booster.labels.plan(y, np.ones(len(X))).labels
    weights = np.ones(len(X)) if weights is None else weights
    with plain():
        model = booster.core.prepare(block, 0)
        trace = model.trace
        rounds = []
        for x, label, weight in zip(block.encoded, labels, weights, strict=True):
            sigma = booster.sigma_ if hasattr(booster, "sigma_") else np.zeros(booster.n)
            learn_row(model, x, label, weight)
            sums = np.vstack([trace.before.T, trace.y[None]])
            rounds.append((sums, booster.scale * trace.h.T, trace.slope.T.copy(), sigma))
    return Rounds(*(np.array(column) for column in zip(*rounds, strict=True)), labels, weights)


def loss_values(loss, labels, Y):
    """Return l(label_t, Y_t) for every row of Y[T, d]."""
    out = np.empty((len(Y), 1))
    for t in range(len(Y)):
        loss.values(labels[t], np.ascontiguousarray(Y[t])[:, None], out[t])
    return out[:, 0]


def gradients(loss, labels, Y):
    """Return a subgradient of l(label_t, .) at every row of Y[T, d]."""
    out = np.empty((*Y.shape, 1))
    for t in range(len(Y)):
        loss.gradients(labels[t], np.ascontiguousarray(Y[t])[:, None], out[t])
    return out[:, :, 0]
