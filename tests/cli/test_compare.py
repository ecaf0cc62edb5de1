"""`spanboost evaluate --compare`: new models, model files, and what is certain about them."""

import json
import re

import numpy as np
import pytest
from streams import HOUSES, as_csv, put

from spanboost import Comparison, load, save
from spanboost.models.row_losses import losses_of

QUIET = ("--quiet", "--json")


def rows_of(kinds, rows=600, seed=0):
    rng = np.random.default_rng(seed)
    return [
        {"x": float(x), "kind": kinds[k % len(kinds)], "label": 3 * float(x) + k % len(kinds)}
        for k, x in enumerate(rng.uniform(-1, 1, rows))
    ]


@pytest.fixture
def data(tmp_path):
    return put(tmp_path, "rows.csv", as_csv(rows_of("ab")))


def compared(shell, *words):
    return json.loads(shell("evaluate", *words, *QUIET).out)


def trained(shell, data, path, *options):
    shell("train", data, "-o", path, "--quiet", "--learner", "linear", *options)
    return path


def test_the_interval_is_that_of_the_losses_of_all_rows(shell, data):
    result = compared(shell, data, "--compare", "linear:n=1,linear:n=9")
    alone = [compared(shell, data, "--learner", "linear", "-n", n)["loss"] for n in (1, 9)]
    (pair,) = result["comparisons"]
    assert [pair["first"], pair["second"]] == ["linear:n=1", "linear:n=9"]
    assert [one["loss"] for one in result["compared"].values()] == alone
    assert pair["difference"] == pytest.approx(alone[0] - alone[1])
    low, high = pair["interval"]
    assert low < pair["difference"] < high
    assert pair["better"] == {(True, True): "linear:n=9", (False, False): "linear:n=1"}.get(
        (low > 0, high > 0)
    )
    assert (pair["since"] is None) == (pair["better"] is None)


def test_model_files_are_compared_as_they_are_with_t(shell, data, tmp_path):
    first = trained(shell, data, tmp_path / "one.sb", "-n", 1, "--rate", 0.001)
    second = trained(shell, data, tmp_path / "two.sb", "-n", 4)
    result = compared(shell, data, "-i", first, "--compare", second, "-t")
    (pair,) = result["comparisons"]
    models = load(first), load(second)
    expected = Comparison()
    X = [[row["x"], row["kind"]] for row in rows_of("ab")]
    numbers = np.array([[x] for x, _ in X], np.float32)
    codes = np.array([["ab".index(kind)] for _, kind in X])
    from spanboost import Rows

    y = np.array([row["label"] for row in rows_of("ab")])
    predictions = [model.predict_many(Rows(numbers, codes)) for model in models]
    losses = [losses_of(model, y, p) for model, p in zip(models, predictions, strict=True)]
    expected.add(*losses)
    assert pair["interval"] == pytest.approx(list(expected.interval))
    assert (pair["better"], pair["since"]) == (str(second), expected.since)
    assert list(result["compared"]) == [str(first), str(second)]


def test_a_model_file_is_compared_with_a_new_model(shell, data, tmp_path):
    first = trained(shell, data, tmp_path / "one.sb", "-n", 4)
    result = compared(shell, data, "-i", first, "--compare", "linear:n=4,stumps:n=2:seed=1")
    assert [one["second"] for one in result["comparisons"]] == ["linear:n=4", "stumps:n=2:seed=1"]
    fresh = compared(shell, data, "--learner", "linear", "-n", 4)
    assert result["compared"]["linear:n=4"]["loss"] == fresh["loss"]
    continued = compared(shell, data, "-i", first)
    assert result["loss"] == continued["loss"] != fresh["loss"]


def test_several_pairs_share_the_level(shell, data):
    pairs = compared(shell, data, "--compare", "linear:n=1,linear:n=9,linear:n=4")["comparisons"]
    (alone,) = compared(shell, data, "--compare", "linear:n=1,linear:n=9")["comparisons"]
    assert pairs[0]["interval"][0] < alone["interval"][0]
    assert pairs[0]["interval"][1] > alone["interval"][1]


def test_the_lines_say_what_is_certain(shell, data, tmp_path):
    first = trained(shell, data, tmp_path / "one.sb", "-n", 1, "--rate", 0.001)
    second = trained(shell, data, tmp_path / "two.sb", "-n", 4)
    copy = tmp_path / "three.sb"
    save(load(first), copy)
    printed = shell("evaluate", data, "-i", first, "--compare", f"{second},{copy}", "-t").out
    assert "95% intervals that are valid together at every row:" in printed
    assert re.search(rf"two.sb = .* to .*: {second} is better, certain since row \d+\n", printed)
    assert "three.sb = 0 (unbounded): not certain which is better\n" in printed
    result = compared(shell, data, "-i", first, "--compare", copy, "-t")
    assert result["comparisons"][0] == {
        "first": str(first),
        "second": str(copy),
        "difference": 0,
        "interval": [None, None],
        "better": None,
        "since": None,
        "limited_rows": 0,
    }


def test_categories_that_only_one_model_knows_are_shared(shell, tmp_path):
    few = put(tmp_path, "few.csv", as_csv(rows_of("ab")))
    more = put(tmp_path, "more.csv", as_csv(rows_of("abc", seed=1)))
    short = trained(shell, few, tmp_path / "short.sb", "-n", 4)
    long = trained(shell, more, tmp_path / "long.sb", "-n", 4)
    alone = {path: compared(shell, more, "-i", path, "-t")["loss"] for path in (short, long)}
    for first, second in ((short, long), (long, short)):
        result = compared(shell, more, "-i", first, "--compare", second, "-t")
        each = {name: one["loss"] for name, one in result["compared"].items()}
        assert each == {str(path): loss for path, loss in alone.items()}


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (rows_of("ba"), (), "the models number the categories of column 'kind' differently"),
        (rows_of("ab"), ("--ignore", "x"), "the models have different feature columns"),
        (rows_of("ab"), ("--label", "x"), "label is 'x', not 'label'"),
        (rows_of("ab"), ("-b", "10"), "bits is 10, not None"),
        (rows_of("ab"), ("--label-range", "-9,9"), "the models encode labels differently"),
        (rows_of("ab"), ("--loss", "absolute"), "another loss than the model of -i"),
    ],
)
def test_models_that_read_rows_differently_are_refused(
    rows, options, message, shell, data, tmp_path
):
    first = trained(shell, data, tmp_path / "one.sb", "-n", 2)
    other = put(tmp_path, "other.csv", as_csv(rows))
    second = trained(shell, other, tmp_path / "two.sb", "-n", 2, *options)
    words = ("-i", first, "--compare", second, "-t")
    assert message in shell("evaluate", data, *words, status=2).err


def test_the_plot_and_the_report_show_the_difference(shell, data, tmp_path):
    pytest.importorskip("matplotlib")
    plot, page = tmp_path / "both.svg", tmp_path / "page.html"
    words = ("--compare", "linear:n=1,linear:n=9", "--plot-compare", plot, "--report", page)
    pair = compared(shell, data, *words)["comparisons"][0]
    assert "linear:n=1 - linear:n=9" in plot.read_text()
    text = page.read_text()
    assert "<h2>Comparison</h2>" in text
    assert f"{pair['interval'][0]:.6g} to {pair['interval'][1]:.6g}" in text
    again = tmp_path / "again.svg"
    compared(shell, data, *words[:2], "--plot-compare", again)
    assert plot.read_bytes() == again.read_bytes()


def test_weights_count(shell, tmp_path):
    rows = [row | {"w": k % 3} for k, row in enumerate(HOUSES)]
    path = put(tmp_path, "x.csv", as_csv(rows))
    result = compared(shell, path, "--weight", "w", "--compare", "linear:n=1,linear:n=9")
    pair = result["comparisons"][0]
    assert pair["difference"] == pytest.approx(
        result["compared"]["linear:n=1"]["loss"] - result["compared"]["linear:n=9"]["loss"]
    )
    assert pair["interval"][0] <= pair["difference"] <= pair["interval"][1]
