"""`spanboost train --intervals` and `spanboost predict --interval`."""

import csv
import io
import json

import numpy as np
import pytest
from streams import put

from spanboost import Intervals, PredictionSets, load

ROWS = 400


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, ROWS)
    lines = [f"{a:.4f},{3 * a + rng.normal():.4f}\n" for a in x]
    return put(tmp_path, "data.csv", "".join(["x,label\n", *lines]).encode())


def train(shell, data, model, *options, status=0):
    words = ("train", data, "-o", model, "--learner", "linear", "-n", "2", *options)
    return shell(*words, status=status)


def test_predictions_have_intervals(shell, data, tmp_path):
    model = tmp_path / "model.sb"
    train(shell, data, model, "--intervals")
    assert isinstance(load(model), Intervals)
    text = shell("predict", data, "-m", model, "--interval", "0.8", "--keep", "label").out
    rows = [*csv.DictReader(io.StringIO(text))]
    assert list(rows[0]) == ["label", "prediction", "low", "high"]
    inside = [float(row["low"]) <= float(row["label"]) <= float(row["high"]) for row in rows]
    assert 0.7 < np.mean(inside) < 0.9


def test_inspect_and_explain_show_the_model(shell, data, tmp_path):
    model = tmp_path / "model.sb"
    train(shell, data, model, "--intervals")
    assert "Intervals, 2 copies of LinearSGD" in shell("inspect", model).out
    assert json.loads(shell("inspect", model, "--json").out)["parameters"]["levels"][0] == 0.005
    assert "prediction" in shell("explain", data, "-m", model).out


def test_an_empty_stream_has_the_same_columns(shell, data, tmp_path):
    model, empty = tmp_path / "model.sb", put(tmp_path, "empty.csv", b"x,label\n")
    train(shell, data, model, "--intervals")
    text = shell("predict", empty, "-m", model, "--interval", "0.8").out
    assert text.splitlines() == ["prediction,low,high"]


def test_several_coverages_have_columns_of_their_own(shell, data, tmp_path):
    model, empty = tmp_path / "model.sb", put(tmp_path, "empty.csv", b"x,label\n")
    train(shell, data, model, "--intervals")
    both = ("--interval", "0.5", "--interval", "0.9", "--interval", "0.5")
    head, *rows = shell("predict", data, "-m", model, *both).out.splitlines()
    assert head == "prediction,low_0.5,high_0.5,low_0.9,high_0.9"
    assert shell("predict", empty, "-m", model, *both).out == f"{head}\n"
    cells = [row.split(",") for row in rows]
    for coverage, first in (("0.5", 1), ("0.9", 3)):
        alone = shell("predict", data, "-m", model, "--interval", coverage).out.splitlines()[1:]
        assert [",".join([row[0], *row[first : first + 2]]) for row in cells] == alone


def test_bounds_are_the_ends_of_one_sided_intervals(shell, data, tmp_path):
    model, empty = tmp_path / "model.sb", put(tmp_path, "empty.csv", b"x,label\n")
    train(shell, data, model, "--intervals")
    options = ("--upper", "0.9", "--upper", "0.95", "--lower", "0.9", "--interval", "0.8")
    text = shell("predict", data, "-m", model, *options).out
    head = "prediction,low,high,lower,upper_0.9,upper_0.95"
    assert shell("predict", empty, "-m", model, *options).out == f"{head}\n"
    rows = [*csv.DictReader(io.StringIO(text))]
    assert list(rows[0]) == head.split(",")
    for row in rows:  # an 80 % interval leaves out a tenth on each side
        assert (row["low"], row["high"]) == (row["lower"], row["upper_0.9"])
        assert float(row["upper_0.9"]) <= float(row["upper_0.95"])


@pytest.mark.parametrize("side", ["upper", "lower"])
def test_bounds_of_a_model_without_intervals_are_refused(shell, data, tmp_path, side):
    model = tmp_path / "model.sb"
    train(shell, data, model)
    text = shell("predict", data, "-m", model, f"--{side}", "0.9", status=2).err
    assert f"--{side}: {model} has no intervals; train it with `train --intervals`" in text


def test_a_resumed_run_writes_the_same_model(shell, data, tmp_path):
    whole, parts = tmp_path / "whole.sb", tmp_path / "parts.sb"
    train(shell, data, whole, "--intervals")
    train(shell, data, parts, "--intervals", "--checkpoint-every", "150")
    assert whole.read_bytes() == parts.read_bytes()


def test_a_model_without_intervals_is_refused(shell, data, tmp_path):
    model = tmp_path / "model.sb"
    train(shell, data, model)
    result = shell("predict", data, "-m", model, "--interval", "0.9", status=2)
    assert "has no intervals; train it with `train --intervals`" in result.err


@pytest.mark.parametrize("coverage", ["0", "1", "90", "wide"])
def test_a_coverage_outside_0_and_1_is_refused(shell, data, tmp_path, coverage):
    result = shell("predict", data, "-m", "model.sb", "--interval", coverage, status=2)
    assert "expected a number between 0 and 1" in result.err


@pytest.mark.parametrize(
    ("option", "limits"),
    [
        ("--interval", "at most 0.99, the most that is calibrated"),
        ("--upper", "between 0.005 and 0.995, which are calibrated"),
        ("--lower", "between 0.005 and 0.995, which are calibrated"),
        ("--set", "at most 0.995, the most that is calibrated"),
    ],
)
def test_a_coverage_beyond_the_calibrated_ones_is_refused(
    shell, data, flowers, tmp_path, option, limits
):
    model, sets = tmp_path / "model.sb", option == "--set"
    kind = ("--sets", "--loss", "softmax") if sets else ("--intervals",)
    train(shell, flowers if sets else data, model, *kind)
    result = shell("predict", flowers if sets else data, "-m", model, option, "0.9999", status=2)
    assert f"{option} must be {limits} (got 0.9999)" in result.err
    assert result.out == ""


def test_a_model_of_one_row_predicts(shell, data, tmp_path):
    model, one = tmp_path / "model.sb", put(tmp_path, "one.csv", b"x,label\n1,2\n")
    train(shell, one, model, "--intervals")
    head, row = shell("predict", one, "-m", model, "--interval", "0.9").out.splitlines()
    assert head == "prediction,low,high"
    assert row.endswith("-inf,inf")


@pytest.fixture
def flowers(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, ROWS)
    kinds = np.array(["rose", "lily", "iris"])[
        np.digitize(x + rng.normal(0, 0.3, ROWS), [-0.3, 0.3])
    ]
    lines = [f"{a:.4f},{kind}\n" for a, kind in zip(x, kinds, strict=True)]
    return put(tmp_path, "flowers.csv", "".join(["x,label\n", *lines]).encode())


def test_predictions_have_sets_of_classes(shell, flowers, tmp_path):
    model = tmp_path / "model.sb"
    train(shell, flowers, model, "--sets", "--loss", "softmax")
    assert isinstance(load(model), PredictionSets)
    text = shell("predict", flowers, "-m", model, "--set", "0.9", "--keep", "label").out
    rows = [*csv.DictReader(io.StringIO(text))]
    sets = [row["set"].split("|") for row in rows]
    assert 0.85 < np.mean([row["label"] in one for row, one in zip(rows, sets, strict=True)]) < 0.95
    assert all(row["prediction"] in one for row, one in zip(rows, sets, strict=True))
    assert {len(one) for one in sets} >= {1, 2}
    both = shell("predict", flowers, "-m", model, "--set", "0.5", "--set", "0.9").out
    found = [*csv.DictReader(io.StringIO(both))]
    assert [row["set_0.9"] for row in found] == [row["set"] for row in rows]
    assert all({*row["set_0.5"].split("|")} <= {*row["set_0.9"].split("|")} for row in found)
    empty = put(tmp_path, "empty.csv", b"x,label\n")
    assert ",set" in shell("predict", empty, "-m", model, "--set", "0.9").out
    assert "PredictionSets, 2 copies of LinearSGD" in shell("inspect", model).out
    assert "prediction lily" in shell("explain", flowers, "-m", model).out


def test_sets_need_classes_and_a_model_that_learned_them(shell, data, flowers, tmp_path):
    model = tmp_path / "model.sb"
    result = train(shell, data, model, "--sets", status=2)
    assert "--sets requires --loss logistic or softmax" in result.err
    train(shell, flowers, model, "--loss", "softmax")
    result = shell("predict", flowers, "-m", model, "--set", "0.9", status=2)
    assert "has no sets; train it with `train --sets`" in result.err
    result = train(shell, flowers, model, "-i", model, "--sets", status=2)
    assert "cannot be combined with -i" in result.err


def test_classes_have_no_intervals(shell, tmp_path):
    data = put(tmp_path, "classes.csv", b"x,label\n1,a\n2,b\n")
    result = train(shell, data, tmp_path / "m.sb", "--intervals", "--loss", "logistic", status=2)
    assert "--intervals requires numeric labels; --loss logistic has classes" in result.err


@pytest.mark.parametrize("option", ["--intervals", "--sets", "--calibrate"])
def test_a_key_names_a_column_of_a_table(option, shell, tmp_path):
    rows = [f"{k % 3},{'ab'[k % 2]},{k % 7},{k % 2}\n" for k in range(60)]
    path = put(tmp_path, "stores.csv", "".join(["store,kind,size,label\n", *rows]).encode())
    loss = () if option == "--intervals" else ("--loss", "logistic")
    words = (*loss, "--budget", "fast", "--key", "store,kind", "--quiet", "-p", "-")
    plain = shell("train", path, "-o", tmp_path / "plain.sb", *words).out
    model = tmp_path / "model.sb"
    printed = shell("train", path, "-o", model, option, *words).out
    if option != "--calibrate":
        assert printed == plain
    assert shell("predict", path, "-m", model).out.count("\n") == 61
    shell("train", path, "-i", model, "-o", tmp_path / "more.sb", "--quiet")
