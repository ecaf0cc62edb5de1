"""`spanboost evaluate --interval`."""

import json

import numpy as np
import pytest
from streams import put

from spanboost import Intervals, LinearSGD, QuantileMetrics, SpanBoost, load, save

ROWS = 2500
WORDS = ("--learner", "linear", "-n", "2")


@pytest.fixture(scope="module")
def stream():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, ROWS).round(4)
    return x, (3 * x + rng.normal(size=ROWS)).round(4)


@pytest.fixture
def data(tmp_path, stream):
    lines = [f"{a},{b}\n" for a, b in zip(*stream, strict=True)]
    return put(tmp_path, "data.csv", "".join(["x,label\n", *lines]).encode())


def test_the_numbers_are_those_of_a_loop_in_python(shell, data, stream):
    options = ("--interval", "0.8", "--interval", "0.9", "--json", "--quiet")
    found = json.loads(shell("evaluate", data, *WORDS, *options).out)["intervals"]
    model = Intervals(SpanBoost(LinearSGD(), n=2, label_range="auto"))
    x, y = stream
    for level, coverage in zip(found["levels"], (0.8, 0.9), strict=True):
        assert level["coverage"] == coverage
    low, high = model.learn_intervals(x[:, None], y, 0.8).T
    inside = (low <= y) & (y <= high)
    first = found["levels"][0]
    assert first["whole"]["coverage"] == pytest.approx(inside.mean())
    assert np.isinf(high - low).sum() == 10  # one prediction without a label, then 9 residuals
    assert first["whole"]["width"] == pytest.approx((high - low)[10:].mean())
    assert first["first_half"]["coverage"] == pytest.approx(inside[: ROWS // 2].mean())
    assert first["second_half"]["width"] == pytest.approx((high - low)[ROWS // 2 :].mean())
    assert first["last_window"]["coverage"] == pytest.approx(inside[-125:].mean())
    windows = [inside[:1000].mean(), inside[1000:2000].mean()]
    assert first["windows"]["number"] == 2
    farthest = max(windows, key=lambda one: abs(one - 0.8))
    assert first["windows"]["farthest_coverage"] == pytest.approx(farthest)
    assert 0.4 < found["crps"]["second_half"] < 0.8  # 0.564 for standard normal noise


def test_the_table_the_plot_and_the_report_show_the_intervals(shell, data, tmp_path):
    plot, page = tmp_path / "plot.png", tmp_path / "page.html"
    options = ("--interval", "0.9", "--plot-intervals", plot, "--report", page, "--quiet")
    text = shell("evaluate", data, *WORDS, *options).out
    assert "0.9: mean width" in text
    assert "CRPS" in text
    assert "of 2 windows of 1,000 rows; farthest: 0." in text
    assert plot.read_bytes().startswith(b"\x89PNG")
    html = page.read_text()
    assert "<h2>Intervals</h2>" in html
    assert "0.9: pinball loss" in html
    assert "coverage in windows" in html


def test_several_models_are_compared(shell, data):
    options = ("--compare", "linear,linear:hull", "-n", "2", "--interval", "0.9", "--quiet")
    text = shell("evaluate", data, *options).out
    assert "0.9: pinball loss" in text.partition("0.9: coverage  0.9: mean width")[2]
    found = json.loads(shell("evaluate", data, *options, "--json").out)
    widths = {
        name: one["intervals"]["levels"][0]["whole"]["width"]
        for name, one in found["compared"].items()
    }
    assert len({*widths.values()}) == 2


def test_a_trained_model_is_tested_without_learning(shell, data, stream, tmp_path):
    model = tmp_path / "model.sb"
    shell("train", data, "-o", model, *WORDS, "--intervals", "--quiet")
    before = model.read_bytes()
    options = ("-i", model, "-t", "--interval", "0.9", "--json", "--quiet")
    found = json.loads(shell("evaluate", data, *options).out)
    x, y = stream
    low, high = load(model).predict_interval(x[:, None], 0.9).T
    expected = ((low <= y) & (y <= high)).mean()
    assert found["intervals"]["levels"][0]["whole"]["coverage"] == pytest.approx(expected)
    assert model.read_bytes() == before


def test_a_model_with_levels_of_its_own_is_tested(shell, data, stream, tmp_path):
    path, (x, y) = tmp_path / "model.sb", stream
    shell("train", data, "-o", path, *WORDS, "--intervals", "--quiet")
    trained = load(path)
    model = Intervals(trained.model, levels=[0.1, 0.5, 0.9])
    model.schema = trained.schema
    model.learn_many(x[:, None], y)
    save(model, path)
    options = ("-i", path, "-t", "--json", "--quiet")
    found = json.loads(shell("evaluate", data, *options, "--interval", "0.8").out)["intervals"]
    metrics = QuantileMetrics([0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9])
    metrics.add(y, model.predict_quantiles(x[:, None], metrics.levels))
    assert found["crps"]["whole"] == pytest.approx(metrics.results()["crps"])
    assert "at most 0.8," in shell("evaluate", data, *options, "--interval", "0.9", status=2).err


def test_a_model_without_intervals_is_refused(shell, data, tmp_path):
    model = tmp_path / "model.sb"
    shell("train", data, "-o", model, *WORDS, "--quiet")
    result = shell("evaluate", data, "-i", model, "--interval", "0.9", status=2)
    assert f"{model} has no intervals; train it with `train --intervals`" in result.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--interval", "90"), "expected a number between 0 and 1 (got '90')"),
        (("--plot-intervals", "plot.png"), "--plot-intervals needs --interval"),
        (("--interval", "0.9", "--plot-intervals", "plot.pdf"), ".png or .svg"),
        (
            ("--interval", "0.9", "--loss", "logistic"),
            "--interval requires numeric labels; --loss logistic has classes",
        ),
        (
            ("--interval", "0.9", "--interval", "0.995"),
            "--interval must be at most 0.99, the most that is calibrated (got 0.995)",
        ),
    ],
)
def test_bad_options_are_refused(shell, data, options, message):
    assert message in shell("evaluate", data, *WORDS, *options, status=2).err
