"""The second-order weights follow their definition, and their regret stays within the bound.

The bound holds for every expert over every interval of rounds in which its scale is constant, so it
is checked for many intervals, against forecasts that were made to hurt.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_aggregation import PlainSecondOrder

from spanboost.compiling.kernels import Caller
from spanboost.core.second_order import new_second_order, second_order_regret

SEEDS = st.integers(0, 2**32 - 1)


def play(state, adversary, forecasts, gradients, regrets, scales, excess, answers, scratch):
    """Play rounds; an adversary of +-1 sets the gradient against the answer, 0 leaves it."""
    K = forecasts.shape[1]
    weights, regret, distance = scratch[0], scratch[1], scratch[2]
    for t in range(forecasts.shape[0]):
        state.find_weights(weights)
        answer = 0.0
        for k in range(K):
            answer += weights[k] * forecasts[t, k]
        if adversary[0] != 0:
            gradients[t] *= adversary[0] * (1 if answer > 0 else -1)
        for k in range(K):
            scales[t, k] = state.scale[k]
            regret[k] = gradients[t] * (answer - forecasts[t, k])
            distance[k] = abs(answer - forecasts[t, k])
            regrets[t, k] = regret[k]
        excess[t] = state.excess(regret) if state.scale[0] > 0 else np.inf
        answers[t] = answer
        state.learn(regret, abs(gradients[t]), distance)


class Game:
    """Rounds of forecasts [T, K] with a linear loss of these gradients [T]."""

    def __init__(self, forecasts, gradients, adversary=0.0, compiled=True):
        T, K = forecasts.shape
        self.state = new_second_order(K)
        self.gradients = gradients.astype(float)
        self.regrets, self.scales = np.zeros((2, T, K))
        self.excess, self.answers = np.zeros((2, T))
        run = Caller() if compiled else lambda function, *args: function(*args)
        run(
            play,
            self.state,
            np.array([adversary]),
            np.ascontiguousarray(forecasts, float),
            self.gradients,
            self.regrets,
            self.scales,
            self.excess,
            self.answers,
            np.zeros((3, K)),
        )

    def intervals(self, k):
        """Return (first, last + 1) of every maximal interval with one scale."""
        cuts = np.flatnonzero(np.diff(self.scales[:, k])) + 1
        return list(zip([0, *cuts], [*cuts, len(self.scales)], strict=True))

    def regret_and_bound(self, k, first, last):
        """Return the regret against expert k over the rounds first to last - 1, and its bound."""
        regret, scale = self.regrets[first:last, k], self.scales[first, k]
        counted = regret / self.excess[first:last]
        surprise = (regret - counted).sum()
        if scale == 0:
            return regret.sum(), surprise
        K, variance = self.regrets.shape[1], (counted**2).sum()
        return regret.sum(), second_order_regret(K, int(last), scale, variance, surprise)


def play_plainly(forecasts, gradients):
    """Return the answers of an independent implementation."""
    state, answers = PlainSecondOrder(forecasts.shape[1]), []
    for forecast, gradient in zip(forecasts, gradients, strict=True):
        answers.append(state.weights() @ forecast)
        state.learn(gradient, answers[-1] - forecast)
    return np.array(answers)


@given(SEEDS, st.integers(2, 6))
@settings(max_examples=20, deadline=None)
def test_weights_agree_with_the_definition(seed, K):
    rng = np.random.default_rng(seed)
    forecasts = rng.normal(size=(200, K)) * rng.lognormal(0, 2, (1, K))
    gradients = rng.standard_t(2, 200)
    expected = play_plainly(forecasts, gradients)
    game = Game(forecasts, gradients, compiled=False)
    np.testing.assert_allclose(game.answers, expected, rtol=1e-7, atol=1e-9)
    assert game.state.wealth.sum() == pytest.approx(1)


@given(SEEDS, st.floats(1e-9, 1e9), st.floats(1e-9, 1e9))
@settings(max_examples=10, deadline=None)
def test_units_do_not_matter(seed, a, b):
    rng = np.random.default_rng(seed)
    forecasts, gradients = rng.normal(size=(100, 4)), rng.normal(size=100)
    plain = Game(forecasts, gradients, compiled=False)
    scaled = Game(a * forecasts, b * gradients, compiled=False)
    np.testing.assert_allclose(scaled.answers / a, plain.answers, rtol=1e-6, atol=1e-9)
    plain.state.rescale(a, b)
    np.testing.assert_allclose(plain.state.scale, scaled.state.scale, rtol=1e-6)
    np.testing.assert_allclose(plain.state.distance, scaled.state.distance, rtol=1e-6)
    np.testing.assert_allclose(plain.state.gradient, scaled.state.gradient, rtol=1e-6)


T = 10_000
PATTERNS = {
    "noise": lambda rng, K: rng.uniform(-1, 1, (T, K)),
    "signs": lambda rng, K: rng.choice([-1.0, 1.0], (T, K)),
    "constants": lambda rng, K: np.tile(rng.uniform(-1, 1, K), (T, 1)),
    "one differs": lambda rng, K: np.eye(K)[rng.integers(0, K)] * np.ones((T, 1)),
    "rare": lambda rng, K: (rng.random((T, K)) < 0.01) * rng.choice([-1.0, 1.0], (T, K)),
    "switches": lambda rng, K: np.eye(K)[np.arange(T) * 7 // T % K] - 0.5,
    "fading": lambda rng, K: rng.uniform(-1, 1, (T, K)) * np.geomspace(1, 1e-6, T)[:, None],
    "growing": lambda rng, K: rng.uniform(-1, 1, (T, K)) * np.geomspace(1e-6, 1, T)[:, None],
    "scales": lambda rng, K: rng.uniform(-1, 1, (T, K)) * np.geomspace(1e-9, 1, K),
    "bursts": lambda rng, K: rng.uniform(-1, 1, (T, K)) * 10.0 ** -rng.integers(0, 9, (T, 1)),
    "sine": lambda rng, K: np.sin(np.outer(np.arange(T) / 50, 1 + np.arange(K))),
}
GRADIENTS = {
    "steady": lambda rng: np.ones(T),
    "random signs": lambda rng: rng.choice([-1.0, 1.0], T),
    "heavy": lambda rng: rng.standard_t(1, T),
    "drift": lambda rng: np.sign(np.sin(np.arange(T) / 300)),
    "rare": lambda rng: (rng.random(T) < 0.003) * 1.0,
}


@pytest.mark.parametrize("adversary", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("sizes", GRADIENTS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_regret_stays_within_the_bound(pattern, sizes, adversary):
    rng = np.random.default_rng(len(pattern) + 10 * len(sizes))
    K = int(rng.integers(2, 9))
    game = Game(PATTERNS[pattern](rng, K), GRADIENTS[sizes](rng), adversary)
    assert np.isfinite(game.answers).all()
    assert game.state.wealth.sum() == pytest.approx(1)
    for k in range(K):
        for first, last in game.intervals(k):
            middle = int(rng.integers(first, last))
            for a, b in ((first, last), (first, middle + 1), (middle, last)):
                regret, bound = game.regret_and_bound(k, a, b)
                assert regret <= bound + 1e-9 * max(1, abs(regret))


def late_bloomer(K, start, learn):
    """One expert is close to the others, then far off, and from `start` on better than them."""
    forecasts = np.zeros((start + learn, K))
    forecasts[: start - 70, 0] = 1e-9 * (-1.0) ** np.arange(start - 70)
    forecasts[start - 70 : start, 0] = 3.0
    forecasts[start:, 0] = -1.0
    return forecasts, np.ones(start + learn)


@pytest.mark.parametrize(("K", "start", "learn"), [(200, 3000, 900), (1000, 4000, 900)])
def test_the_bound_is_tight(K, start, learn):
    game = Game(*late_bloomer(K, start, learn))
    found = [
        game.regret_and_bound(0, max(first, start), last)
        for first, last in game.intervals(0)
        if last > start
    ]
    assert all(regret <= bound for regret, bound in found)
    assert max(regret / bound for regret, bound in found if bound > 1) > 0.7


def test_the_bound_by_hand():
    assert second_order_regret(10, 100, 2.0, 0.0) == pytest.approx(4 * np.log(3000))
    assert second_order_regret(10, 100, 2.0, 0.0, 5.0) == pytest.approx(4 * np.log(3000) + 5)
    many = 64 * np.log(3000) + 1e6 / 64
    assert second_order_regret(10, 100, 2.0, 1e6) == pytest.approx(many)


def test_an_expert_that_was_bad_returns_quickly():
    forecasts = np.zeros((6000, 2))
    forecasts[:, 0] = 1
    game = Game(forecasts, np.repeat([1.0, -1.0], 3000))
    assert abs(game.answers[2900:3000]).max() < 0.05
    assert game.answers[5000:].min() > 0.9
