"""The HTML of models in notebooks: it is well formed, escaped and complete."""

from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse

from spanboost import AutoBoost, HullBoost, Intervals, LinearSGD, SpanBoost, evaluate, load, save
from spanboost.losses import Softmax
from spanboost.models.committee import Committee
from spanboost.models.html import MOST_ROWS
from spanboost.models.sample_loss import sample_loss

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
    assert title.endswith(": 300 rows learned")
    assert dict(facts) == {
        "loss function": repr(model.loss_),
        "labels": f"from {Y.min():.6g} to {Y.max():.6g}",
        "current loss": loss_text(np.mean((model.predict_many(X) - Y) ** 2), len(X)),
        "health": "good",
    }


def loss_text(loss, rows):
    kept = f"on a sample of {rows} learned rows, old and new"
    return f"{loss:.6g} {kept}; `evaluate` measures it on unseen rows"


def test_an_untrained_model_has_no_labels_and_no_loss():
    title, (facts,) = parse(HullBoost(LinearSGD(), n=2))
    assert title == "HullBoost(LinearSGD(), n=2)"
    assert not {"labels", "current loss"} & set(dict(facts))


def test_the_loss_is_that_of_all_kept_rows_with_their_weights():
    """Of 20 rows every model keeps all; the members of a committee keep their own."""
    weights = np.random.default_rng(1).uniform(0.1, 2, 20)
    members = [linear(), linear()]
    losses = []
    for member, rows in zip(members, (slice(0, 20), slice(20, 40)), strict=True):
        member.learn_many(X[rows], Y[rows], weights)
        losses.append(np.average((member.predict_many(X[rows]) - Y[rows]) ** 2, weights=weights))
    _, (facts, _) = parse(Committee(members))
    assert dict(facts)["current loss"] == loss_text(np.mean(losses), 40)


def sparse_rows():
    return scipy.sparse.csr_array(np.where(X > 0, X, 0.0))


def dictionaries():
    return [{"a": a, "kind": "low" if b < 0 else "high"} for a, b in X.tolist()]


@pytest.mark.parametrize("rows", [sparse_rows, dictionaries])
@pytest.mark.parametrize("loss", ["squared", "logistic", "softmax"])
def test_the_loss_is_shown_for_all_kinds_of_rows_and_losses(rows, loss):
    kinds = np.digitize(X[:, 0], [-0.3, 0.3])
    y = {"squared": Y, "logistic": np.sign(X[:, 0]), "softmax": kinds}[loss]
    of = Softmax(3) if loss == "softmax" else loss
    ranges = {"label_range": "auto"} if loss == "squared" else {}
    model = SpanBoost(LinearSGD(), n=2, loss=of, **ranges)
    model.learn_many(rows(), y)
    answers = model.predict_many(rows())
    if loss == "squared":
        expected = (answers - y) ** 2
    elif loss == "logistic":
        expected = np.log1p(np.exp(-answers * y))
    else:
        expected = np.log(np.exp(answers).sum(axis=1)) - answers[np.arange(len(y)), y]
    _, (facts, *_) = parse(model)
    assert float(dict(facts)["current loss"].split()[0]) == pytest.approx(expected.mean(), rel=1e-4)


def test_a_model_of_rows_of_any_type_shows_its_loss():
    class Length:
        """A learner whose rows are texts."""

        def predict(self, x):
            return len(x) / 10

        def update(self, x, loss):
            pass

    texts = ["one", "three", "fifteen"]
    model = HullBoost(Length(), n=1)
    model.learn_many(texts, [0.3, 0.5, 0.9])
    expected = np.mean((model.predict_many(texts) - [0.3, 0.5, 0.9]) ** 2)
    _, (facts,) = parse(model)
    assert dict(facts)["current loss"] == loss_text(expected, 3)


def test_the_loss_does_not_depend_on_the_last_labels():
    """Past labels correct the next predictions; the sample consists of old rows."""
    model = AutoBoost(budget="fast", past=True)
    y = Y + np.random.default_rng(2).normal(size=len(X)).cumsum()
    model.learn_many(X, y)
    plain = model.without_past().predict_many(X)
    assert (plain != model.predict_many(X)).any()
    assert str(sample_loss(model)) == loss_text(np.mean((plain - y) ** 2), 300)


def test_a_compact_model_keeps_no_rows_and_shows_no_loss(tmp_path):
    model = linear()
    model.learn_many(X, Y)
    save(model, tmp_path / "compact.sb", compact=True)
    _, (facts,) = parse(load(tmp_path / "compact.sb"))
    assert facts == [["loss function", "Squared()"], ["health", "good"]]


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
    assert head == ["part", "copies", "loss so far", "weight", ""]
    assert {name: copies for name, copies, *_ in rows if copies} == {
        name: f"{one.n} x {type(one.learner).__name__}" for name, one in model.experts.items()
    }
    weights = model.weights_
    assert [name for name, *_ in rows] == sorted(weights, key=lambda name: -weights[name])
    assert all(shown == f"{weights[name]:.1%}" for name, _, _, shown, _ in rows)
    assert {name: float(loss) for name, _, loss, *_ in rows if loss} == pytest.approx(
        model.losses_, rel=1e-5
    )


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
    assert title == "Intervals(SpanBoost(LinearSGD(), n=4, label_range='auto')): 300 rows learned"
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
