"""The smallest and the largest label that a model has learned."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanboost import LinearSGD, ModelFileError, SpanBoost
from spanboost.losses import Softmax, SquaredEuclidean
from spanboost.models.committee import Committee
from spanboost.models.files import from_bytes, to_bytes
from spanboost.parallel.averaging import average
from spanboost.rows.label_ends import LabelEnds, are_ends, merge_ends

RANGES = ["auto", "growing", "auto-zero", (-1e6, 1e6)]


def new_model(label_range="auto"):
    return SpanBoost(LinearSGD(), n=1, label_range=label_range)


def learn(model, y, weights=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # wild labels are reported
        model.learn_many(np.ones((len(y), 1)), y, weights)
    return model


@pytest.mark.parametrize("label_range", RANGES)
@given(cuts=st.lists(st.integers(0, 300), max_size=4), seed=st.integers(0, 9), one=st.booleans())
@settings(max_examples=10, deadline=None)
def test_the_ends_are_those_of_the_labels_that_are_learned(label_range, cuts, seed, one):
    rng = np.random.default_rng(seed)
    y = rng.normal(5, 2, 300).round(3)
    y[250] = 1e5  # learned as if it were closer, but this is the label
    weights = rng.integers(0, 2, 300).astype(float)
    weights[250] = 1
    model, ends = new_model(label_range), [0, *sorted(cuts), 300]
    for first, last in pairwise(ends):
        if one:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for t in range(first, last):
                    model.learn_one([1.0], float(y[t]), float(weights[t]))
        elif first < last:
            learn(model, y[first:last], weights[first:last])
        model = from_bytes(to_bytes(model)) if model.started else model
    learned = y[weights > 0]
    assert model.label_ends == (learned.min(), learned.max())


def test_models_before_the_first_label_vectors_and_classes_have_no_ends():
    assert new_model().label_ends is None
    assert learn(new_model(), np.ones(3), np.zeros(3)).label_ends is None
    vectors = SpanBoost(LinearSGD(), n=1, loss=SquaredEuclidean(2), label_range="auto")
    assert learn(vectors, np.ones((3, 2))).label_ends is None
    classes = SpanBoost(LinearSGD(), n=1, loss=Softmax(3))
    assert learn(classes, np.array([0, 1, 2])).label_ends is None


def test_the_ends_of_a_file_of_an_earlier_version_stay_unknown():
    model = learn(new_model(), np.arange(5.0))
    old = new_model()
    state = model.labels.to_json()
    del state["ends"]
    old.labels.restore(state)
    old.labels.count_single(9.0)
    assert old.label_ends is None
    assert "ends" not in old.labels.to_json()


@pytest.mark.parametrize("ends", [[1], [2.0, 1.0], ["a", "b"], [0, float("nan")], {}, 3, [0, None]])
def test_damaged_ends_are_refused(ends):
    labels = learn(new_model(), np.arange(5.0)).labels
    assert not are_ends(ends)
    with pytest.raises(ModelFileError, match="label range"):
        labels.restore(labels.to_json() | {"ends": ends})


def test_committees_and_averages_have_the_ends_of_all():
    low, high = learn(new_model(), np.arange(0.0, 5.0)), learn(new_model(), np.arange(0.0, 9.0))
    committee = Committee([low, high])
    assert committee.label_ends == (0.0, 8.0)
    assert average(new_model(), [low, high]).label_ends == (0.0, 8.0)


def test_ends_are_unknown_together_if_one_is_unknown():
    assert merge_ends([LabelEnds(0, 1), LabelEnds(-2, 0.5)]) == (-2, 1)
    assert merge_ends([LabelEnds(0, 1), None]) is None
    assert merge_ends([]) is None
