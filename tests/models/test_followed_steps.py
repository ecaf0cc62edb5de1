"""Intervals that follow their model in steps, in another thread."""

import threading

import numpy as np
import pytest

from spanboost import AutoBoost, HullBoost, Intervals, LinearSGD, SpanBoost, Trees
from spanboost.models import followed_steps

pytestmark = pytest.mark.filterwarnings("ignore::spanboost.LabelWarning")
MODELS = {
    "linear": lambda: HullBoost(LinearSGD(), n=3, label_range="auto"),
    "trees": lambda: SpanBoost(Trees(depth=4), n=10, eta=0.1, label_range="auto", replay=1),
    "auto": lambda: AutoBoost(budget="fast"),
}
ROWS = 700


@pytest.fixture
def stream():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (ROWS, 3))
    y = X[:, 0] + rng.normal(size=ROWS) * (0.1 + (X[:, 1] > 0))
    y[300] = 40.0  # changes the label range
    rows = [{"a": a, "b": b} | ({"late": c} if t > 400 else {}) for t, (a, b, c) in enumerate(X)]
    return {"array": X, "dictionaries": rows}, y, rng.integers(0, 3, ROWS).astype(float)


def learn(name, X, y, weights, threads=None):
    model = Intervals(MODELS[name]())
    model.threads = threads
    found = model.learn_both(X, y, [0.05, 0.5, 0.95], weights)
    return [*found, *(value for _, value in model.tensors())], model.header()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("form", ["array", "dictionaries"])
@pytest.mark.parametrize("step", [1, 64, 699])
def test_steps_and_threads_do_not_change_the_result(monkeypatch, stream, name, form, step):
    rows, y, weights = stream
    expected, header = learn(name, rows[form], y, weights)  # in one step
    monkeypatch.setattr(followed_steps, "STEP", step)
    for threads in (1, 2, None):
        found, other = learn(name, rows[form], y, weights, threads)
        assert other == header
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_model_is_followed_in_order(monkeypatch, stream):
    rows, y, _ = stream
    monkeypatch.setattr(followed_steps, "STEP", 100)
    model, seen = MODELS["linear"](), []
    block = model.check(rows["array"], y)
    answers = followed_steps.learn_followed(
        model, block, ROWS, lambda first, found: seen.append((first, found)), threads=2
    )
    assert [first for first, _ in seen] == [*range(0, ROWS, 100)]
    np.testing.assert_array_equal(np.concatenate([found for _, found in seen]), answers)


def test_learners_of_users_learn_in_their_thread(monkeypatch, stream):
    rows, y, _ = stream
    monkeypatch.setattr(followed_steps, "STEP", 100)
    threads = set()

    class Mean:
        total, rows = 0.0, 0

        def predict_one(self, x):
            return self.total / max(self.rows, 1)

        def learn_one(self, x, y):
            threads.add(threading.current_thread())
            self.total, self.rows = self.total + y, self.rows + 1

    model = Intervals(HullBoost(Mean(), n=2, label_range="auto"))
    model.threads = 2
    model.learn_many([tuple(x) for x in rows["array"].tolist()], y)
    assert threads == {threading.current_thread()}
    assert model.label_health.learned == ROWS


def test_an_error_that_follows_is_raised(monkeypatch, stream):
    rows, y, _ = stream
    monkeypatch.setattr(followed_steps, "STEP", 100)
    model = MODELS["linear"]()

    def fail(first, answers):
        raise ZeroDivisionError(first)

    with pytest.raises(ZeroDivisionError, match="0"):
        followed_steps.learn_followed(model, model.check(rows["array"], y), ROWS, fail, 2)
