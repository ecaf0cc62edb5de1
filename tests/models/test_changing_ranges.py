"""Boosters whose label range widens, shrinks and changes units: `label_range="auto"`."""

import numpy as np
import pytest

from spanboost import HullBoost, LinearSGD, Network, SpanBoost, Stumps, Trees, load, save
from spanboost.losses import SquaredEuclidean
from spanboost.rows.labels import RangeChange
from spanboost.rows.replay import ReplayMemory

pytestmark = pytest.mark.filterwarnings("ignore::spanboost.LabelWarning")

MODELS = {
    "linear": lambda: SpanBoost(LinearSGD(), n=2, label_range="auto"),
    "linear around 0": lambda: SpanBoost(LinearSGD(), n=2, label_range="auto-zero"),
    "stumps": lambda: HullBoost(Stumps(), n=2, label_range="auto"),
    "network": lambda: SpanBoost(Network(hidden=2), n=2, label_range="auto"),
    "trees with replay": lambda: SpanBoost(
        Trees(depth=3, delay=2), n=3, eta=0.4, replay=1, memory=3000, label_range="auto"
    ),
    "absolute": lambda: HullBoost(LinearSGD(), n=2, loss="absolute", label_range="auto"),
    "vectors": lambda: SpanBoost(LinearSGD(), n=2, loss=SquaredEuclidean(2), label_range="auto"),
}
EVERY = pytest.mark.parametrize("name", MODELS)


def stream(d=1):
    """Labels with a large one, an absurd one, larger units and smaller units."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (5000, 3))
    y = 10 + 3 * np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=5000)
    y[20] = 45
    y[1900] = 1e9
    y[2500:3300] *= 1e3
    y[3300:] *= 1e-3
    return X, y if d == 1 else np.c_[y, -y]


def same(one, other):
    """Return whether two models are equal, bit for bit."""
    tensors, others = dict(one.tensors()), dict(other.tensors())
    return (
        one.header() == other.header()
        and tensors.keys() == others.keys()
        and all(np.array_equal(tensors[name], others[name]) for name in tensors)
    )


@EVERY
def test_blocks_of_any_size_give_the_same_model(name):
    X, y = stream(2 if name == "vectors" else 1)
    whole, split = MODELS[name](), MODELS[name]()
    expected = whole.learn_many(X, y)
    rng, answers, t = np.random.default_rng(1), [], 0
    while t < len(y):
        if rng.random() < 0.5:
            rows = range(t, min(t + 90, len(y)))
            answers += [split.learn_one(X[k].tolist(), _plain(y[k])) for k in rows]
            t += 90
        else:
            last = t + int(rng.integers(1, 300))
            answers += list(split.learn_many(X[t:last], y[t:last]))
            t = last
    np.testing.assert_array_equal(np.array(answers), expected)
    assert same(whole, split)
    assert whole.labels.health.shrunk or name == "linear around 0"
    assert whole.labels.health.new_units > 3300


def _plain(label):
    return label.tolist() if np.ndim(label) else float(label)


@EVERY
@pytest.mark.parametrize("rows", [30, 64, 1950, 2540, 3500])
def test_a_saved_model_continues_identically(name, rows, tmp_path):
    X, y = stream(2 if name == "vectors" else 1)
    model = MODELS[name]()
    model.learn_many(X[:rows], y[:rows])
    save(model, tmp_path / "model.sb")
    loaded = load(tmp_path / "model.sb")
    assert same(model, loaded)
    assert loaded.labels.health == model.labels.health
    np.testing.assert_array_equal(
        loaded.learn_many(X[rows:], y[rows:]), model.learn_many(X[rows:], y[rows:])
    )
    assert same(model, loaded)


@EVERY
def test_shrinking_by_half_does_not_change_predictions(name):
    X, y = stream(2 if name == "vectors" else 1)
    model = MODELS[name]()
    model.learn_many(X[:150], y[:150])
    labels = model.labels
    model.core.change_range(RangeChange(0, labels.centre, 8 * labels.half))
    before = model.predict_many(X)
    model.core.change_range(RangeChange(0, labels.centre, labels.half / 2))
    np.testing.assert_array_equal(model.predict_many(X), before)


@EVERY
def test_new_units_keep_the_function_in_the_units_of_the_model(name):
    X, y = stream(2 if name == "vectors" else 1)
    model = MODELS[name]()
    model.learn_many(X[:150], y[:150])
    centre, half = model.labels.centre, model.labels.half
    before = (model.predict_many(X) - centre) / half
    model.core.change_range(RangeChange(0, 5 + centre, 16 * half, exact=False))
    after = (model.predict_many(X) - (5 + centre)) / (16 * half)
    np.testing.assert_allclose(after, before, atol=1e-12)


def test_replayed_labels_stay_in_the_range():
    memory = ReplayMemory(1, 4, 0)
    memory.reserve(np.zeros((4, 1)), 2, np.float64)
    memory.labels[:4] = [[0.1, 0.2], [0.3, -0.4], [-0.5, 0.0], [0.0, 1.0]]
    memory.learned = 4
    memory.rescale(2.0)
    expected = [[0.2, 0.4], [0.6, -0.8], [-1.0, 0.0], [0.0, 1.0]]
    np.testing.assert_allclose(memory.labels[:4], expected)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("learner", [LinearSGD(), Trees(depth=4)], ids=["linear", "trees"])
@pytest.mark.parametrize("size", [300.0, 1e9, 1e30])
@pytest.mark.parametrize("place", ["one", "burst", "often"])
def test_absurd_labels_do_not_spoil_a_model(loss, learner, size, place):
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (6000, 3))
    y = 3 * X[:, 0] - 2 * X[:, 1] + 0.5 * rng.normal(size=6000)
    at = {"one": [1000], "burst": np.arange(1000, 1050), "often": np.arange(999, 6000, 1000)}
    bad = np.isin(np.arange(6000), at[place])

    def error(labels):
        model = SpanBoost(learner, n=4, loss=loss, label_range="auto")
        scored = ~bad & (np.arange(6000) >= 3000)
        return np.sqrt(np.mean((model.learn_many(X, labels) - y)[scored] ** 2))

    assert error(np.where(bad, size, y)) < 1.05 * error(y)


@pytest.mark.parametrize("factor", [1e3, 1e-3])
@pytest.mark.parametrize("learner", [LinearSGD(), Trees(depth=6)], ids=["linear", "trees"])
def test_a_change_of_scale_is_followed(factor, learner):
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (12_000, 3))
    y = 10 + 3 * np.sin(3 * X[:, 0]) + 4 * X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=12_000)
    y[8000:] *= factor
    model, fresh = (SpanBoost(learner, n=20, label_range="auto") for _ in range(2))
    errors = (model.learn_many(X, y) - y)[10_000:]
    fresh_errors = (fresh.learn_many(X[8000:], y[8000:]) - y[8000:])[2000:]
    assert np.mean(errors**2) < 1.2**2 * np.mean(fresh_errors**2)
