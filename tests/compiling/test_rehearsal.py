"""A rehearsal finds exactly the code that a model is about to need, and changes nothing."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from spanboost import (
    AutoBoost,
    Intervals,
    LinearSGD,
    Network,
    PredictionSets,
    Ridge,
    Rows,
    SpanBoost,
    Stumps,
    Trees,
)
from spanboost.compiling import kernels
from spanboost.compiling.helpers import queue
from spanboost.compiling.jobs import Job
from spanboost.compiling.numba_internals import signature_of
from spanboost.compiling.rehearsal import obtain, rehearsed
from spanboost.models.files import to_bytes
from spanboost.models.rehearsal import rehearse

rng = np.random.default_rng(0)
X = rng.normal(size=(70, 3))
BLOCKS = {
    "array": X,
    "list": X.tolist(),
    "dictionaries": [{"a": float(a), "b": "red"} for a in X[:, 0]],
    "frame": pd.DataFrame(X, columns=["a", "b", "c"]),
    "sparse": scipy.sparse.random(70, 9, 0.5, "csr", rng=rng),
    "codes": Rows(X, np.arange(140).reshape(70, 2) % 3),
}
MODELS = {
    "linear": lambda: SpanBoost(LinearSGD(), n=3, label_range="auto"),
    "fixed range": lambda: SpanBoost(Stumps(), n=3, label_range=(-9, 9)),
    "replay": lambda: SpanBoost(Trees(), n=3, replay=2),
    "logistic": lambda: SpanBoost(Network(), n=3, loss="logistic"),
    "choice": lambda: SpanBoost(Ridge(), n="auto"),
    "fast": lambda: AutoBoost(budget="fast"),
    "fast logistic": lambda: AutoBoost(budget="fast", loss="logistic"),
    "fast classes": lambda: AutoBoost(budget="fast", loss="softmax"),
    "intervals": lambda: Intervals(SpanBoost(LinearSGD(), n=3)),
    "sets": lambda: PredictionSets(SpanBoost(LinearSGD(), n=3, loss="softmax")),
}
# one function for all models, which a process asks for once
SHARED = {"follow_labels", "write_values"}


def labels_for(model):
    name = str(getattr(model, "loss", getattr(getattr(model, "model", None), "loss", "")))
    if "softmax" in name.lower():
        return np.arange(70) % 3
    return np.where(X[:, 0] > 0, 1.0, -1.0) if "logistic" in name.lower() else np.tanh(X[:, 0])


@pytest.fixture
def asked(monkeypatch):
    """The jobs that calls ask for, as if nothing were on disk."""
    jobs = []

    def as_if_missing(dispatcher, args):
        function, types = dispatcher.py_func, repr(signature_of(args))
        return Job(Path(f"{hash(types)}"), function.__module__, function.__name__, False, b"")

    monkeypatch.setattr(kernels, "new_job", as_if_missing)
    monkeypatch.setattr(kernels, "obtain", jobs.append)
    return jobs


@pytest.mark.parametrize(
    ("kind", "rows"), [(kind, "array") for kind in MODELS] + [("fast", rows) for rows in BLOCKS]
)
def test_it_finds_what_learning_and_predicting_need(asked, kind, rows):
    model, block = MODELS[kind](), BLOCKS[rows]
    y = labels_for(model)
    need = rehearse(model, block, y)
    assert asked == []
    assert not model.started
    model.learn_many(block, y)
    learning = set(asked)
    assert {one for one in learning if one.name not in SHARED} <= set(need.now)
    assert {one.name for one in need.now} <= {one.name for one in learning} | SHARED
    asked.clear()
    model.predict_many(block)
    assert set(asked) <= set(need.now + need.later)
    assert need.now
    assert need.later
    assert set(rehearse(model, block, y).now) == set(need.now)  # of a model that has learned


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_single_row_finds_what_later_single_rows_need(asked, loss):
    model = AutoBoost(loss)
    y = np.where(X[:, 0] > 0, 1.0, -1.0) if loss == "logistic" else X[:, 0]
    need = rehearse(model, [BLOCKS["list"][0]], y[:1])
    for x, label in zip(np.concatenate([X, X]).tolist(), [*y, *y], strict=True):
        model.predict_one(x)
        model.learn_one(x, label)
    assert {one for one in asked if one.name not in SHARED} <= set(need.now + need.later)
    later = [one.name for one in need.later]
    assert {"mix_one", "write_losses", "replay_row"} <= set(later[: later.index("predict")])


def test_it_changes_nothing():
    model = AutoBoost(budget="fast")
    model.learn_many(X[:40], X[:40, 0])
    before = to_bytes(model)
    rehearse(model, X, X[:, 0])
    assert to_bytes(model) == before


class Counter:
    """A learner of a user."""

    calls = 0

    def predict(self, x):
        Counter.calls += 1
        return 0.0

    def update(self, x, loss):
        pass


def test_code_of_users_is_not_run():
    assert rehearse(SpanBoost(Counter(), n=2), X, X[:, 0]) == ([], [])
    assert Counter.calls == 0


def test_an_invalid_row_is_left_to_the_real_call():
    model = SpanBoost(LinearSGD(), n=2)
    assert rehearse(model, np.full((1, 2), np.inf), [1.0]) == ([], [])
    with pytest.raises(ValueError, match="infinite"):
        model.learn_many(np.full((1, 2), np.inf), [1.0])


def test_the_outermost_block_rehearses_once():
    runs, job = [], Job(Path("file"), "module", "name", False, b"")

    def count(name):
        return lambda: runs.append(name) or ([], [])

    with rehearsed(count("outer")), rehearsed(count("inner")):
        obtain(job)
        obtain(job)
    assert runs == ["outer"]
    obtain(job)  # outside of any block
    assert runs == ["outer"]


def test_the_caller_does_its_own_job(monkeypatch):
    added, own, other = [], *(Job(Path(name), "module", name, False, b"") for name in "ab")
    monkeypatch.setattr(queue, "add", lambda *jobs: added.extend(map(list, jobs)))
    with rehearsed(lambda: ([own, other], [own])):
        obtain(own)
    assert added == [[other], []]
