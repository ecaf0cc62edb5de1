"""The per-stage inequalities of the proofs, on random and adversarial streams.

The regrets of the copies and of sigma are measured, not bounded, so the inequalities are tight: for
some streams they hold with equality, and a wrong step, sign, shrinkage or constant breaks them.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loss_streams import KINKED, SMOOTH, in_ball, no_more, rows, streams
from stages import Scripted, gradients, loss_values, run_rounds

from spanboost import FiniteClass, HullBoost, LinearBall, SpanBoost, Symmetrised
from spanboost.learners.finite import symmetric
from spanboost.losses import (
    Huber,
    PNorm,
    on_vectors,
)
from spanboost.theory.regret import audit_hull, audit_span, best_linear, linear_norm


def check_hull_stages(booster, r, f, scale=1.0):
    """Check Delta_i <= (1 - eta_i) Delta_{i-1} + 2 eta_i^2 beta_D D^2 T + eta_i L_D R_i."""
    loss, D, w = on_vectors(booster.loss_), scale * booster.D, r.weights
    beta, L = booster.loss_.beta(D), booster.loss_.L(D)
    of_f = loss_values(loss, r.labels, f)
    Delta = [w @ (loss_values(loss, r.labels, r.y[:, i]) - of_f) for i in range(booster.n + 1)]
    for i in range(1, booster.n + 1):
        eta = 2 / (i + 1)
        R = (r.passed[:, i - 1] * (r.h[:, i - 1] - f)).sum()
        bound = (1 - eta) * Delta[i - 1] + 2 * eta**2 * beta * D**2 * w.sum() + eta * L * R
        assert no_more(Delta[i], bound), f"stage {i}"
        yield bound - Delta[i]


def check_span_stages(booster, r, f, W):
    """Check Delta_i <= (1 - eta/W) Delta_{i-1} + 3 eta^2 beta_B B^2 T + eta L_B R_i + eta S_i."""
    loss, eta, w = on_vectors(booster.loss_), booster.eta_, r.weights
    B = booster.B_
    beta, L = booster.loss_.beta(B), booster.loss_.L(B)
    of_f = loss_values(loss, r.labels, f)
    Delta = [w @ (loss_values(loss, r.labels, r.y[:, i]) - of_f) for i in range(booster.n + 1)]
    for i in range(1, booster.n + 1):
        gradient = w[:, None] * gradients(loss, r.labels, r.y[:, i - 1])
        R = (r.passed[:, i - 1] * (r.h[:, i - 1] - f / W)).sum()
        along = (gradient * r.y[:, i - 1]).sum(axis=1)
        S = (along * (1 / W - r.sigma[:, i - 1])).sum()
        bound = (1 - eta / W) * Delta[i - 1] + 3 * eta**2 * beta * B**2 * w.sum()
        bound += eta * L * R + eta * S
        assert no_more(Delta[i], bound), f"stage {i}"
        yield bound - Delta[i]


def check_passed_losses(booster, r, radius, at_final=False):
    """Check that each is 1/L times the gradient at y^{i-1} (corollary 1: at y^N)."""
    L, loss = booster.loss_.L(radius), on_vectors(booster.loss_)
    for i in range(booster.n):
        at = r.y[:, -1] if at_final else r.y[:, i]
        expected = r.weights[:, None] * gradients(loss, r.labels, at) / L
        np.testing.assert_allclose(r.passed[:, i], expected, rtol=1e-12, atol=1e-12)
    assert no_more(np.linalg.norm(r.passed, axis=2).max(), 1)


def check_sigma(booster, r, at_final=False):
    """Check line 14, online gradient descent on [0, 1]: regret at most 2 L_B B sqrt(T)."""
    loss, T = on_vectors(booster.loss_), len(r.labels)
    assert (r.sigma[0] == 0).all()
    assert r.sigma.min() >= 0
    assert r.sigma.max() <= 1
    for i in range(booster.n):
        at = r.y[:, -1] if at_final else r.y[:, i]
        gradient = r.weights[:, None] * gradients(loss, r.labels, at)
        along = (gradient * r.y[:, i]).sum(axis=1)
        for comparator in (0.0, 1.0):
            S = (along * (comparator - r.sigma[:, i])).sum()
            bound = 2 * booster.L_B_ * booster.B_ * math.sqrt(T)
            assert no_more(S, bound)


@given(streams(SMOOTH))
def test_algorithm_2_stage_by_stage(stream):
    loss, D, N, predictions, f, labels, weights = stream
    booster = HullBoost(Scripted(), n=N, D=D, loss=loss, feedback="linear")
    r = run_rounds(booster, rows(predictions), labels, weights)
    assert len(list(check_hull_stages(booster, r, f))) == N
    check_passed_losses(booster, r, D)


@given(streams(SMOOTH), st.floats(0, 1), st.floats(1, 5))
def test_algorithm_1_stage_by_stage(stream, eta, W):
    loss, D, N, predictions, g, labels, weights = stream
    booster = SpanBoost(Scripted(), n=N, eta=max(eta, 1 / N), D=D, loss=loss, feedback="linear")
    r = run_rounds(booster, rows(predictions), labels, weights)
    assert len(list(check_span_stages(booster, r, W * g, W))) == N
    check_passed_losses(booster, r, booster.B_)
    check_sigma(booster, r)
    assert no_more(np.linalg.norm(r.y, axis=2).max(), booster.B_)


@given(streams(SMOOTH), st.floats(0.5, 4))
def test_scaled_algorithms_stage_by_stage(stream, scale):
    """The theorems hold with lambda D for D: h is scaled, the slopes passed on are not."""
    loss, D, N, predictions, f, labels, weights = stream
    hull = HullBoost(Scripted(), n=N, D=D, loss=loss, feedback="linear", scale=scale)
    r = run_rounds(hull, rows(predictions), labels, weights)
    assert len(list(check_hull_stages(hull, r, scale * f, scale))) == N
    check_passed_losses(hull, r, scale * D)
    span = SpanBoost(Scripted(), n=N, D=D, loss=loss, feedback="linear", scale=scale)
    r = run_rounds(span, rows(predictions), labels, weights)
    assert len(list(check_span_stages(span, r, 2 * scale * f, 2.0))) == N
    check_passed_losses(span, r, span.B_)


@given(streams(KINKED), st.floats(1, 5))
def test_corollary_1_stage_by_stage(stream, W):
    """Theorem 1 for losses linearised at the predictions; beta is 0, so stages are equalities."""
    loss, D, N, predictions, g, labels, weights = stream
    f = W * g
    booster = SpanBoost(Scripted(), n=N, D=D, loss=loss, feedback="linear")
    assert booster.eta_ * N * D == booster.B_
    r = run_rounds(booster, rows(predictions), labels, weights)
    check_passed_losses(booster, r, booster.B_, at_final=True)
    check_sigma(booster, r, at_final=True)
    gradient = weights[:, None] * gradients(on_vectors(loss), r.labels, r.y[:, -1])
    Delta = [(gradient * (r.y[:, i] - f)).sum() for i in range(N + 1)]
    for i in range(1, N + 1):
        R = (r.passed[:, i - 1] * (r.h[:, i - 1] - f / W)).sum()
        along = (gradient * r.y[:, i - 1]).sum(axis=1)
        S = (along * (1 / W - r.sigma[:, i - 1])).sum()
        eta, L = booster.eta_, loss.L(booster.B_)
        stage = (1 - eta / W) * Delta[i - 1] + eta * L * R + eta * S
        assert Delta[i] == pytest.approx(stage, rel=1e-9, abs=1e-9)
    of_f = loss_values(on_vectors(loss), r.labels, f)
    regret = weights @ (loss_values(on_vectors(loss), r.labels, r.y[:, -1]) - of_f)
    assert no_more(regret, Delta[N])


def test_algorithm_2_is_tight_where_the_proof_is():
    """A copy jumps from -D to +D under squared loss, against f = -D: all steps are equalities."""
    predictions = np.array([[[-1.0], [1.0]]] * 3)
    booster = HullBoost(Scripted(), n=2, feedback="linear")
    r = run_rounds(booster, rows(predictions), np.ones(3))
    slack = list(check_hull_stages(booster, r, np.full((3, 1), -1.0)))
    assert slack[1] == pytest.approx(0, abs=1e-12)


def test_algorithm_1_is_tight_for_linear_losses():
    """With beta = 0 and B = eta N D, every step is an equality, whatever the copies do."""
    rng = np.random.default_rng(1)
    predictions = rng.uniform(-1, 1, (20, 4, 1))
    labels = rng.choice([-1.0, 1.0], 20)
    booster = SpanBoost(Scripted(), n=4, eta=0.5, loss="linear", feedback="linear")
    r = run_rounds(booster, rows(predictions), labels)
    assert r.sigma.max() > 0.1  # shrinkage is at work
    for slack in check_span_stages(booster, r, rng.uniform(-3, 3, (20, 1)), 3.0):
        assert slack == pytest.approx(0, abs=1e-9)


def test_sigma_follows_an_adversary_that_reverses():
    """After a long run in one direction, steps that shrink faster than 1/sqrt(t) never return."""
    labels = np.repeat([-1.0, 1.0], 800)
    booster = SpanBoost(Scripted(), n=2, eta=1.0, loss="linear", feedback="linear")
    r = run_rounds(booster, np.ones((1600, 2)), labels)
    check_sigma(booster, r)
    assert r.sigma[800, 1] == 1  # it learned to shrink, and unlearns it later
    assert r.sigma[-1, 1] == 0


def test_projection_costs_at_most_eta_eps_D():
    """Logistic loss, and all copies predict +D: the projection keeps the partial sums at B."""
    booster = SpanBoost(Scripted(), n=40, eta=0.5, loss="logistic", feedback="linear")
    assert booster.B_ < 0.5 * 40
    r = run_rounds(booster, np.ones((2, 40)), np.ones(2))
    assert np.abs(r.y[:, -1]).max() == booster.B_
    assert len(list(check_span_stages(booster, r, np.full((2, 1), 1.5), 1.5))) == 40


def stream(T=300, seed=0):
    rng = np.random.default_rng(seed)
    X = in_ball(rng.uniform(-1, 1, (T, 3)), 1)
    y = np.clip(1.4 * X[:, 0] - 0.7 * X[:, 1] + 0.1 * rng.standard_normal(T), -1, 1)
    return X, y


SIGNS = symmetric([lambda x, j=j: 1.0 if x[j] > 0 else -1.0 for j in range(3)])


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("loss", ["squared", PNorm(3.0), Huber(0.5)], ids=repr)
@pytest.mark.parametrize("feedback", ["linear", "greedy"])
def test_measured_regret_is_below_theorem_2(feedback, loss, seed):
    X, y = stream(seed=seed)
    learner = FiniteClass(SIGNS)
    offset = "printed" if feedback == "greedy" else None
    booster = HullBoost(learner, n=10, loss=loss, feedback=feedback, offset=offset)
    audit = audit_hull(booster, X, y, learner.encode(X))
    assert audit.slack >= 0
    assert audit.regret < audit.bound.total
    assert audit.loss > 0


@pytest.mark.parametrize("loss", ["squared", "logistic", "absolute", "hinge"])
@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_measured_regret_is_below_theorem_1(loss, scale):
    X, y = stream()
    if loss in ("logistic", "hinge"):
        y = np.where(y > 0, 1.0, -1.0)
    W = best_linear(X, y)
    learner = Symmetrised(LinearBall())
    booster = SpanBoost(learner, n=20, loss=loss, feedback="linear", scale=scale)
    audit = audit_span(booster, X, y, X @ W.T, linear_norm(W, D=1, x_norm=1))
    assert audit.slack >= 0


def test_measured_regret_is_below_theorem_1_with_weights_and_greedy_fitting():
    X, y = stream()
    weights = np.random.default_rng(5).choice([0.0, 0.25, 1.0], len(X))
    W = best_linear(X, y, weights)
    booster = SpanBoost(LinearBall(), n=20, feedback="greedy")
    audit = audit_span(booster, X, y, X @ W.T, linear_norm(W, D=1, x_norm=1), weights)
    assert audit.slack >= 0
    assert audit.regret > 0


def test_sigma_by_hand():
    """Line 14 for two rounds, computed by hand."""
    squared = SpanBoost(Scripted(), n=2, eta=0.5, feedback="linear")  # B = 1, L_B = 4
    run_rounds(squared, np.ones((2, 2)), -np.ones(2))
    # y^0 = 0 teaches copy 1 nothing. y^1 = 1/2, its gradient 2 (1/2 + 1) = 3: along 3/2, twice
    # alpha_1 = 1/4: 3/8.  alpha_2 = 1/(4 sqrt 2): 3/8 + 3/(8 sqrt 2) = 0.640165...
    np.testing.assert_allclose(squared.sigma_, [0, 0.6401650429449553], rtol=1e-15)
    linear = SpanBoost(Scripted(), n=2, eta=1.0, loss="linear", feedback="linear")  # B = 2, L_B = 1
    run_rounds(linear, np.ones((1, 2)), -np.ones(1))
    # y^1 = 1, gradient 1, alpha_1 = 1/2
    np.testing.assert_array_equal(linear.sigma_, [0, 0.5])


def test_the_hull_weighs_its_copies_1_2_3():
    """Steps 1, 2/3, 1/2 give the prediction (h_1 + 2 h_2 + 3 h_3) / 6."""
    booster = HullBoost(Scripted(), n=3, feedback="linear")
    r = run_rounds(booster, np.eye(3), np.zeros(3))
    np.testing.assert_allclose(r.y[:, -1, 0], [1 / 6, 2 / 6, 3 / 6], rtol=1e-15)


def test_greedy_losses_by_hand():
    """A copy gets h -> l(offset + alpha h), here with both offsets in both algorithms."""
    seen = []

    class Watcher:
        def predict(self, x):
            return 1.0

        def update(self, x, loss):
            seen.append((loss.value(0.0), loss.slope(0.0), loss.value(1.0), loss.slope(1.0)))

    span = SpanBoost(Watcher(), n=2, eta=0.5, offset="printed")
    span.learn_one([0.0], 1.0)
    # offset 0, step 1/2: h = 0 loses 1, slope 1/2 * -2; h = 1 loses 1/4, slope 1/2 * -1
    # offset 1/2 of y^1 = 1/2: h = 0 loses 1/4, slope 1/2 * -1; h = 1 loses nothing
    assert seen == [(1, -1, 0.25, -0.5), (0.25, -0.5, 0, 0)]
    seen.clear()
    hull = HullBoost(Watcher(), n=2, offset="shrunk")
    hull.learn_one([0.0], 1.0)
    # eta_1 = 1, offset 0; then eta_2 = 2/3 and offset (1 - 2/3) y^1 = 1/3
    expected = [(1, -2, 0, 0), (4 / 9, -8 / 9, 0, 0)]
    np.testing.assert_allclose(seen, expected, atol=1e-15)
    seen.clear()
    scaled = HullBoost(Watcher(), n=1, scale=2.0, alpha=0.25, offset="printed")
    scaled.learn_one([0.0], 1.0, weight=3.0)
    # 3 (1 - 1/4 * 2 h)^2: the step is alpha lambda, and the weight multiplies all
    np.testing.assert_allclose(seen, [(3, -3, 0.75, -1.5)], atol=1e-15)
