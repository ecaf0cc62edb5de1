"""The conditions of the theorems, each as a check that raises a ValueError with the reason."""

import math
from dataclasses import fields
from itertools import product
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.learners.finite import FiniteClass
from spanboost.losses import is_binary, on_vectors, values_of
from spanboost.models.booster import Booster
from spanboost.theory.recursion import gradients

# The theorems hold for any value of these parameters; others must have their defaults.
COVERED = {
    *("learner", "n", "eta", "loss", "feedback", "alpha", "offset", "scale", "D", "B"),
    *("label_range", "memory", "seed"),
}
ROUNDING = 1e-9
POINTS = 33  # predictions in each dimension at which a loss is tested


def check_booster(booster: Booster) -> None:
    """Check that the theorems cover the parameters of a booster that has learned nothing."""
    if booster.replay:
        raise ValueError("the bounds hold for rows that are learned once, and replay repeats some")
    for one in fields(booster):
        if one.name not in COVERED and getattr(booster, one.name) != one.default:
            raise ValueError(f"no theorem covers {one.name}={getattr(booster, one.name)!r}")
    if booster.started:
        raise ValueError("the bounds hold for a fresh booster, and this one has been used")
    check_constants(booster.loss_)
    check_convex(booster.loss_, booster.reach_)


def check_constants(loss: Any) -> None:
    """Check that a loss defines its constants; estimates prove nothing."""
    missing = [name for name in ("L", "beta", "eps") if not callable(getattr(loss, name, None))]
    if missing:
        raise ValueError(
            f"the theorems need proved constants, and those of {type(loss).__name__} are "
            f"estimated: add {', '.join(f'{name}(b)' for name in missing)} to the loss"
        )


def check_convex(loss: Any, radius: float, centre: float = 0.0, half: float = 1.0) -> None:
    """Check that a loss lies above its tangents, at a grid of predictions and labels.

    Labels are within `half` of the centre, predictions within `half` times the radius. Losses of
    this package are convex, and are not tested.
    """
    if type(loss).__module__.startswith("spanboost.losses"):
        return
    vectors = on_vectors(loss)
    side = np.linspace(-max(radius, 1.0), max(radius, 1.0), POINTS if vectors.d == 1 else 3)
    points = np.array(list(product(side, repeat=min(vectors.d, 6))))
    points = centre + half * np.pad(points, ((0, 0), (0, vectors.d - points.shape[1])))
    away = points - centre  # keeps the digits that a centre far from 0 would take
    for label in centre + half * _labels(loss, vectors.d):
        labels = np.tile(label, (len(points), 1))
        values, slopes = values_of(vectors, labels, points), gradients(vectors, labels, points)
        tangents = values[:, None] + slopes @ away.T - (slopes * away).sum(axis=1)[:, None]
        if (tangents > values + ROUNDING * (1 + np.abs(tangents) + np.abs(values))).any():
            raise ValueError(
                f"the theorems need a convex loss, and {type(loss).__name__} is not convex (or its "
                f"gradient is wrong) at the label {label if vectors.d > 1 else label[0]}"
            )


def _labels(loss: Any, d: int) -> Array:
    """Return labels at which a loss is tested."""
    if d > 1:
        return np.vstack([np.eye(d), -np.eye(d), np.zeros((1, d))])
    return np.array([[-1.0], [1.0]]) if is_binary(loss) else np.linspace(-1, 1, 9)[:, None]


def check_weights(heaviest: float) -> None:
    """Check that the theorems cover the importance weights."""
    if heaviest > 1:
        raise ValueError(
            f"the bounds hold for weights of at most 1 (got {heaviest:g}): divide all weights by "
            "the largest; in the original units, the bound is then larger by that factor"
        )


def check_values(f: Any, T: int, d: int) -> Array:
    """Check the values of a function on a stream of T rows; return them as [T, d]."""
    values = np.ascontiguousarray(f, np.float64)
    if values.shape not in ((T, d), (T,) if d == 1 else (T, d)):
        raise ValueError(f"f must have a value in R^{d} for each of {T} rows (got {values.shape})")
    values = values.reshape(T, d)
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        raise ValueError(f"f must be finite, but is {values[bad[0]]} in row {bad[0]}")
    return values


def check_class(values: Any, T: int, d: int, D: float) -> Array:
    """Check the values of M functions bounded by D on T rows; return them as [T, M, d]."""
    found = np.asarray(values, np.float64)
    found = found[:, :, None] if found.ndim == 2 else found
    if found.ndim != 3 or (len(found), found.shape[2]) != (T, d):
        raise ValueError(
            f"values must have a value in R^{d} for each of {T} rows and each function "
            f"(got {np.shape(values)})"
        )
    largest = float(np.linalg.norm(found, axis=2).max(initial=0.0))
    if not largest <= D * (1 + ROUNDING):
        raise ValueError(
            f"values must be those of functions bounded by D = {D:g}, but they reach {largest:g}"
        )
    return found


def check_norm_range(f_norm: float) -> None:
    """Check that a number can be the norm W by which the theorems divide a function."""
    if not 1 <= f_norm < math.inf:
        raise ValueError(f"f_norm must be a finite number of at least 1 (got {f_norm!r})")


def check_norm(f: Array, f_norm: float, D: float) -> None:
    """Check that a function with these values [T, d] can have the norm ||f||_1 = f_norm."""
    check_norm_range(f_norm)
    largest = float(np.linalg.norm(f, axis=1).max(initial=0.0))
    if largest > f_norm * D * (1 + ROUNDING):
        raise ValueError(
            f"f_norm must be at least {largest / D:g}, because |f| reaches {largest:g} and the "
            f"functions of the class are bounded by D = {D:g} (got {f_norm:g})"
        )


def check_symmetry(booster: Booster, X: Any) -> None:
    """Check that the class of the learner contains -f with every f."""
    learner = booster.learner
    if getattr(learner, "symmetric", False) is True:
        return
    if isinstance(learner, FiniteClass):
        functions = learner.encode(X).transpose(1, 0, 2)
        # adding 0 turns -0.0 into 0.0; their bytes differ
        if {(f + 0.0).tobytes() for f in functions} == {(0.0 - f).tobytes() for f in functions}:
            return
    raise ValueError(
        "theorem 1 needs a class that contains -f with every f: use symmetric(functions) or "
        "Symmetrised(learner)"
    )
