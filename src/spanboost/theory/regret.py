"""A regret audit: run a booster on a stream and hold its regret against the theorem's bound.

The comparator is the best in hindsight, computed exactly: the best convex combination of a finite
class by a solver with a certified gap, any given function of the span by evaluation, the best
linear function under squared loss by singular values. Everything is in the booster's own
units, labels in [-1, 1]. The bounds are for one pass over the stream, from a fresh booster, with a
learner that states its R(T) (in expectation, for one that draws at random) and importance weights
of at most 1; what no theorem covers is refused.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import jit
from spanboost.learners.finite import FiniteClass
from spanboost.learners.protocol import Provable
from spanboost.losses import constant, on_vectors, values_of
from spanboost.models.booster import Booster, HullBoost, SpanBoost
from spanboost.theory.bounds import HullBound, SpanBound, corollary_1, theorem_1, theorem_2


class Audit(NamedTuple):
    """Measured against proved."""

    loss: float  # the booster's total loss
    comparator: float  # the comparator's total loss, or what it certainly is not below
    bound: SpanBound | HullBound

    @property
    def regret(self) -> float:
        """How much more the booster lost than the comparator."""
        return self.loss - self.comparator

    @property
    def slack(self) -> float:
        """What is left between the measured regret and its bound; negative would refute it."""
        return self.bound.total - self.regret


class HullOptimum(NamedTuple):
    """The best convex combination of a finite class, in hindsight."""

    q: Array  # [M] its weights
    loss: float  # its total loss
    gap: float  # no combination has a loss below loss - gap


def audit_hull(booster: HullBoost, X: Any, y: Any, values: Array, weights: Any = None) -> Audit:
    """Audit Algorithm 2 against the best convex combination of a finite class (Theorem 2).

    `values` holds the class on the stream, [T, M] or [T, M, d], as the learner's functions give
    it; functions are taken from the lambda-scaled class, as the booster takes them.
    """
    if not isinstance(booster, HullBoost):
        raise TypeError("audit_hull audits Algorithm 2, a HullBoost")
    if not booster.smooth_:
        raise ValueError("the best convex combination is found for smooth losses only")
    check_covered(booster)
    answers, labels, weights = _run(booster, X, y, weights)
    loss = on_vectors(booster.loss_)
    best = best_in_hull(loss, booster.scale * _three(values), labels, weights)
    bound = hull_bound(booster, len(answers))
    return Audit(total_loss(loss, labels, answers, weights), best.loss - best.gap, bound)


def audit_span(
    booster: SpanBoost, X: Any, y: Any, f: Array, f_norm: float, weights: Any = None
) -> Audit:
    """Audit Algorithm 1 against one function of the span (Theorem 1, corollary 1, scaling).

    `f` holds the function's values on the stream, [T] or [T, d], and `f_norm` its ||f||_1 over the
    learner's class: at least 1, at most the sum of |w_g| in any f = sum_g w_g g. The class must
    contain -g with every g, as the paper assumes throughout.
    """
    if not isinstance(booster, SpanBoost):
        raise TypeError("audit_span audits Algorithm 1, a SpanBoost")
    if not 1 <= f_norm < math.inf:
        raise ValueError(f"f_norm={f_norm!r} is not allowed: ||f||_1 is at least 1")
    _check_symmetry(booster, X)
    check_covered(booster)
    answers, labels, weights = _run(booster, X, y, weights)
    loss, T = on_vectors(booster.loss_), len(answers)
    f = np.asarray(f, dtype=np.float64).reshape(T, -1)
    comparator = total_loss(loss, labels, f, weights)
    if booster.smooth_:
        Delta_0 = total_loss(loss, labels, np.zeros_like(f), weights) - comparator
    else:
        # the corollary is theorem 1 for the losses linearised at the answers: so is its Delta_0
        slopes = np.empty_like(answers)
        _gradients(loss, labels, answers, slopes)
        Delta_0 = -float((weights[:, None] * slopes * f).sum())
    bound = span_bound(booster, T, f_norm, Delta_0)
    return Audit(total_loss(loss, labels, answers, weights), comparator, bound)


def check_covered(booster: Booster) -> None:
    """Refuse a booster of which the theorems do not speak, before it is run."""
    linear_regret(booster, 1)
    if isinstance(booster, SpanBoost) and booster.paper_radius() > booster.B_:
        raise ValueError(f"B={booster.B_:g} is below the paper's {booster.paper_radius():g}")
    if booster.replay:
        raise ValueError("the bounds are for rows that come once, and replay repeats some")
    if booster.started:
        raise ValueError("the bounds are for a fresh booster, and this one has been used")


def check_weights(heaviest: float) -> None:
    """Refuse importance weights of which the theorems do not speak."""
    if heaviest > 1:
        raise ValueError(
            "steps are made for weights of at most 1: divide them all by the largest; the bound "
            "in the old units is then that many times larger"
        )


def hull_bound(booster: HullBoost, T: int) -> HullBound:
    """Theorem 2 for this booster."""
    return theorem_2(
        N=booster.n,
        T=T,
        D=booster.reach_,
        L_D=1.0,  # `linear_regret` is in units of the loss already
        beta_D=constant(booster.loss_, "beta", booster.reach_),
        R=linear_regret(booster, T),
    )


def span_bound(booster: SpanBoost, T: int, f_norm: float, Delta_0: float) -> SpanBound:
    """Theorem 1 for this booster, or corollary 1 where its loss is not smooth."""
    terms: dict[str, Any] = {
        "eta": booster.eta_,
        "N": booster.n,
        "T": T,
        "f_norm": max(1.0, f_norm / booster.scale),
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


def _run(booster: Booster, X: Any, y: Any, weights: Any) -> tuple[Array, Array, Array]:
    """One pass, once it is one that the theorems speak of."""
    if weights is not None:
        check_weights(float(np.max(weights)))
    return booster.learn_scaled(X, y, weights)


def _check_symmetry(booster: SpanBoost, X: Any) -> None:
    learner = booster.learner
    if getattr(learner, "symmetric", False) is True:
        return
    if isinstance(learner, FiniteClass):
        functions = learner.encode(X).transpose(1, 0, 2)
        # adding 0 turns -0.0 into 0.0, which bytes tell apart
        if {(f + 0.0).tobytes() for f in functions} == {(0.0 - f).tobytes() for f in functions}:
            return
    raise ValueError(
        "theorem 1 is for a class that contains -f with every f: use symmetric(functions) or "
        "Symmetrised(learner)"
    )


def linear_regret(booster: Booster, T: int) -> float:
    """The copies' regret on the linear losses grad l(y^{i-1}) . h, in units of the loss.

    Linear feedback: L_B lambda R(T) (L_D for Algorithm 2). Greedy feedback with the printed offset:
    beta_B' alpha (lambda D)^2 T / 2 + L_B' lambda R(T), the supplement's conversion before it
    chooses alpha, since R(T) grows with the Lipschitz constant, hence with alpha.
    """
    learner = booster.learner
    if not isinstance(learner, Provable):
        raise ValueError(f"{type(learner).__name__} states no regret bound R(T)")
    R = booster.scale * learner.regret(T, booster.D)
    if booster.feedback == "linear":
        return constant(booster.loss_, "L", booster.reach_) * R
    if not booster.smooth_ or booster.offset_ == "shrunk":
        raise ValueError(
            "greedy feedback is covered for smooth losses with offset='printed' only, linear "
            "feedback for all smooth losses"
        )
    steps = booster.steps_ if booster.alpha is None else np.array([booster.alpha])
    alpha = float(steps.max())
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
    """The convex combination with the least total loss, to a certified gap per unit of weight.

    Pairwise Frank-Wolfe, for smooth losses: weight moves from the worst function in use to the best
    of all, as far as it helps. At any q, convexity says that no combination loses less than
    loss(q) - max_j grad . (q - e_j), which is the certificate, whenever the rounds end.
    """
    values = _three(values)
    M = values.shape[1]
    q = np.full(M, 1 / M)
    for _ in range(rounds):
        f = np.einsum("tmd,m->td", values, q)
        slopes = np.empty_like(f)
        _gradients(loss, labels, f, slopes)
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
    """The W with the least squared loss sum_t w_t ||y_t - W x_t||^2 and ||W||_F <= radius, [d, k].

    By singular values; on the sphere with a multiplier, found by bisection.
    Directions shorter than the longest times `rank` are taken for rounding.
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
    """||f||_1 of x -> W x, over the linear functions that are D-bounded for ||x|| <= x_norm."""
    return max(1.0, float(np.linalg.norm(W)) * x_norm / D)


def total_loss(loss: Any, labels: Array, answers: Array, weights: Array) -> float:
    """sum_t w_t l(labels_t, answers_t)."""
    return float(weights @ values_of(loss, labels, np.ascontiguousarray(answers)))


def _line_search(
    loss: Any, labels: Array, weights: Array, f: Array, direction: Array, longest: float
) -> float:
    """The step in [0, longest] to the least loss of f + step * direction, where its slope is 0."""
    slopes = np.empty_like(f)

    def slope(step: float) -> float:
        _gradients(loss, labels, f + step * direction, slopes)
        return float((weights[:, None] * slopes * direction).sum())

    low, high = 0.0, longest
    if slope(high) <= 0:
        return high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    return (low + high) / 2


def _three(values: Array) -> Array:
    values = np.asarray(values, dtype=np.float64)
    return values[:, :, None] if values.ndim == 2 else values


@jit
def _gradients(loss: Any, labels: Array, Y: Array, out: Array) -> None:
    for t in range(Y.shape[0]):
        loss.gradients(labels[t], Y[t].reshape((-1, 1)), out[t].reshape((-1, 1)))
