"""One absurd label among the first ones: states stay finite; models and intervals recover."""

import numpy as np
import pytest

from spanboost import (
    AutoBoost,
    Intervals,
    LinearSGD,
    ModelFileError,
    SpanBoost,
    Trees,
    load,
    save,
)
from spanboost.losses import Huber

pytestmark = pytest.mark.filterwarnings("ignore::spanboost.LabelWarning", "error::RuntimeWarning")
LOSSES = ["squared", "absolute", Huber(1.0), "quantile:0.9", "poisson", "gamma", "tweedie:1.5"]
SIZES, PLACES = (1e18, 1e100, 1e300, 1e-300), (0, 1, 18, 69)
BOOSTERS = {
    "linear": lambda loss: SpanBoost(LinearSGD(), n=2, loss=loss, D=6, label_range="auto"),
    "trees": lambda loss: SpanBoost(
        Trees(), n=2, loss=loss, D=6, label_range="auto", replay=2, memory=100
    ),
    "choosing": lambda loss: SpanBoost(LinearSGD(), n="auto", loss=loss, D=6, label_range="auto"),
    "auto": lambda loss: AutoBoost(loss, budget="fast"),
}


def stream(rows):
    """Return features and labels between about 3 and 30."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (rows, 3))
    return X, np.exp(2.3 + X[:, 0] + 0.1 * rng.normal(size=rows))


def check_state(model, path):
    """Assert that all arrays that are finite at first are, and that the model can be loaded."""
    limits = ("chunks", "recent", "wild", "threshold")  # infinite where there is nothing yet
    for name, array in model.tensors():
        if array.dtype.kind == "f":
            assert not np.isnan(array).any(), name
            assert np.isfinite(array).all() or name.rpartition(".")[2] in limits, name
    save(model, path)
    return load(path)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind != "linear")) for kind in BOOSTERS]
)
def test_a_wild_label_leaves_a_finite_state(kind, loss, tmp_path):
    X, y = stream(300)
    for size in SIZES:
        for place in PLACES:
            labels = y.copy()
            labels[place] = size
            model = BOOSTERS[kind](loss)
            model.learn_many(X[:200], labels[:200])
            again = check_state(model, tmp_path / "m.sb")
            rest = X[200:], labels[200:]
            np.testing.assert_array_equal(again.learn_many(*rest), model.learn_many(*rest))


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie:1.5"])
def test_the_combination_of_autoboost_stays_finite(loss, tmp_path):
    X, y = stream(80)
    for size in (1e100, 1e300, 1e-300):
        y[0] = size
        model = AutoBoost(loss, budget="fast")
        model.learn_many(X, y)
        check_state(model, tmp_path / "m.sb")


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("loss", ["squared", "poisson", "gamma", "tweedie:1.5"])
def test_predictions_recover(loss, size):
    X, y = stream(3000)
    clean = AutoBoost(loss, budget="fast").learn_many(X, y)
    y[0] = size
    found = AutoBoost(loss, budget="fast").learn_many(X, y)
    errors = [np.abs(one - y)[1500:].mean() for one in (clean, found)]
    assert errors[1] <= 1.1 * errors[0]


def test_a_model_with_nan_is_not_saved(tmp_path):
    X, y = stream(100)
    model, path = SpanBoost(LinearSGD(), n=2, label_range="auto"), tmp_path / "m.sb"
    model.learn_many(X, y)
    save(model, path)
    before = path.read_bytes()
    model.core.state.bank.inputs.W[...] = np.nan
    with pytest.raises(
        ModelFileError, match=r"cannot be saved because bank\.inputs\.W contains NaN"
    ):
        save(model, path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["m.sb"]


@pytest.mark.parametrize("size", [1e18, 1e100, 1e300])
@pytest.mark.parametrize("loss", ["squared", "absolute", "poisson"])
def test_intervals_recover_from_a_wild_first_label(loss, size):
    X, y = stream(3000)
    y[0] = size
    model = Intervals(BOOSTERS["linear"](loss))
    low, high = model.learn_intervals(X, y, 0.9).T
    assert np.isfinite(low[1000:]).all()
    assert np.isfinite(high[1000:]).all()
    assert np.mean(((low <= y) & (y <= high))[1000:]) == pytest.approx(0.9, abs=0.02)
    clean = Intervals(BOOSTERS["linear"](loss)).learn_intervals(X[1:], y[1:], 0.9)
    width = np.median((high - low)[1000:])
    assert width <= 1.5 * np.median(np.diff(clean[1000:]))


def test_the_quantiles_start_again_at_the_same_row_in_blocks_and_rows():
    X, y = stream(400)
    y[0] = 1e300
    block, rows = (Intervals(BOOSTERS["linear"]("squared")) for _ in range(2))
    expected = block.learn_intervals(X, y, 0.9)
    found = [rows.learn_intervals(X[t : t + 1], y[t : t + 1], 0.9) for t in range(len(X))]
    np.testing.assert_array_equal(np.concatenate(found), expected)
    assert block.forecaster.residuals.counts[0] < 350


def test_files_without_counts_of_other_units_load(tmp_path):
    X, y = stream(200)
    model = Intervals(BOOSTERS["linear"]("squared"))
    model.learn_many(X, y)
    tensors = dict(model.tensors())
    del tensors["quantiles.scales.runs"]
    again = Intervals.restore(model.header(), tensors)
    np.testing.assert_array_equal(again.predict_interval(X), model.predict_interval(X))
