"""Networks of one hidden layer: the naive copies, gradients by differences, first weights."""

import math

import naive_learners
import numpy as np
import pytest
from banks import KINDS, LOSSES, Oracles, active_rows, listing, stream, weights_for
from hypothesis import given, settings
from hypothesis import strategies as st

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
    """A naive network that has met three features, with weights anywhere."""
    rng = np.random.default_rng(3)
    first = rng.uniform(-1, 1, (5, hidden))
    copy = naive_learners.Network(
        d, options.pop("rate", 1e-6), hidden=hidden, start=lambda f, j: first[f, j], **options
    )
    for f, S in ((0, 1.0), (1, 2.0), (3, 0.5)):
        copy.meet(f)
        copy.S[f] = S
    copy.V = rng.standard_normal((d, hidden + 1)).tolist()
    return copy


ROW = [(0, 1.0), (1, -1.3), (3, 0.5)]


def parameters(copy):
    """Every weight as (list, place), and whether it is in the output layer."""
    hidden = [(W, j, False) for W in copy.W.values() for j in range(len(W))]
    return hidden + [(V, j, True) for V in copy.V for j in range(len(V))]


def differences(copy, function, step=1e-6):
    """d function(copy) / d weight, for every weight, by central differences."""
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
def test_naive_steps_are_as_long_as_the_flow_says(decay):
    """One output: the gap to the label shrinks by exp(-turn), and never overshoots."""
    gaps = []
    for rate in (1e-4, 1e-3):
        copy, loss = random_copy(1, decay=decay, rate=rate, curvature=3.0), Quadratic([0.4], 1.5, 3)
        gap = copy.predict(ROW)[0] - 0.4
        gradient = differences(copy, lambda c, loss=loss: loss.value(c.predict(ROW)))
        jacobian = differences(copy, lambda c: c.predict(ROW)[0])
        before = np.array([weights[j] for weights, j, _ in parameters(copy)])
        copy.update(ROW, loss)
        after = np.array([weights[j] for weights, j, _ in parameters(copy)])
        # the movement of h that the step means to make, and the one the flow of the loss makes
        moved = jacobian @ (after - before)
        square = 1 + (1.3 / 2) ** 2 + 1
        rates = 1 / np.sqrt(gradient**2 / 1.5) if decay is None else np.ones(len(gradient))
        outer = np.array([outer for *_, outer in parameters(copy)])
        pace = np.where(outer, 1 / 4, 1 / square)
        pace = np.sqrt(pace) if decay is None else pace
        unit = rate * (jacobian**2 * pace * rates).sum()  # of what a slope of 1 moves h
        assert moved == pytest.approx(gap * (math.exp(-3 * 1.5 * unit) - 1), rel=1e-4)
        gaps.append(abs(moved / gap))
    assert 5 * gaps[0] < gaps[1] < 1


def test_naive_huge_rates_land_on_the_label_to_first_order():
    copy = random_copy(1, decay=0.0, rate=1e6, curvature=1.0)
    gap = copy.predict(ROW)[0] - 0.4
    jacobian = differences(copy, lambda c: c.predict(ROW)[0])
    before = np.array([weights[j] for weights, j, _ in parameters(copy)])
    copy.update(ROW, Quadratic([0.4]))
    after = np.array([weights[j] for weights, j, _ in parameters(copy)])
    assert jacobian @ (after - before) == pytest.approx(-gap, rel=1e-4)


def test_naive_features_never_learned_are_absent():
    copy = random_copy(1)
    assert copy.predict([*ROW, (4, 7.0)]) == copy.predict(ROW)
    assert copy.predict([(0, 1.0), (1, 50.0)]) == copy.predict([(0, 1.0), (1, 2.0)])
