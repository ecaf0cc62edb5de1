"""The HTML of models in notebooks: it is well formed, escaped and complete."""

from xml.etree import ElementTree

import numpy as np
import pytest

from spanboost import AutoBoost, HullBoost, Intervals, LinearSGD, SpanBoost, evaluate
from spanboost.models.committee import Committee
from spanboost.models.html import MOST_ROWS

X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
Y = 5 * X[:, 0] + 2


def linear(n=4):
    return SpanBoost(LinearSGD(), n=n, label_range="auto")


def parse(shown):
    """Return the title and the tables of an object: a list of rows for each table."""
    root = ElementTree.fromstring(shown._repr_html_())
    tables = [[[cell.text or "" for cell in row] for row in one] for one in root.iter("table")]
    return root.find("strong").text, tables


def test_a_booster_shows_its_facts():
    model = linear()
    model.learn_many(X, Y)
    title, (facts,) = parse(model)
    assert f"<{title}>" == repr(model)
    assert title.endswith(", 300 rows learned")
    assert dict(facts) == {
        "loss function": repr(model.loss_),
        "labels": f"from {Y.min():.6g} to {Y.max():.6g}",
        "health": "good",
    }


def test_an_untrained_model_has_no_labels():
    title, (facts,) = parse(HullBoost(LinearSGD(), n=2))
    assert title == "HullBoost: 2 copies of LinearSGD(), untrained"
    assert "labels" not in dict(facts)


@pytest.mark.filterwarnings("ignore::spanboost.LabelWarning")
def test_problems_are_shown():
    model = linear()
    model.learn_many(X, Y)
    model.learn_one(X[0], 1e12)
    _, (facts,) = parse(model)
    assert dict(facts)["health"] == "1 of 301 labels clipped"


def test_experts_are_sorted_by_weight():
    model = AutoBoost(budget="fast")
    model.learn_many(X, Y)
    _, (_, (head, *rows)) = parse(model)
    assert head == ["part", "copies", "weight", ""]
    assert {name: copies for name, copies, *_ in rows if copies} == {
        name: f"{one.n} x {type(one.learner).__name__}" for name, one in model.experts.items()
    }
    weights = model.weights_
    assert [name for name, *_ in rows] == sorted(weights, key=lambda name: -weights[name])
    assert all(shown == f"{weights[name]:.1%}" for name, _, shown, _ in rows)


def test_many_candidates_are_summed():
    model = SpanBoost(LinearSGD(), n="auto", eta="auto", label_range="auto")
    model.learn_many(X[:20], Y[:20])
    _, (_, (_, *rows)) = parse(model)
    weights = sorted(model.weights_.values(), reverse=True)
    assert len(rows) == MOST_ROWS + 1
    rest = weights[MOST_ROWS:]
    assert rows[-1] == [f"{len(rest):,} others", "", f"{sum(rest):.1%}", ""]


def test_members_of_a_committee_have_equal_weights():
    members = [linear(), linear()]
    for member in members:
        member.learn_many(X[:20], Y[:20])
    _, (_, (_, *rows)) = parse(Committee(members))
    assert rows == [[name, "4 x LinearSGD", "50.0%", ""] for name in "01"]


def test_bars_have_the_lengths_of_the_weights():
    members = [linear(), linear()]
    for member in members:
        member.learn_many(X[:20], Y[:20])
    bars = list(ElementTree.fromstring(Committee(members)._repr_html_()).iter("div"))[1:]
    assert [bar.get("style").split(";")[0] for bar in bars] == ["width:5em"] * 2


def test_a_model_with_intervals_shows_its_levels():
    model = Intervals(linear(), [0.1, 0.5, 0.9])
    model.learn_many(X, Y)
    title, (facts,) = parse(model)
    assert title == "Intervals of SpanBoost, 300 rows learned"
    assert dict(facts)["intervals"] == "3 calibrated levels, 0.1 to 0.9"


def test_texts_are_escaped():
    class Hostile:
        def predict(self, x):
            return 0.0

        def update(self, x, loss):
            pass

        def __repr__(self):
            return "<script>alert('x')</script>&"

    model = SpanBoost(Hostile(), n=2)
    assert "<script" not in model._repr_html_()
    assert "<script>alert('x')</script>&" in parse(model)[0]


def test_an_evaluation_shows_its_loss_and_metrics():
    found = evaluate(linear(), X, Y)
    title, ((head, *rows),) = parse(found)
    assert title == f"average loss {found.loss:.6g}, 300 rows"
    assert head[1:] == ["whole stream", "first half", "second half", "last window"]
    assert [name for name, *_ in rows] == ["RMSE", "MAE", "R^2"]
    assert rows[0][3] == f"{found.second_half['rmse']:.6g}"


def test_an_undefined_metric_is_not_a_number():
    found = evaluate(SpanBoost(LinearSGD(), n=2, loss="logistic"), X, np.ones(len(X)))
    _, ((_, *rows),) = parse(found)
    assert {name: whole for name, whole, *_ in rows}["ROC AUC"] == "n/a"
