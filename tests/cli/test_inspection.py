"""`spanboost inspect` tells people what a model is and what it has learned."""

import json

import numpy as np
import pytest
from streams import put

from spanboost import (
    AutoBoost,
    HullBoost,
    Intervals,
    LinearSGD,
    SpanBoost,
    Stumps,
    save,
)
from spanboost.losses import Softmax

X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
Y = 5 * X[:, 0] + 2


def lines_of(shell, model, tmp_path, *options):
    save(model, tmp_path / "m.sb")
    return shell("inspect", tmp_path / "m.sb", *options).out.splitlines()


def fact(lines, name):
    (found,) = (line for line in lines if line.startswith(f"  {name:<14} "))
    return found.removeprefix(f"  {name}").strip()


def test_arrays_have_columns(shell, tmp_path):
    model = SpanBoost(LinearSGD(), n=4, label_range="auto")
    model.learn_many(X, Y)
    lines = lines_of(shell, model, tmp_path)
    assert lines[0] == "SpanBoost, 4 copies of LinearSGD, squared loss"
    assert fact(lines, "rows learned") == "300"
    assert fact(lines, "label") == f"from {Y.min():.10g} to {Y.max():.10g}"
    assert fact(lines, "features") == "2 columns of numbers"
    loss = np.mean((model.predict_many(X) - Y) ** 2)  # all 300 rows are kept
    shown, _, what = fact(lines, "current loss").partition(" on ")
    assert float(shown) == pytest.approx(loss, rel=1e-4)
    assert (
        what == "a sample of 300 learned rows, old and new; `evaluate` measures it on unseen rows"
    )
    assert "parameters" not in lines


def test_a_table_has_names_and_classes(shell, tmp_path):
    sold = ["no" if k % 3 else "yes" for k in range(90)]
    rows = [f"{k % 5},{'uvw'[k % 3]},2024-01-{1 + k % 28:02},{sold[k]}" for k in range(90)]
    path = put(tmp_path, "t.csv", "\n".join(["size,kind,when,sold", *rows, ""]).encode())
    model = tmp_path / "m.sb"
    shell("train", path, "-o", model, "--learner", "linear", "-n", "2", "--loss", "logistic")
    lines = shell("inspect", model).out.splitlines()
    assert lines[0] == "SpanBoost, 2 copies of LinearSGD, logistic loss"
    assert fact(lines, "label") == "'sold', 2 classes: no, yes"
    first = next(k for k, line in enumerate(lines) if line.startswith("  features "))
    assert [line[17:] for line in lines[first : first + 3]] == [
        "1 numeric: size",
        "1 time: when",
        "1 categorical: kind (3)",
    ]


def test_hashed_categories_are_not_counted(shell, tmp_path):
    rows = [f"{k},A{k:05},{'uv'[k % 2]},{k % 7}" for k in range(600)]
    path = put(tmp_path, "t.csv", "\n".join(["size,id,kind,label", *rows, ""]).encode())
    model = tmp_path / "m.sb"
    shell("train", path, "-o", model, "--learner", "linear", "-n", "2", "--quiet")
    shown = shell("inspect", model).out
    assert "2 categorical: id (hashed), kind (2)\n" in shown
    facts = json.loads(shell("inspect", model, "--json").out)
    assert facts["schema"]["categories"] == {"id": None, "kind": 2}


def test_the_last_change_of_the_label_range_is_not_part_of_the_health(shell, tmp_path):
    model = SpanBoost(LinearSGD(), n=2, label_range="auto")
    model.learn_many(X, Y)
    lines = lines_of(shell, model, tmp_path)
    assert fact(lines, "health") == "good"
    row = model.health.to_json()["labels"]["widened"]
    assert fact(lines, "label range") == f"follows the labels; last widened at row {row:,}"


def test_dictionaries_have_names(shell, tmp_path):
    model = SpanBoost(LinearSGD(), n=2, label_range="auto")
    for k in range(30):
        model.learn_one(dict.fromkeys("abcdefghijkl", k), k)
    shown = fact(lines_of(shell, model, tmp_path), "features")
    assert shown == "12 names: a, b, c, d, e, f, g, h, i, j and 2 more"


def test_a_fresh_model_has_seen_nothing(shell, tmp_path):
    lines = lines_of(shell, HullBoost(LinearSGD(), n=1, loss="absolute"), tmp_path)
    assert lines[0] == "HullBoost, 1 copy of LinearSGD, absolute loss"
    assert (fact(lines, "label"), fact(lines, "features")) == ("none seen yet", "none seen yet")
    assert not any(line.startswith("  current loss ") for line in lines)
    assert fact(lines, "size").startswith("0 bytes in memory, ")


@pytest.mark.parametrize("loss", ["squared", Softmax(3)])
@pytest.mark.parametrize("learner", [LinearSGD(), Stumps()])
def test_a_model_that_only_predicted_has_no_effects(learner, loss, shell, tmp_path):
    model = SpanBoost(learner, n=2, loss=loss)
    model.predict_one({"size": 1.0, "city": "Ulm"})
    assert fact(lines_of(shell, model, tmp_path, "--all"), "rows learned") == "0"
    facts = json.loads("".join(lines_of(shell, model, tmp_path, "--json")))
    assert facts["largest_effects"] == {}


def test_experts_have_bars_and_the_largest_comes_first(shell, tmp_path):
    model = AutoBoost(budget="fast")
    model.learn_many(X, Y)
    lines = lines_of(shell, model, tmp_path)
    assert lines[0] == "AutoBoost, 5 experts, squared loss"
    (combined,) = (line for line in lines if "regression over all" in line)
    assert combined.endswith("combines the experts")
    start = lines.index("weights of the experts") + 1
    order = sorted(model.weights_.items(), key=lambda one: -one[1])
    for (name, weight), line in zip(order, lines[start:], strict=False):
        assert line.startswith(f"  {weight:>6.1%}  {'#' * round(20 * weight)} ")
        assert f" {name} " in f"{line} "


def test_intervals_show_their_levels(shell, tmp_path):
    model = Intervals(AutoBoost(budget="fast"), [0.1, 0.9])
    model.learn_many(X[:50], Y[:50])
    lines = lines_of(shell, model, tmp_path)
    assert lines[0] == "Intervals of AutoBoost, 5 experts, squared loss"
    assert fact(lines, "intervals") == "2 calibrated levels, 0.1 to 0.9"


def test_many_candidates_are_summed_unless_all_are_asked_for(shell, tmp_path):
    model = SpanBoost(LinearSGD(), n="auto", eta="auto", label_range="auto")
    model.learn_many(X[:20], Y[:20])
    number = len(model.weights_)
    assert any(line.endswith(f"{number - 12} others") for line in lines_of(shell, model, tmp_path))
    every = lines_of(shell, model, tmp_path, "--all")
    assert not any(line.endswith(" others") for line in every)
    assert "parameters" in every


@pytest.mark.parametrize("option", ["--all", "--json"])
def test_parameters_are_shown_on_request(option, shell, tmp_path):
    model = SpanBoost(LinearSGD(rate=0.25), n=4, label_range="auto")
    model.learn_many(X, Y)
    text = "\n".join(lines_of(shell, model, tmp_path, option))
    if option == "--json":
        facts = json.loads(text)
        assert facts["parameters"]["learner"]["fields"]["rate"] == 0.25
        assert facts["memory_bytes"] == sum(array.nbytes for _, array in model.tensors())
    else:
        assert "  learner = LinearSGD(rate=0.25, " in text
        assert "\nstage  effect share   sigma\n" in text
