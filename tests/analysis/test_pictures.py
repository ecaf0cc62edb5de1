"""Plots other than loss curves: their contents, constant memory, and refused options."""

import itertools
import json
import random
import sys

import numpy as np
import pytest

from spanboost import LinearSGD, SpanBoost, Stumps, evaluate, explain
from spanboost.analysis import comparison_curves, pictures
from spanboost.analysis.explanation import Explanation
from spanboost.analysis.regret_picture import Regret, plot_regret
from spanboost.analysis.sampling import RowSample
from spanboost.cli.main import main
from spanboost.cli.output import plots
from spanboost.errors import UserError, install_hint

pytestmark = pytest.mark.slow  # the file as a whole

KINDS = [f"--plot-{kind}" for kind in plots.KINDS]


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 3, 5000])
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_every_plot_is_one_call_with_identical_bytes(rows, suffix, tmp_path):
    rng = np.random.default_rng(0)
    y, p = rng.normal(size=(2, rows))
    chances = rng.dirichlet([1, 1, 1], rows)
    calls = {
        "losses": lambda path: pictures.plot_losses({"a": y**2, "b": p**2}, 1.0, [rows], path=path),
        "predictions": lambda path: pictures.plot_predictions(y, p, path=path),
        "classes": lambda path: pictures.plot_classes(
            rng.integers(0, 1, rows), chances, "abc", path=path
        ),
        "residuals": lambda path: pictures.plot_residuals(y, p, path=path),
        "stages": lambda path: pictures.plot_stages([3, 2, 1], [0.3, 0.2, 0.1], path=path),
        "sigma": lambda path: pictures.plot_sigma([1, 2], [[0, 0.1], [0.2, 0.3]], path=path),
        "importance": lambda path: pictures.plot_importances({"a": 2.0, 3: 1.0}, "gain", path=path),
    }
    for name, call in calls.items():
        paths = [tmp_path / f"{name}{k}.{suffix}" for k in range(2)]
        for path in paths:
            call(path)
        assert paths[0].read_bytes() == paths[1].read_bytes()
        with pytest.raises(UserError, match=r"plots are \.png or \.svg files"):
            call(tmp_path / "c.pdf")


def test_plots_return_axes_and_show_the_figure_without_a_path():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    open_before = pyplot.get_fignums()
    axes = pictures.plot_residuals([0.1, -0.2, 0.3], [0.0, 0.1, 0.3])
    (number,) = set(pyplot.get_fignums()) - set(open_before)
    assert pyplot.figure(number) is axes.figure
    assert axes.get_title() == "residuals over time"
    pyplot.close(axes.figure)
    matrix, calibration = pictures.plot_classes([0, 1], [[0.9, 0.1], [0.2, 0.8]], "ab")
    assert matrix.get_ylabel() == "label"
    assert calibration.get_title() == "calibration"
    pyplot.close(matrix.figure)
    running, window = pictures.plot_losses({"a": [1.0, 2.0]})
    assert (running.get_title(), window.get_title()) == ("running average loss", "loss of each row")
    pyplot.close(running.figure)
    assert pyplot.get_fignums() == open_before


ONE_PANEL = [
    lambda ax: pictures.plot_predictions([1, 2], [1.5, 2.5], ax=ax),
    lambda ax: pictures.plot_residuals(np.linspace(-1, 1, 2500), np.zeros(2500), ax=ax),
    lambda ax: pictures.plot_sigma([1, 2], [[0, 0.1], [0.2, 0.3]], ax=ax),
    lambda ax: pictures.plot_importances({"a": 2.0}, ax=ax),
    lambda ax: comparison_curves.plot("a", {"b": curve()}, ax=ax),
]
TWO_PANELS = [
    lambda ax: pictures.plot_losses({"a": [1.0, 2.0], "b": [2.0, 3.0]}, 1.0, [1], ax=ax),
    lambda ax: pictures.plot_classes([0, 1], [[0.9, 0.1], [0.2, 0.8]], "ab", ax=ax),
    lambda ax: pictures.plot_stages([3, 2], [0.3, 0.2], ax=ax),
    lambda ax: plot_regret(Regret("f", 1.0, {"copies": 2.0}, {"copies": np.ones(2)}), ax=ax),
]


def curve():
    one = comparison_curves.ComparisonCurve()
    one.add(np.ones((20, 3)))
    return one


@pytest.mark.parametrize(
    ("panels", "call"), [*((1, one) for one in ONE_PANEL), *((2, two) for two in TWO_PANELS)]
)
def test_every_plot_can_be_drawn_into_axes(panels, call):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    figure, given = pyplot.subplots(1, 3)
    open_before = pyplot.get_fignums()
    found = call(given[1] if panels == 1 else given[1:])
    assert (found,) == (given[1],) if panels == 1 else tuple(found) == tuple(given[1:])
    assert given[1].has_data()
    assert not given[0].has_data()
    assert figure.legends == []
    assert figure.get_suptitle() == ""
    assert pyplot.get_fignums() == open_before
    figure.draw_without_rendering()
    wanted = "one axes" if panels == 1 else "2 axes, one for each panel,"
    for wrong in (given, "axes"):
        with pytest.raises(ValueError, match=rf"^ax must be {wanted} of Matplotlib \(got "):
            call(wrong)
    pyplot.close(figure)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 33_000.0, 3e6, 4e8])
def test_ticks_of_a_regret_stay_apart_and_no_bar_is_cut(scale, tmp_path):
    stages = {"copies": np.linspace(0, 1, 100) ** 6 * scale, "sigma": -np.ones(100) * scale / 9}
    terms = {"initial": 0.8 * scale, "copies": 0.3 * scale, "sigma": -0.65 * scale}
    axes = plot_regret(Regret("f", 0.1 * scale, terms, stages), tmp_path / "regret.svg")
    for one in axes:
        texts = [text for text in one.get_xticklabels() if text.get_text()]
        low, high = one.get_xlim()
        boxes = [
            text.get_window_extent() for text in texts if low <= text.get_position()[0] <= high
        ]
        assert all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))
    bottom, top = axes[1].get_ylim()
    assert bottom < -scale / 9
    assert top > scale


def test_a_file_and_axes_cannot_be_combined(tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    figure, ax = pyplot.subplots()
    with pytest.raises(ValueError, match=r"save the figure with ax\.figure\.savefig"):
        pictures.plot_residuals([1.0], [0.5], path=tmp_path / "r.png", ax=ax)
    assert not ax.has_data()
    pyplot.close(figure)


def test_a_plot_that_is_written_stays_out_of_pyplot(tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    open_before = pyplot.get_fignums()
    axes = pictures.plot_sigma([1, 2], [[0, 0.1], [0.2, 0.3]], path=tmp_path / "s.png")
    assert axes.get_ylabel() == "sigma"
    assert pyplot.get_fignums() == open_before


def test_few_points_are_drawn_one_by_one_and_many_as_a_density(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "p.svg"
    few = pictures.plot_predictions(*rng.normal(size=(2, 100)), path=path)
    assert len(few.collections[0].get_offsets()) == 100
    many = pictures.plot_predictions(*rng.normal(size=(2, 10_000)), 200_000, path=path)
    assert len(many.collections[0].get_offsets()) < 4000
    assert many.get_title() == "predictions and labels: 10,000 of 200,000 rows"
    assert many.get_xlim() == many.get_ylim()


def test_unusual_numbers_can_be_drawn(tmp_path):
    for values in ([0.0], [5.0, 5.0], [np.nan, 1.0], [1e300, -1e300, 0], [np.inf] * 3):
        pictures.plot_predictions(values, values, path=tmp_path / "p.png")
        pictures.plot_residuals(values, np.zeros(len(values)), path=tmp_path / "r.png")
    pictures.plot_sigma([5], [[0.0]], path=tmp_path / "s.png")
    pictures.plot_stages([0.0], [np.nan], path=tmp_path / "st.png")
    pictures.plot_importances({}, path=tmp_path / "i.png")
    assert len(list(tmp_path.iterdir())) == 5


def test_windows_of_residuals_show_quantiles(tmp_path):
    residuals = np.where(np.arange(60_000) % 10 == 0, 5.0, np.arange(60_000) // 30_000)
    axes = pictures.plot_residuals(residuals, 0 * residuals, path=tmp_path / "r.svg")
    lines = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
    assert list(lines["median"]) == [0] * 30 + [1] * 30
    assert set(lines["5% and 95%"]) == {0, 1}


@pytest.mark.parametrize("blocks", [1, 7, 1000])
def test_a_sample_is_uniform_and_independent_of_blocks(blocks):
    whole, parts = RowSample(500), RowSample(500)
    rows = np.arange(20_000.0)[:, None]
    whole.add(rows)
    for part in np.array_split(rows, blocks):
        parts.add(part)
    np.testing.assert_array_equal(whole.rows, parts.rows)
    assert whole.of == 20_000
    assert (np.diff(whole.rows[:, 0]) > 0).all()
    counts = np.histogram(whole.rows, 5, (0, 20_000))[0]
    assert counts.min() > 70  # 100 are expected; fewer than 70 have a probability of 1 in 4,000
    short = RowSample(500)
    short.add(rows[:20])
    np.testing.assert_array_equal(short.rows, rows[:20])


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "d.jsonl"
    rng = random.Random(0)
    rows = [{"x": rng.random(), "kind": rng.choice("ab")} for _ in range(300)]
    path.write_text(
        "".join(json.dumps(r | {"label": r["x"] + (r["kind"] == "a")}) + "\n" for r in rows)
    )
    return path


def test_plots_do_not_change_what_is_learned(data, tmp_path, capsys, monkeypatch):
    kept = []

    def keep(self):
        kept.append(self)

    monkeypatch.setattr(plots.PlotCollector, "draw", keep)
    command = ["evaluate", str(data), "--learner", "stumps", "-n", "4", "--quiet", "--json"]
    assert main(command) == 0
    plain = json.loads(capsys.readouterr().out)
    places = [word for kind in KINDS for word in (kind, str(tmp_path / f"{kind}.png"))]
    assert main([*command, *places]) == 0
    watched = json.loads(capsys.readouterr().out)
    assert watched["loss"] == plain["loss"]
    assert watched["windows"] == plain["windows"]
    monkeypatch.undo()
    seen = kept[1]
    seen.draw()
    assert {path.suffix for path in tmp_path.iterdir()} == {".jsonl", ".png"}
    assert len(list(tmp_path.glob("*.png"))) == len(KINDS)
    rows, truth, answers = seen._seen
    np.testing.assert_array_equal(rows, np.arange(1, 301))
    labels = [json.loads(line)["label"] for line in data.read_text().splitlines()]
    np.testing.assert_array_equal(truth, labels)
    assert np.mean((truth - answers) ** 2) == pytest.approx(plain["loss"])
    assert seen.times[-1] == 300
    np.testing.assert_array_equal(seen.sigma[-1], seen.model.sigma_)
    assert seen.looked == 299  # a model that has learned nothing has no stages
    assert seen.lost[-1] / 299 == pytest.approx(plain["loss"], rel=0.2)
    assert (seen.moved > 0).all()


def test_the_number_of_looks_at_sigma_is_bounded(data):
    class Args:
        plot_sigma = "s.png"

    from spanboost import LinearSGD, SpanBoost
    from spanboost.analysis.progressive import Step

    watch = plots.PlotCollector(Args, SpanBoost(LinearSGD(), n=2))
    for t in range(5000):
        watch.watch(
            Step(None, {}, t, np.zeros((1, 2)), np.zeros((1, 2)), np.zeros((1, 1))), np.zeros(1)
        )
        assert len(watch.times) == len(watch.sigma) <= plots.LOOKS
    assert set(np.diff(watch.times)) == {16}
    assert watch.rows - watch.times[-1] < 16


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--plot-sigma", "s.png", "--booster", "hull"], "--plot-sigma requires --booster span"),
        (["--plot-sigma", "s.png"], "--plot-sigma requires --booster span"),
        (
            ["--plot-stages", "s.png"],
            "--plot-stages needs a single booster; choose a --learner other than auto",
        ),
        (["--plot-residuals", "r.pdf"], "plots are .png or .svg files"),
        (
            ["--plot-stages", "s.png", "--compare", "linear,stumps"],
            "--plot-stages cannot be combined with --compare",
        ),
        (["--plot", "s.png", "--plot-sigma", "s.png", "-n", "2"], "writes another output to it"),
        (["--plot-residuals", "r.png", "--loss", "hinge", "-n", "2"], "needs probabilities"),
    ],
)
def test_bad_options_are_refused_before_anything_is_learned(
    words, message, data, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "spanboost.models.booster.Booster.learn_many", lambda *_: pytest.fail("learned")
    )
    assert main(["evaluate", str(data), *words]) == 2
    output = capsys.readouterr().err
    assert message in output
    assert output.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == [data.name]


@pytest.fixture
def changing(tmp_path):
    """Write a CSV file whose labels change halfway, from a linear rule to another one."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4000, 3)).round(4)
    before = np.arange(4000) < 2000
    y = np.where(before, X[:, 0], np.sign(X[:, 1] * X[:, 2])) + 0.1 * rng.normal(size=4000)
    path = tmp_path / "changing.csv"
    np.savetxt(path, np.column_stack([X, y.round(4)]), "%g", ",", header="a,b,c,y", comments="")
    return path


@pytest.mark.parametrize("detector", ["adwin", "page-hinkley"])
def test_drift_is_detected_where_the_rule_changes(detector, changing, tmp_path, capsys):
    report, curves = tmp_path / "r.html", tmp_path / "c.svg"
    command = ["evaluate", str(changing), "--learner", "linear", "-n", "2", "--drift", detector]
    assert main([*command, "--json", "--report", str(report), "--plot", str(curves)]) == 0
    output = capsys.readouterr()
    result = json.loads(output.out)
    assert result["drift"]["detector"] == detector
    (moment,) = result["drift"]["rows"]
    assert 2000 < moment < 2200
    assert f"drift ({detector}), after rows: {moment:,}\n" in output.err
    assert f"rise after rows {moment:,}" in report.read_text()
    assert "drift" in curves.read_text()
    losses = result["windows"]["loss"]["linear:span"]
    assert result["windows"]["rows"] == list(range(200, 4001, 200))
    assert losses[10] > 5 * max(losses[5:10])
    assert np.mean(losses) == pytest.approx(result["loss"])


def test_no_drift_is_detected_without_a_change(changing, tmp_path, capsys):
    lines = changing.read_text().splitlines(keepends=True)
    changing.write_text("".join(lines[:2001]))
    command = ["evaluate", str(changing), "--learner", "linear", "-n", "2", "--drift", "adwin"]
    assert main([*command, "--json", "--report", str(tmp_path / "r.html")]) == 0
    output = capsys.readouterr()
    assert json.loads(output.out)["drift"]["rows"] == []
    assert "drift (adwin), after rows: none found\n" in output.err
    assert "do not rise" in (tmp_path / "r.html").read_text()


def test_drift_of_classes_uses_probabilities():
    from spanboost.analysis.drift import Drift

    rng = np.random.default_rng(0)
    drift = Drift("adwin", "logistic")
    right = rng.random(3000) < np.where(np.arange(3000) < 1500, 0.9, 0.4)
    drift.add(np.where(right, 0.1, 2.5), np.ones(3000))
    assert len(drift.moments) == 1
    assert 1500 < drift.moments[0] < 1600


def test_missing_river_is_reported(data, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "river", None)
    assert main(["evaluate", str(data), "--drift", "adwin", "--learner", "linear"]) == 2
    output = capsys.readouterr().err
    assert output == f"spanboost: drift detectors need River: {install_hint('river')}\n"


def points(axes):
    return np.asarray(axes.collections[0].get_offsets())


def test_residuals_are_labels_minus_predictions():
    y, p = np.array([3.0, 5.0, 4.0]), np.array([2.0, 5.5, 4.0])
    axes = pictures.plot_residuals(y, p)
    np.testing.assert_array_equal(points(axes), [[1, 1.0], [2, -0.5], [3, 0.0]])
    axes = pictures.plot_residuals(y, p, rows=[10, 20, 30])
    np.testing.assert_array_equal(points(axes)[:, 0], [10, 20, 30])
    with pytest.raises(TypeError, match="positional"):
        pictures.plot_residuals(y, p, None, [10, 20, 30])


def test_results_of_evaluate_can_be_plotted():
    X = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    y = X[:, 0] / 2
    found = evaluate(SpanBoost(LinearSGD(), 2), X, y)
    expected = np.column_stack([y, found.predictions])
    np.testing.assert_array_equal(points(pictures.plot_predictions(found)), expected)
    residuals = points(pictures.plot_residuals(found))[:, 1]
    np.testing.assert_array_equal(residuals, y - found.predictions)
    for losses in (found, {"model": found}, {"model": found.losses}):
        running, _ = pictures.plot_losses(losses)
        np.testing.assert_allclose(running.lines[0].get_ydata()[-1], found.loss)


@pytest.mark.parametrize("names", [None, ["low", "up"]])
def test_labels_of_classes_are_matched_by_name(names):
    labels, chances = ["up", "low", "up"], [[0.2, 0.8], [0.9, 0.1], [0.4, 0.6]]
    expected = [[0.9, 0.1], [0.3, 0.7]]
    for truth, given in ((labels, names), ([1, 0, 1], names)):
        matrix, _ = pictures.plot_classes(truth, chances, given)
        np.testing.assert_allclose(matrix.images[0].get_array(), expected)
    texts = [tick.get_text() for tick in matrix.get_yticklabels()]
    assert texts == (names or ["0", "1"])
    matrix, _ = pictures.plot_classes(labels, np.array(chances)[:, 1])  # of the second class
    np.testing.assert_allclose(matrix.images[0].get_array(), expected)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (
            lambda: pictures.plot_importances([0.5, 0.5]),
            "importances must map the names of features",
        ),
        (lambda: pictures.plot_losses(np.ones(9)), "losses must map the names of models"),
        (lambda: pictures.plot_predictions(np.ones(9), np.ones(5)), "one of each per row"),
        (lambda: pictures.plot_predictions(["a"] * 9, np.ones(9)), "must be numbers"),
        (lambda: pictures.plot_residuals(np.ones(9), np.ones(5)), "one of each per row"),
        (
            lambda: pictures.plot_losses({"a": np.ones(9), "b": np.ones(5)}),
            r"losses of the same rows \(got shapes a: \(9,\), b: \(5,\)\)",
        ),
        (lambda: pictures.plot_classes(np.ones(9), np.ones((5, 2))), "one label and the probab"),
        (
            lambda: pictures.plot_classes(["x"] * 9, np.ones((9, 3))),
            r"names must be the labels of the 3 classes, .* \(got None\)",
        ),
        (lambda: pictures.plot_classes([0, 5], np.ones((2, 2)), "ab"), "labels of the 2 classes"),
    ],
)
def test_wrong_input_gets_one_sentence(draw, message):
    with pytest.raises((TypeError, ValueError), match=message):
        draw()


def test_the_bars_of_an_explanation_lead_from_the_base_to_the_prediction(tmp_path):
    found = Explanation(7.0, 2.0, {"a": 4.0, "b": -2.0, "c": 1.0, "d": 0.5}, 1.5)
    axes = found.plot(2, path=tmp_path / "explanation.svg")
    starts = [bar.get_x() for bar in axes.patches]
    ends = [bar.get_x() + bar.get_width() for bar in axes.patches]
    assert starts == [2.0, 6.0, 4.0, 5.5]
    assert ends == [6.0, 4.0, 5.5, 7.0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["a", "b", "(2 more)", "(rest)"]
    assert (tmp_path / "explanation.svg").stat().st_size > 0


def test_explanations_of_vectors_are_plotted_for_the_predicted_class():
    scores, base = np.array([1.0, 4.0, 0.0]), np.array([1.0, 1.0, 0.0])
    parts = {"a": scores - base}
    classes = Explanation(scores, base, parts, 0 * base, classes=["x", "y", "z"])
    axes = classes.plot()
    assert axes.get_xlim()[1] > 4.0
    named = f"score of {classes.classes[int(np.argmax(classes.prediction))]}"
    assert axes.get_xlabel() == named
    assert axes.get_title().endswith(f"{named} {classes.prediction.max():.4g}")
    with pytest.raises(ValueError, match=r"several outputs; plot one of them: output\(k\)"):
        Explanation(scores, base, parts, 0 * base).plot()


def test_an_explanation_without_contributions_can_be_plotted():
    assert Explanation(2.0, 2.0, {}, 0.0).plot().get_title() == "base 2, prediction 2"


def test_the_largest_importances_are_drawn_whatever_their_order(tmp_path):
    given = {f"column {j}": float(j) for j in range(30)}
    axes = pictures.plot_importances(given, path=tmp_path / "i.png")
    shown = [text.get_text() for text in axes.get_yticklabels()]
    assert shown == [f"column {j}" for j in range(29, 9, -1)]
    assert axes.get_title() == "feature importance (the 20 largest of 30 features)"


def overlapping(axes):
    axes.figure.draw_without_rendering()
    low, high = axes.get_xlim()
    texts = [one for one in axes.get_xticklabels() if low <= one.get_position()[0] <= high]
    boxes = [one.get_window_extent() for one in texts if one.get_text()]
    return any(a.x1 >= b.x0 for a, b in itertools.pairwise(boxes))


def test_plots_of_large_numbers_fit_into_small_axes():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(500, 2))
    y = 400_000 + 100_000 * X[:, 0]
    model = SpanBoost(Stumps(), n=2, label_range="auto")
    predictions = model.learn_many(X, y)
    figure, (left, middle, right) = pyplot.subplots(1, 3, figsize=(8, 2.5))
    explain(model, X[0]).plot(ax=left)
    pictures.plot_predictions(y, predictions, ax=middle)
    pictures.plot_residuals(y, predictions, ax=right)
    assert not overlapping(left)
    assert not overlapping(middle)
    texts = [left.get_title(), *(one.get_text() for one in left.texts)]
    assert not any("e+" in text for text in texts)
    assert right.get_ylim()[1] > np.max(y - predictions) + 0.2 * np.ptp(y - predictions)
    pyplot.close(figure)


def test_the_colour_bar_is_as_high_as_the_plot():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    values = np.random.default_rng(0).normal(size=3000)
    axes = pictures.plot_predictions(values, values)
    axes.figure.draw_without_rendering()
    (bar,) = axes.child_axes
    plot, colours = axes.get_window_extent(), bar.get_window_extent()
    assert (colours.y0, colours.y1) == pytest.approx((plot.y0, plot.y1))
    pyplot.close("all")
