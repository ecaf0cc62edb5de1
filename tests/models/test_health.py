"""The health of models: it counts what went wrong, and bad values leave no NaN behind."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanboost import (
    AutoBoost,
    HullBoost,
    LinearSGD,
    Network,
    Ridge,
    SpanBoost,
    Trees,
    load,
    save,
)
from spanboost.models.committee import Committee
from spanboost.models.health import Health
from spanboost.parallel.team import Team
from spanboost.rows.labels import LabelHealth

pytestmark = pytest.mark.filterwarnings("ignore::spanboost.LabelWarning")

MODELS = {
    "auto": lambda: AutoBoost(budget="fast"),
    "trees": lambda: SpanBoost(Trees(), n=8, label_range="auto"),
    "linear": lambda: SpanBoost(LinearSGD(), n=4, label_range="auto"),
    "network": lambda: SpanBoost(Network(), n=2, label_range="auto"),
    "ridge": lambda: SpanBoost(Ridge(), n=2, label_range="auto"),
}
ROWS = 600


def stream(rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 3))
    return X, 3 * X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(0, 0.1, rows)


def booster(learner, **parameters):
    return SpanBoost(learner, n=2, label_range="auto", **parameters)


def learned(model, X, y):
    model.learn_many(X, y)
    return model


# Good models


@pytest.mark.parametrize("name", MODELS)
def test_a_model_without_problems_is_good(name):
    model, (X, y) = MODELS[name](), stream()
    assert model.health.good
    assert eval(repr(model)).parameters() == model.parameters()
    model.learn_many(X, y)
    health = model.health
    assert health.good
    assert repr(health) == "<Health: good, 600 rows learned>"
    assert "600 rows learned>" in repr(model)
    assert health.labels == model.labels.health
    assert health.weights == model.weights_
    assert (len(health.weights) > 0) == (name == "auto")


@pytest.mark.parametrize("label_range", [(-10, 10), "growing"])
def test_other_label_ranges_clip_nothing(label_range):
    X, y = stream()
    model = learned(SpanBoost(LinearSGD(), n=2, label_range=label_range), X, y)
    assert model.health == Health(LabelHealth(ROWS), {}, 0)


def test_health_is_json():
    X, y = stream()
    y[300] = 1e9
    model = learned(AutoBoost(budget="fast"), X, y)
    found = json.loads(json.dumps(model.health.to_json(), allow_nan=False))
    assert found == {
        "good": False,
        "problems": ["1 of 600 labels clipped"],
        "labels": model.labels.health._asdict() | {"clipped_share": 1 / 600},
        "weights": model.weights_,
        "nans": 0,
    }


# Problems


def test_clipped_labels_and_new_units_are_named():
    X, y = stream()
    y[300:] = 1e6 * (1 + y[300:])
    model = learned(booster(LinearSGD()), X, y)
    labels = model.labels.health
    text = f"{labels.clipped} of 600 labels clipped, new units of the labels at row "
    assert labels.clipped > 0
    assert repr(model.health) == f"<Health: {text}{labels.new_units}>"
    assert repr(model).endswith(f": 600 rows learned, {text}{labels.new_units}>")


def test_health_says_that_the_first_labels_are_not_checked():
    X, y = stream()
    model = learned(booster(LinearSGD()), X[:63], y[:63])
    assert model.health.labels.unchecked == 63
    text = "good, 63 rows learned; wild labels are recognised after 64 rows"
    assert repr(model.health) == f"<Health: {text}>"
    model.learn_one(X[63], y[63])
    assert model.health.labels.unchecked == 0
    assert repr(model.health) == "<Health: good, 64 rows learned>"


def test_a_wild_label_among_the_first_is_named_as_such():
    X, y = stream()
    y[10] = 1e9
    model = learned(booster(LinearSGD()), X, y)
    assert model.health.problems() == ["a few of the first 64 labels are far outside the others"]


def test_a_fixed_range_has_no_unchecked_labels():
    X, y = stream()
    model = SpanBoost(LinearSGD(), n=2, label_range=(-9, 9))
    model.learn_many(X[:5], y[:5])
    assert model.health.labels.unchecked == 0


def test_large_numbers_have_separators():
    health = Health(LabelHealth(40_000, 3_000, new_units=1_500), {}, 2_000)
    assert health.problems() == [
        "3,000 of 40,000 labels clipped",
        "new units of the labels at row 1,500",
        "2,000 NaN in the state",
    ]


@given(number=st.integers(0, 8))
@settings(max_examples=5)
def test_every_nan_is_counted(number):
    X, y = stream(100)
    linear, trees, auto = (learned(MODELS[name](), X, y) for name in ("linear", "trees", "auto"))
    for model, table in (
        (linear, linear.core.state.bank.inputs.W),  # [4, 4]
        (trees, trees.core.state.bank.mean[:8]),  # the roots of 8 trees
        (auto, auto.experts["network"].core.state.bank.V),
    ):
        table.reshape(-1)[:number] = np.nan
        assert model.health.nans == number
        assert model.health.good == (number == 0)


def test_the_aggregator_is_part_of_the_state():
    X, y = stream()
    model = learned(AutoBoost(budget="fast"), X, y)
    name, array = next(
        (name, array)
        for name, array in model.tensors()
        if name.startswith("combination.") and array.dtype.kind == "f"
    )
    array.flat[0] = np.nan
    assert np.isnan(dict(model.tensors())[name].flat[0])
    assert model.health.nans == 1
    assert repr(model.health) == "<Health: 1 NaN in the state>"


def test_missing_values_in_rows_for_replay_are_not_counted():
    X, y = stream()
    X[:, 1] = np.nan
    model = learned(booster(Trees(), replay=2, memory=100), X, y)
    assert np.isnan(dict(model.tensors())["memory.X"]).sum() == 100
    assert model.health.good


class Zero:
    """A learner that is code: its state cannot be read."""

    def predict(self, x):
        return 0.0

    def update(self, x, loss):
        pass


def test_the_state_of_code_is_unknown():
    X, y = stream(50)
    model = SpanBoost(Zero(), n=1, label_range=(-10, 10))
    assert model.health.nans == 0
    model.learn_many(X, y)
    assert model.health.nans is None
    assert model.health.good


# Ensembles


def test_a_committee_adds_up_the_labels_of_its_members():
    (X, y), members = stream(), [booster(Trees(), seed=k) for k in range(3)]
    members[0].learn_many(X[:500], y[:500])
    members[1].learn_many(X[:300], np.where(np.arange(300) == 200, 1e9, y[:300]))
    members[2].learn_many(X[:400], np.where(np.arange(400) % 200 == 100, 1e9, y[:400]))
    committee, each = Committee(members), [member.labels.health for member in members]
    assert [one.clipped for one in each] == [0, 1, 2]
    health = committee.health
    assert (health.labels.learned, health.labels.clipped, health.nans) == (1200, 3, 0)
    assert health.labels.widened == max(one.widened for one in each)
    assert health.labels.shrunk is None
    assert repr(committee).startswith("<Committee of 3 SpanBoost(Trees(")
    assert repr(committee).endswith("1,200 rows learned, 3 of 1,200 labels clipped>")
    members[1].core.state.bank.mean[0, 0] = np.nan
    assert committee.health.nans == 1


def test_an_averaged_model_counts_the_labels_of_all_workers():
    X, y = stream()
    y[[300, 301, 450]] = 1e9
    team = Team(booster(LinearSGD()), 2, 50)
    team.learn_many(X, y)
    health = team.model().health
    assert (health.labels.learned, health.labels.clipped, health.nans) == (600, 3, 0)


# Blocks of any size


@settings(max_examples=20)
@given(
    wild=st.lists(st.tuples(st.integers(64, 299), st.sampled_from([1e4, -1e9, 1e30])), max_size=5),
    ends=st.lists(st.integers(1, 299), max_size=4, unique=True),
)
def test_health_does_not_depend_on_blocks(wild, ends):
    X, y = stream(300)
    for row, label in wild:
        y[row] = label
    whole, blocks, single = (HullBoost(LinearSGD(), n=2, label_range="auto") for _ in range(3))
    whole.learn_many(X, y)
    for first, last in zip([0, *sorted(ends)], [*sorted(ends), 300], strict=True):
        blocks.learn_many(X[first:last], y[first:last])
    for x, label in zip(X, y, strict=True):
        single.learn_one(x, label)
    assert whole.health == blocks.health == single.health
    assert whole.health.labels.clipped == len({row for row, _ in wild})


# Bad values


def wild_feature():
    X, y = stream()
    X[200, 0], X[300:350, 1] = 1e30, -1e30
    return X, y


def constant_label():
    return stream()[0], np.full(ROWS, 7.0)


def equal_labels_that_change():
    X, y = stream()
    y[:300] = 7.0
    return X, y


def ids():
    X, y = stream()
    return np.column_stack([X, 1e15 + np.arange(ROWS)]), y


def missing_column():
    X, y = stream()
    return np.column_stack([X, np.full(ROWS, np.nan)]), y


def wild_everything():
    X, y = wild_feature()
    y[[100, 400]] = 1e300, -1e300
    y[500:] *= 1e9
    return X, y


BAD = [
    wild_feature,
    constant_label,
    equal_labels_that_change,
    ids,
    missing_column,
    wild_everything,
]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.__name__)
@pytest.mark.parametrize("name", MODELS)
def test_bad_values_leave_no_nan(name, bad, tmp_path):
    (X, y), model = bad(), MODELS[name]()
    predictions = model.learn_many(X, y)
    assert np.isfinite(predictions).all()
    assert model.health.nans == 0
    save(model, tmp_path / "model.sb")
    loaded = load(tmp_path / "model.sb")
    assert loaded.health == model.health
    for one in (model, loaded):
        one.learn_many(X[:100], y[:100])
    np.testing.assert_array_equal(loaded.predict_many(X), model.predict_many(X))
    assert np.isfinite(model.predict_many(X)).all()


@pytest.mark.parametrize("name", MODELS)
def test_a_wild_feature_value_is_forgotten(name):
    X, y = stream()
    clean, model = learned(MODELS[name](), X, y), MODELS[name]()
    wild = X.copy()
    wild[200, 0] = 1e30
    model.learn_many(wild, y)
    spread = np.std(y)
    assert np.abs(model.predict_many(X) - clean.predict_many(X)).mean() < 0.1 * spread
