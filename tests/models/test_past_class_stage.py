"""AutoBoost with classes of earlier rows: gains, no losses, and the same bits in any blocks."""

import numpy as np
import pytest

from spanboost import AutoBoost, ExpertTeam, LinearSGD, Trees, load, save
from spanboost.errors import ModelFileError
from spanboost.losses import Softmax
from spanboost.models.budgets import EXPERTS, Expert
from spanboost.models.past_class_stage import MOST


@pytest.fixture(autouse=True)
def small_experts(monkeypatch):
    """A default budget of small experts, which take little time."""
    small = {"depth": 3, "candidates": 8, "evidence": 1.0, "grace": 8, "delay": 2}
    experts = Expert("trees", Trees, small, 4, 0.5), Expert("linear", LinearSGD, {})
    monkeypatch.setitem(EXPERTS, "default", experts)


def stream(rows, stay=0.8, classes=4, seed=0):
    """Return rows that say a little about their class, and classes that often stay the same."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, rows)
    for t in range(1, rows):
        y[t] = y[t - 1] if rng.random() < stay else y[t]
    X = rng.normal(size=(rows, 3)) + 1.5 * np.eye(classes)[y][:, :3]
    return X.astype(np.float32), y


def log_loss(scores, y):
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    return -np.log(chances[np.arange(len(y)), y]).mean()


def padded(scores, classes=4):
    return np.pad(scores, ((0, 0), (0, classes - scores.shape[1])), constant_values=-690)


def in_blocks(model, X, y, size):
    found = [model.learn_many(X[a : a + size], y[a : a + size]) for a in range(0, len(y), size)]
    return np.concatenate([padded(one) for one in found])


def test_classes_that_stay_are_predicted_from_the_last_one():
    X, y = stream(2500, stay=0.6)
    with_past, without = AutoBoost("softmax"), AutoBoost("softmax", past=False)
    scores, plain = with_past.learn_many(X, y), without.learn_many(X, y)
    half = slice(1250, None)
    assert log_loss(scores[half], y[half]) < 0.85 * log_loss(plain[half], y[half])
    last = np.mean(y[1250:] == y[1249:-1])
    assert np.mean(scores[half].argmax(axis=1) == y[half]) > last + 0.02


def test_shuffled_classes_cost_little():
    X, y = stream(3000, stay=0.0)
    scores = AutoBoost("softmax").learn_many(X, y)
    plain = AutoBoost("softmax", past=False).learn_many(X, y)
    assert log_loss(scores, y) < 1.005 * log_loss(plain, y)


def test_a_season_of_classes_is_found():
    rng = np.random.default_rng(0)
    y = np.tile(rng.integers(0, 4, 7), 300)
    X = rng.normal(size=(len(y), 2))
    found = AutoBoost("softmax").learn_many(X, y).argmax(axis=1)
    assert np.mean((found == y)[1000:]) > 0.97


@pytest.mark.parametrize("loss", ["softmax", Softmax(4)], ids=str)
def test_blocks_threads_and_files_do_not_matter(loss, tmp_path):
    X, y = stream(700)
    y[:200] %= 3  # the last class appears late
    expected = padded(AutoBoost(loss).learn_many(X, y))
    single = AutoBoost(loss)
    single.threads = 1
    known = expected > -600
    np.testing.assert_array_equal(in_blocks(single, X, y, 90)[known], expected[known])
    model = AutoBoost(loss)
    for a in range(0, 700, 150):
        model.learn_many(X[a : a + 150], y[a : a + 150])
        save(model, tmp_path / "model.sb")
        model = load(tmp_path / "model.sb")
    np.testing.assert_array_equal(model.predict_many(X), single.predict_many(X))
    assert [model.predict_one(x).tolist() for x in X[:5]] == single.predict_many(X[:5]).tolist()
    if loss != "softmax":
        team = ExpertTeam(AutoBoost(loss), workers=2)
        np.testing.assert_array_equal(in_blocks(team, X, y, 90), expected)


def test_keys_have_classes_of_their_own():
    rng = np.random.default_rng(0)
    shops, y = rng.integers(0, 6, 3000), np.zeros(3000, np.int64)
    last = rng.integers(0, 4, 6)
    for t, shop in enumerate(shops):
        if rng.random() < 0.1:
            last[shop] = rng.integers(0, 4)
        y[t] = last[shop]
    rows = [{"shop": f"s{shop}", "x": float(rng.normal())} for shop in shops]
    found = AutoBoost("softmax", key="shop").learn_many(rows, y).argmax(axis=1)
    plain = AutoBoost("softmax").learn_many(rows, y).argmax(axis=1)
    assert np.mean((found == y)[1000:]) > 0.85 > np.mean((plain == y)[1000:])


def test_a_late_label_is_learned_with_what_was_known_before():
    X, y = stream(1200)
    late, early = AutoBoost("softmax"), AutoBoost("softmax")
    right, waiting = [], []
    for t in range(1200):
        if len(waiting) == 3:
            late.learn_many(*waiting.pop(0))
        rows = late.with_past(X[t : t + 1])
        right.append(late.predict_many(rows).argmax() == y[t])
        waiting.append((rows, y[t : t + 1]))
    found = early.learn_many(X, y).argmax(axis=1)
    assert 0.5 < np.mean(right[600:]) < np.mean((found == y)[600:]) - 0.03


def test_many_classes_have_no_past():
    X, y = stream(600, classes=4)
    y = y + MOST * (np.arange(600) > 300)
    with_past, without = AutoBoost("softmax"), AutoBoost("softmax", past=False)
    np.testing.assert_array_equal(with_past.learn_many(X, y)[310:], without.learn_many(X, y)[310:])


def test_past_classes_are_optional():
    assert AutoBoost("softmax", budget="fast").past_stage is None
    assert AutoBoost("softmax", past=False).past_stage is None
    assert AutoBoost("softmax").without_past().past_stage is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("past.classes.totals", np.full(4, -1.0)),
        ("past.classes.weights", np.full(3, 9.0)),
        ("past.classes.counts", np.zeros((2, 3, 3))),
        ("past.labels.season", np.array([10**6])),
        ("past.other", np.zeros(1)),
    ],
)
def test_a_forged_past_is_refused(name, value):
    X, y = stream(60)
    model = AutoBoost("softmax")
    model.learn_many(X, y)
    tensors = {key: array.copy() for key, array in model.tensors()} | {name: value}
    with pytest.raises((ModelFileError, KeyError)):
        AutoBoost.restore(model.header(), tensors)


@pytest.mark.parametrize("classes", [-1, "3", MOST + 1])
def test_a_forged_number_of_classes_is_refused(classes):
    X, y = stream(60)
    model = AutoBoost("softmax")
    model.learn_many(X, y)
    header = model.header()
    header["past"]["classes"] = classes
    with pytest.raises(ModelFileError, match="number of classes"):
        AutoBoost.restore(header, {key: array.copy() for key, array in model.tensors()})
