"""Metrics in the output of `evaluate` and `train`: tables, --json and --report."""

import csv
import json
import re

import numpy as np
import pytest
from sklearn import metrics as exact
from streams import EVERY, LINEAR

from spanboost.cli.checkpoints import Checkpoints
from spanboost.cli.output.metrics_table import align, confusion_rows, format_metric

ROWS = 500
PARTS = {"whole": (0, 500), "first_half": (0, 250), "second_half": (250, 500)}
PARTS["last_window"] = (475, 500)


@pytest.fixture(scope="module")
def stream():
    """Rows with two features, a number, two classes, three classes and a weight."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (ROWS, 2)).round(3)
    noisy = X @ [2.0, -1.0] + rng.normal(0, 0.5, ROWS)
    return {
        "a": X[:, 0],
        "b": X[:, 1],
        "number": noisy.round(4),
        "two": np.where(noisy > 0.3, "yes", "no"),
        "three": np.array(["low", "middle", "high"])[np.digitize(noisy, [-0.5, 0.5])],
        "weight": rng.integers(0, 4, ROWS),
    }


@pytest.fixture
def table(stream, tmp_path):
    """Return a function that writes a CSV file with one label column."""

    def write(label, weighted=True):
        path = tmp_path / f"{label}.csv"
        names = ["a", "b", *(["weight"] if weighted else []), label]
        with path.open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(names)
            out.writerows(zip(*(stream[name].tolist() for name in names), strict=True))
        return path

    return write


def evaluate(shell, path, *options):
    """Return the result of `evaluate` and the predictions, a dictionary of columns."""
    output = path.with_suffix(".predictions")
    printed = shell(
        "evaluate", path, "--weight", "weight", "--json", "-p", output, *EVERY, *options
    )
    assert printed.err == ""
    with output.open() as file:
        rows = list(csv.DictReader(file))
    return json.loads(printed.out), {key: np.array([row[key] for row in rows]) for key in rows[0]}


def test_metrics_of_numbers(table, stream, shell):
    result, found = evaluate(shell, table("number"))
    for name, (first, last) in PARTS.items():
        part = slice(first, last)
        y, weights = stream["number"][part], stream["weight"][part]
        predictions = found["prediction"].astype(float)[part]
        expected = {
            "rmse": exact.root_mean_squared_error(y, predictions, sample_weight=weights),
            "mae": exact.mean_absolute_error(y, predictions, sample_weight=weights),
            "r2": exact.r2_score(y, predictions, sample_weight=weights),
        }
        assert result["metrics"][name] == pytest.approx(expected)
    assert result["metrics"]["whole"]["rmse"] ** 2 == pytest.approx(result["loss"])


def test_metrics_of_two_classes_that_are_strings(table, stream, shell):
    options = ("--loss", "logistic", "--positive", "yes")
    result, found = evaluate(shell, table("two"), *options)
    for name, (first, last) in PARTS.items():
        part = slice(first, last)
        y, weights = stream["two"][part] == "yes", stream["weight"][part]
        chances = found["p_yes"].astype(float)[part]
        assert ((found["prediction"][part] == "yes") == (chances > 0.5)).all()
        one = result["metrics"][name]
        area = exact.roc_auc_score(y, chances, sample_weight=weights)
        assert abs(one["roc_auc"] - area) <= one["roc_auc_error"] < 0.02
        expected = {
            "accuracy": exact.accuracy_score(y, chances > 0.5, sample_weight=weights),
            "log_loss": exact.log_loss(y, chances, sample_weight=weights),
            "f1": exact.f1_score(y, chances > 0.5, sample_weight=weights),
            "kappa": exact.cohen_kappa_score(y, chances > 0.5, sample_weight=weights),
        }
        assert {key: one[key] for key in expected} == pytest.approx(expected, rel=1e-6)
        counts = exact.confusion_matrix(y, chances > 0.5, sample_weight=weights)
        assert one["confusion"]["counts"] == counts.tolist()
        assert one["confusion"]["labels"][1] == "yes"
        assert sum(point["weight"] for point in one["reliability"]) == weights.sum()
    assert result["metrics"]["whole"]["log_loss"] == pytest.approx(result["loss"])


def test_metrics_of_several_classes(table, stream, shell):
    result, found = evaluate(shell, table("three"), "--loss", "softmax", "--classes", "3")
    y, weights = stream["three"], stream["weight"]
    whole = result["metrics"]["whole"]
    labels = whole["confusion"]["labels"]
    assert sorted(labels) == ["high", "low", "middle"]
    predicted = found["prediction"].astype(object)
    predicted[:2] = "none"  # all scores are equal: the first row has weight 0
    counts = exact.confusion_matrix(y, predicted, labels=labels, sample_weight=weights)
    assert whole["confusion"]["counts"] == counts.tolist()
    expected = {
        "accuracy": exact.accuracy_score(y, predicted, sample_weight=weights),
        "macro_f1": exact.f1_score(
            y, predicted, labels=labels, average="macro", sample_weight=weights
        ),
        "kappa": exact.cohen_kappa_score(y, predicted, sample_weight=weights),
    }
    assert {key: whole[key] for key in expected} == pytest.approx(expected)
    assert whole["log_loss"] == pytest.approx(result["loss"])


def test_scores_without_probabilities_have_no_log_loss(table, shell):
    whole = evaluate(shell, table("two"), "--loss", "hinge")[0]["metrics"]["whole"]
    assert {"accuracy", "roc_auc", "f1", "kappa", "confusion"} <= set(whole)
    assert not {"log_loss", "calibration_error", "reliability"} & set(whole)


def test_quiet_evaluate_prints_its_result_and_nothing_else(table, shell):
    path = table("two", weighted=False)
    printed = shell("evaluate", path, *EVERY, "--loss", "logistic")
    assert printed.err == ""
    lines = printed.out.splitlines()
    assert lines[:2] == ["finished run", f"number of examples = {ROWS}"]
    assert not any("learning with" in line for line in lines)
    assert shell("evaluate", path, *EVERY, "--loss", "logistic", "--json").err == ""


def test_the_table_is_aligned_and_rounded(table, shell):
    path = table("two", weighted=False)
    lines = shell("evaluate", path, *EVERY, "--loss", "logistic").out.splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("metric"))
    shown = lines[start : lines.index("", start)]
    assert shown[0].split("  ")[-1].strip() == "last 25 rows"
    assert len({len(line) for line in shown}) == 1
    names = [re.split(" {2,}", line)[0] for line in shown[1:]]
    assert names == [  # "yes" is the positive label, although it is the first one of the file
        *("loss", "accuracy", "log-loss", "ROC AUC", "F1 of yes"),
        *("Cohen's kappa", "calibration error"),
    ]
    accuracy = re.split(" {2,}", shown[2])
    assert all(re.fullmatch(r"[01]\.\d{4}", cell) for cell in accuracy[1:])
    confusion = lines[lines.index("", start) + 1 :][:3]
    cells = [re.split(" {2,}", line) for line in confusion]
    assert cells[0] == ["label \\ prediction", "no", "yes"]
    assert sum(int(cell) for row in cells[1:] for cell in row[1:]) == ROWS


def test_every_compared_model_has_metrics(table, shell):
    path = table("number", weighted=False)
    words = ("evaluate", path, "-n", "2", "--compare", "linear,linear:hull", "--baseline")
    result = json.loads(shell(*words, "--quiet", "--json").out)
    compared = result["compared"]
    assert result["metrics"] == compared["linear:span"]["metrics"]
    assert result["baseline"]["metrics"] == compared["linear alone"]["metrics"]
    for one in compared.values():
        assert one["metrics"]["second_half"]["rmse"] ** 2 == pytest.approx(one["loss_second_half"])
    lines = shell(*words, "--quiet").out.splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("whole stream"))
    assert re.split(" {2,}", lines[start])[3:] == ["RMSE", "MAE", "R^2"]
    assert [re.split(" {2,}", line)[0] for line in lines[start + 1 : start + 4]] == [*compared]


def test_one_class_has_no_negative_zero(shell, tmp_path):
    path = tmp_path / "same.csv"
    path.write_text("a,label\n" + "0.5,1\n" * 20)
    out = shell("evaluate", path, *EVERY, "--loss", "logistic").out
    assert "best constant's loss = 0\n" in out
    assert "-0" not in out
    result = json.loads(shell("evaluate", path, *EVERY, "--loss", "logistic", "--json").out)
    assert str(result["best_constant_loss"]) == "0.0"
    assert result["metrics"]["whole"]["roc_auc"] is None


def test_the_report_shows_metrics_and_calibration(table, shell, tmp_path):
    page = tmp_path / "r.html"
    shell("evaluate", table("two"), *EVERY, "--loss", "logistic", "--report", page)
    text = page.read_text()
    for shown in ("<h2>Metrics</h2>", "ROC AUC", "kappa", "label \\ prediction", "at most"):
        assert shown in text
    assert text.count("<figure>") == 2
    assert "observed frequency" in text
    shell("evaluate", table("number"), *EVERY, "--report", page)
    text = page.read_text()
    assert "RMSE" in text
    assert text.count("<figure>") == 1


class KilledError(Exception):
    """Ends a run as if it were killed."""


@pytest.fixture
def interrupted(table, shell, tmp_path, monkeypatch):
    """A run that was killed after 300 rows, and the words that resume it."""
    words = ("train", table("two"), "--loss", "logistic", "--weight", "weight", *LINEAR, "--json")
    save = Checkpoints.save

    def save_and_stop(self, model, tape, *more):
        save(self, model, tape, *more)
        if tape.rows == 300:
            raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", save_and_stop)
        with pytest.raises(KilledError):
            shell(*words, "-o", tmp_path / "m.sb", "--checkpoint-every", "100")
    return words


def test_a_resumed_run_has_the_metrics_of_all_rows(interrupted, shell, tmp_path):
    straight = json.loads(shell(*interrupted, "-o", tmp_path / "straight.sb").out)
    resumed = json.loads(shell(*interrupted, "-o", tmp_path / "m.sb", "--resume").out)
    assert resumed["metrics"] == straight["metrics"]
    assert sorted(path.name for path in tmp_path.glob("m.sb*")) == ["m.sb"]


def test_a_checkpoint_of_an_earlier_version_resumes_without_metrics(interrupted, shell, tmp_path):
    straight = json.loads(shell(*interrupted, "-o", tmp_path / "straight.sb").out)
    (tmp_path / "m.sb.outcomes").unlink()
    resumed = shell(*interrupted, "-o", tmp_path / "m.sb", "--resume")
    assert "no metrics" in resumed.err
    result = json.loads(resumed.out)
    assert "metrics" not in result
    assert result["loss"] == straight["loss"]
    assert (tmp_path / "m.sb").read_bytes() == (tmp_path / "straight.sb").read_bytes()


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("accuracy", 0.12345, "0.1235"),
        ("accuracy", 1.0, "1.0000"),
        ("kappa", -0.00001, "0.0000"),
        ("rmse", 0.25, "0.250000"),
        ("rmse", 123456.7, "123457"),
        ("loss", -0.0, "0.00000"),
        ("r2", None, "n/a"),
        ("loss", float("nan"), "n/a"),
    ],
)
def test_numbers_are_rounded(name, value, shown):
    assert format_metric(name, value) == shown


def test_columns_are_aligned():
    assert list(align([["a", "bb"], ["long", "1"]])) == ["a     bb", "long   1"]


def test_quantile_loss_shows_the_share_of_labels_up_to_the_prediction(shell, table):
    path = table("number", weighted=False)
    run = shell("evaluate", path, "--loss", "quantile:0.9", *LINEAR, "--json")
    metrics = json.loads(run.out)["metrics"]["whole"]
    assert 0.8 < metrics["at_or_below"] <= 1
    assert "r2" not in metrics
    text = shell("evaluate", path, "--loss", "quantile:0.9", *LINEAR, "--quiet").out
    share = f"{metrics['at_or_below']:.4f}"
    assert re.search(rf"^labels at or below the prediction +{share} ", text, re.MULTILINE)
    assert "R^2" not in text


def test_confusion_counts_are_sorted():
    metrics = {
        "confusion": {"labels": ["5", "b", "10", "a"], "counts": np.arange(16).reshape(4, 4)}
    }
    assert confusion_rows(metrics) == [
        ["label \\ prediction", "5", "10", "a", "b"],
        ["5", "0", "2", "3", "1"],
        ["10", "8", "10", "11", "9"],
        ["a", "12", "14", "15", "13"],
        ["b", "4", "6", "7", "5"],
    ]
