"""Metrics of intervals and quantiles, compared with plain loops and with integrals."""

import json
import math
from contextlib import closing
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.metrics import mean_pinball_loss

from spanboost import IntervalMetrics, QuantileMetrics, pictures
from spanboost.analysis.metrics.interval_tape import IntervalTape
from spanboost.analysis.metrics.of_intervals import crps, pinball_losses
from spanboost.models.quantiles.curves import LEVELS as DEFAULT_LEVELS

LEVELS = [0.1, 0.5, 0.9]


def outcomes(rows=300, seed=0):
    """Return labels, quantiles of LEVELS, and weights that are multiples of 1/4."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=rows)
    quantiles = np.sort(rng.normal(size=(rows, 3)), axis=1)
    return y, quantiles, rng.integers(0, 8, rows) / 4


def test_the_pinball_loss_is_that_of_scikit_learn():
    y, quantiles, weights = outcomes()
    found = np.average(pinball_losses(y, quantiles, LEVELS), axis=0, weights=weights)
    expected = [
        mean_pinball_loss(y, quantiles[:, k], sample_weight=weights, alpha=level)
        for k, level in enumerate(LEVELS)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_crps_is_that_of_the_uniform_distribution():
    levels = (np.arange(2000) + 0.5) / 2000
    labels = np.array([-0.5, 0.0, 0.3, 1.0, 1.5])
    found = crps(labels, np.tile(levels, (5, 1)), levels)
    grid = np.linspace(-1, 2, 30_001)  # the integral of (F(z) - [z >= y])^2
    cdf = np.clip(grid, 0, 1)
    expected = [np.trapezoid((cdf - (grid >= y)) ** 2, grid) for y in labels]
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_intervals_match_a_plain_loop():
    y, quantiles, weights = outcomes()
    ends = quantiles[:, [0, 2]]
    ends[7], ends[9] = [-math.inf, 0.2], [-math.inf, math.inf]
    metrics = IntervalMetrics(0.8)
    metrics.add(y, ends, weights)
    inside = width = loss = finite = total = 0.0
    for label, (low, high), weight in zip(y, ends, weights, strict=True):
        total += weight
        inside += weight * (low <= label <= high)
        if math.isfinite(high - low):
            finite += weight
            width += weight * (high - low)
            below, above = max(low - label, 0), max(label - high, 0)
            # an interval loses a tenth of its half width, and 1 for each unit beyond an end
            loss += weight * (0.05 * (high - low) + 0.5 * (below + above))
    assert metrics.results() == pytest.approx(
        {
            "coverage": inside / total,
            "width": width / finite,
            "pinball_loss": loss / finite,
            "infinite": 1 - finite / total,
        }
    )
    assert metrics.results()["infinite"] > 0


@pytest.mark.parametrize("make", [lambda: IntervalMetrics(0.8), lambda: QuantileMetrics(LEVELS)])
@given(first=st.integers(0, 300))
def test_blocks_sums_and_states_give_the_same_metrics(make, first):
    y, quantiles, weights = outcomes()
    whole, parts, second = make(), make(), make()
    columns = [0, 2] if isinstance(whole, IntervalMetrics) else [0, 1, 2]
    quantiles = quantiles[:, columns]
    whole.add(y, quantiles, weights)
    parts.add(y[:first], quantiles[:first], weights[:first])
    again = type(parts)(parts.levels if len(columns) > 2 else 0.8, parts.state())
    second.add(y[first:], quantiles[first:], weights[first:])
    again.add(y[first:], quantiles[first:], weights[first:])
    assert json.loads(json.dumps(again.state())) == whole.state()
    both = parts + second
    assert both.rows == 300
    assert both.results() == pytest.approx(whole.results(), rel=1e-12)


def test_metrics_of_no_rows_are_undefined():
    assert set(IntervalMetrics(0.9).results().values()) == {None}
    assert set(QuantileMetrics([0.5]).results().values()) == {None}


def test_different_intervals_cannot_be_added():
    with pytest.raises(ValueError, match=r"different coverages: 0.8 and 0.9"):
        IntervalMetrics(0.8) + IntervalMetrics(0.9)
    with pytest.raises(ValueError, match="different levels"):
        QuantileMetrics([0.5]) + QuantileMetrics([0.4])


def tape_of(inside, coverage=0.9):
    """Return a tape of one model whose intervals contain the label where `inside` says so."""
    tape = IntervalTape([coverage], 1)
    y = np.where(inside, 0.0, 5.0)
    ends = np.linspace(-1, 1, len(tape.levels))
    rows = len(y)
    tape.extend(y, np.ones(rows), [np.zeros(rows)], [np.tile(ends, (rows, 1))])
    return tape


def test_windows_count_those_within_five_points():
    inside = np.ones(3500, bool)
    inside[:150] = False  # 0.85, 1 and 0.9, and 500 rows that are no window
    inside[2000:2100] = False
    inside[3000:] = False
    with closing(tape_of(inside)) as tape:
        found = tape.windows(0.9)
    assert found == (1000, 3, 1.0, pytest.approx(2 / 3))


def test_a_short_stream_is_one_window():
    with closing(tape_of(np.arange(10) > 0)) as tape:
        assert tape.windows(0.9) == (10, 1, 0.9, 1.0)


def test_intervals_may_have_the_shape_of_estimators():
    y, ends = np.arange(300.0), np.zeros((300, 2, 2))
    ends[:, 0], ends[:, 1] = (y - 1)[:, None], (y + 1)[:, None]
    plain, other = IntervalMetrics(), IntervalMetrics()
    plain.add(y, ends[:, :, 0])
    other.add(y, ends[:, :, :1])
    assert plain.results() == other.results()
    assert pictures.plot_intervals(y, ends[:, :, :1], ax=Figure().subplots(1, 2))
    for use in (pictures.plot_intervals, IntervalMetrics().add):
        with pytest.raises(ValueError, match=r"\[rows, 2\] .*\[300, 2, 2\].*intervals\[:, :, k\]"):
            use(y, ends)
        with pytest.raises(ValueError, match=r"shape \[rows, 2\] \(got \[300\]\)$"):
            use(y, y)


def test_labels_in_a_column_count_as_labels():
    y, quantiles, weights = outcomes()
    for make, columns in (
        (lambda: IntervalMetrics(0.8), [0, 2]),
        (lambda: QuantileMetrics(LEVELS), [0, 1, 2]),
    ):
        flat, column = make(), make()
        flat.add(y, quantiles[:, columns], weights)
        column.add(y[:, None], quantiles[:, columns], weights[:, None])
        assert column.state() == flat.state()


@pytest.mark.parametrize(
    ("labels", "intervals", "weights", "message"),
    [
        ([1.0, 2.0], [[0.0, 1.0]], None, "1 rows but 2 labels"),
        ([[1.0, 2.0]], [[0.0, 1.0]], None, "labels must be numbers, 1 for each row"),
        ([math.nan], [[0.0, 1.0]], None, r"row 0: the label must be finite \(got nan\)"),
        ([1.0, math.inf], [[0.0, 1.0]] * 2, None, r"row 1: the label must be finite \(got inf\)"),
        (
            [1.0, 2.0],
            [[0, 1], [3, 2]],
            None,
            r"row 1: the interval must be \(low, high\) \(got 3, 2\)",
        ),
        ([1.0], [[0.0, math.nan]], None, "row 0: an end of the interval is NaN"),
        ([1.0], [[0.0, 1.0, 2.0]], None, r"shape \[rows, 2\] \(got \[1, 3\]\)"),
        ([1.0], [[0.0, 1.0]], [-1.0], "row 0: the weight must be between 0 and"),
        ([1.0], [[0.0, 1.0]], [1.0, 1.0], "1 rows but 2 weights"),
    ],
)
def test_bad_intervals_labels_and_weights_are_refused(labels, intervals, weights, message):
    metrics = IntervalMetrics(0.8)
    with pytest.raises(ValueError, match=message):
        metrics.add(labels, intervals, weights)
    assert metrics.state() == IntervalMetrics(0.8).state()
    if weights is None:
        with pytest.raises(ValueError, match=message):
            pictures.plot_intervals(labels, intervals, ax=Figure().subplots(1, 2))


@pytest.mark.parametrize(
    "use", [crps, pinball_losses, lambda y, q, p: QuantileMetrics(p).add(y, q)]
)
def test_bad_quantiles_are_refused(use):
    for labels, quantiles, message in (
        ([1.0, 2.0], [[1.0, 2.0, 3.0]], "1 rows but 2 labels"),
        ([math.nan], [[1.0, 2.0, 3.0]], "row 0: the label must be finite"),
        ([1.0], [[1.0, 2.0]], r"\[rows, 3\], with a column for each level \(got \[1, 2\]\)"),
        ([1.0], [1.0, 2.0, 3.0], r"\[rows, 3\], with a column for each level \(got \[3\]\)"),
        ([1.0], [[1.0, math.nan, 3.0]], "row 0: a quantile is NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            use(labels, quantiles, LEVELS)


@pytest.mark.parametrize("levels", [[0.9, 0.1], [0.5, 0.5], []])
def test_levels_that_do_not_increase_are_refused(levels):
    with pytest.raises(ValueError, match="levels must be increasing and not empty"):
        QuantileMetrics(levels)
    with pytest.raises(ValueError, match="levels must be increasing and not empty"):
        crps([1.0], [[1.0] * len(levels)], levels)


def test_the_crps_of_the_default_levels_is_slightly_low_for_a_normal_distribution():
    normal, shares = NormalDist(), (np.arange(20_000) + 0.5) / 20_000
    labels = [normal.inv_cdf(share) for share in shares]
    quantiles = np.tile([normal.inv_cdf(level) for level in DEFAULT_LEVELS], (len(labels), 1))
    exact = 1 / math.sqrt(math.pi)  # of labels from the distribution itself
    assert crps(labels, quantiles, DEFAULT_LEVELS).mean() / exact == pytest.approx(0.994, abs=1e-3)


def test_metrics_of_intervals_show_their_results():
    metrics = IntervalMetrics(0.8)
    assert repr(metrics) == "<IntervalMetrics: 0 rows>"
    metrics.add([1.0, 9.0], [[0.0, 2.0], [2.0, 8.0]])
    assert repr(metrics).startswith("<IntervalMetrics: 2 rows; coverage 0.5, width 4, ")
    quantiles = QuantileMetrics([0.5])
    quantiles.add([1.0], [[2.0]])
    assert repr(quantiles).startswith("<QuantileMetrics: 1 row; ")


def test_the_legend_covers_no_labels():
    y = np.arange(300.0)
    figure = Figure()
    axes = figure.subplots(1, 2)
    band, _ = pictures.plot_intervals(y, np.column_stack([y - 1, y + 1]), ax=axes)
    FigureCanvasAgg(figure).draw()
    assert not band.get_legend().get_window_extent().overlaps(band.get_window_extent())


def test_the_plot_shows_the_coverage_of_windows(tmp_path):
    y = np.arange(600.0)
    intervals = np.column_stack([y - 1, y + np.where(y < 300, 1.0, -0.5)])
    intervals[-1] = -math.inf, math.inf
    path = tmp_path / "plot.svg"
    band, over_time = pictures.plot_intervals(y, intervals, y, coverage=0.8, path=path)
    assert path.read_bytes().startswith(b"<?xml")
    shown = over_time.lines[0].get_ydata()
    assert (shown[:30] == 1).all()
    assert (shown[30:-1] == 0).all()
    assert shown[-1] == 0.1
    assert "last 200 rows" in band.get_title()
    with pytest.raises(ValueError, match="coverage must be between 0 and 1"):
        pictures.plot_intervals(y, intervals, coverage=90)
