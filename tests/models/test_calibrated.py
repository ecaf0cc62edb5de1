"""Calibrated probabilities: the bound, an oracle, identity over blocks and files, interfaces."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spanboost import (
    AutoBoost,
    Calibrated,
    Intervals,
    LinearSGD,
    PredictionSets,
    SpanBoost,
    Trees,
    export,
    load,
    save,
)
from spanboost.compiling.kernels import Caller, plain
from spanboost.losses import Softmax
from spanboost.models.files import to_bytes
from spanboost.models.predictions import probabilities
from spanboost.models.probability_map import (
    CANDIDATES,
    FIRST,
    SHARE,
    learn_mapped,
    new_map,
    predict_mapped,
)
from spanboost.theory.calibration import excess_loss_bound


def linear(loss="softmax"):
    return SpanBoost(LinearSGD(), n=4, loss=loss)


def stream(rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 3))
    return X, np.digitize(X[:, 0] + 0.2 * rng.normal(size=rows), [-0.4, 0.4])


def log_losses(scores, classes):
    with np.errstate(divide="ignore"):
        return -np.log(probabilities(scores)[np.arange(len(classes)), classes])


def calibration_error(chances, events):
    bins = np.minimum((chances * 10).astype(int), 9)
    gaps = np.bincount(bins, chances - events, minlength=10)
    return np.abs(gaps).sum() / len(events)


def bound(rows):
    return excess_loss_bound(rows, CANDIDATES, SHARE, FIRST)


def run(scores, classes, weights=None):
    """Return the log-probabilities of the mixture, each made before its label."""
    state, out = new_map(scores.shape[1]), np.empty(scores.shape)
    weights = np.ones(len(classes)) if weights is None else weights
    known = np.full(len(classes), scores.shape[1])
    Caller()(learn_mapped, state, scores, known, classes, weights, out)
    return out


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
@pytest.mark.parametrize("learner", [LinearSGD(), Trees()])
def test_probabilities_that_are_not_sure_enough_are_calibrated(loss, learner):
    X, kinds = stream(6000)
    classes = (kinds > 0).astype(int) if loss == "logistic" else kinds
    y = 2.0 * classes - 1 if loss == "logistic" else classes
    errors, losses = [], []
    for wrap in (lambda model: model, Calibrated):
        scores = wrap(SpanBoost(learner, n=8, loss=loss)).learn_many(X, y)[3000:]
        chances, label = probabilities(scores), classes[3000:]
        losses.append(log_losses(scores, label).mean())
        errors.append(calibration_error(chances.max(axis=1), chances.argmax(axis=1) == label))
    assert errors[1] < 0.03 < errors[0] / 2
    assert losses[1] < 0.9 * losses[0]


@pytest.mark.parametrize("seed", range(5))
def test_probabilities_that_are_right_lose_next_to_nothing(seed):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(5000, 3)) * 2
    classes = np.array([rng.choice(3, p=p) for p in probabilities(scores)])
    excess = (log_losses(run(scores, classes), classes) - log_losses(scores, classes)).sum()
    assert excess < bound(5000) < 2


ADVERSARIES = {
    "the least probable": lambda t, p: int(p.argmin()),
    "the most probable": lambda t, p: int(p.argmax()),
    "changes sides": lambda t, p: int(p.argmin() if t // 100 % 2 else p.argmax()),
    "one class": lambda t, p: 0,
}


@pytest.mark.parametrize("name", ADVERSARIES)
@pytest.mark.parametrize("spread", [0.1, 3.0, 300.0])
def test_the_bound_holds_against(name, spread):
    rng, state = np.random.default_rng(0), new_map(3)
    excess = largest = 0.0
    for t in range(600):
        scores, out = rng.normal(size=(1, 3)) * spread, np.empty((1, 3))
        predict_mapped(state, scores, out)
        label = ADVERSARIES[name](t, np.exp(out[0]))
        log = scores[0] - np.logaddexp.reduce(scores[0])
        excess += log[label] - out[0, label]
        largest = max(largest, excess - bound(t + 1))
        learn_mapped(state, scores, np.array([3]), np.array([label]), np.ones(1), np.empty((1, 3)))
    assert largest <= 1e-9


@given(st.integers(0, 2**32), st.integers(2, 5), st.floats(0.01, 50))
@example(208, 2, 42.0)  # the probability of a class is 1 minus less than 1e-9
@example(0, 2, 400.0)
@settings(max_examples=25, deadline=None)
def test_the_bound_holds_for_weighted_rows_and_probabilities_sum_to_1(seed, classes, spread):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(200, classes)) * spread
    labels = rng.integers(0, classes, 200)
    weights = rng.choice([0.0, 0.2, 1.0], 200)
    weights[0] = 1.0  # the largest
    out = run(scores, labels, weights)
    np.testing.assert_allclose(np.exp(out).sum(axis=1), 1, rtol=1e-9)
    each = np.arange(200)
    log = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    excess = np.cumsum(weights * (log[each, labels] - out[each, labels]))
    assert (excess <= [bound(t + 1) + 1e-9 for t in range(200)]).all()


def test_the_mixture_follows_a_model_that_becomes_too_sure():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(20_000, 2)) * 2
    sure = np.where(np.arange(20_000)[:, None] < 10_000, 1.0, 3.0)
    classes = np.array([rng.choice(2, p=p) for p in probabilities(scores)])
    out = run(scores * sure, classes)
    late = slice(12_000, None)
    chances = np.exp(out[late, 1])
    assert calibration_error(chances, classes[late]) < 0.02
    assert calibration_error(probabilities((scores * sure)[late])[:, 1], classes[late]) > 0.08


def test_compiled_code_plain_code_and_a_plain_oracle_agree():
    rng = np.random.default_rng(0)
    scores, classes = rng.normal(size=(400, 4)) * 3, rng.integers(0, 4, 400)
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], 400)
    with plain():
        slow = run(scores, classes, weights)
    np.testing.assert_allclose(run(scores, classes, weights), slow, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(slow, oracle(scores, classes, weights), rtol=1e-9, atol=1e-9)


def oracle(all_scores, classes, weights):
    """Calibrate as docs/intervals.md says, with vectors; shares no code with the package."""
    n = all_scores.shape[1]
    slope, bias, bent, bends = 1.0, np.zeros(n), 0.0, np.zeros(n)
    right, past = np.zeros((n, 20)), np.zeros((n, 20))
    w, learned, most, out = np.full(3, 1 / 3), 0, 0.0, []
    for scores, label, weight in zip(all_scores, classes, weights, strict=True):
        share = 0.1 / (learned + 10)
        mixed = (1 - share) * w / w.sum() + share / 3
        first = np.exp(scores) / np.exp(scores).sum()
        second = np.exp(slope * scores + bias) / np.exp(slope * scores + bias).sum()
        top = second.argmax()
        place, chance = (top, min(int(second[top] * 20), 19)), min(second[top], 1 - 1e-9)
        found = min((right[place] + 20 * chance) / (past[place] + 20), 1 - 1e-9)
        third = second.copy()
        third[top] = 0
        third *= (1 - found) / third.sum()
        third[top] = found
        each = np.array([first, second, third])
        out.append(np.log(mixed @ each))
        if weight == 0:
            continue
        learned, most = learned + 1, max(most, weight)
        part = weight / most
        w = mixed * each[:, label] ** part
        past[place] = 0.999 * past[place] + part
        right[place] = 0.999 * right[place] + part * (top == label)
        mean = second @ scores
        bends = 0.999 * bends + part * second * (1 - second)
        bias = bias - part * (second - np.eye(n)[label]) / (bends + 10)
        bent = 0.999 * bent + part * (second @ scores**2 - mean**2)
        step = np.clip(mean - scores[label], -10, 10)
        slope = np.clip(slope - part * step / (bent + 1), 0.05, 50)
    return np.array(out)


@pytest.mark.parametrize("loss", ["logistic", "softmax", Softmax(3)])
@pytest.mark.parametrize("blocks", [1, 7, 250])
def test_blocks_do_not_change_the_bits(loss, blocks):
    X, y = stream(500)
    y = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y
    whole, parts = Calibrated(linear(loss)), Calibrated(linear(loss))
    expected = whole.learn_many(X, y)
    found = [
        parts.learn_many(X[a : a + blocks], y[a : a + blocks]) for a in range(0, len(y), blocks)
    ]
    for row, part in zip(expected, (one for block in found for one in block), strict=True):
        assert np.atleast_1d(row)[: np.size(part)].tobytes() == np.atleast_1d(part).tobytes()
    assert to_bytes(parts) == to_bytes(whole)


@pytest.mark.parametrize("base", [linear, lambda: AutoBoost(budget="fast", loss="softmax")])
def test_a_loaded_model_continues_with_the_same_bits(base, tmp_path):
    X, y = stream(400)
    model = Calibrated(base())
    model.learn_many(X[:200], np.minimum(y[:200], 1))  # the third class appears later
    save(model, tmp_path / "model.sb")
    again = load(tmp_path / "model.sb")
    assert isinstance(again, Calibrated)
    expected, found = (one.learn_many(X[200:], y[200:]) for one in (model, again))
    assert expected.tobytes() == found.tobytes()
    assert to_bytes(again) == to_bytes(model)
    assert (again.predict_many(X) == model.predict_many(X)).all()


def test_new_classes_appear():
    X, y = stream(900)
    model = Calibrated(linear())
    y[:300] = 0
    y[300:600] = np.minimum(y[300:600], 1)
    model.learn_many(X, y)
    chances = probabilities(model.predict_many(X))
    assert chances.shape == (900, 3)
    assert np.isfinite(chances).all()


def test_rows_of_weight_0_are_predicted_and_not_learned():
    X, y = stream(400)
    model, other = Calibrated(linear(Softmax(3))), Calibrated(linear(Softmax(3)))
    model.learn_many(X, y, np.tile([1.0, 0.0], 200))
    other.learn_many(X[::2], y[::2])
    assert (model.predict_many(X) == other.predict_many(X)).all()


def test_held_out_rows_start_the_calibration_again():
    X, y = stream(2000)
    model = Calibrated(linear(Softmax(3)))
    model.learn_many(X[:1000], y[:1000])
    before = model.model.predict_many(X[1000:])
    model.learn_held_out(X[1000:], y[1000:])
    expected = new_map(3)
    known, out = np.full(1000, 3), np.empty((1000, 3))
    Caller()(learn_mapped, expected, before, known, y[1000:], np.ones(1000), out)
    assert model.map.slope.tolist() == expected.slope.tolist()
    alone = linear(Softmax(3))
    alone.learn_many(X, y)
    assert (model.model.predict_many(X) == alone.predict_many(X)).all()  # the rows are learned


def test_classes_of_held_out_rows_that_the_model_did_not_know_do_not_count():
    X, y = stream(600)
    model = Calibrated(linear())
    model.learn_many(X[:400], np.minimum(y[:400], 1))
    model.learn_held_out(X[400:], y[400:])
    assert model.map.rows[0] == (y[400:] < 2).sum()
    assert model.predict_many(X).shape == (600, 3)


@pytest.mark.parametrize("model", [linear("squared"), linear("hinge"), Calibrated(linear()), 3])
def test_models_without_probabilities_are_refused(model):
    with pytest.raises(ValueError, match="model must"):
        Calibrated(model)


@pytest.mark.parametrize("outer", [Calibrated, PredictionSets, Intervals])
@pytest.mark.parametrize("inner", [Calibrated, PredictionSets])
def test_wrappers_cannot_be_combined(outer, inner):
    model = inner(SpanBoost(LinearSGD(), n=2, loss="logistic"))
    with pytest.raises(ValueError, match="calibrated probabilities cannot be combined") as error:
        outer(model)
    assert "scikit-learn" not in str(error.value)


def test_an_export_says_that_the_calibration_is_missing(tmp_path):
    X, y = stream(50)
    model = Calibrated(linear())
    model.learn_many(X, y)
    with pytest.raises(ValueError, match=r"cannot be exported; export `model\.model`"):
        export(model, tmp_path / "model.c")


def test_files_with_other_arrays_are_refused():
    X, y = stream(50)
    model = Calibrated(linear())
    model.learn_many(X, y)
    for name, bad in (("map.bias", np.zeros(7)), ("map.slope", np.array([np.inf, 0.0]))):
        tensors = dict(model.tensors()) | {name: bad}
        with pytest.raises(ValueError, match=r"map\.bias must be|calibration are invalid"):
            Calibrated.restore(model.header(), tensors)


def test_the_bound_needs_sensible_arguments():
    assert excess_loss_bound(1, 1, 1e-9, 10) == pytest.approx(0, abs=1e-9)
    assert excess_loss_bound(10**6, 3, 0.1, 10) < math.log(3) + 1.2
    with pytest.raises(ValueError, match="rows"):
        excess_loss_bound(0, 3, 0.1, 10)
