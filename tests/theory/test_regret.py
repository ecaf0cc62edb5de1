"""Comparators in hindsight, checked by other methods than the audit's own."""

import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanboost import FiniteClass, HullBoost, LinearBall, SpanBoost
from spanboost.compiling.kernels import plain
from spanboost.losses import Logistic, PNorm, Scalar, Softmax, Squared, SquaredEuclidean
from spanboost.theory.measured_pass import audit
from spanboost.theory.regret import (
    audit_hull,
    audit_span,
    best_in_hull,
    best_linear,
    hull_bound,
    linear_norm,
    linear_regret,
    total_loss,
)


def grid_of_the_simplex(M, parts):
    for cut in itertools.combinations(range(parts + M - 1), M - 1):
        edges = (-1, *cut, parts + M - 1)
        yield np.diff(edges) / parts - 1 / parts


@pytest.mark.parametrize(
    ("loss", "d"),
    [(Scalar(Squared()), 1), (Scalar(PNorm(3.0)), 1), (SquaredEuclidean(2), 2), (Softmax(3), 3)],
    ids=str,
)
@pytest.mark.parametrize("seed", range(3))
def test_no_point_of_a_grid_beats_the_best_combination(loss, d, seed):
    rng = np.random.default_rng(seed)
    values = rng.uniform(-1, 1, (30, 3, d))
    labels = rng.uniform(-0.7, 0.7, (30, d)) if d < 3 else np.eye(3)[rng.integers(0, 3, 30)]
    weights = rng.uniform(0, 2, 30)
    with plain():
        best = best_in_hull(loss, values, labels, weights)
        assert best.q.min() >= 0
        assert best.q.sum() == pytest.approx(1)
        assert best.gap <= 1e-9 * weights.sum()
        f = np.einsum("tmd,m->td", values, best.q)
        assert best.loss == pytest.approx(total_loss(loss, labels, f, weights))
        for q in grid_of_the_simplex(3, 20):
            f = np.einsum("tmd,m->td", values, q)
            assert total_loss(loss, labels, f, weights) >= best.loss - best.gap


def test_the_best_combination_may_be_a_single_function():
    values = np.array([[1.0, -1.0, 0.0]] * 4)
    best = best_in_hull(Scalar(Squared()), values, np.full((4, 1), 1.0), np.ones(4))
    np.testing.assert_allclose(best.q, [1, 0, 0], atol=1e-6)
    assert best.loss - best.gap <= 0 <= best.loss + 1e-12


@settings(max_examples=50)
@given(st.integers(0, 10**6), st.floats(0.05, 3))
def test_nothing_in_the_ball_beats_the_best_linear_function(seed, radius):
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((12, 3)), rng.standard_normal((12, 2))
    weights = rng.uniform(0, 2, 12)
    W = best_linear(X, Y, weights, radius)
    assert np.linalg.norm(W) <= radius * (1 + 1e-9)

    def loss(V):
        return weights @ ((Y - X @ V.T) ** 2).sum(axis=1)

    for _ in range(50):
        V = W + 0.1 * rng.standard_normal(W.shape)
        V *= min(1, radius / np.linalg.norm(V))
        assert loss(W) <= loss(V) + 1e-9


def test_the_best_linear_function_without_a_ball_solves_the_normal_equations():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 4)), rng.standard_normal(40)
    W = best_linear(X, y)
    np.testing.assert_allclose(X.T @ (y - X @ W[0]), 0, atol=1e-10)


def test_constant_features_are_allowed():
    X = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
    np.testing.assert_allclose(best_linear(X, np.array([1.0, 2.0, 3.0])), [[1, 0]], atol=1e-12)


def test_the_norm_of_a_linear_function_is_measured_by_its_ball():
    assert linear_norm(np.array([[3.0, 4.0]]), D=1, x_norm=2) == 10
    assert linear_norm(np.array([[0.1, 0.0]]), D=1, x_norm=2) == 1


def test_an_audit_reports_what_happened():
    """With one constant function and label 1, every number is known in advance."""
    X, y = np.zeros((10, 1)), np.ones(10)
    ones = FiniteClass([lambda x: 1.0])
    audit = audit_hull(HullBoost(ones, n=3, feedback="linear"), X, y, np.ones((10, 1)))
    assert audit.loss == pytest.approx(0, abs=1e-12)
    assert audit.comparator == pytest.approx(0, abs=1e-6)
    # 8 beta D^2 T / N = 8 * 2 * 10 / 3; one function leaves nothing to learn, R = 0
    assert audit.bound == pytest.approx((160 / 3, 0.0))
    assert audit.slack == pytest.approx(160 / 3, abs=1e-6)


def test_an_audit_of_the_span_has_the_terms_of_theorem_1():
    X, y = np.ones((4, 1)), np.array([1.0, -1.0, 1.0, 1.0])
    booster = SpanBoost(LinearBall(), n=4, eta=0.5, feedback="linear")
    audit = audit_span(booster, X, y, f=np.full(4, 2.0), f_norm=2.0)
    # squared loss: l(0) = 4, f = 2 loses 1 + 9 + 1 + 1 = 12, so Delta_0 = -8; (1 - 1/4)^4 = 81/256
    assert audit.comparator == 12
    assert audit.bound.initial == pytest.approx(-8 * 81 / 256)
    assert audit.bound.smoothness == pytest.approx(3 * 0.5 * 2 * 1 * 2 * 4)
    assert audit.bound.learner == pytest.approx(4 * 2 * (2 * 2**0.5 * 2))
    assert audit.bound.sigma == pytest.approx(2 * 4 * 1 * 2 * 2)


def test_corollary_1_starts_from_the_linearised_losses():
    X, y = np.full((2, 1), 0.1), np.array([1.0, 1.0])
    booster = SpanBoost(LinearBall(), n=2, eta=0.5, loss="absolute", feedback="linear")
    audit = audit_span(booster, X, y, f=np.ones(2), f_norm=1.0)
    # below the label the slope is -1, so Delta_0 = -(-1) * 1, twice; what is left of it, 1/4
    assert audit.bound.initial == pytest.approx(0.25 * 2)
    assert audit.bound.smoothness == 0


def test_what_no_theorem_covers_is_refused():
    X, y = np.zeros((2, 1)), np.zeros(2)

    class Silent:
        def predict(self, x):
            return 0.0

        def update(self, x, loss):
            pass

    with pytest.raises(ValueError, match="Silent states no regret bound"):
        audit_hull(HullBoost(Silent(), n=1), X, y, np.zeros((2, 1)))
    with pytest.raises(ValueError, match="offset='printed'"):
        audit_hull(HullBoost(LinearBall(), n=1), X, y, np.zeros((2, 1)))
    kinked = SpanBoost(LinearBall(), n=1, loss="absolute", feedback="greedy")
    with pytest.raises(ValueError, match="smooth losses"):
        audit_span(kinked, X, y, np.zeros(2), 1.0)


def test_logistic_comparators_may_leave_the_ball():
    """Separable data: the loss falls along a ray, and the audit just evaluates."""
    X, y = np.array([[0.5], [-0.5]]), np.array([1.0, -1.0])
    booster = SpanBoost(LinearBall(), n=30, loss=Logistic(), feedback="linear")
    audit = audit_span(booster, X, y, f=20 * X[:, 0], f_norm=20.0)
    assert audit.comparator < 1e-3
    assert audit.slack > 0


class Unproved(NamedTuple):
    """A convex loss without its constants."""

    def value(self, label, y):
        return (label - y) ** 2

    def gradient(self, label, y):
        return 2 * (y - label)


class Wavy(NamedTuple):
    """A loss that is not convex, with all constants."""

    def value(self, label, y):
        return 1 - math.exp(-((label - y) ** 2))

    def gradient(self, label, y):
        return 2 * (y - label) * math.exp(-((label - y) ** 2))

    def L(self, b):
        return 1.0

    def beta(self, b):
        return 2.0

    def eps(self, b):
        return 1.0


class WavyPair:
    """A loss on R^2 that is not convex."""

    d = 2

    def values(self, label, Y, out):
        out[:] = -((label[:, None] - Y) ** 2).sum(axis=0)

    def gradients(self, label, Y, out):
        out[:] = 2 * (label[:, None] - Y)

    def L(self, b):
        return 1.0

    beta = eps = L


@pytest.mark.filterwarnings("ignore::spanboost.errors.ConstantWarning")
def test_losses_that_no_theorem_covers_are_refused():
    X, y = np.full((3, 1), 0.5), np.zeros(3)
    estimated = SpanBoost(LinearBall(), n=2, loss=Unproved(), feedback="linear")
    with pytest.raises(
        ValueError, match=r"Unproved are estimated: add L\(b\), beta\(b\), eps\(b\)"
    ):
        audit_span(estimated, X, y, y, 1.0)
    assert audit(estimated, X, y, y).slack >= 0  # no constant is needed
    for loss in (Wavy(), WavyPair()):
        booster = SpanBoost(LinearBall(), n=2, loss=loss, feedback="linear")
        labels = y if loss == Wavy() else np.zeros((3, 2))
        for run in (audit_span, audit):
            with pytest.raises(ValueError, match="is not convex"):
                run(booster, X, labels, labels, 1.0)


class Saturating(NamedTuple):
    """A loss that is convex up to a distance of 5 from the label, and not beyond."""

    def value(self, label, y):
        return math.log(1 + ((y - label) / 5) ** 2)

    def gradient(self, label, y):
        return 2 * (y - label) / (25 + (y - label) ** 2)


@pytest.mark.filterwarnings("ignore::spanboost.errors.ConstantWarning")
@pytest.mark.parametrize("label_range", [(0, 100), "auto"])
def test_a_loss_must_be_convex_in_the_units_of_the_labels(label_range):
    X, y = np.full((6, 1), 0.5), np.array([0.0, 100.0] * 3)
    booster = SpanBoost(LinearBall(), n=2, loss=Saturating(), label_range=label_range)
    with pytest.raises(ValueError, match="Saturating is not convex"):
        audit(booster, X, y, y)
    assert not booster.started
    smaller = SpanBoost(LinearBall(), n=2, loss=Saturating(), label_range=(0, 2))
    assert audit(smaller, X, y / 50, y / 50).slack >= 0  # at these distances it is convex


@pytest.mark.filterwarnings("ignore::spanboost.errors.ConstantWarning")
def test_labels_far_from_0_do_not_make_a_convex_loss_fail():
    X, y = np.full((4, 1), 0.5), 1e9 + np.array([0.0, 1.0, 0.5, 1.0])
    booster = SpanBoost(LinearBall(), n=2, loss=Unproved(), label_range=(1e9, 1e9 + 1))
    assert audit(booster, X, y, y).slack >= 0


def test_values_that_do_not_fit_the_stream_are_refused():
    X, y = np.full((3, 1), 0.5), np.zeros(3)
    cases = (
        (np.zeros(2), r"f must have a value in R\^1 for each of 3 rows \(got \(2,\)\)"),
        (np.zeros((3, 2)), r"for each of 3 rows \(got \(3, 2\)\)"),
        ([0.0, math.nan, 0.0], "f must be finite, but is .nan. in row 1"),
    )
    for f, message in cases:
        for run in (audit_span, audit):
            booster = SpanBoost(LinearBall(), n=2, feedback="linear")
            with pytest.raises(ValueError, match=message):
                run(booster, X, y, f, 1.0)
            assert not booster.started


def test_the_functions_of_a_hull_must_be_bounded_by_D():
    """The bound of theorem 2 with D = 0.1 is far below the regret against functions up to 1."""
    X, y = np.full((4, 1), 0.5), np.ones(4)
    booster = HullBoost(LinearBall(), n=2, feedback="linear", D=0.1)
    for values, message in (
        (np.ones((4, 1)), "bounded by D = 0.1, but they reach 1"),
        (np.full((4, 1), math.nan), "but they reach nan"),
        (np.zeros((3, 1)), r"for each of 4 rows and each function \(got \(3, 1\)\)"),
    ):
        with pytest.raises(ValueError, match=message):
            audit_hull(booster, X, y, values)
        assert not booster.started
    assert audit_hull(booster, X, y, np.full((4, 1), 0.1)).slack >= 0


def test_an_understated_norm_is_refused():
    X, y = np.full((3, 1), 0.5), np.zeros(3)
    for D, f in ((1.0, 2.0), (0.5, 1.0)):
        booster = SpanBoost(LinearBall(), n=2, feedback="linear", D=D)
        with pytest.raises(
            ValueError, match=f"f_norm must be at least 2, because .f. reaches {f:g}"
        ):
            audit_span(booster, X, y, np.full(3, f), 1.9)
        assert audit_span(booster, X, y, np.full(3, f), 2.0).slack >= 0


def test_the_learner_term_uses_the_step_that_the_learner_asks_for():
    """beta_B' alpha D^2 T / 2 + L_B' R(T), with alpha = 1 instead of eta = 0.5; B = 1, beta = 2."""

    class Eager(LinearBall):
        greedy_step = 1.0

    for learner, alpha in ((LinearBall(), 0.5), (Eager(), 1.0)):
        booster = SpanBoost(learner, n=4, eta=0.5)
        expected = alpha * 100 + 2 * (2 + alpha) * 2 * math.sqrt(200)
        assert linear_regret(booster, 100) == pytest.approx(expected)


def test_the_hull_with_a_kinked_loss_has_the_learners_regret():
    """Linearised losses have no curvature: L_D R(T), and L_D = 1 for absolute loss."""
    booster = HullBoost(LinearBall(), n=5, loss="absolute", feedback="linear")
    assert hull_bound(booster, 50) == pytest.approx((0.0, 2 * math.sqrt(100)))
