"""`--recent on`: the command line corrects predictions by the last rows."""

import csv
import io

import numpy as np
import pytest
from small_experts import set_small_experts
from streams import put

from spanboost import load

X = np.random.default_rng(0).uniform(-1, 1, (300, 2)).round(4)
LABELS = np.where(X[:, 0] * X[:, 1] > 0, 1, 0)


@pytest.fixture
def data(tmp_path, monkeypatch):
    set_small_experts(monkeypatch)
    lines = [f"{a},{b},{y}\n" for (a, b), y in zip(X, LABELS, strict=True)]
    return put(tmp_path, "data.csv", "".join(["a,b,label\n", *lines]).encode())


@pytest.mark.parametrize(
    ("options", "stages"),
    [
        ((), []),
        (("--recent", "off"), []),
        (("--recent", "on"), ["recent"]),
        (("--budget", "fast", "--recent", "on"), ["recent"]),
        (("--past", "on"), ["past"]),
        (("--key", "a", "--recent", "on"), ["recent", "past"]),
        (("--loss", "softmax", "--recent", "on"), ["recent"]),
    ],
)
def test_the_stages_of_a_model(options, stages, data, shell, tmp_path):
    shell("train", data, "-o", tmp_path / "model.sb", "--quiet", *options)
    assert [*load(tmp_path / "model.sb").stages] == stages


def test_predict_uses_recent_rows_and_no_past_labels(data, shell, tmp_path):
    model = tmp_path / "model.sb"
    shell("train", data, "-o", model, "--quiet", "--past", "on", "--recent", "on")
    shell("predict", data, "-m", model, "-o", tmp_path / "found.csv")
    found = [*csv.DictReader(io.StringIO((tmp_path / "found.csv").read_text()))]
    expected = load(model).without_past().predict_many(X.astype(np.float32))
    np.testing.assert_allclose([float(row["prediction"]) for row in found], expected, rtol=1e-12)


@pytest.mark.filterwarnings("default:recent rows and past labels")
def test_an_export_says_what_it_leaves_out(data, shell, tmp_path):
    model, small = tmp_path / "model.sb", tmp_path / "small.sb"
    for options, noted in ((("--recent", "on"), True), ((), False)):
        shell("train", data, "-o", model, "--quiet", *options)
        printed = shell("export", model, "--to", "compact", "-o", small).err
        assert ("warning: recent rows and past labels are not exported" in printed) == noted
        rows = X.astype(np.float32)
        expected = load(model).without_corrections().predict_many(rows)
        np.testing.assert_array_equal(load(small).predict_many(rows), expected)


def test_an_interrupted_run_writes_the_same_model(data, shell, tmp_path):
    whole, parts = tmp_path / "whole.sb", tmp_path / "parts.sb"
    shell("train", data, "-o", whole, "--quiet", "--recent", "on")
    shell("train", data, "-o", parts, "--quiet", "--recent", "on", "--checkpoint-every", "70")
    assert whole.read_bytes() == parts.read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--recent", "yes"), "invalid choice: 'yes' (choose from on, off)"),
        (("--recent", "on", "--learner", "trees"), "--recent needs learner 'auto'"),
        (("--recent", "on", "--loss", "poisson"), "--recent needs squared, absolute"),
    ],
)
def test_what_does_not_fit_is_refused(options, message, data, shell):
    assert message in shell("evaluate", data, *options, status=2).err
