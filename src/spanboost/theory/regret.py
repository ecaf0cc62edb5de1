"""Regret audits: run a booster on a stream and compare its regret with the theorem's bound.

The comparator is the best function in hindsight, computed exactly: the best convex combination of a
finite class by a solver with a certified gap, a given function in the span by evaluation, and the
best linear function under squared loss by singular values. Everything is in the booster's own
units, with labels in [-1, 1]. The bounds hold for one pass of a fresh booster over the stream, with
a learner that states its R(T) (in expectation, if it is randomised) and importance weights of at
most 1. An audit refuses a booster or a stream that no theorem covers.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.core.feedback import LinearMode, ScaledMode
from spanboost.learners.protocol import Provable
from spanboost.losses import constant, on_vectors, values_of
from spanboost.models.booster import Booster, HullBoost, SpanBoost
from spanboost.theory.audit_text import audit_html
from spanboost.theory.bounds import HullBound, SpanBound, corollary_1, theorem_1, theorem_2
from spanboost.theory.conditions import (
    check_booster,
    check_class,
    check_norm,
    check_symmetry,
    check_values,
    check_weights,
)
from spanboost.theory.recursion import MeasuredBound, Recursion, gradients


class Audit(NamedTuple):
    """The measured loss, the comparator's loss, and the proved bound."""

    loss: float  # the booster's total loss
    comparator: float  # the comparator's total loss, or a certified lower bound on it
    bound: SpanBound | HullBound  # for every stream
    measured: MeasuredBound  # for this stream: the same recursion with measured terms

    @property
    def regret(self) -> float:
        """The booster's loss minus the comparator's."""
        return self.loss - self.comparator

    @property
    def slack(self) -> float:
        """The bound minus the measured regret; a negative value would refute the bound."""
        return self.bound.total - self.regret

    def __repr__(self) -> str:
        measured = f"measured bound {self.measured.total:z.4g}"
        return f"<Audit: regret {self.regret:z.4g}, bound {self.bound.total:z.4g}, {measured}>"

    def _repr_html_(self) -> str:
        terms = {f"bound: {name}": value for name, value in self.bound._asdict().items()}
        measured = {f"measured: {name}": value for name, value in self.measured.terms.items()}
        sums = {"bound": self.bound.total, "measured bound": self.measured.total}
        return audit_html(self.loss, self.comparator, terms | measured | sums)


class HullOptimum(NamedTuple):
    """The best convex combination of a finite class, in hindsight."""

    q: Array  # [M] weights
    loss: float  # total loss
    gap: float  # no combination has a loss below loss - gap


def audit_hull(booster: HullBoost, X: Any, y: Any, values: Array, weights: Any = None) -> Audit:
    """Audit Algorithm 2 against the best convex combination of a finite class (Theorem 2).

    values: [T, M] or [T, M, d], the values of the learner's functions on the stream, bounded by D.
        The audit scales them by lambda, as the booster does.
    """
    if not isinstance(booster, HullBoost):
        raise TypeError(
            f"audit_hull audits Algorithm 2: expected a HullBoost, got {type(booster).__name__}"
        )
    if not booster.smooth_:
        raise ValueError("the best convex combination is computed for smooth losses only")
    check_covered(booster)
    loss = on_vectors(booster.loss_)
    values = booster.scale * check_class(values, len(y), int(loss.d), booster.D)
    run = _run(booster, X, y, weights)
    best = best_in_hull(loss, values, run.labels, run.weights)
    comparator, bound = best.loss - best.gap, hull_bound(booster, len(run.labels))
    measured = run.measured(np.einsum("tmd,m->td", values, best.q), comparator, 1.0)
    return Audit(run.loss, comparator, bound, measured)


def audit_span(
    booster: SpanBoost, X: Any, y: Any, f: Array, f_norm: float, weights: Any = None
) -> Audit:
    """Audit Algorithm 1 against one function in the span (Theorem 1, corollary 1, scaling).

    f: [T] or [T, d], the values of the function on the stream.
    f_norm: its norm ||f||_1 over the learner's class: at least 1, and at most the sum of |w_g| in
        any f = sum_g w_g g. The class must contain -g with every g, as the paper assumes.
    """
    if not isinstance(booster, SpanBoost):
        raise TypeError(
            f"audit_span audits Algorithm 1: expected a SpanBoost, got {type(booster).__name__}"
        )
    f = check_values(f, len(y), int(on_vectors(booster.loss_).d))
    check_norm(f, f_norm, booster.D)
    check_symmetry(booster, X)
    check_covered(booster)
    run = _run(booster, X, y, weights)
    loss, labels, weights = on_vectors(booster.loss_), run.labels, run.weights
    comparator = total_loss(loss, labels, f, weights)
    if booster.smooth_:
        Delta_0 = total_loss(loss, labels, np.zeros_like(f), weights) - comparator
    else:
        # the corollary is theorem 1 for losses linearised at the predictions, and so is its Delta_0
        slopes = gradients(loss, labels, run.answers)
        Delta_0 = -float((weights[:, None] * slopes * f).sum())
    bound = span_bound(booster, len(f), f_norm, Delta_0)
    measured = run.measured(f, comparator, scaled_norm(booster, f_norm))
    return Audit(run.loss, comparator, bound, measured)


def check_covered(booster: Booster) -> None:
    """Raise a ValueError if the theorems do not cover a booster, before it is run."""
    booster.check_fixed("an audit")
    linear_regret(booster, 1)
    if isinstance(booster, SpanBoost) and booster.paper_radius() > booster.B_:
        raise ValueError(
            f"B must be at least {booster.paper_radius():g}, as in the paper (got {booster.B_:g})"
        )
    check_booster(booster)


def scaled_norm(booster: Booster, f_norm: float) -> float:
    """Return the norm over the scaled class, max{1, ||f||_1 / lambda}."""
    return max(1.0, f_norm / booster.scale)


def hull_bound(booster: HullBoost, T: int) -> HullBound:
    """Return the bound of theorem 2 for a booster.

    If the loss is not smooth, every copy receives the losses linearised at the prediction, which
    have no curvature: the bound is L_D R(T).
    """
    return theorem_2(
        N=booster.n,
        T=T,
        D=booster.reach_,
        L_D=1.0,  # `linear_regret` is in units of the loss already
        beta_D=constant(booster.loss_, "beta", booster.reach_) if booster.smooth_ else 0.0,
        R=linear_regret(booster, T),
    )


def span_bound(booster: SpanBoost, T: int, f_norm: float, Delta_0: float) -> SpanBound:
    """Return the bound of theorem 1 for a booster, or of corollary 1 if its loss is not smooth."""
    terms: dict[str, Any] = {
        "eta": booster.eta_,
        "N": booster.n,
        "T": T,
        "f_norm": scaled_norm(booster, f_norm),
        "Delta_0": Delta_0,
        "B": booster.B_,
        "L_B": booster.L_B_,
        # in units of the loss already: theorem 1 has L_B R(T)
        "R": linear_regret(booster, T) / booster.L_B_,
    }
    if not booster.smooth_:
        return corollary_1(**terms)
    # the proof steps up to eta D outside the ball before it projects
    outside = booster.B_ + booster.eta_ * booster.scale * booster.D
    return theorem_1(beta_B=constant(booster.loss_, "beta", outside), **terms)


class _Run(NamedTuple):
    """One pass of a booster, in its own units."""

    answers: Array  # [T, d]
    labels: Array  # [T, d]
    weights: Array  # [T]
    slopes: Array  # [T, d, N]
    recursion: Recursion

    @property
    def loss(self) -> float:
        """The total loss."""
        return total_loss(self.recursion.loss, self.labels, self.answers, self.weights)

    def measured(self, f: Array, comparator: float, f_norm: float) -> MeasuredBound:
        """Return the measured bound on the regret against a function with the values f [T, d]."""
        along = np.einsum("tdn,td->n", self.slopes, f)
        return self.recursion.bound(along, comparator, f_norm)


def _run(booster: Booster, X: Any, y: Any, weights: Any) -> _Run:
    """Run one pass, if the theorems cover its weights."""
    if weights is not None:
        check_weights(float(np.max(weights)))
    recursion = Recursion(booster, model_units=True)
    answers, labels, weights = booster.learn_scaled(X, y, weights)
    slopes, _ = recursion.add()
    recursion.close()
    return _Run(answers, labels, weights, slopes, recursion)


def linear_regret(booster: Booster, T: int) -> float:
    """Return the copies' regret on the linear losses grad l(y^{i-1}) . h, in units of the loss.

    With linear feedback, this is L_B lambda R(T) (L_D for Algorithm 2). With greedy feedback and
    the printed offset, it is beta_B' alpha (lambda D)^2 T / 2 + L_B' lambda R(T): the supplement's
    conversion before it chooses alpha, because R(T) grows with the Lipschitz constant and hence
    with alpha.
    """
    learner = booster.learner
    if not isinstance(learner, Provable):
        raise ValueError(f"{type(learner).__name__} states no regret bound R(T)")
    R = booster.scale * learner.regret(T, booster.D)
    mode = booster.core.state.mode
    if isinstance(mode, LinearMode):
        return constant(booster.loss_, "L", booster.reach_) * R
    if isinstance(mode, ScaledMode):
        raise ValueError(
            "no theorem covers greedy feedback for losses with a log link, whose rows have weights "
            "of their own; use feedback='linear'"
        )
    if not booster.smooth_ or booster.offset_ == "shrunk":
        raise ValueError(
            "the theorems cover greedy feedback only for smooth losses with offset='printed'; use "
            "feedback='linear'"
        )
    # the step that the copies fit with, which the learner may choose (`greedy_step`)
    alpha = float(mode.alpha.max()) / booster.scale
    radius = booster.reach_ + alpha * booster.scale * booster.D
    beta, L = (constant(booster.loss_, name, radius) for name in ("beta", "L"))
    return beta * alpha * (booster.scale * booster.D) ** 2 * T / 2 + L * R


def best_in_hull(
    loss: Any,
    values: Array,
    labels: Array,
    weights: Array,
    gap: float = 1e-9,
    rounds: int = 100_000,
) -> HullOptimum:
    """Return the convex combination with the least total loss.

    gap: the largest certified gap to the optimum, per unit of weight. rounds: the most iterations.

    This is pairwise Frank-Wolfe, for smooth losses: weight moves from the worst function in use to
    the best of all functions, as far as that helps. By convexity, no combination has a loss below
    loss(q) - max_j grad . (q - e_j), so the gap is certified after any number of rounds.
    """
    values = _as_3d(values)
    M = values.shape[1]
    q = np.full(M, 1 / M)
    for _ in range(rounds):
        f = np.einsum("tmd,m->td", values, q)
        slopes = gradients(loss, labels, f)
        gradient = np.einsum("tmd,td->m", values, weights[:, None] * slopes)
        toward = int(gradient.argmin())
        away = int(np.where(q > 0, gradient, -np.inf).argmax())
        certified = max(float(gradient @ q - gradient[toward]), 0.0)
        if certified <= gap * float(weights.sum()):
            break
        direction = values[:, toward] - values[:, away]
        step = _line_search(loss, labels, weights, f, direction, float(q[away]))
        q[toward] += step
        q[away] = 0.0 if step == q[away] else q[away] - step
    return HullOptimum(q, total_loss(loss, labels, f, weights), certified)


def best_linear(
    X: Array,
    labels: Array,
    weights: Array | None = None,
    radius: float = math.inf,
    rank: float | None = None,
) -> Array:
    """Return the W [d, k] with the least sum_t w_t ||y_t - W x_t||^2 and ||W||_F <= radius.

    W comes from singular values; if it lies on the sphere, a Lagrange multiplier is found by
    bisection. Directions shorter than the longest times `rank` count as rounding errors.
    """
    X = np.asarray(X, dtype=np.float64)
    Y = np.asarray(labels, dtype=np.float64).reshape(len(X), -1)
    root = np.sqrt(np.ones(len(X)) if weights is None else weights)[:, None]
    U, s, Vt = np.linalg.svd(root * X, full_matrices=False)
    projected = U.T @ (root * Y)
    least = len(X) * np.finfo(float).eps if rank is None else rank
    used = s > s[0] * least if len(s) and s[0] > 0 else s > 0

    def solution(multiplier: float) -> Array:
        factor = np.divide(s, s**2 + multiplier, out=np.zeros_like(s), where=used)
        return np.asarray(Vt.T @ (factor[:, None] * projected))

    W = solution(0.0)
    if np.linalg.norm(W) > radius:
        low, high = 0.0, float(np.linalg.norm(s[:, None] * projected)) / radius
        while (middle := (low + high) / 2) not in (low, high):
            inside = np.linalg.norm(solution(middle)) <= radius
            low, high = (low, middle) if inside else (middle, high)
        W = solution(high)
    return W.T


def linear_norm(W: Array, D: float, x_norm: float) -> float:
    """Return ||f||_1 of x -> W x over the linear functions bounded by D for ||x|| <= x_norm."""
    return max(1.0, float(np.linalg.norm(W)) * x_norm / D)


def total_loss(loss: Any, labels: Array, answers: Array, weights: Array) -> float:
    """Return sum_t w_t l(labels_t, answers_t)."""
    return float(weights @ values_of(loss, labels, np.ascontiguousarray(answers)))


def _line_search(
    loss: Any, labels: Array, weights: Array, f: Array, direction: Array, longest: float
) -> float:
    """Return the step in [0, longest] with the least loss of f + step * direction."""

    def slope(step: float) -> float:
        slopes = gradients(loss, labels, f + step * direction)
        return float((weights[:, None] * slopes * direction).sum())

    low, high = 0.0, longest
    if slope(high) <= 0:
        return high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    return (low + high) / 2


def _as_3d(values: Array) -> Array:
    values = np.asarray(values, dtype=np.float64)
    return values[:, :, None] if values.ndim == 2 else values
