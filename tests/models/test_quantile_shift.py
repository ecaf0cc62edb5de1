"""The shift of quantiles: the share of labels below them, files, exports and further passes."""

import copy
import math

import numpy as np
import pytest
from compiled_c import CompiledModel, needs_compiler
from forged import changed, file_arrays
from onnx_session import OnnxModel

from spanboost import AutoBoost, LinearSGD, ModelFileError, SpanBoost, explain, load, save
from spanboost.compiling.kernels import plain
from spanboost.core.quantile_shift import (
    FOLLOW,
    LEAST_STEP,
    NEAREST,
    PRIOR,
    STEP,
    new_shift,
)
from spanboost.models import aggregation
from spanboost.models.compact import compact_model
from spanboost.sklearn import BoostingRegressor

ROWS = 4000
KINDS = ("normal", "skewed", "spread", "drift", "exact")
ONLINE = {"recent": False, "past": False}


def stream(kind, seed=1, rows=ROWS):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 5))
    y = 3 * X[:, 0] + np.sign(X[:, 1] * X[:, 2])
    if kind == "normal":
        y += rng.normal(size=rows)
    elif kind == "skewed":
        y = 100 * np.exp(0.15 * y + 0.7 * rng.normal(size=rows))
    elif kind == "spread":
        y += (0.2 + 2 * abs(X[:, 3])) * rng.normal(size=rows)
    elif kind == "drift":
        late = np.arange(rows) >= rows // 2
        y += np.where(late, 2, 0.3) * rng.normal(size=rows) + 4 * np.arange(rows) / rows
    else:
        y += 1000 + 0.01 * rng.normal(size=rows)
    return X, y


def pinball(y, forecasts, tau):
    return float(np.maximum(tau * (y - forecasts), (tau - 1) * (y - forecasts)).mean())


def without_shift(monkeypatch):
    """Let new models have no shift."""
    monkeypatch.setattr(aggregation, "new_shift", lambda tau: new_shift(None))


@pytest.mark.slow
@pytest.mark.parametrize("tau", [0.1, 0.9])
@pytest.mark.parametrize("budget", ["fast", "default"])
def test_the_share_of_labels_below_and_the_loss(budget, tau, monkeypatch):
    late = slice(ROWS // 4, None)
    shares, losses = {}, {}
    for shifted in (True, False):
        if not shifted:
            without_shift(monkeypatch)
        for kind in KINDS:
            X, y = stream(kind)
            model = AutoBoost(loss=f"quantile:{tau}", budget=budget, **ONLINE)
            forecasts = model.learn_many(X, y)
            shares[kind, shifted] = float((y < forecasts)[late].mean())
            losses[kind, shifted] = pinball(y[late], forecasts[late], tau)
    for kind in KINDS:
        assert shares[kind, True] == pytest.approx(tau, abs=0.03 if kind != "exact" else 0.04)
        assert losses[kind, True] < 1.02 * losses[kind, False]
    assert np.mean([losses[kind, True] / losses[kind, False] for kind in KINDS]) < 1.005
    missed = {
        shifted: np.mean([abs(shares[kind, shifted] - tau) for kind in KINDS])
        for shifted in (True, False)
    }
    assert missed[True] < missed[False] / 2


@pytest.mark.slow
@pytest.mark.parametrize("passes", ["auto", 1, 4])
def test_the_share_of_labels_below_after_fit(passes):
    missed = []
    for kind in ("normal", "skewed", "spread"):
        X, y = stream(kind, seed=3, rows=8000)
        for tau in (0.1, 0.9):
            model = BoostingRegressor(loss=f"quantile:{tau}", random_state=0, n_epochs=passes)
            share = (y[ROWS:] < model.fit(X[:ROWS], y[:ROWS]).predict(X[ROWS:])).mean()
            missed.append(share - tau)
    assert np.abs(missed).max() < 0.05
    assert np.abs(missed).mean() < 0.015


def small(tau=0.1):
    return AutoBoost(loss=f"quantile:{tau}", budget="fast", **ONLINE)


def test_the_result_does_not_depend_on_blocks_threads_and_restarts(tmp_path):
    X, y = stream("spread", rows=300)
    whole = small().learn_many(X, y)
    threads = small()
    threads.threads = 1
    assert (threads.learn_many(X, y) == whole).all()
    model, parts = small(), []
    for first, last in ((0, 1), (1, 90), (90, 91), (91, 200), (200, 300)):
        if last - first == 1:
            parts.append([model.learn_one(X[first], y[first])])
        else:
            parts.append(model.learn_many(X[first:last], y[first:last]))
        save(model, tmp_path / "m.sb")
        model = load(tmp_path / "m.sb")
    assert (np.concatenate(parts) == whole).all()


@needs_compiler
def test_exports_and_compact_models_are_shifted(tmp_path):
    X, y = stream("normal", rows=600)
    X = X.astype(np.float32)
    model = small()
    model.learn_many(X, y)
    expected = model.predict_many(X)
    assert model.mixture.aggregator.shift.amount() != 0
    for found in (
        compact_model(model).predict_many(X),
        CompiledModel(model, tmp_path).predict_many(X),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    explained = explain(model, X[0])
    assert sum(explained.contributions.values()) + explained.base + explained.rest == (
        pytest.approx(expected[0])
    )
    assert abs(explained.rest) < 1e-5
    found = OnnxModel(model, tmp_path).predict_many(X)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def without_arrays(arrays):
    return {name: one for name, one in arrays.items() if ".shift." not in name}


def test_files_without_a_shift_start_with_none(tmp_path, monkeypatch):
    X, y = stream("normal", rows=600)
    monkeypatch.setattr(aggregation, "new_shift", lambda tau: new_shift(None))
    before = small()
    before.learn_many(X[:300], y[:300])
    save(before, tmp_path / "m.sb")
    monkeypatch.undo()
    assert not [name for name in file_arrays(tmp_path / "m.sb") if ".shift." in name]
    model = load(tmp_path / "m.sb")
    assert (model.predict_many(X) == before.predict_many(X)).all()
    assert model.mixture.aggregator.shift.amount() == 0
    model.learn_many(X[300:], y[300:])
    assert model.mixture.aggregator.shift.amount() != 0


def test_only_models_with_quantile_loss_have_the_arrays(tmp_path):
    X, y = stream("normal", rows=100)
    for loss, count in (("squared", 0), ("absolute", 0), ("quantile:0.5", 4)):
        model = AutoBoost(loss=loss, budget="fast", **ONLINE)
        model.learn_many(X, y)
        save(model, tmp_path / "m.sb")
        names = [name for name in file_arrays(tmp_path / "m.sb") if ".shift." in name]
        assert len(names) == count


@pytest.mark.parametrize(
    ("name", "value"),
    [("shift", np.inf), ("distance", -1.0), ("distance", np.inf), ("weight", -1.0), ("labels", -1)],
)
def test_forged_shifts_are_refused(name, value, tmp_path):
    X, y = stream("normal", rows=100)
    model = small()
    model.learn_many(X, y)
    save(model, tmp_path / "m.sb")

    def forge(arrays):
        arrays[f"combination.shift.{name}"][0] = value
        return arrays

    changed(tmp_path / "m.sb", tensors=forge)
    with pytest.raises(ModelFileError, match="the shift of the combined forecasts is invalid"):
        load(tmp_path / "m.sb")
    changed(
        tmp_path / "m.sb",
        tensors=lambda arrays: {
            key: one for key, one in arrays.items() if key != "combination.shift.weight"
        },
    )
    with pytest.raises(ModelFileError):
        load(tmp_path / "m.sb")


class PlainShift:
    """A shift, with lists of all labels."""

    def __init__(self, tau):
        self.tau, self.shift, self.weights = tau, 0.0, []
        self.median, self.number = {False: 0.0, True: 0.0}, {False: 0, True: 0}

    def learn(self, y, answer, weight):
        if y == answer:
            return
        above = y > answer
        self.weights.append(weight)
        self.number[above] += 1
        known, distance = self.median[above], abs(y - answer)
        factor = 1 + max(self.number[above] ** -0.5, FOLLOW)
        if known == 0:
            self.median[above] = distance
        elif distance > known:
            self.median[above] = known * factor
        else:
            self.median[above] = max(known / factor, NEAREST)
        known = [one for one in self.median.values() if one > 0]
        unit = math.sqrt(math.prod(known)) if len(known) == 2 else known[0]
        says = PRIOR + self.tau * (1 - self.tau) * len(self.weights)
        part = max(STEP / says, LEAST_STEP) * weight / np.mean(self.weights)
        self.shift += min(part, 1) * unit * (self.tau - (not above))


@pytest.mark.parametrize("tau", [0.02, 0.5, 0.9])
def test_every_step_is_that_of_a_plain_implementation(tau):
    rng = np.random.default_rng(0)
    state, oracle = new_shift(tau), PlainShift(tau)
    for t in range(500):
        y = math.floor(4 * rng.standard_cauchy()) / 4  # some are equal to the forecast
        weight = float(rng.choice([0.1, 1.0, 50.0]))
        answer = 0.0 if t % 7 == 0 else state.amount()
        state.track(y, answer, weight)
        oracle.learn(y, answer, weight)
        assert state.amount() == pytest.approx(oracle.shift, rel=1e-9)
    assert state.sound


def test_nothing_depends_on_the_units():
    rng = np.random.default_rng(0)
    one, other = new_shift(0.2), new_shift(0.2)
    for t, y in enumerate(rng.normal(size=400)):
        one.track(y, one.amount(), 1.0)
        other.track(8 * y if t < 200 else y, other.amount(), 3.0)
        if t == 199:
            other.resize(1 / 8)
    assert other.amount() == pytest.approx(one.amount())


def test_a_wild_label_moves_the_shift_by_one_step():
    rng = np.random.default_rng(0)
    state = new_shift(0.1)
    for y in rng.normal(size=1000):
        state.track(y, state.amount(), 1.0)
    before = state.amount()
    state.track(-1e300, before, 1.0)
    assert abs(state.amount() - before) < 0.01
    state.track(-1.0, before, 1e300)  # a row of huge weight
    assert abs(state.amount() - before) < 1


def test_a_further_pass_starts_the_steps_again():
    X, y = stream("normal", rows=400)
    chosen = SpanBoost(LinearSGD(), n="auto", loss="quantile:0.1", label_range="auto")
    with plain():
        for model in (small(), chosen):
            model.learn_many(X, y)
            state = model.mixture.aggregator.shift
            amount, labels = state.amount(), int(state.labels.sum())
            assert labels > 300
            model.learn_again(X, y)
            assert (state.amount(), int(state.labels.sum())) == (amount, 0)
            twin = copy.deepcopy(model)
            twin.learn_many(X[:1], y[:1])
            assert twin.mixture.aggregator.shift.labels.sum() == 1
