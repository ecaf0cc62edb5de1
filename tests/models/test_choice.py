"""n and eta chosen online: candidates, weights, files, and what is refused."""

import copy
import math
import pickle

import naive
import numpy as np
import pytest
from forged import changed
from naive_aggregation import aggregate_plainly

from spanboost import (
    AutoBoost,
    HullBoost,
    LinearSGD,
    ModelFileError,
    SpanBoost,
    Stumps,
    Trees,
    explain,
    load,
    save,
)
from spanboost.analysis.partial_sums import partial_predictions
from spanboost.compiling.kernels import plain
from spanboost.losses import Softmax, SquaredEuclidean
from spanboost.models import choice
from spanboost.models.budgets import EXPERTS, Expert
from spanboost.models.mixture import REGRESSION
from spanboost.parallel.averaging import check_averageable

SMALL_TREES = Trees(depth=3, candidates=8, evidence=1.0, grace=8, delay=2)


class Descent:
    """A learner that is an object: `naive.SGD`, through the losses of the package."""

    def __init__(self, features):
        self.inner = naive.SGD(features)

    def __repr__(self):
        return "Descent"

    def predict(self, x):
        return self.inner.predict(x)[0]

    def update(self, x, loss):
        class AsLists:
            def slope(self, h):
                return [loss.slope(h[0])]

        self.inner.update(x, AsLists())


@pytest.fixture
def few_copies(monkeypatch):
    """Up to 4 copies, so that plain Python is quick."""
    monkeypatch.setattr(choice, "default_copies", lambda learner: 4)


def stream(T=300, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (T, 4)).astype(np.float32)
    return X, scale * (0.5 * X[:, 0] - 0.3 * X[:, 1] * X[:, 2] + 0.1 * rng.uniform(-1, 1, T))


def chosen(**parameters):
    return SpanBoost(LinearSGD(), **{"n": "auto", "eta": "auto", **parameters})


def choose_plainly(alone, mixed, y):
    """Return averages of a learner and of the mixture, which has the share of its evidence."""
    answers, gains = [], []
    for one, other, label in zip(alone, mixed, y, strict=True):
        noise = math.sqrt(sum(gain**2 for gain in gains))
        share = min(max(sum(gains) / (3 * noise), 0.0), 1.0) if noise > 0 else 0.0
        answers.append(one + share * (other - one))
        gains.append((one - label) ** 2 - (other - label) ** 2)
    return answers


def test_the_mixture_agrees_with_plain_listings_and_plain_weights():
    X, y = stream(200)
    rows = list(zip(X.tolist(), y.tolist(), strict=True))
    candidates = []
    for eta, sizes in ((1.0, (1, 2, 4, 8)), (1 / 3, (3, 6, 8))):
        copies = [naive.SGD(4) for _ in range(8)]
        loss, how = naive.Squared(), {"d": 1, "D": 1.0, "feedback": "greedy"}
        _, _, sums = naive.span(copies, rows, loss, eta=eta, **how)
        candidates += [[row[n][0] for row in sums] for n in sizes]
    expected, weights = aggregate_plainly(np.array(candidates).T, y.tolist(), fixed_range=True)
    model = SpanBoost(Descent(4), n="auto", eta="auto")
    cautious = choose_plainly(candidates[0], expected, y)
    np.testing.assert_allclose(model.learn_many(X, y), cautious, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(list(model.weights_.values())[:-1], weights[:7], rtol=1e-5)
    assert list(model.weights_)[:5] == [
        *("n=1, eta=1", "n=2, eta=1", "n=4, eta=1", "n=8, eta=1", "n=3, eta=0.333")
    ]


@pytest.mark.parametrize("learner", [LinearSGD(), Stumps(), SMALL_TREES, Descent(4)], ids=repr)
@pytest.mark.parametrize("kind", [SpanBoost, HullBoost])
@pytest.mark.parametrize("feedback", ["greedy", "linear"])
def test_every_candidate_is_a_booster_of_its_own(kind, learner, feedback, few_copies):
    steps = {"eta": "auto"} if kind is SpanBoost else {}
    X, y = stream(25)
    with plain():
        model = kind(learner, n="auto", feedback=feedback, **steps)
        seen = []
        for x, label in zip(X, y, strict=True):
            seen.append(model.forecasts(x[None])[0, 0])
            model.learn_one(x, label)
        for k, one in enumerate(model.candidates):
            eta = {} if one.eta is None else {"eta": one.eta, "B": model.lanes[one.lane].B_}
            alone = kind(learner, n=one.n, feedback=feedback, **eta)
            np.testing.assert_array_equal(alone.learn_many(X, y), np.array(seen)[:, k])


def test_the_learner_alone_is_a_candidate():
    X, y = stream(25)
    for model in (
        SpanBoost(Descent(4), n="auto", eta="auto"),
        HullBoost(Descent(4), n="auto"),
    ):
        alone, seen = HullBoost(Descent(4), n=1), []
        for x, label in zip(X, y, strict=True):
            seen.append(model.forecasts(x[None])[0, 0, 0])
            model.learn_one(x, label)
        np.testing.assert_array_equal(alone.learn_many(X, y), seen)


@pytest.mark.parametrize("loss", [Softmax(3), SquaredEuclidean(2)], ids=repr)
def test_candidates_with_several_outputs(loss, few_copies):
    X, _ = stream(30)
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 30) if loss.d == 3 else 0.3 * rng.uniform(-1, 1, (30, 2))
    with plain():
        model = SpanBoost(LinearSGD(), n="auto", eta="auto", loss=loss)
        seen = []
        for x, label in zip(X, y, strict=True):
            seen.append(model.forecasts(x[None])[0])
            model.learn_many(x[None], label[None])
        for k in (0, len(model.candidates) - 1):
            one = model.candidates[k]
            B = model.lanes[one.lane].B_
            alone = SpanBoost(LinearSGD(), n=one.n, eta=one.eta, B=B, loss=loss)
            np.testing.assert_array_equal(alone.learn_many(X, y), np.array(seen)[:, :, k])


@pytest.mark.parametrize("learner", [LinearSGD(), Stumps(), SMALL_TREES], ids=repr)
@pytest.mark.parametrize("loss", ["squared", "logistic", "absolute"])
def test_blocks_rows_copies_and_files_change_no_bit(learner, loss, tmp_path, few_copies):
    X, y = stream(60, scale=7.0)
    y = np.sign(y) if loss == "logistic" else y
    limits = (-1, 1) if loss == "logistic" else "auto"  # a range that changes

    def fresh():
        steps = {"n": "auto", "eta": "auto", "label_range": limits}
        return SpanBoost(learner, loss=loss, replay=1, memory=9, **steps)

    with plain():
        model = fresh()
        expected = model.learn_many(X, y)
        one, answers = fresh(), []
        for first in range(0, 60, 23):
            part = slice(first, first + 23)
            answers.append(one.learn_many(X[part], y[part]))
            save(one, tmp_path / "model.sb")
            one = pickle.loads(pickle.dumps(load(tmp_path / "model.sb")))
        np.testing.assert_array_equal(np.concatenate(answers), expected)
        other = fresh()
        single = [other.learn_one(x, float(label)) for x, label in zip(X, y, strict=True)]
        np.testing.assert_array_equal(single, expected)
        for same in (one, other, copy.deepcopy(model)):
            np.testing.assert_array_equal(same.predict_many(X), model.predict_many(X))
            assert same.predict_one(X[0]) == model.predict_many(X[:1])[0]
            assert same.weights_ == model.weights_


def test_compiled_and_plain_code_agree():
    X, y = stream(300, scale=3.0)
    model, other = chosen(label_range="auto"), chosen(label_range="auto")
    expected = model.learn_many(X, y)
    with plain():
        np.testing.assert_allclose(other.learn_many(X, y), expected, rtol=1e-4, atol=1e-4)


def test_a_copy_shares_no_state_with_the_original(few_copies):
    X, y = stream(60)
    with plain():
        model = chosen()
        model.learn_many(X[:30], y[:30])
        twin = copy.deepcopy(model)
        expected = twin.learn_many(X[30:], y[30:])
        np.testing.assert_array_equal(model.learn_many(X[30:], y[30:]), expected)


def test_replayed_rows_do_not_move_the_weights(few_copies):
    """The candidates have seen these rows, so their losses say nothing about new rows."""
    X, y = stream(60)
    with plain():
        model = chosen(replay=3)
        model.learn_many(X, y)
        assert model.mixture.aggregator.second_order.rounds[0] == 60


def test_only_n_or_only_eta_is_chosen():
    model = chosen(eta=0.25)
    assert [one.n for one in model.candidates] == [4, 8, 16, 32]
    assert list(model.weights_) == ["n=4", "n=8", "n=16", "n=32", REGRESSION]
    model = chosen(n=10)
    assert [(one.n, one.eta) for one in model.candidates] == [(10, 1), (10, 1 / 3), (10, 1 / 9)]
    assert next(iter(model.weights_)) == "eta=1"
    assert [one.n for one in HullBoost(Trees(), n="auto").candidates][-2:] == [64, 100]
    assert [one.n for one in chosen(eta=None).candidates] == [10, 20, 32]


def test_rows_of_weight_0_teach_nothing(few_copies):
    X, y = stream(50)
    with plain():
        model, other = chosen(), chosen()
        weights = np.tile([1.0, 0.0], 25)
        kept = model.learn_many(X, y, weights)[::2]
        np.testing.assert_array_equal(other.learn_many(X[::2], y[::2]), kept)
        assert other.weights_ == model.weights_


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_explanations_add_up(loss, few_copies):
    X, y = stream(100)
    with plain():
        model = chosen(loss=loss)
        model.learn_many(X, np.sign(y) if loss == "logistic" else y)
        one = explain(model, X[7])
    assert one.prediction == model.predict_one(X[7])
    total = one.base + sum(one.contributions.values())
    tolerance = 0.05 if loss == "logistic" else 1e-5  # probabilities are mixed, not scores
    assert total == pytest.approx(one.prediction, abs=tolerance)


def test_as_an_expert_of_autoboost(monkeypatch, tmp_path, few_copies):
    experts = (
        Expert("trees", Trees, {"depth": 3, "candidates": 8}, 4, 0.5),
        Expert("linear", LinearSGD, {}, "auto", "auto"),
    )
    monkeypatch.setitem(EXPERTS, "default", experts)
    X, y = stream(80, scale=5.0)
    with plain():
        model = AutoBoost()
        alone = SpanBoost(
            LinearSGD(), n="auto", eta="auto", label_range="auto", seed=model.seed + 1
        )
        model.learn_many(X[:50], y[:50])
        alone.learn_many(X[:50], y[:50])
        np.testing.assert_array_equal(
            model.experts["linear"].predict_many(X), alone.predict_many(X)
        )
        save(model, tmp_path / "model.sb")
        again = load(tmp_path / "model.sb")
        np.testing.assert_array_equal(
            again.learn_many(X[50:], y[50:]), model.learn_many(X[50:], y[50:])
        )
        one = explain(model, X[3])
        assert one.prediction == pytest.approx(model.predict_one(X[3]))


def test_a_file_keeps_its_candidates(monkeypatch, tmp_path, few_copies):
    X, y = stream(40)
    with plain():
        model = chosen()
        model.learn_many(X, y)
        save(model, tmp_path / "model.sb")
        monkeypatch.setattr(choice, "STEPS", (1.0, 0.5))
        again = load(tmp_path / "model.sb")
        assert list(again.weights_) == list(model.weights_)
        np.testing.assert_array_equal(again.predict_many(X), model.predict_many(X))
        save(chosen(), tmp_path / "fresh.sb")
        assert list(load(tmp_path / "fresh.sb").weights_)[-2:] == ["n=4, eta=0.5", REGRESSION]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda h: h["lanes"].update(n=10**9), "claims 2,000,000,000 copies"),
        (lambda h: h["lanes"].update(eta=[1.0] * 65), "1 to 64 lanes"),
        (lambda h: h["lanes"].update(eta=[]), "1 to 64 lanes"),
        (lambda h: h["lanes"].update(eta=[0.001] * 2), "eta must be between"),
        (lambda h: h["lanes"].update(eta=["auto"] * 2), "lanes have numbers of copies and steps"),
        (lambda h: h["lanes"].update(n="auto"), "lanes have numbers of copies and steps"),
        (lambda h: h.pop("lanes"), "lanes"),
        (lambda h: h["parameters"].update(n=8, eta=0.5), "unexpected arrays"),
    ],
)
def test_forged_lanes_are_refused(tmp_path, change, problem, few_copies):
    X, y = stream(40)
    with plain():
        model = chosen()
        model.learn_many(X, y)
        save(model, tmp_path / "model.sb")
        changed(tmp_path / "model.sb", change)
        with pytest.raises(ModelFileError, match=problem):
            load(tmp_path / "model.sb")


def test_what_needs_a_fixed_booster_is_refused(few_copies):
    X, y = stream(20)
    model = chosen()
    with plain():
        model.learn_many(X, y)
    for use in (
        lambda: model.learn_scaled(X, y),
        lambda: partial_predictions(model, X),
        lambda: check_averageable(model),
    ):
        with pytest.raises(ValueError, match="fixed n and eta, but this one chooses them online"):
            use()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"loss": "absolute", "feedback": "linear"}, "n must be a number for a loss with a kink"),
        ({"n": "many"}, "n must be a positive integer or 'auto'"),
        ({"eta": "auto-ish"}, "eta must be above 0 and at most 1"),
        ({"n": 8, "eta": "best"}, "eta must be between"),
        ({"eta": 0.001}, "eta must be between 1/n"),
        ({"eta": 1.5}, "eta must be above 0 and at most 1"),
    ],
)
def test_bad_parameters(arguments, problem):
    with pytest.raises(ValueError, match=problem):
        chosen(**arguments)


def test_kinked_losses_under_linear_feedback_can_choose_eta(few_copies):
    X, y = stream(20)
    with plain():
        model = chosen(n=8, loss="absolute", feedback="linear")
        assert np.isfinite(model.learn_many(X, y)).all()
