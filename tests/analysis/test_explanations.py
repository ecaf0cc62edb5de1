"""Explanations: the contributions of features, and that they add up to the prediction."""

import json

import numpy as np
import pytest

from spanboost import (
    AutoBoost,
    FiniteClass,
    HullBoost,
    LinearBall,
    LinearSGD,
    Network,
    Rows,
    SpanBoost,
    Stumps,
    Symmetrised,
    Trees,
    explain,
    load,
)
from spanboost.analysis.explanations import explain_many
from spanboost.cli.main import main
from spanboost.compiling.kernels import plain
from spanboost.losses import Softmax
from spanboost.models import auto
from spanboost.models.committee import Committee

FLOAT64 = {"dtype": np.float64}
LEARNERS = {
    "linear": LinearSGD(**FLOAT64),
    "stumps": Stumps(**FLOAT64),
    "stumps with intercepts": Stumps(intercept=True, **FLOAT64),
    "network": Network(hidden=3, **FLOAT64),
    "trees": Trees(depth=3, grace=8, delay=0, evidence=0.1, candidates=8, **FLOAT64),
}
LABELS = {"squared": "squared", "logistic": "logistic", "softmax": Softmax(3)}


pytestmark = pytest.mark.slow  # the file as a whole


def stream(rows=120, seed=0):
    """Return numbers with missing values, category codes, and labels that depend on both."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (rows, 4)).round(1)
    X[rng.random(X.shape) < 0.1] = np.nan
    codes = rng.integers(-1, 3, (rows, 2))
    y = np.tanh(np.nan_to_num(X) @ [0.5, -0.3, 0.2, 0] + 0.5 * (codes[:, 0] == 1))
    return Rows(X, codes), y


def labels_for(loss, y):
    if loss == "softmax":
        return np.digitize(y, [-0.3, 0.3])
    return np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y


def scores_for(loss, answers):
    """Return what explanations of predictions add up to: scores relative to their mean."""
    return answers - answers.mean(axis=1, keepdims=True) if loss == "softmax" else answers


def total(found):
    return found.base + sum(found.contributions.values())


@pytest.mark.parametrize("loss", LABELS)
@pytest.mark.parametrize("feedback", ["greedy", "linear"])
@pytest.mark.parametrize("booster", [SpanBoost, HullBoost])
@pytest.mark.parametrize("learner", LEARNERS)
def test_contributions_add_up_to_the_prediction(learner, booster, feedback, loss):
    X, y = stream()
    model = booster(LEARNERS[learner], n=4, loss=LABELS[loss], feedback=feedback)
    with plain():
        model.learn_many(X, labels_for(loss, y))
        some_rows = Rows(X.numbers[:20], X.codes[:20])
        answers, found = model.predict_many(some_rows), list(explain_many(model, some_rows))
    assert any(one.contributions for one in found)
    for answer, one in zip(scores_for(loss, answers), found, strict=True):
        np.testing.assert_array_equal(one.prediction, answer)
        np.testing.assert_allclose(total(one), answer, rtol=0, atol=1e-12)


def test_contributions_add_up_when_sums_are_projected():
    X, y = stream()
    with plain():
        model = SpanBoost(LinearSGD(**FLOAT64), n=6, eta=1, D=0.1, B=0.15, alpha=0.3)
        model.learn_many(X, np.sign(y))
        model.core.state.algorithm.sigma[:] = [0, 0.3, 0.1, 1, 0, 0.2]
        found = list(explain_many(model, X))
    predictions = np.array([one.prediction for one in found])
    assert (np.abs(predictions) == 0.15).any()  # projected to B
    np.testing.assert_allclose([total(one) for one in found], predictions, rtol=0, atol=1e-12)


@pytest.mark.parametrize("booster", [SpanBoost, HullBoost])
@pytest.mark.parametrize("learner", [LinearSGD(**FLOAT64), LinearBall(x_norm=20)])
def test_a_linear_contribution_is_the_change_from_a_typical_value(booster, learner):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 4))  # so few that all are in the sample
    X[:, 0] += 3
    model = booster(learner, n=5, label_range=(0, 100), D=10)
    with plain():
        model.learn_many(X, X @ [20, -10, 5, 0])
        x = np.array([3.5, -0.2, 0.9, 0.1])
        found, mean = explain(model, x), X.mean(axis=0)
        assert found.base == pytest.approx(model.predict_one(mean), abs=1e-9)
        for j in range(4):
            usual = model.predict_one(np.where(np.arange(4) == j, mean, x))
            assert found.contributions[j] == pytest.approx(found.prediction - usual, abs=1e-9)
    assert list(found.contributions) == sorted(
        found.contributions, key=lambda j: -abs(found.contributions[j])
    )


def test_autoboost_explains_numbers_far_from_zero():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(2015, 2026, 400), rng.uniform(0, 1, 400)])
    y = 100 * (X[:, 0] - 2014) + 50 * X[:, 1]
    model = AutoBoost(budget="fast")
    model.learn_many(X, y)
    found = explain(model, [2025, 0.5])
    assert abs(found.base - y.mean()) < 0.1 * np.ptp(y)
    assert abs(found.contributions[0] - 100 * (2025 - X[:, 0].mean())) < 0.15 * np.ptp(y)


def test_a_stump_credits_the_feature_that_predicts():
    X = np.random.default_rng(0).uniform(-1, 1, (200, 3))
    with plain():
        model = SpanBoost(Stumps(**FLOAT64), n=1)
        model.learn_many(X, 0.7 * X[:, 1])
        found = explain(model, [0.9, -0.5, 0.9])
    assert list(found.contributions) == [1]
    assert found.contributions[1] == pytest.approx(found.prediction, abs=1e-12)
    assert found.base == 0


def reference_tree(bank, i, x):
    """Return {feature: contribution} of copy i by recursion; None has the root's mean."""

    def mean(v):
        left = bank.link[v]
        if left <= 0:
            return bank.mean[v, 0], bank.weight[v]
        (a, m), (b, n) = mean(left), mean(left + 1)
        return (m * a + n * b) / (m + n), m + n

    v, credits = i, {None: mean(i)[0]}
    while bank.link[v] > 0:
        j, split = bank.place[v] // 4, bank.threshold[v]
        child = bank.link[v] + (x[j] > split)
        credits[j] = credits.get(j, 0) + mean(child)[0] - mean(v)[0]
        v = child
    return credits


def test_trees_credit_the_features_of_their_splits():
    X = np.random.default_rng(0).uniform(-1, 1, (400, 3))
    with plain():
        model = SpanBoost(LEARNERS["trees"], n=3, eta=0.5)
        model.learn_many(X, 0.5 * np.sign(X[:, 0]) + 0.3 * np.sign(X[:, 2]))
        bank = model.core.state.bank
        assert (bank.link > 0).sum() > 6
        from spanboost.learners.contributions import contributions_of

        for x in X[:20]:
            reading = model.encoder.read([x])
            model.predict_many([x])
            feature, amount = contributions_of(bank, reading.rows, 0)
            for i in range(3):
                contributions = {
                    f // 2 if f >= 0 else None: a
                    for f, a in zip(feature, amount[:, 0, i], strict=True)
                }
                expected = reference_tree(bank, i, x)
                assert {j for j, part in contributions.items() if part} <= set(expected)
                for j, part in expected.items():
                    assert contributions[j] == pytest.approx(part, abs=1e-12)


def test_symmetrised_learners_are_explained():
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (100, 3))
    with plain():
        model = SpanBoost(Symmetrised(LinearBall()), n=3, feedback="linear")
        model.learn_many(X, X @ [0.5, -0.3, 0.1])
        found = explain(model, [0.3, 0.3, 0.0])
    assert found.prediction != 0
    assert total(found) == pytest.approx(found.prediction, abs=1e-12)


def test_features_are_named_as_in_the_rows():
    rows = [{"size": 1.0 + t % 3, "city": "Ulm" if t % 2 else "Bonn"} for t in range(60)]
    y = [0.2 * row["size"] - 0.3 * (row["city"] == "Ulm") for row in rows]
    for bits in (None, 8):
        with plain():
            model = HullBoost(LinearSGD(bits=bits, **FLOAT64), n=2)
            model.learn_many(rows, y)
            found = explain(model, {"size": 2, "city": "Ulm", "colour": "red"})
        assert set(found.contributions) == {"size", "city"}
        assert total(found) == pytest.approx(found.prediction, abs=1e-12)
    rows = [
        {
            "word=red": 1.0 + t % 3,
            "word=blue": t % 2,
            "day": f"2024-01-{t % 9 + 1:02} {t % 5:02}:00",
        }
        for t in range(60)
    ]
    for bits in (None, 8):
        with plain():
            model = HullBoost(LinearSGD(bits=bits, **FLOAT64), n=2)
            model.learn_many(rows, [0.1 * row["word=red"] for row in rows])
            found = explain(model, rows[5])
        parts = ("day.days", "day.hour", "day.weekday", "day.yearday")
        assert set(found.contributions) == {"word=red", "word=blue", *parts}
    X, y = stream()
    with plain():
        model = HullBoost(LinearSGD(), n=2)
        model.learn_many(X, y)
        (found,) = explain_many(model, Rows(np.ones((1, 4)), np.array([[1, -1]])))
    # code 1 is missing here, but most rows have it
    assert set(found.contributions) == {0, 1, 2, 3, "code 0", "code 1"}


@pytest.mark.parametrize("loss", ["squared", "logistic", "absolute", "softmax"])
def test_autoboost_is_the_weighted_sum_of_its_experts(loss, monkeypatch):
    # without the trees, which are slow in plain Python
    monkeypatch.setitem(auto.EXPERTS, "fast", auto.EXPERTS["fast"][1:])
    X, y = stream()
    model = AutoBoost(budget="fast", loss=LABELS.get(loss, loss))
    with plain():
        model.learn_many(X, labels_for(loss, y))
        answers, found = model.predict_many(X), list(explain_many(model, X))
        each = [expert.predict_many(X) for expert in model.experts.values()]
    for answer, one in zip(scores_for(loss, answers), found, strict=True):
        np.testing.assert_allclose(one.prediction, answer, atol=1e-12)
        np.testing.assert_allclose(total(one) + one.rest, answer, atol=1e-12)
    if loss in ("squared", "absolute"):  # no rest, unless a forecast was clipped to the labels seen
        low, high = y.min(), y.max()
        inside = [
            one
            for one, *forecasts in zip(found, *each, strict=True)
            if all(low < forecast < high for forecast in (one.prediction, *forecasts))
        ]
        assert len(inside) > 30
        assert max(abs(one.rest) for one in inside) < 1e-5


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_what_past_labels_add_is_a_part_of_the_rest(loss, monkeypatch):
    monkeypatch.setitem(auto.EXPERTS, "fast", auto.EXPERTS["fast"][1:])
    X, _ = stream()
    y = np.sin(np.arange(120) / 4)  # the rows do not contain it, past labels do
    model = AutoBoost(budget="fast", loss=loss, past=True)
    with plain():
        model.learn_many(X, labels_for(loss, y))
        answers, found = model.predict_many(X), list(explain_many(model, X))
        without = list(explain_many(model.without_past(), X))
        added = answers - model.without_past().predict_many(X)
    assert np.abs(added).max() > 0.1
    for answer, one, other, part in zip(answers, found, without, added, strict=True):
        assert one.prediction == pytest.approx(answer, abs=1e-12)
        assert total(one) == pytest.approx(total(other), abs=1e-12)
        assert one.rest == pytest.approx(other.rest + part, abs=1e-12)


def test_a_committee_is_the_mean_of_its_members():
    X, y = stream()
    members = [HullBoost(LEARNERS["trees"], n=3, label_range=(-2, 2)) for _ in range(2)]
    with plain():
        for member, part in zip(members, (slice(0, 60), slice(60, 120)), strict=True):
            member.learn_many(Rows(X.numbers[part], X.codes[part]), y[part])
        model = Committee(members)
        answers = model.predict_many(X)
        found, each = list(explain_many(model, X)), [list(explain_many(m, X)) for m in members]
    np.testing.assert_allclose([total(one) for one in found], answers, rtol=0, atol=1e-12)
    for one, *others in zip(found, *each, strict=True):
        for name, part in one.contributions.items():
            mean = np.mean([other.contributions.get(name, 0) for other in others])
            assert part == pytest.approx(mean, abs=1e-12)


class Mean:
    def predict(self, x):
        return 0.5

    def update(self, x, loss):
        pass


@pytest.mark.parametrize("learner", [Mean(), FiniteClass([lambda x: 0.1, lambda x: -0.1])])
def test_other_learners_are_refused(learner):
    model = SpanBoost(learner, n=2)
    model.learn_many([[1.0], [2.0]], [0.1, 0.2])
    with pytest.raises(ValueError, match=r"cannot explain .*: only models of linear functions"):
        explain(model, [1.0])


@pytest.fixture
def rents(tmp_path):
    """Write a CSV file with a numeric and a categorical column."""
    rng = np.random.default_rng(0)
    lines = ["size,city,rent"]
    for size in rng.integers(20, 100, 400):
        city = rng.choice(["Ulm", "Bonn"])
        lines.append(f"{size},{city},{5 * size + 100 * (city == 'Bonn')}")
    path = tmp_path / "rents.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_command_explains_rows_of_a_file(rents, tmp_path, capsys):
    model = str(tmp_path / "m.sb")
    assert main(["train", str(rents), "-o", model, "--learner", "linear", "--quiet"]) == 0
    assert main(["explain", str(rents), "-m", model, "--rows", "2", "--json"]) == 0
    result = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["line"] for one in result] == [2, 3]
    size, city = rents.read_text().splitlines()[1].split(",")[:2]
    row = Rows(np.array([[float(size)]]), np.array([[load(model).schema.columns[1].codes[city]]]))
    for one in result:
        assert set(one["contributions"]) <= {"size", "city"}
        parts = [one["base"], *one["contributions"].values(), one["rest"]]
        assert sum(parts) == pytest.approx(one["prediction"], rel=1e-9)
        assert abs(one["rest"]) < 1e-3  # labels go up to 600
    assert result[0]["prediction"] == pytest.approx(load(model).predict_many(row)[0])
    assert main(["explain", str(rents), "-m", model, "--rows", "1", "--top", "1"]) == 0
    head, *table = capsys.readouterr().out.splitlines()
    assert head.startswith(f"{rents}:2: prediction ")
    assert [line.split()[1] for line in table] == ["(base)", "size", "(1", "prediction"]
    assert not capsys.readouterr().out


@pytest.mark.parametrize("classes", [2, 3])
def test_classes_are_explained_by_their_scores(classes, tmp_path, capsys):
    rng = np.random.default_rng(0)
    kinds = ["low", "mid", "high"][-classes:]
    lines = ["a,b,kind"]
    for a, b in rng.uniform(0, 1, (300, 2)):
        lines.append(f"{a:.3f},{b:.3f},{kinds[int(a * classes)]}")
    data, model = tmp_path / "k.csv", str(tmp_path / "m.sb")
    data.write_text("\n".join(lines) + "\n")
    loss = ["softmax", "--classes", "3"] if classes == 3 else ["logistic", "--positive", "high"]
    command = ["train", str(data), "-o", model, "--learner", "linear", "-n", "2", "--quiet"]
    assert main([*command, "--loss", *loss]) == 0
    assert main(["explain", str(data), "-m", model, "--rows", "3"]) == 0
    output = capsys.readouterr().out
    assert output.count("probability") == 3
    assert main(["explain", str(data), "-m", model, "--rows", "1", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    parts = [result["base"], *result["contributions"].values(), result["rest"]]
    np.testing.assert_allclose(np.sum(parts, axis=0), result["prediction"], atol=1e-9)
    assert np.size(result["prediction"]) == (3 if classes == 3 else 1)


def test_a_missing_model_file_is_a_one_line_error(rents, tmp_path, capsys):
    assert main(["explain", str(rents), "-m", str(tmp_path / "none.sb")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
