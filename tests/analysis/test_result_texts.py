"""Results as people see them: a short `repr`, and HTML that is well formed and complete."""

import copy
import pickle
from xml.etree import ElementTree

import numpy as np
import pytest

from spanboost import (
    Comparison,
    Drift,
    Explanation,
    HullBoost,
    LinearSGD,
    Metrics,
    SpanBoost,
    evaluate,
    explain,
)

X = np.random.default_rng(0).uniform(-1, 1, (300, 3))
Y = 5 * X[:, 0] - X[:, 1] + 2


def linear(**options):
    return SpanBoost(LinearSGD(), n=4, **{"label_range": "auto"} | options)


def parse(shown):
    """Return the title and the rows of the table of an object, with the widths of its bars."""
    root = ElementTree.fromstring(shown._repr_html_())
    rows = [[cell.text or "" for cell in row] for row in root.iter("tr")]
    styles = [bar.get("style").split(";") for bar in list(root.iter("div"))[1:]]
    return root.find("strong").text, rows, styles


def test_an_evaluation_is_one_line():
    found = evaluate(linear(), X, Y)
    text = repr(found)
    assert text.startswith(f"<Evaluation: 300 rows, average loss {found.loss:.4g}; RMSE ")
    assert text.count("\n") == 0
    assert len(text) < 100
    assert found[0] is found.predictions  # it is still a tuple


def test_an_undefined_metric_is_left_out():
    found = evaluate(SpanBoost(LinearSGD(), n=2, loss="logistic"), X, np.ones(300))
    assert "accuracy" in repr(found)
    assert "ROC AUC" not in repr(found)


def test_metrics():
    metrics = Metrics("squared")
    assert repr(metrics) == "<Metrics: 0 rows>"
    metrics.add([1.0, 2.0], [1.0, 4.0])
    assert repr(metrics) == "<Metrics: 2 rows; RMSE 1.414, MAE 1, R^2 -7>"
    title, rows, _ = parse(metrics)
    assert title == "metrics of 2 rows"
    assert rows == [["RMSE", "1.41421"], ["MAE", "1"], ["R^2", "-7"]]


def test_the_terms_of_an_explanation_add_up():
    model = linear()
    model.learn_many(X, Y)
    found = explain(model, X[0])
    head, *terms = repr(found).removesuffix(">").split(" = ")[1].split(") ")
    assert head.endswith("(base")
    assert float(head.split()[0]) == pytest.approx(found.base, rel=1e-3)
    assert [term.split("(")[1].rstrip(")") for term in terms] == list(map(str, found.contributions))


def example(parts, rest=0.0):
    return Explanation(100 + sum(parts.values()) + rest, 100.0, parts, rest)


def test_an_explanation_has_a_bar_for_each_feature():
    found = example({"area": 30.0, "city": -10.0, "a<b": 1.5})
    assert repr(found) == "<Explanation: 121.5 = 100 (base) + 30 (area) - 10 (city) + 1.5 (a<b)>"
    title, rows, styles = parse(found)
    assert title == "prediction 121.5"
    assert rows == [
        ["feature", "contribution", ""],
        ["(base)", "100", ""],
        ["area", "+30", ""],
        ["city", "-10", ""],
        ["a<b", "+1.5", ""],
        ["prediction", "121.5", ""],
    ]
    assert [style[0] for style in styles] == ["width:10em", "width:3.33em", "width:0.5em"]
    positive, negative, _ = (style[-1] for style in styles)
    assert positive != negative


def test_small_features_and_the_rest_are_sums():
    found = example({f"x{k}": 20.0 - k for k in range(20)}, rest=3.0)
    _, rows, styles = parse(found)
    assert len(rows) == 1 + 1 + 14 + 2 + 1
    assert rows[-3][:2] == ["(6 more)", f"+{sum(range(1, 7))}"]
    assert rows[-2][:2] == ["(rest)", "+3"]
    assert styles[-2][0] == "width:10em"  # the longest bar
    assert "+ 120 (15 more) + 3 (rest)" in repr(found)
    assert "(rest)" not in repr(example({"a": 1.0}, rest=1e-9))


def test_an_explanation_without_features():
    assert repr(example({})) == "<Explanation: 100 = 100 (base)>"
    assert [name for name, *_ in parse(example({}))[1]] == ["feature", "(base)", "prediction"]


def test_an_explanation_of_several_outputs():
    parts = {"a": np.array([1.0, -2.0]), "b": np.array([0.5, 1.0])}
    found = Explanation(np.array([1.5, -1.0]), np.zeros(2), parts, np.zeros(2))
    assert repr(found) == (
        "<Explanation: 2 outputs\n"
        "  output 0: 1.5 = 0 (base) + 1 (a) + 0.5 (b)\n"
        "  output 1: -1 = 0 (base) - 2 (a) + 1 (b)>"
    )
    title, rows, _ = parse(found)
    assert title == "prediction of 2 outputs"
    assert rows[0] == ["feature", "output 0", "output 1"]
    assert rows[2:] == [["a", "1", "-2"], ["b", "0.5", "1"], ["prediction", "1.5", "-1"]]
    second = found.output(1)
    assert second == Explanation(-1.0, 0.0, {"a": -2.0, "b": 1.0}, 0.0)
    many = Explanation(np.zeros(30), np.zeros(30), {}, np.zeros(30))
    assert parse(many)[0] == "prediction of 30 outputs, the first 8 of them"
    assert repr(many).endswith("output 7: 0 = 0 (base)\n  ... and 22 more>")


def test_a_comparison_says_which_model_is_better():
    comparison = Comparison()
    assert repr(comparison) == "<Comparison: no rows yet>"
    assert parse(comparison)[0] == "neither model is certainly better"
    comparison.add(np.linspace(1, 1.1, 500), np.linspace(0.5, 0.4, 500))
    low, high = comparison.interval
    verdict = f"the second model is better, certain since row {comparison.since:,}"
    assert repr(comparison) == (
        f"<Comparison: 500 rows, {verdict}; difference 0.6, 95% interval from {low:.4g} to "
        f"{high:.4g}>"
    )
    title, rows, _ = parse(comparison)
    assert title == verdict
    assert dict(rows)["difference, first - second"] == "0.6"
    assert dict(rows)["rows"] == "500"


def test_a_detector_shows_the_drifts_it_found():
    drift = Drift("adwin", "squared")
    assert repr(drift) == "<Drift: adwin, 0 rows, no drift found>"
    errors = np.repeat([0.01, 0.9], 500)
    drift.add(errors**2, np.tile([-1.0, 1.0], 500))
    (moment,) = drift.moments
    assert repr(drift) == f"<Drift: adwin, 1,000 rows, drift found after rows {moment}>"
    drift.moments = list(range(1, 16))
    assert repr(drift).endswith("after rows (5 earlier), 6, 7, 8, 9, 10, 11, 12, 13, 14, 15>")


def test_several_classes_have_columns_in_the_order_of_their_scores():
    model = HullBoost(LinearSGD(), n=2, loss="softmax")
    model.learn_many(X, np.digitize(X[:, 0], [-0.3, 0.3]))
    found = explain(model, [0.9, 0.0, 0.0])
    assert found.classes == [0, 1, 2]
    assert found.chances.sum() == pytest.approx(1)
    assert found.prediction.sum() == pytest.approx(0, abs=1e-6)
    title, rows, _ = parse(found)
    best = found.chances[2]
    assert title == f"prediction 2, probability {best:.4g}: scores"
    assert rows[0] == ["feature", "2", "1", "0"]
    assert [rows[1][0], rows[-1][0]] == ["(base)", "score"]
    start = (
        f"<Explanation: prediction 2, probability {best:.4g}; score of 2 {found.prediction[2]:.4g}"
    )
    assert repr(found).startswith(start)
    prediction, base, contributions, rest = found  # it is still a tuple of four
    np.testing.assert_allclose(base + sum(contributions.values()) + rest, prediction)
    for same in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert same.classes == found.classes
        assert repr(same) == repr(found)


def test_many_classes_show_the_most_probable_ones():
    scores = np.arange(26.0)
    letters = [*"abcdefghijklmnopqrstuvwxyz"]
    found = Explanation(scores, scores, {}, 0 * scores, letters, scores / scores.sum())
    title, rows, _ = parse(found)
    assert title == "prediction z, probability 0.07692: scores, the largest 8 of them"
    assert rows[0] == ["feature", *"zyxwvuts"]


@pytest.mark.parametrize(("loss", "sure"), [("logistic", True), ("hinge", False)])
def test_two_classes_have_the_score_of_the_second(loss, sure):
    model = HullBoost(LinearSGD(), n=2, loss=loss)
    model.learn_many(X, np.sign(X[:, 0]))
    found = explain(model, [-0.9, 0.0, 0.0])
    assert found.prediction < 0
    assert found.classes == [-1, 1]
    title, rows, _ = parse(found)
    chance = f", probability {1 / (1 + np.exp(found.prediction)):.4g}" if sure else ""
    assert title == f"prediction -1{chance}; contributions to the score of 1"
    assert rows[-1][0] == "score of 1"
    assert repr(found).startswith(f"<Explanation: prediction -1{chance}; score of 1 -")


def test_a_log_link_explains_the_logarithm_of_the_prediction():
    model = HullBoost(LinearSGD(), n=1, loss="poisson", D=6.0, label_range="auto")
    model.learn_many(X, np.round(np.exp(1 + X[:, 0])))
    found, mean = explain(model, X[0]), model.predict_one(X[0])
    assert np.exp(found.prediction) == pytest.approx(mean)
    start = f"<Explanation: prediction {mean:.6g}; logarithm of the prediction "
    assert repr(found).startswith(f"{start}{found.prediction:.4g} = ")
    title, rows, _ = parse(found)
    assert title == f"prediction {mean:.6g}"
    assert rows[-1][0] == "logarithm of the prediction"
    both = Explanation(np.ones(2), np.zeros(2), {}, np.ones(2), log_link=True)
    assert parse(both)[0] == "logarithms of the predictions of 2 outputs"
    assert both.output(1).log_link
    assert pickle.loads(pickle.dumps(found)).log_link
