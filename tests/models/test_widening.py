"""Classes that appear in the stream."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanboost import (
    AutoBoost,
    HullBoost,
    LinearBall,
    LinearSGD,
    Network,
    Ridge,
    SpanBoost,
    Stumps,
    Team,
    Trees,
    load,
    save,
    tune,
)
from spanboost.checks import MOST_CLASSES
from spanboost.errors import DataError
from spanboost.losses import Softmax
from spanboost.models.widening import ABSENT, class_spans
from spanboost.theory.measured_pass import audit

LEARNERS = (LinearSGD(), Stumps(), Network(), Trees(depth=4), Ridge())
BOOSTERS = (SpanBoost, HullBoost)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 3))
Y = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-1, -0.3, 0.3, 1])
LATE = np.where((Y >= 3) & (np.arange(240) < 120), 0, Y)  # two classes appear in the second half


def boost(learner, booster=SpanBoost, loss="softmax", **parameters):
    return booster(learner, n=3, loss=loss, D=3.0, **parameters)


def split(model, bounds):
    parts = [model.learn_many(X[a:b], LATE[a:b]) for a, b in pairwise([0, *bounds, 240])]
    wide = [np.pad(one, ((0, 0), (0, 5 - one.shape[1])), constant_values=ABSENT) for one in parts]
    return np.concatenate(wide)


@pytest.mark.parametrize("booster", BOOSTERS)
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda one: type(one).__name__)
def test_adding_classes_keeps_all_scores(learner, booster):
    model = boost(learner, booster, replay=1)
    model.learn_many(X[:120], LATE[:120])
    before, rows = model.predict_many(X), model.labels.rows
    model.add_classes(7)
    after = model.predict_many(X)
    assert np.array_equal(after[:, :3], before)
    assert not after[:, 3:].any()
    assert model.labels.rows == rows


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda one: type(one).__name__)
def test_adding_classes_keeps_features_that_appeared_one_by_one(learner):
    model = boost(learner, replay=1)
    rows = [{f"f{k}": float(X[t, 0]) for k in range(1 + t % (2 + t // 6))} for t in range(240)]
    for t in range(0, 120, 6):
        model.learn_many(rows[t : t + 6], LATE[t : t + 6])
    before = model.predict_many(rows)
    model.add_classes(7)
    assert np.array_equal(model.predict_many(rows)[:, :3], before)
    model.learn_many(rows[120:], LATE[120:])
    assert np.isfinite(model.predict_many(rows)).all()


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda one: type(one).__name__)
@settings(max_examples=5, deadline=None)
@given(bounds=st.lists(st.integers(1, 239), unique=True, max_size=4).map(sorted))
def test_blocks_of_any_size_give_the_same_bits(learner, bounds):
    whole, parts = boost(learner, replay=1), boost(learner, replay=1)
    assert np.array_equal(whole.learn_many(X, LATE), split(parts, bounds))
    assert np.array_equal(whole.predict_many(X), parts.predict_many(X))


def test_auto_boost_adds_classes_in_blocks_and_single_rows(tmp_path):
    whole, parts = AutoBoost("softmax", budget="fast"), AutoBoost("softmax", budget="fast")
    answers = whole.learn_many(X, LATE)
    for t in range(240):
        single = parts.learn_one(X[t], LATE[t])
        assert np.array_equal(single, answers[t, : len(single)])
    assert whole.loss_ == parts.loss_ == Softmax(5)
    save(whole, tmp_path / "model.sb")
    again = load(tmp_path / "model.sb")
    assert again.loss_ == Softmax(5)
    assert np.array_equal(again.predict_many(X), whole.predict_many(X))
    more = np.append(LATE[:-1], 6)
    assert np.array_equal(again.learn_many(X, more), whole.learn_many(X, more))


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda one: type(one).__name__)
def test_a_new_class_is_learned(learner):
    model = boost(learner, label_range=(-1, 1))
    rows, classes = np.tile([[1.0, 0.0], [0.0, 1.0]], (400, 1)), np.tile([0, 1], 400)
    model.learn_many(rows, classes)
    classes[0::2] = 2  # the first kind of row gets another label
    model.learn_many(rows, classes)
    assert model.predict_many(rows[:2]).argmax(axis=1).tolist() == [2, 1]


def test_classes_before_their_first_label_are_absent():
    answers = boost(LinearSGD()).learn_many(X, LATE)
    first = [int(np.argmax(c <= LATE)) for c in range(2, 5)]
    for c, row in zip(range(2, 5), first, strict=True):
        assert (answers[:row, c] == ABSENT).all()
        assert (answers[row:, c] > ABSENT).all()
    assert np.exp(ABSENT) < 1e-299


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(2, 8))
def test_spans_end_where_a_larger_class_appears(classes, d):
    spans = list(class_spans(np.eye(10)[classes], d))
    assert [t for first, last, _ in spans for t in range(first, last)] == list(range(len(classes)))
    for first, last, known in spans:
        assert known == max(d, *(c + 1 for c in classes[: first + 1]))
        assert max(classes[first:last]) < known


def test_labels_that_cannot_be_classes_change_nothing():
    model = boost(LinearSGD())
    model.learn_many(X, LATE)
    before = model.predict_many(X)
    for label in (MOST_CLASSES, -1, 0.5, "1"):
        with pytest.raises(DataError, match="is not a class number from 0 to 999"):
            model.learn_many(X[:2], [7, label])
    assert np.array_equal(model.predict_many(X), before)
    assert model.loss_ == Softmax(5)


def test_what_needs_the_number_of_classes_says_so():
    growing = boost(LinearSGD())
    for use in (
        lambda: boost(LinearBall()),
        lambda: Team(growing, 2),
        lambda: tune(X, Y, learner=LinearSGD(), n=2, loss="softmax"),
        lambda: audit(growing, X, Y, np.zeros((240, 2))),
    ):
        with pytest.raises(ValueError, match=r"loss must be Softmax\(d\)"):
            use()
