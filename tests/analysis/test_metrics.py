"""Metrics in constant memory, compared with those of scikit-learn over all rows at once."""

import json
import math
from contextlib import closing
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as exact

from spanboost import LinearSGD, Metrics, SpanBoost, evaluate
from spanboost.analysis.metrics import ranking
from spanboost.analysis.metrics.class_counts import MOST_CLASSES
from spanboost.analysis.metrics.tape import OutcomeTape, window_ends
from spanboost.losses import Huber, Softmax, SquaredEuclidean, resolve

LOSSES = ["squared", "absolute", Huber(), SquaredEuclidean(2), "logistic", "hinge", Softmax(4)]
MEANS = ["poisson", "gamma", "tweedie:1.5"]
LOSSES += ["quantile:0.9", *MEANS]


def outcomes(loss, rows=400, seed=0, weighted=True):
    """Return labels, predictions and weights; weights are multiples of 1/4, so sums are exact."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 8, rows) / 4 if weighted else np.ones(rows)
    if isinstance(loss, Softmax):
        y = rng.integers(0, loss.d, rows)
        return y, 2 * np.eye(loss.d)[y] + rng.normal(0, 1.5, (rows, loss.d)), weights
    if loss in ("logistic", "hinge"):
        y = rng.choice([-1.0, 1.0], rows, p=[0.7, 0.3])
        return y, y + rng.normal(-0.5, 1.5, rows), weights
    if loss in MEANS:
        y = rng.gamma(1, 3, rows) + 0.1
        y[(rng.random(rows) < 0.2) & (loss != "gamma")] = 0
        return y, rng.gamma(2, 2, rows) + 0.1, weights
    shape = (rows, 2) if isinstance(loss, SquaredEuclidean) else rows
    y = rng.normal(1000, 3, shape)
    return y, y + rng.normal(0.5, 2, shape), weights


def collected(loss, y, predictions, weights):
    found = Metrics(loss)
    found.add(y, predictions, weights)
    return found


def expected_calibration_error(probabilities, events, weights, bins=10):
    """A plain loop over the rows of each bin."""
    total = 0.0
    for k in range(bins):
        inside = (probabilities >= k / bins) & ((probabilities < (k + 1) / bins) | (k == bins - 1))
        if weights[inside].sum():
            mean = np.average(probabilities[inside], weights=weights[inside])
            frequency = np.average(events[inside], weights=weights[inside])
            total += weights[inside].sum() * abs(mean - frequency)
    return total / weights.sum()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["squared", "absolute", Huber(), SquaredEuclidean(2)])
def test_numbers_match_scikit_learn(loss, weighted):
    y, predictions, weights = outcomes(loss, weighted=weighted)
    found = collected(loss, y, predictions, weights).results()
    assert found == pytest.approx(
        {
            "rmse": exact.root_mean_squared_error(y, predictions, sample_weight=weights),
            "mae": exact.mean_absolute_error(y, predictions, sample_weight=weights),
            "r2": exact.r2_score(y, predictions, sample_weight=weights),
        },
        rel=1e-10,
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_two_classes_match_scikit_learn(loss, weighted):
    y, scores, weights = outcomes(loss, weighted=weighted)
    predicted = np.where(scores > 0, 1, -1)
    found = collected(loss, y, scores, weights)
    results = found.results()
    area = exact.roc_auc_score(y, scores, sample_weight=weights)
    assert abs(results.pop("roc_auc") - area) <= results.pop("roc_auc_error") < 0.01
    expected = {
        "accuracy": exact.accuracy_score(y, predicted, sample_weight=weights),
        "f1": exact.f1_score(y, predicted, sample_weight=weights),
        "kappa": exact.cohen_kappa_score(y, predicted, sample_weight=weights),
    }
    if loss == "logistic":
        chances = 1 / (1 + np.exp(-scores))
        expected["log_loss"] = exact.log_loss(y, chances, sample_weight=weights)
        expected["calibration_error"] = expected_calibration_error(chances, y > 0, weights)
    assert results == pytest.approx(expected, rel=1e-12)
    counts = exact.confusion_matrix(y, predicted, sample_weight=weights)
    np.testing.assert_array_equal(found.confusion(), counts)


@pytest.mark.parametrize("weighted", [False, True])
def test_several_classes_match_scikit_learn(weighted):
    loss = Softmax(4)
    y, scores, weights = outcomes(loss, weighted=weighted)
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    predicted = chances.argmax(axis=1)
    found = collected(loss, y, scores, weights)
    hits = (predicted == y).astype(float)
    assert found.results() == pytest.approx(
        {
            "accuracy": exact.accuracy_score(y, predicted, sample_weight=weights),
            "log_loss": exact.log_loss(y, chances, sample_weight=weights),
            "macro_f1": exact.f1_score(y, predicted, average="macro", sample_weight=weights),
            "kappa": exact.cohen_kappa_score(y, predicted, sample_weight=weights),
            "calibration_error": expected_calibration_error(chances.max(axis=1), hits, weights),
        },
        rel=1e-12,
    )
    counts = exact.confusion_matrix(y, predicted, sample_weight=weights)
    np.testing.assert_array_equal(found.confusion(), counts)


def test_classes_without_rows_do_not_count_in_the_mean_f1():
    y, scores = np.array([0, 0, 1]), np.array([[2.0, 1, 0], [1, 2, 0], [1, 2, 0]])
    found = collected(Softmax(3), y, scores, None).results()
    assert found["macro_f1"] == pytest.approx(
        exact.f1_score(y, scores.argmax(axis=1), average="macro")
    )


def test_many_classes_have_no_confusion_counts_but_all_other_metrics():
    K = MOST_CLASSES + 1
    y = np.arange(2 * K) % K
    found = collected(Softmax(K), y, np.eye(K)[y], None)
    assert found.confusion() is None
    assert (found.results()["accuracy"], found.results()["macro_f1"]) == (1.0, 1.0)


@pytest.mark.parametrize("loss", LOSSES)
@given(cuts=st.lists(st.integers(0, 400), max_size=5), seed=st.integers(0, 5))
@settings(max_examples=10, deadline=None)
def test_blocks_and_restarts_do_not_change_the_state(loss, cuts, seed):
    y, predictions, weights = outcomes(loss, seed=seed)
    weights = weights / 3  # sums are rounded
    whole = collected(loss, y, predictions, weights)
    parts = Metrics(loss)
    ends = [0, *sorted(cuts), 400]
    for first, last in pairwise(ends):
        parts = Metrics(loss, json.loads(json.dumps(parts.state())))
        parts.add(y[first:last], predictions[first:last], weights[first:last])
    assert parts.state() == whole.state()
    assert parts.rows == 400


@pytest.mark.parametrize("loss", LOSSES)
@given(cuts=st.lists(st.integers(0, 400), max_size=5), seed=st.integers(0, 5))
@settings(max_examples=10, deadline=None)
def test_the_sum_of_any_parts_has_the_metrics_of_the_whole(loss, cuts, seed):
    y, predictions, weights = outcomes(loss, seed=seed)
    whole = collected(loss, y, predictions, weights)
    ends = [0, *sorted(cuts), 400]
    parts = [
        collected(loss, y[first:last], predictions[first:last], weights[first:last])
        for first, last in pairwise(ends)
    ]
    for order in (parts, parts[::-1]):
        total = sum(order, start=Metrics(loss))
        assert total.results() == pytest.approx(whole.results(), rel=1e-9)
        assert total.rows == 400
        if whole.confusion() is not None:
            np.testing.assert_array_equal(total.confusion(), whole.confusion())


def test_metrics_of_different_losses_cannot_be_added():
    with pytest.raises(ValueError, match="different losses"):
        Metrics("squared") + Metrics("logistic")


@given(
    scores=st.lists(
        st.floats(-40, 40) | st.floats(-1e-3, 1e-3) | st.sampled_from([0.0, 1.0, -1.0]),
        min_size=2,
        max_size=60,
    ),
    seed=st.integers(0, 100),
)
@settings(deadline=None)
def test_the_stated_error_of_the_area_holds(scores, seed):
    rng = np.random.default_rng(seed)
    y = rng.choice([-1, 1], len(scores))
    y[:2] = -1, 1
    weights = rng.integers(1, 5, len(scores))
    found = collected("hinge", y, np.array(scores), weights).results()
    area = exact.roc_auc_score(y, scores, sample_weight=weights)
    assert abs(found["roc_auc"] - area) <= found["roc_auc_error"] + 1e-12


def test_the_stated_error_of_the_area_can_be_attained():
    tiny = 2.0**-20  # both scores are in one bin
    for sign in (-1, 1):
        found = collected(
            "hinge", [-1, 1], np.array([tiny, tiny + sign * tiny / 2]), None
        ).results()
        assert abs(found["roc_auc"] - (sign > 0)) == found["roc_auc_error"] == 0.5


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=50, unique=True))
def test_bins_keep_the_order_and_tell_distant_scores_apart(scores):
    scores = np.sort(scores)
    bins = ranking.score_bins(scores)
    assert (np.diff(bins) >= 0).all()
    assert 0 <= bins.min() <= bins.max() < ranking.BINS
    sizes = np.maximum(np.abs(scores[:-1]), np.abs(scores[1:]))
    apart = (np.diff(scores) > np.maximum(sizes / ranking.PARTS, 2.0**-16)) & (sizes < 32)
    assert (np.diff(bins)[apart] > 0).all()


def test_the_area_is_precise_on_many_rows():
    y, scores, _ = outcomes("logistic", rows=50_000)
    found = collected("logistic", y, scores, None).results()
    assert found["roc_auc"] == pytest.approx(exact.roc_auc_score(y, scores), abs=1e-5)
    assert found["roc_auc_error"] < 2e-3


@pytest.mark.parametrize("loss", LOSSES)
def test_metrics_of_no_rows_are_undefined(loss):
    for found in (Metrics(loss), Metrics(loss) + Metrics(loss)):
        assert set(found.results().values()) == {None}
        assert found.rows == 0


def test_metrics_that_do_not_exist_are_undefined():
    same = collected("logistic", [1.0, 1.0], np.array([3.0, 2.0]), None).results()
    assert (same["accuracy"], same["roc_auc"], same["kappa"]) == (1.0, None, None)
    negative = collected("logistic", [-1.0], np.array([-3.0]), None).results()
    assert negative["f1"] is None
    assert collected("squared", [2.0, 2.0], np.array([1.0, 3.0]), None).results()["r2"] is None


def test_numbers_that_overflow_are_undefined():
    found = collected("squared", [1e300, -1e300], np.zeros(2), None)
    assert found.results() == {"rmse": None, "mae": 1e300, "r2": None}
    assert Metrics("squared", json.loads(json.dumps(found.state()))).state() == found.state()


def test_rows_of_weight_0_do_not_count_even_if_their_errors_are_infinite():
    rest = collected("squared", [1.0, 2.0], np.array([1.5, 1.5]), None)
    found = collected("squared", [1e300, 1.0, 2.0], np.array([-1e300, 1.5, 1.5]), [0, 1, 1])
    assert found.results() == rest.results()


@pytest.mark.parametrize("bad", [{}, {"rows": 1, "sums": {}}, {"rows": 1, "sums": None}])
def test_a_damaged_state_is_refused(bad):
    with pytest.raises(ValueError, match="invalid state of metrics"):
        Metrics("squared", bad)


@pytest.mark.parametrize(("loss", "other"), [(Softmax(4), "squared"), ("squared", Softmax(4))])
def test_a_state_of_another_loss_is_refused(loss, other):
    state = collected(loss, *outcomes(loss)).state()
    with pytest.raises(ValueError, match="invalid state of metrics"):
        Metrics(other, state)


@pytest.mark.parametrize("classes", [0, -1, 1 << 40, "4", None])
def test_a_state_with_an_invalid_number_of_classes_is_refused(classes):
    state = collected(Softmax(4), *outcomes(Softmax(4))).state() | {"classes": classes}
    with pytest.raises(ValueError, match="invalid state of metrics"):
        Metrics(Softmax(4), state)


def test_classes_may_appear_at_any_time():
    y, scores, weights = outcomes(Softmax(4))
    few = y < 2
    known = collected(Softmax(2), y[few], scores[few][:, :2], weights[few])
    expected = collected(Softmax(4), y[few], scores[few][:, :2], weights[few])
    found = Metrics(Softmax(2), json.loads(json.dumps(known.state())))
    for metrics in (found, expected):
        metrics.add(y[~few], scores[~few], weights[~few])
    assert found.state() == expected.state()
    assert Metrics(Softmax(2), found.state()).state() == found.state()
    assert Metrics(Softmax(4), known.state()).confusion().shape == (4, 4)
    rest = collected(Softmax(4), y[~few], scores[~few], weights[~few])
    for both in (known + rest, rest + known):
        assert both.results() == pytest.approx(expected.results(), rel=1e-9)
        np.testing.assert_array_equal(both.confusion(), expected.confusion())


def test_a_row_before_the_first_label_is_never_predicted_correctly():
    metrics = Metrics("softmax")
    metrics.add([0], np.zeros((1, 2)))
    assert metrics.results()["accuracy"] == 0
    assert not metrics.confusion().any()
    model = SpanBoost(LinearSGD(), n=2, loss="softmax")
    found = evaluate(model, [[1.0], [1.0], [1.0], [1.0]], [0, 0, 0, 2])
    assert found.metrics["accuracy"] == 0.5


def test_confusion_counts_end_when_there_are_many_classes():
    found = collected(Softmax(2), [0, 1], np.eye(2), None)
    found.add([MOST_CLASSES], np.eye(MOST_CLASSES + 1)[[MOST_CLASSES]])
    assert found.confusion() is None
    assert found.results()["accuracy"] == 1.0


@pytest.mark.parametrize("rows", [1, 2, 7, 20, 41, 399, 400])
def test_windows_cover_the_stream(rows):
    ends = window_ends(rows)
    assert (ends[0], ends[-1]) == (0, rows)
    lengths = np.diff(ends)
    assert set(lengths[:-1]) <= {max(1, rows // 20)}
    assert lengths.min() >= 1
    assert lengths[-1] < 2 * max(1, rows // 20)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_tape_has_the_metrics_of_any_part(loss, tmp_path):
    y, predictions, weights = outcomes(loss)
    worse = predictions + np.random.default_rng(1).normal(0, 2, predictions.shape)
    worse = np.abs(worse) if loss in MEANS else worse
    with closing(OutcomeTape(loss, 2)) as tape:
        for first, last in ((0, 130), (130, 400)):
            part = slice(first, last)
            tape.extend(y[part], [predictions[part], worse[part]], weights[part])
        parts = tape.parts(loss)
    bounds = {"first_half": (0, 200), "second_half": (200, 400), "last_window": (380, 400)}
    for name, (first, last) in bounds.items():
        part = slice(first, last)
        for found, answers in zip(parts[name], (predictions, worse), strict=True):
            assert found.state() == collected(loss, y[part], answers[part], weights[part]).state()
    for found, answers in zip(parts["whole"], (predictions, worse), strict=True):
        whole = collected(loss, y, answers, weights).results()
        assert found.results() == pytest.approx(whole, rel=1e-9)


def test_a_tape_can_be_resumed(tmp_path):
    y, predictions, weights = outcomes("logistic")
    path = tmp_path / "outcomes"
    with closing(OutcomeTape("logistic", 1, path)) as tape:
        tape.extend(y[:300], [predictions[:300]], weights[:300])
        tape.flush()
    with closing(OutcomeTape("logistic", 1, path, rows=200)) as tape:
        tape.extend(y[200:], [predictions[200:]], weights[200:])
        resumed = tape.metrics("logistic", 0, 400)[0].state()
    assert resumed == collected("logistic", y, predictions, weights).state()


def test_evaluate_returns_the_metrics_of_the_stream_and_its_halves():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 3))
    y = np.sign(X @ [1.0, -1.0, 0.5])
    weights = rng.integers(0, 3, 500)
    answers = SpanBoost(LinearSGD(), n=4, loss="logistic").learn_many(X, y, weights)
    found = evaluate(SpanBoost(LinearSGD(), n=4, loss="logistic"), X, y, weights)
    np.testing.assert_array_equal(found.predictions, answers)
    assert found.loss == pytest.approx(np.average(found.losses, weights=weights))
    assert found.metrics["log_loss"] == pytest.approx(found.loss)
    parts = [(found.metrics, 0, 500), (found.first_half, 0, 250), (found.second_half, 250, 500)]
    for results, first, last in [*parts, (found.last_window, 475, 500)]:
        part = slice(first, last)
        expected = collected("logistic", y[part], answers[part], weights[part]).results()
        assert results == pytest.approx(expected)


def test_evaluate_without_learning_does_not_change_the_model():
    X = np.random.default_rng(0).uniform(-1, 1, (100, 2))
    model = SpanBoost(LinearSGD(), n=2)
    model.learn_many(X, X[:, 0])
    before = model.predict_many(X)
    found = evaluate(model, X, X[:, 0], learn=False)
    np.testing.assert_array_equal(found.predictions, before)
    np.testing.assert_array_equal(model.predict_many(X), before)
    assert found.metrics["r2"] == pytest.approx(exact.r2_score(X[:, 0], before))


def test_evaluate_needs_rows():
    with pytest.raises(ValueError, match="no rows"):
        evaluate(SpanBoost(LinearSGD(), n=2), np.zeros((0, 2)), [])


@pytest.mark.parametrize("loss", MEANS)
def test_deviance_is_that_of_scikit_learn(loss):
    y, predictions, weights = outcomes(loss)
    found = collected(loss, y, predictions, weights).results()
    expected = exact.mean_tweedie_deviance(
        y, predictions, sample_weight=weights, power=resolve(loss).power
    )
    assert found["deviance"] == pytest.approx(expected)
    assert found["mae"] == pytest.approx(
        exact.mean_absolute_error(y, predictions, sample_weight=weights)
    )


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_the_lower_of_two_labels_can_be_0_or_false(loss):
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    signs = np.sign(X[:, 0])
    expected, *others = (
        evaluate(SpanBoost(LinearSGD(), 2, loss=loss), X, y)
        for y in (signs, (signs + 1) / 2, signs > 0, (signs > 0).tolist())
    )
    for one in others:
        np.testing.assert_array_equal(one.losses, expected.losses)
        assert one.loss == expected.loss
    if loss == "logistic":
        assert expected.loss == pytest.approx(expected.metrics["log_loss"])


@pytest.mark.parametrize("weighted", [False, True])
def test_quantile_loss_has_the_share_of_labels_up_to_the_prediction(weighted):
    y, predictions, weights = outcomes("quantile:0.9", rows=300)
    predictions[::7] = y[::7]  # labels at the prediction count
    weights = weights if weighted else None
    found = collected("quantile:0.9", y, predictions, weights)
    plain = collected("squared", y, predictions, weights).results()
    share = np.average(y <= predictions, weights=weights)
    assert found.results() == {
        "at_or_below": pytest.approx(share),
        "rmse": plain["rmse"],
        "mae": plain["mae"],
    }
    assert "labels at or below the prediction" in repr(found)
    assert found.confusion() is None


def test_a_state_without_the_share_of_labels_is_continued():
    """Earlier versions had the metrics of numbers for quantile loss."""
    before = collected("squared", [1.0, 4.0], np.array([2.0, 2.0]), None)
    found = Metrics("quantile:0.9", json.loads(json.dumps(before.state())))
    assert found.results() == {"at_or_below": None, "rmse": math.sqrt(2.5), "mae": 1.5}
    found.add([1.0], [2.0])
    assert found.rows == 3
    assert found.results()["at_or_below"] == 1.0
    with pytest.raises(ValueError, match="invalid state of metrics"):
        Metrics("quantile:0.9", {"rows": 1, "sums": {"errors": {}}})
