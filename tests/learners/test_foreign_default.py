"""Learners of other libraries and your own choose the number of copies online by default."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import SGDRegressor

from spanboost import HullBoost, LinearSGD, SpanBoost, Trees
from spanboost.compiling.kernels import plain
from spanboost.losses import Softmax, Squared
from spanboost.models.caution import Caution
from spanboost.models.choice import Choosing
from spanboost.sklearn import BoostingRegressor


class Strong:
    """Recursive least squares: a sum of such functions is no better than one."""

    def __init__(self):
        self.P, self.w = 100 * np.eye(4), np.zeros(4)

    def predict_one(self, x):
        return float(self.w @ np.append(x, 1))

    def learn_one(self, x, y):
        z = np.append(x, 1)
        gain = self.P @ z / (1 + z @ self.P @ z)
        self.w = self.w + gain * (y - self.w @ z)
        self.P = self.P - np.outer(gain, z @ self.P)


class Weak:
    """A function of the one feature with the largest sum of products with the targets so far."""

    def __init__(self):
        self.xy, self.xx = np.zeros(3), np.full(3, 1e-6)

    def predict_one(self, x):
        best = int(np.argmax(self.xy**2 / self.xx))
        return float(self.xy[best] / self.xx[best] * x[best])

    def learn_one(self, x, y):
        self.xy, self.xx = self.xy + x * y, self.xx + x * x


class Cautious(Strong):
    """A linear function that takes tiny steps."""

    def learn_one(self, x, y):
        z = np.append(x, 1)
        self.w = self.w + 0.003 * (y - self.w @ z) * z


def stream(rows):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (rows, 3))
    y = X @ [0.3, -0.2, 0.15] + 0.1 + 0.1 * rng.standard_normal(rows)
    return X, np.clip(y, -1, 1)


def error(model, X, y):
    """Return the error after the first rows, in which all candidates have equal weights."""
    return np.mean((model.learn_many(X, y) - y)[300:] ** 2)


@pytest.mark.parametrize(("learner", "most"), [(Strong, 1.01), (Weak, 0.6), (Cautious, 0.7)])
def test_the_default_helps_or_does_no_harm(learner, most):
    X, y = stream(1500)
    alone = error(SpanBoost(learner(), n=1, eta=1.0), X, y)
    assert error(SpanBoost(learner()), X, y) <= most * alone


def test_a_fixed_number_of_copies_harms_a_strong_learner():
    """This is why the default is a choice."""
    X, y = stream(1500)
    alone = error(SpanBoost(Strong(), n=1, eta=1.0), X, y)
    assert error(SpanBoost(Strong(), n=10), X, y) > 1.03 * alone


@pytest.mark.parametrize("learner", [Strong, Weak])
def test_the_mixture_predicts_as_much_as_there_is_evidence_for_it(learner):
    X, y = stream(120)
    mixture = SpanBoost(learner())
    mixture.caution = None
    with plain():
        alone, mixed, found = (
            model.learn_many(X, y)
            for model in (SpanBoost(learner(), n=1, eta=1.0), mixture, SpanBoost(learner()))
        )
        single = SpanBoost(learner())
        rows = [single.learn_one(x, label) for x, label in zip(X, y, strict=True)]
        last = single.predict_many(X[:3])
    shares = shares_so_far((alone - y) ** 2, (mixed - y) ** 2)
    expected = [a + share * (m - a) for a, m, share in zip(alone, mixed, shares, strict=False)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert rows == found.tolist()
    assert found[0] == alone[0]
    candidates = single.forecasts(X[:3])[:, 0, 0]
    expected = candidates + shares[-1] * (mixture.predict_many(X[:3]) - candidates)
    np.testing.assert_allclose(last, expected, rtol=1e-9)


def shares_so_far(alone, mixed):
    """Return the share of the mixture before each row, and after the last."""
    differences = [one - other for one, other in zip(alone, mixed, strict=True)]
    shares = []
    for t in range(len(differences) + 1):
        gain, deviation = sum(differences[:t]), sum(one**2 for one in differences[:t]) ** 0.5
        shares.append(min(1.0, max(0.0, gain / (3 * deviation))) if deviation > 0 else 0.0)
    return shares


errors = st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3)), min_size=1, max_size=60)


@given(errors)
def test_predictions_are_averages_of_both_with_the_share_of_the_evidence(pairs):
    alone, mixed = np.array(pairs).T
    labels, weights = np.zeros((len(pairs), 1)), np.ones(len(pairs))
    found = Caution().learn(Squared(), labels, weights, alone.reshape(-1, 1, 1), mixed)
    shares = np.array(shares_so_far(alone**2, mixed**2))[:-1]
    np.testing.assert_allclose(found, alone + shares * (mixed - alone), rtol=0, atol=1e-4)


@pytest.mark.parametrize("seed", range(20))
def test_a_mixture_that_is_no_better_costs_little(seed):
    """Both errors are noise; a choice of the better one so far would change back and forth."""
    rng = np.random.default_rng(seed)
    alone = rng.standard_t(5, 1000)
    mixed = 0.96 * alone + 0.28 * alone.std() * rng.standard_normal(1000)
    labels, weights = np.zeros((1000, 1)), np.ones(1000)
    found = Caution().learn(Squared(), labels, weights, alone.reshape(-1, 1, 1), mixed)
    assert np.mean(found**2) <= 1.005 * np.mean(alone**2)


def test_blocks_of_any_size_and_single_rows_give_the_same_choice():
    rng = np.random.default_rng(0)
    forecasts, labels = rng.normal(size=(200, 1, 2)), rng.normal(size=(200, 1))
    answers, weights = labels[:, 0] + 0.9 * rng.normal(size=200), np.ones(200)
    whole, parts = Caution(), Caution()
    expected = whole.learn(Squared(), labels, weights, forecasts, answers)
    pieces = [
        parts.learn(Squared(), labels[one], weights[one], forecasts[one], answers[one])
        for one in np.array_split(np.arange(200), [1, 2, 50, 120])
    ]
    assert np.concatenate(pieces).tolist() == expected.tolist()
    assert whole.squares == parts.squares


def test_when_the_number_of_copies_is_chosen():
    model = SpanBoost(Weak())
    assert isinstance(model, Choosing)
    assert (model.n, model.eta) == ("auto", "auto")
    assert next(iter(model.weights_)) == "n=1, eta=1"
    assert isinstance(HullBoost(Weak()), Choosing)
    assert isinstance(SpanBoost(Weak(), loss="logistic"), Choosing)
    assert isinstance(BoostingRegressor(SGDRegressor()).fit(*stream(20)).model_, Choosing)
    step = SpanBoost(Weak(), eta=0.5)
    assert (step.n, step.eta) == ("auto", 0.5)


def test_when_the_number_of_copies_is_fixed():
    assert SpanBoost(Weak(), n=10).n == 10
    assert SpanBoost(LinearSGD()).n == HullBoost(Trees()).n == 32
    assert BoostingRegressor(Trees(depth=2)).fit(*stream(20)).model_.n == 100

    class ByLoss:
        def predict(self, x):
            return 0.0

        def update(self, x, loss):
            pass

    assert SpanBoost(ByLoss(), feedback="linear").n == 32  # the theorems need a fixed number

    class Vector(ByLoss):
        def predict(self, x):
            return np.zeros(2)

    assert isinstance(SpanBoost(Vector(), loss=Softmax(2), D=6.0), Choosing)
    with pytest.raises(ValueError, match="to which classes cannot be added"):
        SpanBoost(Vector(), loss="softmax", D=6.0)
