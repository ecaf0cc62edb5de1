"""Tests of networks: comparison with naive copies, gradients by differences, first weights."""

import math

import naive_learners
import numpy as np
import pytest
from banks import LOSSES, run_listing, stream, weights_for
from hypothesis import given
from hypothesis import strategies as st
from naive_learners import exact_flow, exact_squash, series_squash

from spanboost import HullBoost, LinearSGD, Network, SpanBoost
from spanboost.compiling.kernels import plain
from spanboost.learners.network import sigmoid
from spanboost.learners.protocol import Task

F32, F64 = np.float32, np.float64


# --------------------------------------------------------------------------------------------
# The oracle itself


class Quadratic:
    """h -> w sum_k c (h_k - y_k)^2 / 2, of curvature c at weight 1."""

    def __init__(self, label, weight=1.0, c=1.0):
        self.label, self.weight, self.c = label, weight, c

    def value(self, h):
        pairs = zip(h, self.label, strict=True)
        return self.weight * self.c * sum((p - q) ** 2 for p, q in pairs) / 2

    def slope(self, h):
        return [self.weight * self.c * (p - q) for p, q in zip(h, self.label, strict=True)]


def random_copy(d=2, hidden=3, **options):
    """Return a naive network with three features and random weights."""
    rng = np.random.default_rng(3)
    first = rng.uniform(-1, 1, (5, hidden))
    copy = naive_learners.Network(
        d, options.pop("rate", 1e-6), hidden=hidden, start=lambda f, j: first[f, j], **options
    )
    for f, S in ((0, 1.0), (1, 2.0), (3, 0.5)):
        copy.add_feature(f)
        copy.S[f] = S
    copy.V = rng.standard_normal((d, hidden + 1)).tolist()
    return copy


ROW = [(0, 1.0), (1, -1.3), (3, 0.5)]


def parameters(copy):
    """Return every weight as (list, index, whether it is in the output layer)."""
    hidden = [(W, j, False) for W in copy.W.values() for j in range(len(W))]
    return hidden + [(V, j, True) for V in copy.V for j in range(len(V))]


def differences(copy, function, step=1e-6):
    """Return d function(copy) / d weight for every weight, by central differences."""
    out = []
    for weights, j, _ in parameters(copy):
        middle = weights[j]
        weights[j] = middle + step
        above = function(copy)
        weights[j] = middle - step
        below = function(copy)
        weights[j] = middle
        out.append((np.array(above) - np.array(below)) / (2 * step))
    return np.array(out)


@pytest.mark.parametrize("d", [1, 2])
def test_naive_steps_follow_the_gradient(d):
    loss = Quadratic([0.3, -0.8][:d], weight=2.0)
    copy = random_copy(d, decay=0.0)
    gradient = differences(copy, lambda c: loss.value(c.predict(ROW)))
    before = np.array([weights[j] for weights, j, _ in parameters(copy)])
    copy.update(ROW, loss)
    after = np.array([weights[j] for weights, j, _ in parameters(copy)])
    square = 1 + (1.3 / 2) ** 2 + 1
    pace = np.array([1 / 4 if outer else 1 / square for *_, outer in parameters(copy)])
    np.testing.assert_allclose(after - before, -1e-6 * pace * gradient, rtol=1e-3, atol=1e-13)


@pytest.mark.parametrize("decay", [None, 0.0])
def test_naive_steps_follow_the_gradient_flow(decay):
    """With one output, the distance to the label shrinks exponentially and never overshoots."""
    gaps = []
    for rate in (1e-4, 1e-3):
        copy, loss = random_copy(1, decay=decay, rate=rate, curvature=3.0), Quadratic([0.4], 1.5, 3)
        gap = copy.predict(ROW)[0] - 0.4
        gradient = differences(copy, lambda c, loss=loss: loss.value(c.predict(ROW)))
        jacobian = differences(copy, lambda c: c.predict(ROW)[0])
        before = np.array([weights[j] for weights, j, _ in parameters(copy)])
        copy.update(ROW, loss)
        after = np.array([weights[j] for weights, j, _ in parameters(copy)])
        # the movement of h to first order, and the one of the gradient flow
        moved = jacobian @ (after - before)
        square = 1 + (1.3 / 2) ** 2 + 1
        rates = 1 / np.sqrt(gradient**2 / 1.5) if decay is None else np.ones(len(gradient))
        outer = np.array([outer for *_, outer in parameters(copy)])
        pace = np.where(outer, 1 / 4, 1 / square)
        pace = np.sqrt(pace) if decay is None else pace
        unit = rate * (jacobian**2 * pace * rates).sum()  # how far a slope of 1 moves h
        assert moved == pytest.approx(gap * (math.exp(-3 * 1.5 * unit) - 1), rel=1e-4)
        gaps.append(abs(moved / gap))
    assert 5 * gaps[0] < gaps[1] < 1


def test_naive_steps_with_huge_rates_reach_the_label_to_first_order():
    copy = random_copy(1, decay=0.0, rate=1e6, curvature=1.0)
    gap = copy.predict(ROW)[0] - 0.4
    jacobian = differences(copy, lambda c: c.predict(ROW)[0])
    before = np.array([weights[j] for weights, j, _ in parameters(copy)])
    copy.update(ROW, Quadratic([0.4]))
    after = np.array([weights[j] for weights, j, _ in parameters(copy)])
    assert jacobian @ (after - before) == pytest.approx(-gap, rel=1e-4)


def test_naive_networks_ignore_features_never_learned():
    copy = random_copy(1)
    assert copy.predict([*ROW, (4, 7.0)]) == copy.predict(ROW)
    assert copy.predict([(0, 1.0), (1, 50.0)]) == copy.predict([(0, 1.0), (1, 2.0)])


# --------------------------------------------------------------------------------------------
# The library's networks and the naive ones

HIDDEN = 3


def fresh_bank(learner, n, features=9, d=1, seed=0, copy=None):
    rows = learner.encode(np.ones((1, features - 1)), 1.0)
    index = np.arange(n) if copy is None else np.array(copy)
    task = Task(
        n=n, d=d, rows=rows, D=1.0, linear=False, lipschitz=np.ones(n), smoothness=np.zeros(n),
        seed=seed, copy=index,
    )  # fmt: skip
    return learner.bank(task).grown(features, features + 1)


def first_weights(learner, n, features=9, **options):
    """Return the library's first weights, [feature, hidden, copy]."""
    bank = fresh_bank(learner, n, features, **options)
    return bank.inputs.W.reshape(features, learner.hidden, n).astype(float)


def naive_copies(learner, n, d, **series):
    first = first_weights(learner, n)

    def copy(c, bound, i):
        return naive_learners.Network(
            d, learner.rate, hidden=learner.hidden, start=lambda f, j: first[f, j, i],
            curvature=c, D=bound, decay=learner.decay, **series,
        )  # fmt: skip

    return copy


@pytest.mark.parametrize("decay", [None, 0.5])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("feedback", ["greedy", "linear"])
@pytest.mark.parametrize("make", [SpanBoost, HullBoost])
def test_networks_agree_with_the_listing_over_naive_copies(make, feedback, loss, decay):
    X, y = stream(60, loss=loss)
    weights, d = weights_for(60), 2 if loss == "euclidean2" else 1
    D = 1.0 if feedback == "greedy" else 0.3
    learner = Network(0.3, decay, hidden=HIDDEN, dtype=F64)
    booster = make(learner, 3, loss=LOSSES[loss], feedback=feedback, D=D)
    with plain():
        got = booster.learn_many(X, y, weights).reshape(60, d)
    want = run_listing(booster, naive_copies(learner, 3, d), loss, X, y, weights)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    assert np.ptp(got) > 1e-3


def test_colliding_features_of_a_hashed_table_are_learned_one_by_one():
    X, y = stream(60)
    learner = Network(0.3, bits=1, hidden=HIDDEN, dtype=F64)
    booster = SpanBoost(learner, 3)
    with plain():
        got = booster.learn_many(X, y)
    want = run_listing(booster, naive_copies(learner, 3, 1), "squared", X, y, np.ones(60))[:, 0]
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("make", [SpanBoost, HullBoost])
def test_networks_agree_with_exact_sigmoids(make):
    """The reference uses the exact sigmoid and flow instead of the library's series."""
    X, y = stream(100)
    learner = Network(0.3, hidden=HIDDEN, dtype=F64)
    booster = make(learner, 3)
    with plain():
        got = booster.learn_many(X, y)
    exact = naive_copies(learner, 3, 1, squash=exact_squash, flow=exact_flow)
    want = run_listing(booster, exact, "squared", X, y, np.ones(100))[:, 0]
    np.testing.assert_allclose(got, want, atol=1e-4)


@pytest.mark.parametrize("make", [SpanBoost, HullBoost])
def test_single_precision_is_near_the_listing_after_many_rows(make):
    X, y = stream(1000, missing=False)
    learner = Network(0.3, hidden=HIDDEN)
    booster = make(learner, 3)
    with plain():
        got = booster.learn_many(X, y)
    want = run_listing(
        booster, naive_copies(learner, 3, 1), "squared", X.astype(F32), y, np.ones(1000)
    )[:, 0]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@given(st.floats(-1e9, 1e9) | st.floats(-20, 20))
def test_sigmoid_approximates_the_hyperbolic_tangent(a):
    for dtype, tolerance in ((F64, 5e-6), (F32, 5e-6)):
        found = sigmoid(dtype(a), np.zeros(1, dtype))
        assert type(found) is dtype
        assert found == series_squash(dtype(a))
        assert found == pytest.approx(math.tanh(float(dtype(a)) / 2), abs=tolerance)
        assert -1 <= found <= 1


# --------------------------------------------------------------------------------------------
# First weights


def test_first_weights_are_uniform_and_independent():
    W = first_weights(Network(hidden=10), 20, features=50)
    assert -1 < W.min() < -0.99
    assert 0.99 < W.max() < 1
    assert len(np.unique(W)) > 0.999 * W.size
    counts = np.histogram(W, bins=20, range=(-1, 1))[0]
    expected = W.size / 20
    assert ((counts - expected) ** 2 / expected).sum() < 50  # chi-square, 19 degrees of freedom
    for axis in range(3):  # neighbours along any axis are independent
        a, b = np.moveaxis(W, axis, 0)[:-1].ravel(), np.moveaxis(W, axis, 0)[1:].ravel()
        assert abs(np.corrcoef(a, b)[0, 1]) < 4 / math.sqrt(len(a))
        means = W.mean(axis=axis)
        assert means.std() < 1.5 * math.sqrt(1 / 3 / W.shape[axis])


@pytest.mark.parametrize("dtype", [F32, F64])
def test_first_weights_depend_only_on_seed_copy_feature_and_unit(dtype):
    learner = Network(hidden=4, dtype=dtype)
    W = first_weights(learner, 5)
    np.testing.assert_array_equal(first_weights(learner, 2), W[:, :, :2])
    np.testing.assert_array_equal(first_weights(learner, 2, copy=[3, 1]), W[:, :, [3, 1]])
    np.testing.assert_array_equal(first_weights(learner, 5, features=4), W[:4])
    np.testing.assert_array_equal(first_weights(learner, 5, d=3), W)
    np.testing.assert_array_equal(first_weights(Network(hidden=2, dtype=dtype), 5), W[:, :2])
    grown = fresh_bank(learner, 5, features=2).grown(9, 9)
    np.testing.assert_array_equal(grown.inputs.W[:9].reshape(9, 4, 5), W)
    other = first_weights(learner, 5, seed=1)
    assert not (other == W).any()


def test_networks_start_at_0():
    X, y = stream(5)
    with plain():
        model = SpanBoost(Network(), 3)
        assert not model.predict_many(X).any()
        model.learn_many(X, y)
        assert model.predict_many(X).all()


@pytest.mark.parametrize("hidden", [0, -1, 2.5])
def test_the_number_of_hidden_units_is_checked(hidden):
    with pytest.raises(ValueError, match=r"^hidden must be a positive integer \(got "):
        SpanBoost(Network(hidden=hidden), 3)


def test_a_network_learns_a_function_that_is_not_linear():
    """The label is the product of two signs."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (4000, 2))
    y = 0.8 * X[:, 0] * X[:, 1]
    network = SpanBoost(Network(0.5), 1, 1.0).learn_many(X, y)
    linear = SpanBoost(LinearSGD(0.5), 1, 1.0).learn_many(X, y)
    assert ((network - y)[2000:] ** 2).mean() < 0.05
    assert ((linear - y)[2000:] ** 2).mean() > 0.5
