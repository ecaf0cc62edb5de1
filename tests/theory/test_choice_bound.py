"""The bound on the regret of a booster that chooses n and eta online, against adversaries."""

import numpy as np
import pytest

from spanboost import AutoBoost, HullBoost, LinearSGD, SpanBoost, Trees
from spanboost.compiling.kernels import plain
from spanboost.losses import Huber, Quantile, Softmax, SquaredEuclidean
from spanboost.models import choice
from spanboost.models.budgets import EXPERTS, Expert
from spanboost.theory import choice as theory
from spanboost.theory.choice import audit_choice

T = 120


@pytest.fixture(autouse=True)
def few_copies(monkeypatch):
    """Up to 4 copies, so that plain Python is quick."""
    monkeypatch.setattr(choice, "default_copies", lambda learner: 4)


def rows(seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (T, 3)).astype(np.float32)


def random_labels(model, X):
    return np.random.default_rng(1).uniform(-1, 1, T)


def labels_away_from_the_prediction(model, X):
    """As far from each prediction as possible."""
    y = np.zeros(T)
    for t in range(T):
        y[t] = -1.0 if model.predict_many(X[t : t + 1])[0] >= 0 else 1.0
        model.learn_many(X[t : t + 1], y[t : t + 1])
    return y


def labels_for_the_weakest(model, X):
    """The label that the candidate with the smallest weight predicts best, after a silent start."""
    y = np.zeros(T)
    for t in range(T):
        names = list(model.weights_)[: model.mixture.K]
        weakest = min(range(len(names)), key=lambda k: model.weights_[names[k]])
        forecast = model.forecasts(X[t : t + 1])[0, 0, weakest]
        y[t] = np.clip(forecast, -1, 1) if t % 40 > 20 else np.sign(X[t, 0])
        model.learn_many(X[t : t + 1], y[t : t + 1])
    return y


def labels_that_switch(model, X):
    """A linear function that changes its sign, and rare labels at the ends of the range."""
    y = 0.1 * X[:, 0] * np.where(np.arange(T) < T // 2, 1, -1)
    y[::29] = np.where(np.arange(len(y[::29])) % 2, 1.0, -1.0)
    return y


STREAMS = (
    random_labels,
    labels_away_from_the_prediction,
    labels_for_the_weakest,
    labels_that_switch,
)


@pytest.mark.parametrize("stream", STREAMS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("loss", ["squared", "absolute", Huber(0.3), Quantile(0.2)], ids=str)
def test_no_candidate_beats_the_bound(loss, stream):
    with plain():
        X = rows()
        y = stream(SpanBoost(LinearSGD(), n="auto", eta="auto", loss=loss), X)
        audit = audit_choice(SpanBoost(LinearSGD(), n="auto", eta="auto", loss=loss), X, y)
    assert len(audit) == 5
    for one in audit.values():
        assert one.regret <= one.bound + 1e-9


@pytest.mark.parametrize("stream", [random_labels, labels_away_from_the_prediction])
def test_mixed_probabilities(stream):
    with plain():
        X = rows()
        model = HullBoost(LinearSGD(), n="auto", loss="logistic", D=6.0)
        y = np.where(stream(model, X) > 0, 1.0, -1.0)
        audit = audit_choice(HullBoost(LinearSGD(), n="auto", loss="logistic", D=6.0), X, y)
    for one in audit.values():
        assert one.regret <= one.bound < 10


def test_several_outputs_and_weights():
    rng = np.random.default_rng(2)
    with plain():
        y = rng.uniform(-0.6, 0.6, (T, 2))
        model = SpanBoost(LinearSGD(), n="auto", eta="auto", loss=SquaredEuclidean(2))
        audit = audit_choice(model, rows(), y, rng.lognormal(0, 1, T) * (rng.random(T) < 0.9))
        assert all(one.regret <= one.bound for one in audit.values())
        model = SpanBoost(LinearSGD(), n="auto", eta="auto", loss=Softmax(3))
        audit = audit_choice(model, rows(), rng.integers(0, 3, T))
        assert all(one.regret <= one.bound for one in audit.values())


def test_the_losses_of_candidates_are_those_of_fixed_boosters():
    with plain():
        X = rows()
        y = 0.5 * X[:, 0]
        model = SpanBoost(LinearSGD(), n="auto", eta="auto")
        audit = audit_choice(model, X, y)
        for name, one in zip(audit, model.candidates, strict=True):
            B = model.lanes[one.lane].B_
            alone = SpanBoost(LinearSGD(), n=one.n, eta=one.eta, B=B)
            loss = ((alone.learn_many(X, y) - y) ** 2).sum()
            assert audit[name].loss == pytest.approx(loss, rel=1e-5)
        same = SpanBoost(LinearSGD(), n="auto", eta="auto")
        ours = ((same.learn_many(X, y) - y) ** 2).sum()
    first = next(iter(audit.values()))
    assert first.loss + first.regret == pytest.approx(ours, rel=1e-5)


@pytest.mark.parametrize("kept", ["surprise", "variance"])
def test_a_bound_without_the_logarithm_is_violated(kept, monkeypatch):
    def without(K, T, scale, variance, surprise=0.0):
        return variance / scale / 32 if kept == "variance" else surprise

    monkeypatch.setattr(theory, "second_order_regret", without)
    violated = False
    with plain():
        for stream in STREAMS:
            X = rows()
            y = stream(SpanBoost(LinearSGD(), n="auto", eta="auto"), X)
            audit = audit_choice(SpanBoost(LinearSGD(), n="auto", eta="auto"), X, y)
            violated |= any(one.regret > one.bound for one in audit.values())
    assert violated


def test_experts_of_autoboost(monkeypatch):
    experts = (
        Expert("trees", Trees, {"depth": 3, "candidates": 8}, 4, 0.5),
        Expert("linear", LinearSGD, {}, "auto", "auto"),
    )
    monkeypatch.setitem(EXPERTS, "default", experts)
    with plain():
        X = rows()
        model = AutoBoost(label_range=(-1, 1), past=False, recent=False)
        audit = audit_choice(model, X, random_labels(None, X))
    assert list(audit) == ["trees", "linear"]
    assert all(one.regret <= one.bound for one in audit.values())


@pytest.mark.parametrize("n", [1, 2])
def test_a_single_candidate_is_met_exactly_but_for_rounding(n):
    for seed in range(8):
        X = np.random.default_rng(seed).uniform(-1, 1, (300, 2))
        (one,) = audit_choice(SpanBoost(LinearSGD(), n=n, eta="auto"), X, X @ [0.5, -0.3]).values()
        assert one.regret <= one.bound
        assert one.bound == pytest.approx(one.regret, abs=1e-9)


def test_what_is_refused():
    X = rows()
    y = random_labels(None, X)
    with pytest.raises(ValueError, match="has no candidates"):
        audit_choice(SpanBoost(LinearSGD(), n=4), X, y)
    with pytest.raises(ValueError, match="needs a fixed label range"):
        audit_choice(SpanBoost(LinearSGD(), n="auto", label_range="auto"), X, y)
    model = SpanBoost(LinearSGD(), n="auto", eta="auto")
    with plain():
        model.learn_many(X, y)
        with pytest.raises(ValueError, match="a fresh model"):
            audit_choice(model, X, y)
        model = SpanBoost(LinearSGD(), n="auto", eta="auto", loss="logistic")
        with pytest.raises(ValueError, match="needs weights of 1"):
            audit_choice(model, X, np.sign(y), np.full(T, 0.5))
