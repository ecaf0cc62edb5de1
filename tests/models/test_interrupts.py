"""Interrupted and failed blocks: counts, labels and learners agree afterwards."""

import copy
import signal

import numpy as np
import pytest

from spanboost import (
    AutoBoost,
    Calibrated,
    HullBoost,
    Intervals,
    PredictionSets,
    SpanBoost,
    Stumps,
    load,
    save,
)
from spanboost.models.booster_core import BoosterCore
from spanboost.rows.row_sample import RowSample


@pytest.fixture(autouse=True)
def default_handler():
    """Python's own handler: programs that a shell starts in the background ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Mean:
    """The mean target. The copies share the counter, which runs an action at one call."""

    at, action = -1, None
    calls = 0

    def __init__(self):
        self.n, self.mean = 0, 0.0

    def predict_one(self, x):
        return self.mean

    def learn_one(self, x, y):
        self.n += 1
        self.mean += (y - self.mean) / self.n
        if x["row"] == self.at:
            type(self).at = -1
            type(self).action()


def fail():
    raise RuntimeError("out of paper")


def interrupt():
    signal.raise_signal(signal.SIGINT)


def rows(number, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.uniform(8, 12, number)
    y[number // 3 :] = 2 * y[number // 3 :] - 10  # the label range changes
    return [{"row": t, "x": float(rng.normal())} for t in range(number)], y


@pytest.fixture
def learner(monkeypatch):
    def at(row, action):
        monkeypatch.setattr(Mean, "at", row)
        monkeypatch.setattr(Mean, "action", staticmethod(action))
        return Mean()

    return at


MODELS = {
    "chosen": SpanBoost,
    "one copy": lambda one, **given: SpanBoost(one, n=1, eta=1.0, **given),
    "replay": lambda one, **given: SpanBoost(one, n=2, replay=2, memory=50, **given),
    "hull": lambda one, **given: HullBoost(one, n=3, **given),
}


@pytest.mark.parametrize("label_range", ["auto", "growing", (-1000, 1000)])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("k", [0, 1, 151, 299])
def test_an_error_of_a_learner_leaves_the_rows_before_it(learner, kind, label_range, k):
    X, y = rows(300)
    model = MODELS[kind](learner(k, fail), label_range=label_range)
    with pytest.raises(RuntimeError) as caught:
        model.learn_many(X, y)
    assert f"row {k} of the block" in "".join(caught.value.__notes__)
    before = MODELS[kind](Mean(), label_range=label_range)
    if k:
        before.learn_many(X[:k], y[:k])
    assert model.labels.rows == model.label_health.learned == k
    assert model.label_ends == before.label_ends
    assert_same_sample(model, before)
    if model.labels.history is not None:
        for one, other in zip(model.labels.history[:5], before.labels.history[:5], strict=True):
            np.testing.assert_array_equal(one, other)


def assert_same_sample(model, before):
    own, other = model.row_sample, before.row_sample
    assert own.kept == other.kept
    np.testing.assert_array_equal(own.labels[: own.kept], other.labels[: other.kept])


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("k", [0, 151, 298])
def test_an_interrupt_of_a_learner_waits_for_the_end_of_the_row(learner, kind, k):
    """The copies that come after the interrupted one learn the row, too."""
    X, y = rows(300)
    model = MODELS[kind](learner(k, interrupt), label_range="auto")
    with pytest.raises(KeyboardInterrupt):
        model.learn_many(X, y)
    assert f"{k + 1:,} row{'s' if k else ''} learned" in repr(model)
    before = MODELS[kind](Mean(), label_range="auto")
    before.learn_many(X[: k + 1], y[: k + 1])
    np.testing.assert_array_equal(model.predict_many(X[:5]), before.predict_many(X[:5]))
    rest = model.learn_many(X[k + 1 :], y[k + 1 :])
    np.testing.assert_array_equal(rest, before.learn_many(X[k + 1 :], y[k + 1 :]))


def test_an_error_of_a_single_row_leaves_it_out(learner):
    X, y = rows(20)
    model = SpanBoost(learner(10, fail), n=2, label_range=(-100, 100))
    for t in range(10):
        model.learn_one(X[t], float(y[t]))
    with pytest.raises(RuntimeError):
        model.learn_one(X[10], float(y[10]))
    assert model.label_health.learned == 10


def boosted(**given):
    return SpanBoost(Stumps(), n=4, **given)


BUILT_IN = {
    "booster": lambda: boosted(label_range="auto"),
    "replay": lambda: boosted(label_range="auto", replay=2, memory=100),
    "chosen": lambda: SpanBoost(Stumps(), n="auto", label_range="auto"),
    "auto": lambda: AutoBoost(budget="fast"),
    "intervals": lambda: Intervals(boosted(label_range="auto")),
    "sets": lambda: PredictionSets(boosted(loss="logistic")),
    "calibrated": lambda: Calibrated(boosted(loss="logistic")),
}


@pytest.mark.parametrize("kind", BUILT_IN)
@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupted_block_is_learned_to_its_end(kind, threads, tmp_path, monkeypatch):
    X, y = np.random.default_rng(1).normal(size=(600, 3)), rows(600)[1]
    if kind in ("sets", "calibrated"):
        y = np.sign(y - y.mean())
    whole, model = BUILT_IN[kind](), BUILT_IN[kind]()
    whole.threads = model.threads = threads
    whole.learn_many(X, y)

    offer = RowSample.offer

    def interrupted(self, *given):
        signal.raise_signal(signal.SIGINT)
        offer(self, *given)

    monkeypatch.setattr(RowSample, "offer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.learn_many(X, y)
    monkeypatch.undo()
    save(whole, tmp_path / "whole.sb")
    save(model, tmp_path / "model.sb")
    assert (tmp_path / "model.sb").read_bytes() == (tmp_path / "whole.sb").read_bytes()


def test_an_interrupted_row_of_autoboost_is_learned(tmp_path, monkeypatch):
    X, y = np.random.default_rng(1).normal(size=(200, 3)), rows(200)[1]
    model = AutoBoost(budget="fast")
    model.learn_many(X[:-1], y[:-1])
    whole = copy.deepcopy(model)
    whole.learn_one(X[-1], float(y[-1]))
    count = BoosterCore.count_single

    def interrupted(self, *given):
        signal.raise_signal(signal.SIGINT)
        count(self, *given)

    monkeypatch.setattr(BoosterCore, "count_single", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.learn_one(X[-1], float(y[-1]))
    for name, one in zip(("model", "whole"), (model, whole), strict=True):
        save(one, tmp_path / name)
        load(tmp_path / name)
    assert (tmp_path / "model").read_bytes() == (tmp_path / "whole").read_bytes()


def test_a_second_interrupt_is_raised_at_once(monkeypatch):
    X, y = np.random.default_rng(1).normal(size=(600, 3)), rows(600)[1]
    model, changes = boosted(label_range="auto"), []

    def interrupted(self, new):
        changes.append(new)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(BoosterCore, "change_range", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.learn_many(X, y)
    assert len(changes) == 2


def test_handlers_of_others_stay(monkeypatch):
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        own = signal.getsignal(signal.SIGINT)
        SpanBoost(Stumps(), n=2).learn_many(np.ones((5, 1)), np.zeros(5))
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)
    boosted(label_range="auto").learn_many(np.ones((20, 1)), np.zeros(20))
    assert signal.getsignal(signal.SIGINT) is before
