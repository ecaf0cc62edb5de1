"""Regression tests: mistakes and unusual uses that once failed."""

import math
import pickle
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

from spanboost import DataError, FiniteClass, HullBoost, LinearBall, SpanBoost, Symmetrised
from spanboost.compiling.kernels import plain
from spanboost.learners.finite import symmetric
from spanboost.losses import SquaredEuclidean
from spanboost.theory.regret import audit_hull, audit_span


class Sgd:
    def __init__(self, width=2):
        self.w = np.zeros(width)

    def predict(self, x):
        return float(self.w @ x)

    def update(self, x, loss):
        self.w -= 0.2 * loss.slope(self.w @ x) * np.asarray(x)


def stream(T=40):
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (T, 2))
    return X, X @ [0.9, -0.6]


@pytest.mark.parametrize("feedback", ["linear", "greedy"])
def test_a_loss_that_a_learner_keeps_does_not_change(feedback):
    """A learner that works in mini-batches uses its losses later; blocks and rows agree."""

    class Patient(Sgd):
        def __init__(self):
            super().__init__()
            self.kept = []

        def update(self, x, loss):
            self.kept.append((np.array(x), loss))
            if len(self.kept) == 4:
                steps = [loss.slope(self.w @ x) * x for x, loss in self.kept]
                self.w -= 0.2 * np.sum(steps, axis=0)
                self.kept.clear()

    X, y = stream()
    block = SpanBoost(Patient(), n=3, feedback=feedback).learn_many(X, y)
    single = SpanBoost(Patient(), n=3, feedback=feedback)
    np.testing.assert_array_equal(
        block, [single.learn_one(x, label) for x, label in zip(X, y, strict=True)]
    )


def test_data_errors_travel_between_processes():
    error = pickle.loads(pickle.dumps(DataError(7, "the label is nan")))
    assert str(error) == "row 7: the label is nan"
    assert error.row == 7


def test_a_booster_survives_pickling_mid_stream():
    X, y = stream()
    model = SpanBoost(FiniteClass(symmetric([first, second])), n=4)
    model.learn_many(X[:20], y[:20])
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        model.learn_many(X[20:], y[20:]), again.learn_many(X[20:], y[20:])
    )


def first(x):
    return 1.0 if x[0] > 0 else -1.0


def second(x):
    return 1.0 if x[1] > 0 else -1.0


def test_iterators_reach_the_learner_unread():
    class Reader(Sgd):
        def predict(self, x):
            return sum(x)

    assert HullBoost(Reader(), n=1).predict_one(iter([0.2, 0.3])) == 0.5


def test_the_prototype_may_change_after_construction():
    mine = Sgd()
    model = HullBoost(mine, n=1)
    mine.w += 1
    assert model.predict_one(np.ones(2)) == 0


def test_a_vector_booster_needs_vector_predictions():
    model = HullBoost(Sgd(), n=2, loss=SquaredEuclidean(3))
    with pytest.raises(ValueError, match=r"weak learner 0, \w+, predicted 0\.0; 3 finite numbers"):
        model.predict_one(np.ones(2))


def test_any_object_can_be_symmetrised():
    class Downhill(Sgd):  # always predicts -1
        def predict(self, x):
            return -1.0

        def update(self, x, loss):
            pass

    model = SpanBoost(Symmetrised(Downhill()), n=1, eta=1.0, feedback="linear")
    predictions = model.learn_many([{"any": "row"}] * 200, np.ones(200))
    assert predictions[-1] > 0.9


class Flawed(NamedTuple):
    lipschitz: float

    def value(self, label, y):
        return (label - y) ** 2

    def gradient(self, label, y):
        return 2 * (y - label)

    def L(self, b):
        return self.lipschitz

    def beta(self, b):
        return 2.0

    def eps(self, b):
        return 0.0


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan])
def test_invalid_constants_are_refused(wrong):
    with pytest.raises(ValueError, match=r"Flawed\.L\(1\) must be positive \(got"):
        SpanBoost(LinearBall(), loss=Flawed(wrong))


def test_a_loss_without_a_gradient_is_refused_at_once():
    class Half:
        value = L = beta = eps = lambda *_: 1.0

    with pytest.raises(ValueError, match=r"Half has no method gradient\(label, y\)"):
        SpanBoost(LinearBall(), loss=Half())


@pytest.mark.parametrize("limits", [(-1e308, 1e308), (0.0, 5e-324), (0, math.inf), (1, 1), "ab"])
def test_ranges_without_a_usable_width_are_refused(limits):
    with pytest.raises(
        ValueError, match=r"label_range must be \(low, high\) with finite low < high.*got"
    ):
        SpanBoost(LinearBall(), label_range=limits)


@pytest.mark.parametrize(
    "X",
    [np.zeros((2, 2, 2)), [["1", "2"], ["3", "4"]], np.zeros((2, 2), complex), np.zeros((2, 0))],
)
def test_blocks_that_are_not_rows_of_numbers_are_refused(X):
    model = SpanBoost(LinearBall(), n=2)
    with pytest.raises(ValueError, match=r"rows must be numbers|rows x features"):
        model.learn_many(X, [0.0, 0.0])
    assert model.learn_one([0.1, 0.2], 0.5) == 0  # and it still works


@pytest.mark.parametrize("labels", [["0.5", "0.5"], [0.5j, 0.5], [[0.5], [0.5, 0.5]], [None, 0.5]])
def test_labels_that_are_not_numbers_are_refused(labels):
    with pytest.raises(ValueError, match="label"):
        SpanBoost(LinearBall(), n=2).learn_many(np.zeros((2, 1)), labels)


def test_a_class_needs_functions():
    with pytest.raises(ValueError, match="at least one function"):
        SpanBoost(FiniteClass([]))
    with pytest.raises(ValueError, match="rows x features"):
        SpanBoost(FiniteClass()).predict_many(np.zeros((3, 0)))


def test_functions_do_not_write_to_the_rows():
    def vandal(x):
        x[0] = 9.0
        return 0.0

    X = np.zeros((2, 1))
    with pytest.raises(ValueError, match="read-only"):
        SpanBoost(FiniteClass([vandal])).predict_many(X)
    assert (X == 0).all()


def test_small_integers_of_numpy_do_not_overflow():
    with plain():
        model = HullBoost(LinearBall(), n=np.int8(127))
        assert model.predict_one([0.1]) == 0
    assert model.steps_[-1] == 2 / 128


@pytest.mark.parametrize("weight", [0.01, 1.0])
def test_light_rows_keep_the_bound(weight):
    X, y = np.ones((400, 1)), np.ones(400)
    booster = HullBoost(LinearBall(), n=1, loss="linear", feedback="linear")
    values = np.stack([np.ones(400), -np.ones(400)], axis=1)
    assert audit_hull(booster, X, y, values, np.full(400, weight)).slack >= 0


def test_audits_refuse_what_no_theorem_covers():
    X, y = stream()
    f = np.zeros(len(X))
    heavy = SpanBoost(LinearBall(), n=2, feedback="linear")
    with pytest.raises(
        ValueError, match=r"weights of at most 1 \(got 100\): divide all weights by the largest"
    ):
        audit_span(heavy, X, y, f, 1.0, np.full(len(X), 100.0))
    with pytest.raises(ValueError, match=r"B must be at least 2, as in the paper \(got 1\)"):
        audit_span(
            SpanBoost(LinearBall(), n=2, eta=1.0, loss="linear", feedback="linear", B=1.0),
            X,
            y,
            f,
            1.0,
        )
    used = SpanBoost(LinearBall(), n=2, feedback="linear")
    used.learn_many(X, y)
    with pytest.raises(ValueError, match="fresh booster"):
        audit_span(used, X, y, f, 1.0)
    with pytest.raises(ValueError, match="smooth losses only"):
        audit_hull(
            HullBoost(LinearBall(), loss="absolute", feedback="linear"), X, y, np.zeros((40, 2))
        )


def test_audits_check_the_booster_and_the_class():
    X, y = np.zeros((50, 1)), -np.ones(50)
    one_sided = SpanBoost(FiniteClass([lambda x: 1.0]), n=10, feedback="linear")
    with pytest.raises(ValueError, match="contains -f with every f"):
        audit_span(one_sided, X, y, y, 1.0)
    closed = SpanBoost(FiniteClass(symmetric([lambda x: 1.0])), n=10, feedback="linear")
    with pytest.raises(
        ValueError, match=r"f_norm must be a finite number of at least 1 \(got nan\)"
    ):
        audit_span(closed, X, y, y, math.nan)
    with pytest.raises(TypeError, match="expected a HullBoost, got SpanBoost"):
        audit_hull(closed, X, y, np.ones((50, 1)))
    with pytest.raises(TypeError, match="expected a SpanBoost, got HullBoost"):
        audit_span(HullBoost(LinearBall(), feedback="linear"), X, y, y, 1.0)
    assert audit_span(closed, X, y, y, 1.0).slack >= 0


def test_a_randomised_learner_is_recognised_inside_a_wrapper():
    class Drawing(Sgd):
        deterministic = False

    for learner in (Drawing(), Symmetrised(Drawing())):
        with pytest.raises(ValueError, match="Corollary 1"):
            SpanBoost(learner, loss="absolute", feedback="linear")


class Named(Flawed):
    """A loss with inherited methods, and with attributes that a booster must ignore."""

    margin = 0.5
    d = 0.5
    check = 1.0

    def draw(self, a):
        return a


def test_other_attributes_of_a_custom_loss_are_ignored():
    X, y = stream()
    linear = {"n": 2, "feedback": "linear", "label_range": (-10, 10)}
    model = SpanBoost(LinearBall(), loss=Named(4.0), **linear)  # L_1 of the squared loss is 4
    same = SpanBoost(LinearBall(), **linear)
    np.testing.assert_allclose(
        model.learn_many(X, y), same.learn_many(X, y), rtol=1e-12, atol=1e-12
    )
    fresh = SpanBoost(FiniteClass(symmetric([first])), n=2)
    assert np.isfinite(fresh.learn_many(X, y)).all()


def test_classes_in_place_of_objects_are_refused():
    with pytest.raises(TypeError, match=r"LinearBall is a class: pass an instance"):
        SpanBoost(LinearBall)


def test_a_dictionary_is_a_row_not_a_block():
    with pytest.raises(ValueError, match="expected several rows"):
        SpanBoost(Sgd(), n=1).learn_many({"a": [1.0]}, [0.5])


@pytest.mark.process
def test_a_full_disk_is_reported_in_one_sentence():
    command = [sys.executable, "-m", "spanboost", "demo", "--rows", "10", "-n", "2"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr
