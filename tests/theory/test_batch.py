"""Batch boosting: both algorithms against a slow oracle and against their bounds."""

import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spanboost.losses import Logistic, Squared
from spanboost.theory import batch, bounds

FLIPPED = batch.Shrinkage(falling=1.0, rising=0.0)


@st.composite
def problems(draw):
    """A loss, a dictionary, labels, steps, and weights of a comparator."""
    K, n = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    unit = st.floats(-1, 1, allow_subnormal=False)
    G = draw(arrays(float, (K, n), elements=unit))
    labels = draw(arrays(float, n, elements=unit))
    loss = draw(st.sampled_from([Squared(), Logistic()]))
    if loss == Logistic():
        labels = np.where(labels < 0, -1.0, 1.0)
    longest = draw(st.sampled_from([0.02, 0.2, 1.0]))
    steps = draw(arrays(float, st.integers(1, 30), elements=st.floats(longest / 10, longest)))
    weights = draw(arrays(float, K, elements=st.floats(-3, 3)))
    return loss, G, labels, steps, weights


def errors_against(weights, G, labels, run, loss):
    """Return Delta_0..Delta_N, and the norm W of the weights."""
    f = weights @ G
    value = np.mean([loss.value(y, v) for y, v in zip(labels, f, strict=True)])
    return run.values - value, max(1.0, np.abs(weights).sum())


def stage_excess(Delta, W, s, beta):
    """Return how far Delta_i exceeds (1 - eta_i/W) Delta_{i-1} + beta/2 eta_i^2 (s_i^2 + 1)."""
    eta = np.diff(s)
    return Delta[1:] - (1 - eta / W) * Delta[:-1] - beta / 2 * eta**2 * (s[1:] ** 2 + 1)


@settings(deadline=None, max_examples=150)
@given(problems())
def test_both_algorithms_stay_below_their_bound_after_every_stage(problem):
    loss, G, labels, steps, weights = problem
    for rule, bound in (
        (batch.ZHANG_YU, bounds.zhang_yu),
        (batch.PAPER, bounds.batch_boosting),
    ):
        run = batch.boost(batch.symmetric(G), labels, steps, rule, loss)
        Delta, W = errors_against(weights, G, labels, run, loss)
        promised = bound(Delta_0=Delta[0], f_norm=W, beta=loss.beta(steps.sum()), steps=steps)
        assert np.all(Delta[1:] <= promised.total + 1e-10)


@settings(deadline=None, max_examples=150)
@given(problems())
def test_every_stage_with_sigma_gains_what_the_derivation_says(problem):
    loss, G, labels, steps, weights = problem
    run = batch.boost(batch.symmetric(G), labels, steps, batch.PAPER, loss)
    Delta, W = errors_against(weights, G, labels, run, loss)
    assert stage_excess(Delta, W, run.s, loss.beta(steps.sum())).max() <= 1e-12


def test_flipping_sigma_breaks_the_bound():
    # One function, which is needed three times. Flipped shrinkage keeps f at 1, far too small.
    labels, weights, G = [3.0], np.array([3.0]), [[1.0]]
    steps = np.full(12_000, 1e-3)
    promised = bounds.batch_boosting(Delta_0=9.0, f_norm=3.0, beta=2.0, steps=steps).total
    outcomes = {}
    for rule in (batch.PAPER, FLIPPED):
        run = batch.boost(batch.symmetric(G), labels, steps, rule)
        Delta, W = errors_against(weights, np.array(G), labels, run, Squared())
        excess = stage_excess(Delta, W, run.s, 2.0)
        outcomes[rule] = (excess.max() <= 1e-12, bool(np.all(Delta[1:] <= promised)), Delta[-1])
    assert outcomes[batch.PAPER] == (True, True, pytest.approx(0, abs=1e-4))
    assert outcomes[FLIPPED] == (False, False, pytest.approx(4, rel=1e-3))


@settings(deadline=None, max_examples=100)
@given(problems(), st.sampled_from([batch.ZHANG_YU, batch.PAPER]))
def test_base_learner_is_exact_at_every_stage(problem, rule):
    loss, G, labels, steps, _ = problem
    closed = batch.symmetric(G)
    run = batch.boost(closed, labels, steps, rule, loss)
    f = np.zeros_like(labels)
    for eta, sigma, k in zip(steps, run.sigmas, run.chosen, strict=True):
        trials = f + eta * closed
        values = [
            np.mean([loss.value(y, v) for y, v in zip(labels, t, strict=True)]) for t in trials
        ]
        assert values[k] <= min(values) + 1e-15
        assert batch.base_learner(loss, labels, closed, f, eta) == k
        f = (1 - sigma * eta) * f + eta * closed[k]
    np.testing.assert_allclose(run.coefficients @ closed, f, rtol=0, atol=1e-12)


def oracle(G, labels, steps, *, shrink):
    """Run both algorithms under squared loss, in plain Python."""
    n = len(labels)
    f, coefficients = [0.0] * n, [0.0] * len(G)
    values, sigmas = [math.fsum(y * y for y in labels) / n], []
    for eta in steps:
        losses = [
            math.fsum((y - v - eta * g) ** 2 for y, v, g in zip(labels, f, row, strict=True))
            for row in G
        ]
        best = losses.index(min(losses))
        grows = math.fsum(v * (v - y) for y, v in zip(labels, f, strict=True)) >= 0
        keep = 1 - eta if shrink and grows else 1
        f = [keep * v + eta * g for v, g in zip(f, G[best], strict=True)]
        coefficients = [keep * c + (eta if k == best else 0) for k, c in enumerate(coefficients)]
        values.append(math.fsum((y - v) ** 2 for y, v in zip(labels, f, strict=True)) / n)
        sigmas.append(int(shrink and grows))
    return values, sigmas, coefficients


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("rule", "shrink"), [(batch.ZHANG_YU, False), (batch.PAPER, True)])
def test_agrees_with_a_plain_oracle(seed, rule, shrink):
    rng = np.random.default_rng(seed)
    G = batch.symmetric(rng.uniform(-1, 1, (6, 9)))
    labels, steps = rng.uniform(-1, 1, 9), rng.uniform(0.01, 1, 60) ** 2
    run = batch.boost(G, labels, steps, rule)
    values, sigmas, coefficients = oracle(
        G.tolist(), labels.tolist(), steps.tolist(), shrink=shrink
    )
    np.testing.assert_allclose(run.values, values, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(run.sigmas, sigmas)
    np.testing.assert_allclose(run.coefficients, coefficients, rtol=0, atol=1e-12)
    assert run.s[0] == 1
    assert run.s[-1] == pytest.approx(1 + math.fsum(steps))
    if shrink:  # both values of sigma occur after the first stage, where f_0 = 0
        assert set(run.sigmas[1:]) == {0, 1}


class HalfSquared:
    """A user-defined loss as an ordinary class that is not compiled."""

    def value(self, label, y):
        return (label - y) ** 2 / 2

    def gradient(self, label, y):
        return y - label

    def beta(self, b):
        return 1.0


def test_any_object_with_the_methods_is_a_loss():
    rng = np.random.default_rng(0)
    G, labels = batch.symmetric(rng.uniform(-1, 1, (3, 4))), rng.uniform(-1, 1, 4)
    whole = batch.boost(G, labels, [0.3] * 10)
    half = batch.boost(G, labels, [0.3] * 10, loss=HalfSquared())
    np.testing.assert_allclose(half.values, whole.values / 2, rtol=1e-14)
    np.testing.assert_array_equal(half.chosen, whole.chosen)


def test_closing_a_dictionary():
    closed = {tuple(row) for row in batch.symmetric([[1.0, 0.0], [0.5, -0.25]])}
    assert closed == {(1, 0), (-1, 0), (0.5, -0.25), (-0.5, 0.25), (0, 0)}


def test_thresholds_are_linearly_independent():
    assert batch.thresholds(2).tolist() == [[1, 1, 1, 1], [-1, -1, 1, 1]]
    G = batch.thresholds(7)
    assert set(np.unique(G)) == {-1, 1}
    assert np.linalg.matrix_rank(G) == 7


def test_experiment_on_four_thresholds_by_hand():
    # Weights 1, 0, -1, 0 scaled to add up to 1.5 make a function that is 1.5 on the left half of
    # the points and 0 on the right, so the zero function's loss is 2.25 / 2. The first step of 1/2
    # takes the constant 1, or what is 1 on the left and -1 on the right: losses 1 and 1/4 in turn.
    result = batch.experiment(K=4, f_norm=1.5, steps=[0.5])
    assert result.Delta_0 == pytest.approx(1.125)
    for curve in (result.zhang_yu, result.paper):
        assert curve.errors == pytest.approx([(1 + 0.25) / 2])
        assert curve.errors <= curve.bound.total
    assert result.s == pytest.approx([1.5])


def test_experiment_runs_one_algorithm_that_shrinks_and_one_that_does_not():
    # Without shrinkage a stage can always add nothing, so errors never rise. Once f fits as well as
    # these long steps allow, shrinking it must sooner or later make it worse.
    result = batch.experiment(steps=[0.3] * 30)
    assert np.diff(result.zhang_yu.errors).max() <= 0
    assert np.diff(result.paper.errors).max() > 0


def test_default_experiment_shows_errors_below_bounds_and_the_faster_bound(capsys):
    result = batch.experiment()
    for curve in (result.zhang_yu, result.paper):
        assert np.all(curve.errors >= 0)
        assert np.all(curve.errors <= curve.bound.total)
    assert np.all(result.paper.bound.total <= result.zhang_yu.bound.total)
    assert result.paper.bound.total[-1] < result.zhang_yu.bound.total[-1] / 5

    batch.main([])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows[2:]] == ["1", "10", "100", "1000", "10000", "100000"]
    last = [float(cell) for cell in rows[-1][1:]]
    curves = (result.zhang_yu, result.paper)
    shown = [number for c in curves for number in (c.errors[-1], c.bound.total[-1])]
    assert last == pytest.approx([result.s[-1], *shown], rel=5e-3)


def test_plot_writes_the_same_file_twice(tmp_path):
    pytest.importorskip("matplotlib", reason="drawing needs matplotlib")
    result = batch.experiment(steps=batch.harmonic_steps(1.5, N=500))
    for name in ("a.svg", "b.svg", "c.png"):
        batch.plot(result, tmp_path / name)
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    svg = (tmp_path / "a.svg").read_text()
    assert svg == (tmp_path / "b.svg").read_text()
    # in each colour, three lines of the plot and three samples of the legend
    assert svg.count("#1f4e8c") == svg.count("#e08a3c") == 6


def test_plot_from_the_command_line(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="drawing needs matplotlib")
    short = batch.experiment(steps=[0.1, 0.2, 0.3])
    monkeypatch.setattr(batch, "experiment", lambda: short)
    batch.main(["--plot", str(tmp_path / "picture.png")])
    assert (tmp_path / "picture.png").stat().st_size > 1000


def test_plot_without_matplotlib_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = batch.experiment(steps=[0.1])
    with pytest.raises(ImportError, match=r"pip install '\.\[plot\]'"):
        batch.plot(result, tmp_path / "picture.svg")
