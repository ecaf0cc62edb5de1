"""Predictions as tables: the classes that a model knows, and their probabilities."""

import numpy as np
import pytest

from spanboost import LinearSGD, SpanBoost
from spanboost.data.schema import Schema
from spanboost.data.target import BinaryTarget
from spanboost.models.predictions import binary_labels, known_classes, prediction_table

X = np.array([[1.0], [2.0], [3.0]])


def binary(labels, positive=None):
    """Return a model of two classes that has learned these labels, as a file has them."""
    target = BinaryTarget(positive)
    encoded = [target.encode_text(label) for label in labels]
    model = SpanBoost(LinearSGD(), n=2, loss="logistic")
    model.learn_many(X[: len(encoded)], encoded)
    model.schema = Schema("jsonl", target=target)
    return model


def table(model):
    return prediction_table(model, model.predict_many(X)).to_pydict()


@pytest.mark.parametrize("label", ["no", "yes", "true", "unseen 1"])
def test_a_class_that_never_appeared_is_not_predicted(label):
    model = binary([label])
    assert known_classes(model) == [label]
    assert table(model) == {"prediction": [label] * 3, f"p_{label}": [1.0] * 3}


@pytest.mark.parametrize(
    ("labels", "positive", "names"),
    [
        (["1"], None, ["-1", "1"]),  # the other label is known
        (["0"], None, ["0", "1"]),
        (["a", "b"], None, ["a", "b"]),
        (["yes", "no"], None, ["no", "yes"]),
        (["a"], "b", ["a", "b"]),
    ],
)
def test_both_classes_have_probabilities_if_they_are_known(labels, positive, names):
    model = binary(labels, positive)
    found = table(model)
    assert list(found) == ["prediction", *(f"p_{name}" for name in names)]
    expected = 1 / (1 + np.exp(-model.predict_many(X)))
    np.testing.assert_allclose(found[f"p_{names[1]}"], expected)
    np.testing.assert_allclose(found[f"p_{names[0]}"], 1 - expected)
    assert found["prediction"] == [names[int(share > 0.5)] for share in expected]


class GrowingTarget(BinaryTarget):
    """Learns its second label while the labels are read, as in a service."""

    @property
    def values(self):
        found = [*self._labels]
        if found == ["yes"]:
            self._labels.insert(0, "no")
            self.affirmed = False
        return found

    @values.setter
    def values(self, labels):
        self._labels = labels


def test_labels_are_read_once_while_a_service_learns():
    for read, labels in (
        (lambda model: binary_labels(model.schema.target), ("unseen 0", "yes")),
        (known_classes, ["yes"]),
    ):
        model = binary(["no"])
        model.schema.target = GrowingTarget()
        model.schema.target.values, model.schema.target.affirmed = ["yes"], True
        assert read(model) == labels
        assert [*read(model)] == ["no", "yes"]
