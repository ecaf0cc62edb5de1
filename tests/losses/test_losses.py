"""Compares the constants of every loss, and the radius B, with their definitions as suprema.

The tests repeat no closed form of a constant. They compare each constant with the largest quotient
that a search over labels and predictions finds, using only the loss and its gradient.
"""

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spanboost.losses import (
    NAMES,
    Absolute,
    Gamma,
    Hinge,
    Huber,
    Linear,
    Logistic,
    ModifiedLeastSquares,
    PNorm,
    Poisson,
    Quantile,
    Scalar,
    Softmax,
    Squared,
    SquaredEuclidean,
    constant,
    predicts_scores,
    radius,
    resolve,
)

SMOOTH = [
    Linear(),
    Squared(),
    *(PNorm(p) for p in (2.0, 2.5, 3.0, 6.0)),
    ModifiedLeastSquares(),
    Logistic(),
    *(Huber(delta) for delta in (0.05, 0.1, 1.0, 4.0)),
]
ANY_LABEL_KINK = [Absolute(), *(Quantile(tau) for tau in (0.1, 0.5, 0.8))]
KINKED = [*ANY_LABEL_KINK, Hinge()]
SCALAR = SMOOTH + KINKED
VECTOR = [*(SquaredEuclidean(d) for d in (1, 2, 3)), *(Softmax(d) for d in (2, 3, 5))]
TWO_LABELS = (ModifiedLeastSquares, Logistic, Hinge)

RADII = [0.05, 0.3, 0.8, 0.999, 1.0, 1.7, 5.0]
SCORE_RADII = [0.05, 0.5, 1.0, 2.0, 5.0]

thorough = settings(max_examples=60, deadline=None, derandomize=True)


def labels(loss, count=21):
    """Return test labels: -1 and 1 for a binary loss, else a grid on [-1, 1]."""
    return np.array([-1.0, 1.0]) if isinstance(loss, TWO_LABELS) else np.linspace(-1, 1, count)


# -- Suprema by search -----------------------------------------------------------------------------


def supremum(f, *axes):
    """Return the largest f over a grid, then over finer and finer grids around the best point.

    An axis of two points is a choice between them and is not refined.
    """
    best, at = -math.inf, None
    for _ in range(6):
        for point in itertools.product(*(axis.tolist() for axis in axes)):
            if (found := f(*point)) > best:
                best, at = found, point
        assert at is not None
        axes = tuple(
            axis if len(axis) == 2 else refine(axis, x) for axis, x in zip(axes, at, strict=True)
        )
    return best


def refine(axis, x):
    i = int(np.argmin(np.abs(axis - x)))
    return np.linspace(axis[max(i - 1, 0)], axis[min(i + 1, len(axis) - 1)], 7)


def lipschitz(loss, b):
    return supremum(lambda label, y: abs(loss.gradient(label, y)), labels(loss), grid(b, 81))


def smoothness(loss, b):
    """Search pairs of points at least `gap` apart; closer ones would show only rounding errors."""
    gap = least_gap(b)

    def quotient(label, y, step):
        other = y + step
        if abs(other) > b or abs(step) < gap:
            return -math.inf
        return bregman(loss, label, y, other) * 2 / (other - y) ** 2

    steps = np.geomspace(gap, 2 * b, 10)
    return supremum(quotient, labels(loss, 9), grid(b, 33), np.concatenate([-steps[::-1], steps]))


def bregman(loss, label, y, other):
    gap = loss.value(label, other) - loss.value(label, y)
    return gap - loss.gradient(label, y) * (other - y)


def projection_loss(loss, b, label_axis=None):
    """Search predictions at distances from 1e-6 to 1e6 outside the ball."""
    beyond = b + np.geomspace(1e-6, 1e6, 49)

    def quotient(label, y):
        if abs(y) - b < 5e-7:
            return 0.0
        near = math.copysign(b, y)
        return (loss.value(label, near) - loss.value(label, y)) / abs(y - near)

    label_axis = labels(loss) if label_axis is None else label_axis
    return max(supremum(quotient, label_axis, np.concatenate([-beyond[::-1], beyond])), 0.0)


def grid(b, count):
    return np.linspace(-b, b, count)


def least_gap(b):
    return 0.004 * max(b, 1.0)


def climb(f, dimension, seed):
    """Return the largest f over columns of X: random points, then smaller and smaller steps."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(dimension, 300)) * rng.uniform(0.1, 3, size=300)
    found = f(X)
    step = 0.7
    for _ in range(36):
        best = np.argsort(found)[-5:]
        near = X[:, best, None] + step * rng.normal(size=(dimension, 5, 12))
        near = near.reshape(dimension, -1)
        X = np.concatenate([X[:, best], near], axis=1)
        found = np.concatenate([found[best], f(near)])
        step *= 0.82
    return float(found.max())


def into_ball(Y, b):
    return Y * np.minimum(1, b / np.maximum(np.linalg.norm(Y, axis=0), 1e-300))


def label_columns(loss, raw):
    """Return a valid label for each column of arbitrary numbers."""
    if isinstance(loss, Softmax):
        return np.eye(loss.d)[:, np.argmax(raw, axis=0)]
    return into_ball(raw, 1.0)


def values(loss, stars, Y):
    out = np.empty(Y.shape[1])
    for i in range(Y.shape[1]):
        loss.values(stars[:, i], Y[:, i : i + 1], out[i : i + 1])
    return out


def gradients(loss, stars, Y):
    out = np.empty(Y.shape)
    for i in range(Y.shape[1]):
        loss.gradients(stars[:, i], Y[:, i : i + 1], out[:, i : i + 1])
    return out


def vector_lipschitz(loss, b):
    d = loss.d

    def norm(X):
        return np.linalg.norm(
            gradients(loss, label_columns(loss, X[:d]), into_ball(X[d:], b)), axis=0
        )

    return climb(norm, 2 * d, seed=1)


def vector_smoothness(loss, b):
    d, gap = loss.d, least_gap(b)

    def quotient(X):
        stars, Y, other = label_columns(loss, X[:d]), into_ball(X[d:-d], b), into_ball(X[-d:], b)
        slope = np.sum(gradients(loss, stars, Y) * (other - Y), axis=0)
        distance = np.linalg.norm(other - Y, axis=0)
        excess = values(loss, stars, other) - values(loss, stars, Y) - slope
        return np.where(distance < gap, -np.inf, 2 * excess / np.maximum(distance, gap) ** 2)

    return climb(quotient, 3 * d, seed=2)


def vector_projection_loss(loss, b):
    """Search predictions given by a direction, a shift of it, and a distance from the ball."""
    d = loss.d

    def quotient(X):
        stars = label_columns(loss, X[:d])
        direction = X[d:-2] + 2 * X[-2]
        direction = direction / np.linalg.norm(direction, axis=0)
        Y = direction * (b + 10 ** np.clip(4 * X[-1], -5, 4))
        near = direction * b
        return (values(loss, stars, near) - values(loss, stars, Y)) / np.linalg.norm(
            Y - near, axis=0
        )

    return max(climb(quotient, 2 * d + 2, seed=3), 0.0)


def assert_bound(claimed, found, exact=True):
    assert claimed >= found - 1e-9 * max(1.0, found)
    assert not exact or claimed <= 1.01 * found


# -- Values, by hand -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "label", "y", "expected"),
    [
        (Linear(), 0.5, 3.0, -1.5),
        (Squared(), 0.5, -1.0, 2.25),
        (PNorm(3.0), 1.0, -1.0, 8.0),
        (PNorm(2.5), 0.0, 4.0, 32.0),
        (PNorm(), -1.0, 1.0, 16.0),
        (ModifiedLeastSquares(), 1.0, -1.0, 2.0),
        (ModifiedLeastSquares(), -1.0, -3.0, 0.0),
        (Logistic(), -1.0, 0.0, math.log(2)),
        (Logistic(), 1.0, math.log(3), math.log(4 / 3)),
        (Logistic(), -1.0, math.log(3), math.log(4)),
        (Absolute(), 0.25, -1.0, 1.25),
        (Quantile(0.9), 1.0, 0.0, 0.9),
        (Quantile(0.9), 0.0, 1.0, 0.1),
        (Hinge(), -1.0, 1.0, 2.0),
        (Hinge(), 1.0, 1.5, 0.0),
        (Huber(0.1), 0.0, 0.05, 0.00125),
        (Huber(0.1), 1.0, 0.0, 0.095),
        (Huber(), -1.0, 0.0, 0.095),
    ],
)
def test_value_of_a_known_case(loss, label, y, expected):
    assert loss.value(label, y) == pytest.approx(expected, rel=1e-14)


def test_vector_values_of_known_cases():
    out = np.empty(2)
    SquaredEuclidean(2).values(np.array([0.6, 0.8]), np.array([[0.6, 1.6], [0.8, -1.2]]), out)
    np.testing.assert_allclose(out, [0.0, 5.0], rtol=1e-14)
    scores = np.log([[1.0, 7.0], [2.0, 7.0], [5.0, 7.0]])  # probabilities 1/8, 2/8, 5/8, and thirds
    for c, probability in enumerate([1 / 8, 2 / 8, 5 / 8]):
        Softmax(3).values(np.eye(3)[c], scores, out)
        np.testing.assert_allclose(out, [-math.log(probability), math.log(3)], rtol=1e-14)


def test_which_losses_are_binary_and_which_predict_scores():
    def holds(name):
        return {type(loss) for loss in SCALAR + VECTOR if getattr(loss, name, False)}

    assert holds("binary") == {*TWO_LABELS}
    scores = {type(loss) for loss in SCALAR + VECTOR if predicts_scores(loss)}
    assert scores == {*TWO_LABELS, Linear, Softmax}


# -- Constants -------------------------------------------------------------------------------------


@pytest.mark.parametrize("b", RADII)
@pytest.mark.parametrize("loss", SCALAR, ids=repr)
def test_L_is_the_largest_gradient_in_the_ball(loss, b):
    assert_bound(loss.L(b), lipschitz(loss, b))


@pytest.mark.parametrize("b", RADII)
@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_beta_is_the_largest_curvature_in_the_ball(loss, b):
    assert_bound(loss.beta(b), smoothness(loss, b))


@pytest.mark.parametrize("b", RADII)
@pytest.mark.parametrize("loss", SCALAR, ids=repr)
def test_eps_is_the_largest_loss_of_projecting(loss, b):
    assert_bound(loss.eps(b), projection_loss(loss, b))


@pytest.mark.parametrize("b", RADII)
@pytest.mark.parametrize("loss", KINKED, ids=repr)
def test_beta_is_infinite_at_a_kink(loss, b):
    assert loss.beta(b) == math.inf
    kink = 1.0 if isinstance(loss, Hinge) else 0.7 * min(b, 1.0)
    if kink > b:  # the hinge is straight inside a ball of radius b < 1: infinity is only a bound
        assert smoothness(loss, b) == pytest.approx(0, abs=1e-9)
        return
    for h in (1e-2, 1e-4, 1e-6, 1e-8):
        inside = kink - h * b
        # the kink of each of these losses is at its label
        across = max(bregman(loss, kink, inside, kink), bregman(loss, kink, kink, inside))
        assert 2 * across / (kink - inside) ** 2 > 0.15 / (h * b)


@pytest.mark.parametrize("b", SCORE_RADII)
@pytest.mark.parametrize("loss", VECTOR, ids=repr)
def test_vector_L(loss, b):
    exact = isinstance(loss, SquaredEuclidean) or loss.d == 2
    assert_bound(loss.L(b), vector_lipschitz(loss, b), exact)


@pytest.mark.parametrize("b", SCORE_RADII)
@pytest.mark.parametrize("loss", VECTOR, ids=repr)
def test_vector_beta(loss, b):
    exact = isinstance(loss, SquaredEuclidean) or loss.d == 2
    assert_bound(loss.beta(b), vector_smoothness(loss, b), exact)


@pytest.mark.parametrize("b", SCORE_RADII)
@pytest.mark.parametrize("loss", VECTOR, ids=repr)
def test_vector_eps(loss, b):
    assert_bound(loss.eps(b), vector_projection_loss(loss, b))


@pytest.mark.parametrize("b", [2.0, 5.0])
def test_softmax_eps_needs_shifted_scores(b):
    """A search over scores that sum to zero finds a smaller eps than the true one."""
    loss = Softmax(3)

    def quotient(u, v):
        near = np.array([[u], [v], [-u - v]])
        if not np.any(near):
            return 0.0
        near *= b / np.linalg.norm(near)
        stars = np.eye(3)[:, :1]
        return (values(loss, stars, near) - values(loss, stars, near * 1.0001))[0] / (b * 0.0001)

    centred = supremum(quotient, grid(1.0, 41), grid(1.0, 41))
    assert 0 < centred < 0.9 * vector_projection_loss(loss, b)


@pytest.mark.parametrize(
    ("loss", "label", "b"),
    [
        (ModifiedLeastSquares(), 0.5, 1.0),
        (ModifiedLeastSquares(), 0.4, 1.5),
        (Logistic(), 0.5, 3.0),
        (Logistic(), 0.25, 5.0),
        (Hinge(), 0.5, 1.0),
    ],
    ids=repr,
)
def test_labels_between_minus_one_and_one_break_eps_of_binary_losses(loss, label, b):
    """The paper's eps holds at y* = -1 and +1, but not at a label in between, such as 1/2."""
    assert projection_loss(loss, b) == pytest.approx(loss.eps(b), abs=1e-6)
    assert projection_loss(loss, b, np.array([-label, label])) > 1.5 * loss.eps(b) + 0.01


def test_projecting_costs_a_quarter_at_a_label_of_one_half():
    """Modified least squares, b = 1: the slope of (1 - y/2)^2 / 2 at y = 1 is -1/4."""
    found = projection_loss(ModifiedLeastSquares(), 1.0, np.array([-0.5, 0.5]))
    assert found == pytest.approx(0.25, rel=1e-5)
    assert ModifiedLeastSquares().eps(1.0) == 0


@thorough
@given(st.sampled_from(SCALAR + VECTOR), st.floats(1e-3, 50), st.floats(1.0, 5.0))
def test_constants_are_monotone(loss, b, factor):
    """A larger ball contains more points, and a convex loss loses less outside it."""
    rounding = 1e-12
    assert loss.L(b * factor) >= loss.L(b) * (1 - rounding)
    assert loss.beta(b * factor) >= loss.beta(b) * (1 - rounding)
    assert 0 <= loss.eps(b * factor) <= loss.eps(b) * (1 + rounding)


# -- Gradients -------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", SCALAR, ids=repr)
def test_gradient_is_the_derivative(loss):
    h = 1e-5
    compared = 0
    for label, y in itertools.product(labels(loss, 8), np.linspace(-3.13, 2.97, 60)):
        if loss in KINKED and abs(y - label) < 1e-3:
            continue
        slope = (loss.value(label, y + h) - loss.value(label, y - h)) / (2 * h)
        assert loss.gradient(label, y) == pytest.approx(slope, rel=1e-5, abs=1e-5)
        compared += 1
    assert compared > 100


@pytest.mark.parametrize("loss", VECTOR, ids=repr)
def test_vector_gradient_is_the_derivative(loss):
    rng = np.random.default_rng(5)
    h, d = 1e-5, loss.d
    Y = rng.normal(size=(d, 40)) * 3
    stars = label_columns(loss, rng.normal(size=(d, 40)))
    slopes = np.empty_like(Y)
    for k in range(d):
        step = h * np.eye(d)[:, k : k + 1]
        slopes[k] = (values(loss, stars, Y + step) - values(loss, stars, Y - step)) / (2 * h)
    np.testing.assert_allclose(gradients(loss, stars, Y), slopes, rtol=1e-6, atol=1e-8)


@st.composite
def cases(draw):
    """Draw a scalar loss, a label, and two predictions, which are often at a kink."""
    loss = draw(st.sampled_from(SCALAR))
    label = draw(st.sampled_from([-1.0, 1.0]) if isinstance(loss, TWO_LABELS) else st.floats(-1, 1))
    delta = getattr(loss, "delta", 0.0)
    places = [label, label + delta, label - delta, -1.0, 0.0, 1.0]
    prediction = st.sampled_from(places) | st.floats(-2, 2) | st.floats(-30, 30)
    return loss, label, draw(prediction), draw(prediction)


@settings(thorough, max_examples=500)
@given(cases())
def test_gradient_is_a_subgradient_everywhere(case):
    loss, label, y, other = case
    here, there = loss.value(label, y), loss.value(label, other)
    change = loss.gradient(label, y) * (other - y)
    assert there >= here + change - 1e-12 * (1 + abs(here) + abs(there) + abs(change))


@settings(thorough, max_examples=300)
@given(cases(), st.floats(0, 1))
def test_convex_along_segments(case, t):
    loss, label, y, other = case
    chord = t * loss.value(label, y) + (1 - t) * loss.value(label, other)
    assert loss.value(label, t * y + (1 - t) * other) <= chord + 1e-12 * (1 + abs(chord))


@thorough
@given(st.sampled_from(VECTOR), st.data(), st.floats(0, 1))
def test_vector_losses_are_convex_with_subgradients(loss, data, t):
    numbers = data.draw(arrays(float, (loss.d, 3), elements=st.floats(-40, 40)))
    star, y, other = label_columns(loss, numbers[:, :1]), numbers[:, 1:2], numbers[:, 2:]
    here, there = values(loss, star, y)[0], values(loss, star, other)[0]
    between = values(loss, star, t * y + (1 - t) * other)[0]
    tolerance = 1e-11 * (1 + here + there)
    assert between <= t * here + (1 - t) * there + tolerance
    change = float(np.sum(gradients(loss, star, y) * (other - y)))
    assert there >= here + change - tolerance - 1e-11 * abs(change)


@pytest.mark.parametrize("loss", KINKED, ids=repr)
def test_gradient_at_a_kink_lies_between_the_slopes(loss):
    label = 1.0 if isinstance(loss, Hinge) else 0.3
    before, at, after = (loss.gradient(label, label + step) for step in (-1e-9, 0.0, 1e-9))
    assert before < after
    assert before <= at <= after


@pytest.mark.parametrize("score", [1e3, 1e5])
def test_extreme_logistic_scores(score):
    loss = Logistic()
    for label in (-1.0, 1.0):
        assert loss.value(label, label * score) == 0
        assert loss.value(label, -label * score) == score
        assert loss.gradient(label, label * score) == 0
        assert loss.gradient(label, -label * score) == -label


@pytest.mark.parametrize("score", [1e3, 1e5])
@pytest.mark.parametrize("d", [2, 3, 5])
def test_extreme_softmax_scores(d, score):
    Y = np.zeros((d, 4))
    Y[0] = [score, -score, score, -score]
    Y[1:, 2] = -score
    Y[1:, 3] = score
    out, slopes = np.empty(4), np.empty((d, 4))
    Softmax(d).values(np.eye(d)[0], Y, out)
    Softmax(d).gradients(np.eye(d)[0], Y, slopes)
    expected = [0, score + math.log(d - 1), 0, 2 * score + math.log(d - 1)]
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(slopes[0], [0, -1, 0, -1], atol=1e-12)
    np.testing.assert_allclose(slopes[1:, 1], 1 / (d - 1), rtol=1e-12)
    np.testing.assert_allclose(slopes.sum(axis=0), 0, atol=1e-12)


# -- Columns ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", SCALAR, ids=repr)
def test_scalar_wrapper_agrees_with_the_scalar_methods(loss, dtype):
    lifted = Scalar(loss)
    assert lifted.d == 1
    Y = np.linspace(-2.1, 1.9, 23).reshape(1, -1).astype(dtype)
    out, slopes = np.empty(23, dtype), np.empty((1, 23), dtype)
    for label in labels(loss, 4).astype(dtype):
        lifted.values(np.array([label]), Y, out)
        lifted.gradients(np.array([label]), Y, slopes)
        pairs = [(float(label), y) for y in Y[0].tolist()]
        assert out.tolist() == [dtype(loss.value(*pair)) for pair in pairs]
        assert slopes[0].tolist() == [dtype(loss.gradient(*pair)) for pair in pairs]


@pytest.mark.parametrize("loss", VECTOR, ids=repr)
def test_columns_are_independent(loss):
    rng = np.random.default_rng(7)
    Y = rng.normal(size=(loss.d, 6))
    stars = np.repeat(label_columns(loss, rng.normal(size=(loss.d, 1))), 6, axis=1)
    out, slopes = np.full(6, np.nan), np.full((loss.d, 6), np.nan)
    loss.values(stars[:, 0], Y, out)
    loss.gradients(stars[:, 0], Y, slopes)
    np.testing.assert_array_equal(out, values(loss, stars, Y))
    np.testing.assert_array_equal(slopes, gradients(loss, stars, Y))


def test_one_dimensional_squared_euclidean_is_the_squared_loss():
    Y = np.linspace(-3, 3, 13).reshape(1, -1)
    both = []
    for loss in (SquaredEuclidean(1), Scalar(Squared())):
        out, slopes = np.empty(13), np.empty((1, 13))
        loss.values(np.array([0.3]), Y, out)
        loss.gradients(np.array([0.3]), Y, slopes)
        both.append(np.vstack([out, slopes]))
    np.testing.assert_allclose(both[0], both[1], rtol=1e-14)


def test_two_class_softmax_is_the_logistic_loss_of_the_difference():
    Y = np.random.default_rng(11).normal(size=(2, 20)) * 5
    out = np.empty(20)
    for c, label in ((0, 1.0), (1, -1.0)):
        Softmax(2).values(np.eye(2)[c], Y, out)
        expected = [Logistic().value(label, difference) for difference in Y[0] - Y[1]]
        np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-14)


# -- The radius ------------------------------------------------------------------------------------


class Cosh:
    """l(y*, y) = cosh(y - y*): a user-defined loss, as an ordinary class."""

    def value(self, label, y):
        return math.cosh(y - label)

    def gradient(self, label, y):
        return math.sinh(y - label)

    def L(self, b):
        return math.sinh(b + 1)

    def beta(self, b):
        return math.cosh(b + 1)

    def eps(self, b):
        return math.sinh(max(1 - b, 0))


class Exponential(NamedTuple):
    """l(y*, y) = exp(-rate y* y): a user-defined loss for labels -1 and +1, as a NamedTuple."""

    rate: float = 1.0

    def value(self, label: float, y: float) -> float:
        return math.exp(-self.rate * label * y)

    def gradient(self, label: float, y: float) -> float:
        return -self.rate * label * math.exp(-self.rate * label * y)

    def L(self, b: float) -> float:
        return self.rate * math.exp(self.rate * b)

    def beta(self, b: float) -> float:
        return self.rate**2 * math.exp(self.rate * b)

    def eps(self, b: float) -> float:
        return self.rate * math.exp(-self.rate * b)


def is_large_enough(loss, eta, D, b):
    """Return whether b satisfies the inequality whose smallest solution is B.

    For a loss with a kink, the condition is that projecting costs nothing.
    """
    if math.isinf(loss.beta(b)):
        return loss.eps(b) == 0
    return eta * loss.beta(b) * b**2 >= loss.eps(b) * D


def bracket_radius(loss, eta, N, D):
    """Return neighbouring points of a fine grid of [D, eta N D] with B between them."""
    points = np.linspace(D, eta * N * D, 8001).tolist()
    for before, b in itertools.pairwise([D, *points]):
        if is_large_enough(loss, eta, D, b):
            return before, b
    return points[-1], points[-1]


RADIUS_LOSSES = [
    Squared(),
    PNorm(3.0),
    PNorm(6.0),
    ModifiedLeastSquares(),
    Logistic(),
    Huber(0.1),
    Absolute(),
    Quantile(0.8),
    Hinge(),
    Linear(),
    SquaredEuclidean(3),
    Softmax(2),
    Softmax(5),
    Cosh(),
    Exponential(0.5),
]


@pytest.mark.parametrize("D", [0.05, 0.5, 1.0, 2.0])
@pytest.mark.parametrize(("eta", "N"), [(0.1, 100), (0.01, 500), (1.0, 4), (0.02, 50)])
@pytest.mark.parametrize("loss", RADIUS_LOSSES, ids=lambda loss: type(loss).__name__)
def test_radius_against_a_scan(loss, eta, N, D):
    before, b = bracket_radius(loss, eta, N, D)
    B = radius(loss, eta, N, D)
    assert before * (1 - 1e-12) <= B <= b * (1 + 1e-12)


@settings(thorough, max_examples=200)
@given(
    st.sampled_from(RADIUS_LOSSES),
    st.integers(1, 1000),
    st.floats(0, 1),
    st.floats(0.01, 3),
    st.floats(0, 1),
)
def test_radius_is_the_least_that_satisfies_its_inequality(loss, N, power, D, fraction):
    eta = N**-power  # from 1/N to 1
    top = eta * N * D
    B = radius(loss, eta, N, D)
    assert D <= B <= max(top, D)
    rounded_up = B * (1 + 1e-12)
    assert rounded_up >= top or is_large_enough(loss, eta, D, rounded_up)
    for smaller in (B * (1 - 1e-9), D + fraction * (B - D) * (1 - 1e-9)):
        assert smaller < D or smaller >= B or not is_large_enough(loss, eta, D, smaller)


@pytest.mark.parametrize(("eta", "N"), [(0.1, 100), (0.01, 500), (0.5, 7), (1.0, 3)])
def test_radius_as_in_the_paper_for_unit_learners(eta, N):
    assert radius(Linear(), eta, N, 1.0) == pytest.approx(eta * N, rel=1e-15)
    for loss in (Squared(), PNorm(2.0), PNorm(2.5), PNorm(6.0), ModifiedLeastSquares()):
        assert radius(loss, eta, N, 1.0) == 1.0


@pytest.mark.parametrize("eta", [1.0, 0.5, 0.1, 0.02, 0.001])
@pytest.mark.parametrize("reach", [1.0, 1.5, 3.0, 50.0])
def test_logistic_radius_and_the_bound_of_the_paper(eta, reach):
    """Both the paper's ln(4/eta) and the exact infimum qualify; the infimum is smaller."""
    N = round(reach / eta)
    published = math.log(4 / eta)
    exact = radius(Logistic(), eta, N, 1.0)
    assert exact <= min(eta * N, published)
    for b in (exact, published):
        assert b >= eta * N or eta / 4 * b**2 >= 1 / (1 + math.exp(b))
    if exact < eta * N * (1 - 1e-12) and exact > 1:
        assert eta / 4 * exact**2 == pytest.approx(1 / (1 + math.exp(exact)), rel=1e-9)


def test_logistic_radius_is_well_below_the_bound_of_the_paper():
    assert 2.0 < radius(Logistic(), 0.1, 100, 1.0) < 2.1
    assert math.log(4 / 0.1) > 3.6


@pytest.mark.parametrize("loss", [Squared(), Logistic(), PNorm(3.0), Softmax(3), Cosh()])
@pytest.mark.parametrize("scale", [1.0, 2.0, 10.0])
def test_scaling_the_learners_scales_D(loss, scale):
    """B' = min{eta N s D, inf{b >= s D : eta beta_b b^2 >= eps_b s D}} for learners times s."""
    eta, N, D = 0.05, 200, 0.3
    B = radius(loss, eta, N, scale * D)
    feasible = [
        b
        for b in np.linspace(scale * D, eta * N * scale * D, 4001).tolist()
        if eta * loss.beta(b) * b * b >= loss.eps(b) * (scale * D)
    ]
    step = (eta * N - 1) * scale * D / 4000
    assert feasible[0] - step - 1e-12 <= B <= feasible[0] + 1e-12


@pytest.mark.parametrize("loss", KINKED, ids=repr)
@pytest.mark.parametrize(
    ("eta", "N", "D", "expected"),
    [
        (0.1, 100, 1.0, 1.0),  # the ball already contains every label
        (0.1, 100, 2.0, 2.0),
        (0.1, 100, 0.5, 1.0),  # it grows until it does
        (0.1, 15, 0.5, 0.75),  # but never beyond eta N D
        (0.25, 4, 0.5, 0.5),
    ],
)
def test_radius_of_a_kinked_loss_makes_projecting_free(loss, eta, N, D, expected):
    assert radius(loss, eta, N, D) == pytest.approx(expected, rel=1e-15)


def test_radius_of_a_kinked_loss_with_a_tiny_eps():
    class Slight(Absolute):
        def eps(self, b):
            return 1e-6 if b < 3 else 0.0

    assert radius(Slight(), 0.1, 100, 1.0) == pytest.approx(3.0, rel=1e-15)


# -- User-defined losses ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "loss", [Cosh(), Exponential(), Exponential(0.5)], ids=["cosh", "exp", "half exp"]
)
def test_user_defined_losses_have_a_radius(loss):
    assert resolve(loss) is loss
    out, slopes = np.empty(2), np.empty((1, 2))
    Scalar(loss).values(np.array([1.0]), np.array([[0.0, 2.0]]), out)
    Scalar(loss).gradients(np.array([1.0]), np.array([[0.0, 2.0]]), slopes)
    assert out.tolist() == [loss.value(1.0, 0.0), loss.value(1.0, 2.0)]
    assert slopes.tolist() == [[loss.gradient(1.0, 0.0), loss.gradient(1.0, 2.0)]]
    B = radius(loss, 0.01, 1000, 0.5)
    assert 0.5 < B < 5.0
    assert 0.01 * loss.beta(B) * B**2 == pytest.approx(0.5 * loss.eps(B), rel=1e-9)


@pytest.mark.parametrize("N", [10_000, 71_500, 72_000, 74_000, 1_000_000])
def test_radius_where_beta_overflows(N):
    """A curvature that overflows a float is not a kink: B does not depend on eta N D."""
    B = radius(Exponential(), 0.01, N, 1.0)
    assert 1.0 < B < 3.0
    assert 0.01 * math.exp(B) * B**2 == pytest.approx(math.exp(-B), rel=1e-9)


def test_radius_of_a_smooth_loss_with_a_long_reach():
    near, far = (radius(Cosh(), 0.01, N, 0.5) for N in (1000, 10_000_000))
    assert 0.5 < near < 1.0
    assert far == near


@pytest.mark.parametrize("missing", ["beta", "eps"])
def test_a_missing_constant_is_named(missing):
    class Partial:
        pass

    loss: Any = Partial()
    for name in {"beta", "eps"} - {missing}:
        setattr(loss, name, lambda b: 1.0)
    with pytest.raises(ValueError, match=rf"Partial.*\b{missing}\b"):
        radius(loss, 0.1, 100, 1.0)


@pytest.mark.parametrize("name", ["L", "beta", "eps"])
def test_constant_by_name(name):
    with pytest.raises(ValueError, match=rf"object.*\b{name}\b"):
        constant(object(), name, 1.0)
    assert constant(Squared(), name, 0.5) == {"L": 3.0, "beta": 2.0, "eps": 1.0}[name]


def test_names_resolve():
    assert {type(resolve(name)) for name in NAMES} == {
        *(Linear, Squared, ModifiedLeastSquares, Logistic, Absolute, Hinge, Softmax),
        *(Poisson, Gamma),
    }
    assert resolve("squared") == Squared()
    assert radius("squared", 0.1, 100, 1.0) == 1.0


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="'cauchy'") as error:
        resolve("cauchy")
    assert all(f"'{name}'" in str(error.value) for name in NAMES)


@pytest.mark.parametrize(
    ("loss", "field", "allowed"),
    [
        (PNorm(1.5), "p", "p >= 2"),
        (PNorm(math.inf), "p", "p >= 2"),
        (PNorm(math.nan), "p", "p >= 2"),
        (Quantile(0.0), "tau", "0 < tau < 1"),
        (Quantile(1.0), "tau", "0 < tau < 1"),
        (Huber(0.0), "delta", "delta > 0"),
        (Huber(-1.0), "delta", "delta > 0"),
        (SquaredEuclidean(0), "d", "d >= 1"),
        (SquaredEuclidean(1.5), "d", "d >= 1"),  # type: ignore[arg-type]
        (Softmax(1), "d", "d >= 2"),
        (Softmax(0), "d", "d >= 2"),
    ],
    ids=repr,
)
def test_bad_parameters_are_refused(loss, field, allowed):
    with pytest.raises(ValueError, match=rf"\b{field} must") as error:
        resolve(loss)
    assert type(loss).__name__ in str(error.value)
    assert allowed in str(error.value)
    with pytest.raises(ValueError, match=allowed):
        radius(loss, 0.1, 100, 1.0)


@pytest.mark.parametrize("loss", SCALAR + VECTOR, ids=repr)
def test_good_parameters_pass(loss):
    assert resolve(loss) is loss


def test_parameters_of_user_defined_losses_are_not_checked():
    """The ranges of p, tau and delta apply to the library's losses, not to a user's loss."""

    class Insensitive(NamedTuple):
        delta: float = 0.0
        p: float = 1.0
        tau: float = 3.0

        def value(self, label: float, y: float) -> float:
            return self.tau * max(abs(label - y) - self.delta, 0.0)

    assert resolve(Insensitive()) == Insensitive()
