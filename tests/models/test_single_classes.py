"""Single rows with one of two classes take the fast path, with the result of a block."""

import numpy as np
import pytest

from spanboost import AutoBoost, DataError, HullBoost, LinearSGD, SpanBoost, Trees

MODELS = {
    "auto": lambda: AutoBoost(loss="logistic"),
    "fast": lambda: AutoBoost(loss="logistic", budget="fast"),
    "trees": lambda: SpanBoost(Trees(depth=3), n=10, eta=0.1, loss="logistic", replay=2),
    "hull": lambda: HullBoost(LinearSGD(), n=3, loss="logistic"),
    "n chosen online": lambda: SpanBoost(LinearSGD(), n="auto", loss="logistic"),
}
ROWS = 90


@pytest.fixture
def rows():
    X = np.random.default_rng(0).uniform(-1, 1, (ROWS, 3))
    return [dict(zip("abc", x, strict=True)) for x in X.tolist()]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("low", [-1, 0, False, -1.0])
def test_learn_one_does_what_learn_many_does(rows, name, low):
    single, block = MODELS[name](), MODELS[name]()
    y = [1 if x["a"] * x["b"] > 0 else low for x in rows]
    answers = block.learn_many(rows, y)
    found = [single.learn_one(x, label) for x, label in zip(rows, y, strict=True)]
    np.testing.assert_array_equal(found, answers)
    assert single.header() == block.header()
    expected = dict(block.tensors())
    for key, value in single.tensors():
        np.testing.assert_array_equal(value, expected[key], err_msg=key)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("label", [0.5, 2, -3, float("nan"), float("inf"), None])
def test_other_labels_are_refused_and_change_nothing(rows, name, label):
    model, same = MODELS[name](), MODELS[name]()
    y = [1 if x["a"] > 0 else -1 for x in rows]
    for one in (model, same):
        one.learn_many(rows[:60], y[:60])
        one.learn_one(rows[60], y[60])
    with pytest.raises((DataError, ValueError, TypeError)):
        model.learn_one(rows[61], label)
    after = [one.learn_one(rows[62], y[62]) for one in (model, same)]
    assert after[0] == after[1]
    assert model.header() == same.header()
