"""The sample of rows in model files: invalid ones are refused."""

import numpy as np
import pytest
from forged import changed, file_arrays

from spanboost import AutoBoost, LinearSGD, ModelFileError, SpanBoost, load, save
from spanboost.losses import Softmax


def damage(name, value):
    """Return an edit that replaces the first number of an array."""

    def edit(tensors):
        array = tensors[name].copy()
        array.flat[0] = value
        return tensors | {name: array}

    return edit


def shorten(tensors):
    return tensors | {"sample.weights": tensors["sample.weights"][:-1]}


def narrow(tensors):
    return tensors | {"sample.labels": tensors["sample.labels"].astype(np.float32)}


def repeat(tensors):
    twice = {k: np.concatenate([v, v]) for k, v in tensors.items() if k.startswith("sample.")}
    return tensors | twice


@pytest.mark.parametrize(
    "edit",
    [
        damage("sample.labels", np.nan),
        damage("sample.labels", 0.5),
        damage("sample.labels", 3.0),
        damage("sample.labels", -1.0),
        damage("sample.weights", 0.0),
        damage("sample.weights", np.inf),
        shorten,
        narrow,
        repeat,
    ],
)
def test_invalid_samples_are_refused(edit, tmp_path):
    path = tmp_path / "model.sb"
    model = SpanBoost(LinearSGD(), 2, loss=Softmax(3), D=6.0)
    model.learn_many(np.ones((4, 2)), [0, 1, 2, 1])
    save(model, path)
    changed(path, tensors=edit)
    with pytest.raises(ModelFileError, match="the sampled rows are"):
        load(path)


def test_only_the_first_expert_keeps_a_sample(tmp_path):
    model = AutoBoost(budget="fast")
    model.learn_many(np.ones((4, 2)), [0.0, 1.0, 2.0, 1.0])
    save(model, tmp_path / "model.sb")
    arrays = file_arrays(tmp_path / "model.sb")
    assert {name.split(".")[0] for name in arrays if ".sample." in name} == {"0"}
    np.testing.assert_array_equal(arrays["0.sample.labels"][:, 0], [0, 1, 2, 1])


def test_rows_for_replay_become_the_sample_of_an_older_file(tmp_path):
    X = np.arange(40.0).reshape(20, 2)
    model = SpanBoost(LinearSGD(), 2, label_range=(0, 20), replay=1, memory=10)
    model.learn_many(X, np.arange(20.0))
    path = tmp_path / "model.sb"
    save(model, path)
    changed(path, tensors=lambda t: {k: v for k, v in t.items() if not k.startswith("sample.")})
    sample = load(path).row_sample
    np.testing.assert_allclose(np.sort(sample.labels[: sample.kept, 0]), np.arange(10, 20))
    np.testing.assert_allclose(sample.rows.X[: sample.kept, 0], 2 * sample.labels[: sample.kept, 0])
