"""Several threads that use one model or estimator get what one thread gets."""

import copy
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from joblib import parallel_config
from river import tree
from sklearn.inspection import permutation_importance

import spanboost.river
from spanboost import (
    AutoBoost,
    Calibrated,
    HullBoost,
    Intervals,
    LinearSGD,
    PredictionSets,
    SpanBoost,
    Stumps,
    Trees,
    explain,
    feature_importances,
    save,
)
from spanboost.models.files import to_bytes
from spanboost.models.rehearsal import rehearse
from spanboost.sklearn import BoostingClassifier, BoostingRegressor

RNG = np.random.default_rng(0)
X = RNG.random((3000, 4))
Y = X[:, 0] + X[:, 1] ** 2
SIDES = np.where(Y > 0.8, 1.0, -1.0)
BLOCKS = [X[first : first + 500] for first in range(0, 3000, 500)]
TIMEOUT = 60  # seconds


class Mean:
    """A learner of the user: the mean label."""

    def __init__(self):
        self.sum, self.rows = 0.0, {}

    def predict_one(self, x):
        return self.sum / max(len(self.rows), 1)

    def learn_one(self, x, y):
        self.sum += y
        self.rows[len(self.rows)] = y  # a dictionary that grows cannot be pickled meanwhile


def trees():
    return SpanBoost(Trees(), n=8, eta=0.2, label_range="auto")


MODELS = {
    "trees": (trees, Y),
    "chosen": (lambda: SpanBoost(Stumps(), n="auto", label_range="auto"), Y),
    "auto": (lambda: AutoBoost(budget="fast"), Y),
    "stages": (lambda: AutoBoost(budget="fast", recent=True, past=True), Y),
    "intervals": (lambda: Intervals(AutoBoost(budget="fast")), Y),
    "sets": (lambda: PredictionSets(SpanBoost(LinearSGD(), n=4, loss="logistic")), SIDES),
    "calibrated": (lambda: Calibrated(SpanBoost(LinearSGD(), n=4, loss="logistic")), SIDES),
    "own": (lambda: HullBoost(Mean(), n=2, label_range="auto"), Y),
    "river": (lambda: HullBoost(tree.HoeffdingTreeRegressor(), n=2, label_range="auto"), Y),
}


def fitted(name, rows=1000):
    new, labels = MODELS[name]
    model = new()
    model.learn_many(X[:rows], labels[:rows])
    return model


def together(*tasks):
    """Run tasks in threads; return their results. A deadlock is an error after a minute."""
    with ThreadPoolExecutor(len(tasks)) as pool:
        running = [pool.submit(task) for task in tasks]
        try:
            return [done.result(timeout=TIMEOUT) for done in running]
        except TimeoutError:
            os._exit(70)  # the pool would wait for ever


@pytest.mark.parametrize("name", MODELS)
def test_predictions_of_several_threads_are_those_of_one(name):
    model = fitted(name)
    expected = [model.predict_many(block) for block in BLOCKS]
    found = together(*[lambda: [model.predict_many(block) for block in BLOCKS] for _ in range(3)])
    for answers in found:
        np.testing.assert_array_equal(answers, expected)


@pytest.mark.parametrize("name", MODELS)
def test_single_rows_of_several_threads_are_those_of_one(name):
    model = fitted(name)
    rows = X[:100].tolist()
    expected = [model.predict_one(row) for row in rows]
    found = together(*[lambda: [model.predict_one(row) for row in rows] for _ in range(3)])
    for answers in found:
        np.testing.assert_array_equal(answers, expected)


@pytest.mark.parametrize("name", MODELS)
def test_learning_while_predicting_copying_and_saving(name, tmp_path):
    labels, model, alone = MODELS[name][1], fitted(name), fitted(name)
    parts = [slice(first, first + 200) for first in range(1000, 3000, 200)]

    def learn():
        return np.concatenate([model.learn_many(X[part], labels[part]) for part in parts])

    def predict():
        for _ in range(20):
            assert np.isfinite(model.predict_many(BLOCKS[0])).all()
            assert np.isfinite(model.predict_one(X[0].tolist()))

    def copies():
        return [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]

    learned, _, doubles = together(learn, predict, copies)
    expected = [alone.learn_many(X[part], labels[part]) for part in parts]
    np.testing.assert_array_equal(learned, np.concatenate(expected))
    for double in doubles:  # of a moment between two blocks
        same = fitted(name, double.labels.seen)
        np.testing.assert_array_equal(double.predict_many(X), same.predict_many(X))
    if name not in ("own", "river"):
        assert to_bytes(model) == to_bytes(alone)


def test_rows_that_several_threads_learn_are_learned_once_each():
    model = fitted("auto")

    def learn():
        for first in range(1000, 2000, 100):
            model.learn_many(X[first : first + 100], Y[first : first + 100])
            model.learn_one(X[first].tolist(), Y[first])

    together(learn, learn)
    assert model.labels.seen == 1000 + 2 * (1000 + 10)
    assert model.health.good


def test_explanations_while_learning():
    model, alone = fitted("trees"), fitted("trees")
    explained = explain(alone, X[0]).prediction, feature_importances(alone, X[:200], Y[:200])

    def learn():
        for _ in range(10):
            model.learn_many(X[1000:1100], Y[1000:1100], np.zeros(100))  # changes no prediction

    def look():
        return explain(model, X[0]).prediction, feature_importances(model, X[:200], Y[:200])

    assert together(learn, look)[1] == explained


def test_permutation_importance_in_threads_is_that_of_one_thread():
    model, found = BoostingRegressor("trees", n_estimators=8, random_state=0).fit(X, Y), []
    for n_jobs in (1, 2):
        with parallel_config("threading"):
            found.append(permutation_importance(model, X, Y, n_jobs=n_jobs, random_state=0))
    np.testing.assert_array_equal(found[0].importances, found[1].importances)


def test_classes_appear_while_another_thread_predicts():
    labels = np.array(list("abcdefgh"))[np.arange(800) // 100]
    estimator = BoostingClassifier("linear", n_estimators=2).partial_fit(X[:100], labels[:100])

    def learn():
        for first in range(100, 800, 50):
            part = slice(first, first + 50)
            estimator.partial_fit(X[part], labels[part])

    def predict():
        for _ in range(50):
            assert set(estimator.predict(X[:20])) <= set(labels)
            np.testing.assert_allclose(estimator.predict_proba(X[:20]).sum(axis=1), 1)
            assert len(pickle.loads(pickle.dumps(estimator)).predict(X[:20])) == 20

    together(learn, predict)


def test_river_classes_appear_while_another_thread_predicts_and_saves(tmp_path):
    model = spanboost.river.BoostingClassifier("linear", n_models=2)
    rows = [dict(enumerate(row)) for row in X[:400].tolist()]
    named = [{f"x{key}": value for key, value in row.items()} for row in rows]
    model.learn_one(named[0], "a")

    def learn():
        for k, row in enumerate(named):
            model.learn_one(row, "abcd"[k // 100])

    def predict():
        for _ in range(50):
            assert sum(model.predict_proba_one(named[0]).values()) == pytest.approx(1)
            save(model, tmp_path / "model.sb")
            pickle.loads(pickle.dumps(model))

    together(learn, predict)


@contextmanager
def held_by_a_thread(model):
    """Let another thread hold the lock of a model."""
    started, end = threading.Event(), threading.Event()

    def hold():
        with model._lock:
            started.set()
            end.wait(TIMEOUT)

    thread = threading.Thread(target=hold)
    thread.start()
    started.wait()
    yield
    end.set()
    thread.join()


def test_copies_have_locks_of_their_own_and_the_same_bytes():
    model = fitted("auto")
    data = pickle.dumps(model)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(model.predict_one, X[0]).result()
    assert pickle.dumps(model) == data
    double = copy.deepcopy(model)
    with held_by_a_thread(model):
        assert together(lambda: double.predict_one(X[0]))  # does not wait
        assert copy.copy(model)._lock is model._lock  # it shares what the model learns


def test_a_thread_of_the_model_can_rehearse_it():
    """Code may be missing in a thread that works for a call, which holds the lock."""
    model = fitted("auto")
    with model._lock:
        need = together(lambda: rehearse(model, X[:1], Y[:1]))[0]
    assert need.now
    assert need.later


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # a fork of a process with threads
def test_a_fork_while_another_thread_holds_the_lock():
    model = fitted("trees")
    expected = model.predict_one(X[0].tolist())
    with held_by_a_thread(model):
        child = os.fork()
        if not child:
            os._exit(0 if model.predict_one(X[0].tolist()) == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
