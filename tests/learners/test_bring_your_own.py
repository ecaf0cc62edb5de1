"""Tests of River and scikit-learn learners, of objects with growing ranges, and of user banks."""

import sys
import threading
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from river import datasets, linear_model, preprocessing, tree
from sklearn.datasets import load_diabetes
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from spanboost import (
    AutoBoost,
    ConstantWarning,
    FromBank,
    HullBoost,
    Rows,
    SpanBoost,
    Trees,
    VowpalWabbit,
    explain,
    losses,
    save,
)
from spanboost.compiling.kernels import plain
from spanboost.losses.estimates import estimate

TRUMP = list(datasets.TrumpApproval().take(600))
ROWS, LABELS = [x for x, _ in TRUMP], np.array([y for _, y in TRUMP])


def test_boosting_improves_a_river_tree():
    def error(model):
        return np.mean(np.abs(model.learn_many(ROWS, LABELS) - LABELS))

    alone = error(HullBoost(tree.HoeffdingTreeRegressor(), n=1, label_range="auto"))
    assert error(SpanBoost(tree.HoeffdingTreeRegressor(), n=6, label_range="auto")) < 0.8 * alone


def test_river_pipelines_accept_arrays():
    model = SpanBoost(preprocessing.StandardScaler() | linear_model.LinearRegression(), n=3)
    X, y = np.random.default_rng(0).normal(size=(200, 2)), np.zeros(200)
    y[:] = 0.3 * np.tanh(X[:, 0])
    by_place = model.learn_many(X, y)
    other = SpanBoost(preprocessing.StandardScaler() | linear_model.LinearRegression(), n=3)
    by_name = other.learn_many([dict(enumerate(x)) for x in X.tolist()], y)
    np.testing.assert_array_equal(by_place, by_name)
    assert np.mean((by_place - y)[100:] ** 2) < 0.2 * np.var(y)
    with pytest.raises(ValueError, match=r"a loss with a kink .*use Huber\(0\.1\)"):
        SpanBoost(linear_model.LinearRegression(), loss="absolute")
    with pytest.raises(ValueError, match="takes no weight"):
        SpanBoost(
            preprocessing.StandardScaler() | linear_model.LinearRegression(), feedback="linear"
        )


@pytest.mark.slow
def test_boosting_improves_a_scikit_learn_regressor():
    X, y = load_diabetes(return_X_y=True)
    X = X / np.abs(X).max(axis=0)

    def error(model):
        return np.mean((model.learn_many(X, y) - y)[221:] ** 2)

    alone = error(HullBoost(SGDRegressor(random_state=0), n=1, label_range=(25, 346)))
    boosted = error(SpanBoost(SGDRegressor(random_state=0), n=6, label_range=(25, 346)))
    assert boosted < 0.8 * alone


def test_a_booster_of_one_copy_equals_the_regressor():
    X, y = load_diabetes(return_X_y=True)
    X, y, weights = X[:80], (y[:80] - 150) / 200, np.linspace(0.5, 2, 80)
    own = HullBoost(SGDRegressor(random_state=0), n=1).learn_many(X, y, weights)
    direct, predictions = SGDRegressor(random_state=0), []
    for t in range(80):
        predictions.append(direct.predict(X[t : t + 1])[0] if t else 0.0)
        direct.partial_fit(X[t : t + 1], y[t : t + 1], sample_weight=weights[t : t + 1])
    np.testing.assert_allclose(own, predictions, atol=1e-12)


def test_a_scikit_learn_network_can_be_boosted():
    model = SpanBoost(MLPRegressor(hidden_layer_sizes=(3,), random_state=0), n=2)
    assert np.isfinite(model.learn_many(np.eye(3), [0.1, 0.2, 0.3])).all()


def test_learners_that_are_not_regressors_are_rejected():
    with pytest.raises(TypeError, match="SGDClassifier is a classifier"):
        SpanBoost(SGDClassifier())
    with pytest.raises(TypeError, match=r"TreeRegressor is not a weak learner: .*partial_fit"):
        SpanBoost(DecisionTreeRegressor())
    with pytest.raises(TypeError, match="HoeffdingTreeClassifier is a classifier"):
        SpanBoost(tree.HoeffdingTreeClassifier())
    with pytest.raises(TypeError, match=r"pipeline of scikit-learn .* scale the columns first"):
        SpanBoost(make_pipeline(StandardScaler(), SGDRegressor()))


def test_the_row_of_an_error_is_named_with_advice():
    model = SpanBoost(SGDRegressor(random_state=0), n=2)
    with pytest.raises(ValueError, match="NaN") as raised:
        model.learn_many([[0.1, 0.2], [np.nan, 0.1]], [0.1, 0.2])
    assert "the row has missing values (0): fill them in first" in raised.value.__notes__[0]
    model = SpanBoost(linear_model.LinearRegression(), n=1)
    model.learn_one({"a": 0.1, "b": 0.2}, 0.3)
    missing = r"predicted nan; .*the row \{'a': nan, 'b': 0.2\} has missing values \('a'\)"
    with pytest.raises(ValueError, match=missing):
        model.learn_one({"a": np.nan, "b": 0.2}, 0.3)


def test_rows_that_objects_cannot_read_are_rejected():
    with pytest.raises(TypeError, match="SGDRegressor needs rows of numbers"):
        SpanBoost(SGDRegressor(), n=2).learn_one({"a": "red"}, 0.5)
    rows = Rows(np.eye(3), np.zeros((3, 1), int))
    with pytest.raises(ValueError, match="Rows is not a sequence of rows"):
        SpanBoost(SGDRegressor(), n=2).learn_many(rows, [0.1, 0.2, 0.3])


@pytest.mark.parametrize("learner", [SGDRegressor(random_state=0), tree.HoeffdingTreeRegressor()])
def test_a_frame_is_learned_like_its_rows_and_its_columns_may_change_places(learner):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 2))
    y = X @ [0.4, -0.3]
    frame = pd.DataFrame(X, columns=["a", "b"])
    by_frame, by_array = SpanBoost(learner, n=3), SpanBoost(learner, n=3)
    assert by_frame.learn_many(frame, y).tolist() == by_array.learn_many(X, y).tolist()
    expected = by_array.predict_many(X[:5]).tolist()
    assert by_frame.predict_many(frame[["b", "a"]][:5]).tolist() == expected
    assert by_frame.predict_many(frame[:5].to_dict("records")).tolist() == expected


def test_a_regressor_of_arrays_needs_the_same_columns_in_all_rows():
    model = SpanBoost(SGDRegressor(), n=2)
    model.learn_many(pd.DataFrame({"a": [0.1, 0.2], "b": [0.3, 0.1]}), [0.1, 0.2])
    with pytest.raises(ValueError, match=r"the same columns; .*: 'b', 'c'"):
        model.predict_many(pd.DataFrame({"a": [0.1], "c": [0.3]}))


def test_a_missing_vowpal_wabbit_package_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "vowpalwabbit", None)
    with pytest.raises(ImportError, match="pip install vowpalwabbit"):
        SpanBoost(VowpalWabbit(), n=1).learn_one([1.0], 0.5)


class Level:
    """A constant learned by small steps, which records the smoothness of its losses."""

    def __init__(self):
        self.h, self.smoothness = 0.0, []

    def predict(self, x):
        return self.h

    def update(self, x, loss):
        assert loss.h == pytest.approx(self.h)
        assert loss.slope(1.0) == pytest.approx(loss.slope(0.0) + loss.smoothness)
        assert loss.value(1.0) - loss.value(0.0) == pytest.approx(
            (loss.slope(0.0) + loss.slope(1.0)) / 2
        )
        self.smoothness.append(loss.smoothness)
        self.h -= 0.3 * loss.slope(self.h) / loss.smoothness


def test_objects_keep_their_units_while_the_range_grows():
    """In the units of the user, objects learn the same whether or not the range grows."""
    y = np.array([5.0, 6.0, 4.5, 9.0, 3.0, 5.0, 20.0, 7.0, 8.0, 5.5])
    growing = HullBoost(Level(), n=1, label_range="auto", D=100.0)
    answers = growing.learn_many(np.zeros((10, 1)), y)
    level, want = 5.0, []
    for label in y:
        want.append(level if want else 0.0)
        level += 0.3 * (label - level)
    np.testing.assert_allclose(answers, want)
    copy = growing.core.state.bank.copies[0]
    assert copy.smoothness == pytest.approx([2.0] * 10)  # in the units of the first block
    assert growing.core.state.bank.units.value == pytest.approx(1 / 15)


class Means(NamedTuple):
    mean: Any  # [output, copy]
    slope: Any
    size: Any
    seen: Any

    def predict(self, x, h):
        h[:, :] = self.mean

    def update(self, x, h, feedback):
        feedback.slopes(h, self.slope)
        self.seen[0] += 1
        for i in range(h.shape[1]):
            self.mean[0, i] = h[0, i] - self.slope[0, i] * self.size[i] / self.seen[0]

    def rescale(self, a, b):
        self.mean[...] *= a


def means(task):
    shape = (task.d, task.n)
    return Means(np.zeros(shape), np.zeros(shape), 1 / task.smoothness, np.zeros(1))


@pytest.mark.slow
def test_a_user_defined_bank_gives_the_same_result_compiled_and_plain():
    X, y = np.zeros((50, 1)), np.random.default_rng(0).uniform(-1, 1, 50)
    compiled = SpanBoost(FromBank(means), n=3).learn_many(X, y)
    with plain():
        np.testing.assert_array_equal(SpanBoost(FromBank(means), n=3).learn_many(X, y), compiled)
    grown = SpanBoost(FromBank(means, scalable=True), n=3, label_range="auto")
    answers = grown.learn_many(X, 1000 + 100 * y)
    assert answers[-1] == pytest.approx(1000 + 100 * y.mean(), abs=15)
    with pytest.raises(ValueError, match="FromBank cannot be rescaled"):
        SpanBoost(FromBank(means), label_range="auto")


SCALAR = [
    losses.Squared(),
    losses.PNorm(3.0),
    losses.Logistic(),
    losses.ModifiedLeastSquares(),
    losses.Absolute(),
    losses.Quantile(0.8),
    losses.Hinge(),
    losses.Huber(0.3),
]


@pytest.mark.parametrize("loss", SCALAR, ids=str)
@pytest.mark.parametrize("b", [0.5, 1.0, 2.5])
def test_estimated_constants_agree_with_the_stated_ones(loss, b):
    for name in ("L", "eps"):
        given = getattr(loss, name)(b)
        assert estimate(loss, name, b) <= given + 1e-9
    assert estimate(loss, "L", b) == pytest.approx(loss.L(b))
    if isinstance(loss, losses.Hinge) and b < 1:
        assert estimate(loss, "beta", b) == 0  # its kinks are at -1 and 1
    else:
        assert estimate(loss, "beta", b) == pytest.approx(loss.beta(b), rel=0.02)


class Plain(NamedTuple):
    def value(self, label, y):
        return (label - y) ** 2

    def gradient(self, label, y):
        return 2 * (y - label)


class Bare(NamedTuple):
    def value(self, label, y):
        return (label - y) ** 2


@pytest.mark.slow
def test_a_loss_without_constants_works_with_a_warning():
    with pytest.warns(ConstantWarning, match="Plain does not define its Lipschitz constant L_b"):
        model = SpanBoost(FromBank(means), n=4, loss=Plain())
    known = SpanBoost(FromBank(means), n=4)
    assert (model.B_, model.L_B_) == (known.B_, known.L_B_)
    X, y = np.zeros((30, 1)), np.random.default_rng(0).uniform(-1, 1, 30)
    np.testing.assert_allclose(model.learn_many(X, y), known.learn_many(X, y), rtol=1e-6)
    with pytest.raises(ValueError, match="gradient"):
        SpanBoost(FromBank(means), n=4, loss=Bare())
    with pytest.raises(TypeError, match=r"Plain is a class: pass an instance, Plain\(...\)"):
        SpanBoost(FromBank(means), n=4, loss=Plain)


def test_messages_name_a_long_learner_in_one_line(tmp_path):
    model = SpanBoost(tree.HoeffdingTreeRegressor(), n=2)
    assert repr(model) == "SpanBoost(HoeffdingTreeRegressor(...), n=2)"
    model.learn_one({"a": 1.0}, 0.5)
    with pytest.raises(
        ValueError, match=r"^cannot explain HoeffdingTreeRegressor\(\.\.\.\): only mod"
    ):
        explain(model, {"a": 1.0})
    with pytest.raises(ValueError, match=r"^HoeffdingTreeRegressor\(\.\.\.\) is code, not data"):
        save(model, tmp_path / "model.sb")


@pytest.mark.parametrize("use", ["predict_one", "learn_one"])
def test_an_error_of_a_learner_shows_the_row(use):
    model = SpanBoost(linear_model.LinearRegression(), n=2)
    arguments = ({"city": "Ulm"}, 0.5) if use == "learn_one" else ({"city": "Ulm"},)
    with pytest.raises(TypeError) as caught:
        getattr(model, use)(*arguments)
    (note,) = caught.value.__notes__
    assert note.startswith("LinearRegression raised this error for the row {'city': 'Ulm'}; if it")


def test_an_error_while_learning_shows_the_row():
    class Picky:
        def predict(self, x):
            return 0.0

        def update(self, x, loss):
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no") as caught:
        SpanBoost(Picky(), n=1).learn_one([1.0, 2.0], 0.5)
    assert caught.value.__notes__ == ["Picky raised this error for the row [1.0, 2.0]"]


class Counter:
    """Predicts the mean of its targets, and learns from them without weights."""

    def __init__(self):
        self.total = self.rows = 0.0

    def predict_one(self, x):
        return self.total / max(self.rows, 1.0)

    def learn_one(self, x, y):
        self.total, self.rows = self.total + y, self.rows + 1


class SingleCounter(Counter):
    single_output = True


def test_every_output_gets_a_copy_of_a_learner_of_numbers():
    """Without curvature between the outputs, each of them learns as if it were the only one."""
    X, Y = np.zeros((30, 1)), np.random.default_rng(0).uniform(-0.5, 0.5, (30, 2))
    together = HullBoost(SingleCounter(), n=1, loss=losses.SquaredEuclidean(2)).learn_many(X, Y)
    for k in range(2):
        alone = HullBoost(SingleCounter(), n=1).learn_many(X, Y[:, k])
        np.testing.assert_allclose(together[:, k], alone, atol=1e-12)


def test_messages_name_the_class_of_a_learner(tmp_path):
    class Silent:
        def predict(self, x):
            return np.nan

        def update(self, x, loss):
            raise AssertionError

    model = SpanBoost(Silent(), n=2)
    assert repr(model) == "SpanBoost(Silent(...), n=2)"
    needed = r"weak learner 0, Silent, predicted nan; one finite number is needed$"
    with pytest.raises(ValueError, match=needed):
        model.learn_one([0.0], 0.1)
    with pytest.raises(ValueError, match=r"^Silent\(...\) is code, not data"):
        save(model, tmp_path / "silent.sb")


def test_a_learner_of_one_number_is_told_how_to_predict_several():
    model = SpanBoost(Counter(), n=2, loss=losses.SquaredEuclidean(2))
    with pytest.raises(
        ValueError, match=r"predicted 0.0; 2 finite numbers .* single_output = True"
    ):
        model.learn_one([0.0], [0.1, 0.2])


@pytest.mark.parametrize(
    "learner", [SGDRegressor(random_state=0), linear_model.LinearRegression(), SingleCounter()]
)
def test_foreign_learners_learn_several_classes(learner):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = X.argmax(axis=1) + (X.sum(axis=1) < 0)
    model = SpanBoost(learner, n=2, loss=losses.Softmax(3))
    scores = model.learn_many(X, y)
    assert scores.shape == (90, 3)
    assert np.isfinite(scores).all()


def test_a_prediction_that_is_text_is_named():
    class Text(Counter):
        def predict_one(self, x):
            return "a"

    with pytest.raises(ValueError, match=r"weak learner 0, Text, predicted 'a'; one finite number"):
        SpanBoost(Text(), n=2).learn_one([0.0], 0.1)


def test_a_loss_with_a_kink_names_the_learner_of_the_user():
    with pytest.raises(ValueError, match="kink has no target, and SGDRegressor learns"):
        SpanBoost(SGDRegressor(), n=2, loss="absolute").learn_one([0.0], 0.1)


class PlainMean:
    """The mean target."""

    def __init__(self):
        self.n, self.mean = 0, 0.0

    def predict_one(self, x):
        return self.mean

    def learn_one(self, x, y):
        self.n += 1
        self.mean += (y - self.mean) / self.n


class Locked(PlainMean):
    """It holds something that cannot be copied."""

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()


def test_a_learner_that_cannot_be_copied_is_named():
    with pytest.raises(TypeError, match=r"^Locked cannot be copied: .*lock.*__deepcopy__"):
        SpanBoost(Locked())


def test_estimators_of_whole_data_sets_are_referred_to_refitted():
    batch = DecisionTreeRegressor()
    with pytest.raises(TypeError, match=r"use Refitted\(DecisionTreeRegressor\(\.\.\.\)\)"):
        SpanBoost(batch)
    with pytest.raises(TypeError, match=r"AutoBoost\(experts=\[Refitted\(DecisionTreeRegressor"):
        AutoBoost(batch)
    with pytest.raises(TypeError, match=r"^AutoBoost takes no learner; use SpanBoost\(PlainMean"):
        AutoBoost(PlainMean())
    with pytest.raises(TypeError, match=r"use SpanBoost\(Trees\(\.\.\.\)\)"):
        AutoBoost(Trees())


class Emptying(PlainMean):
    """It changes its row."""

    def learn_one(self, x, y):
        super().learn_one(x, y)
        x.clear()


def test_rows_of_the_caller_stay():
    rows = [{"a": 1.0}, {"a": 2.0}]
    SpanBoost(Emptying(), n=2).learn_many(rows, [0.1, 0.2])
    assert rows == [{"a": 1.0}, {"a": 2.0}]


class Empty:
    def partial_fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(0)


def test_an_empty_prediction_is_named_with_its_row():
    with pytest.raises(ValueError, match="weak learner 0, Empty, predicted") as caught:
        SpanBoost(Empty(), n=1).learn_many(np.ones((3, 2)), np.zeros(3))
    assert caught.value.__notes__ == ["this is row 1 of the block; the rows before it were learned"]


def test_other_errors_have_no_advice_about_texts():
    class Broken:
        def predict_one(self, x):
            raise ZeroDivisionError

        def learn_one(self, x, y):
            """Learn nothing."""

    with pytest.raises(ZeroDivisionError) as caught:
        SpanBoost(Broken(), n=2).learn_one({"city": "Ulm"}, 0.5)
    assert not any("encode texts" in note for note in caught.value.__notes__)
