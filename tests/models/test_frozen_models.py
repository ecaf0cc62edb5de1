"""Models written by version 0.1.0 load and predict the same, and can be reproduced."""

import frozen_models
import numpy as np
import pytest
from forged import file_arrays

from spanboost import LabelWarning, load, save

NEAR = 1e-6  # processors differ in the last bits of exp and log


def unnumbered(tensors):
    """Return the arrays without the numbers of nodes; tables of nodes and records are sorted."""
    numbers = (".link", ".owner", ".touched")
    return {
        key: np.sort(value, axis=0) if "bank." in key and "state" not in key else value
        for key, value in tensors.items()
        if not key.endswith(numbers)
    }


def shapes(tensors):
    """Return types and shapes; version 0.1.0 kept no sample of the rows."""
    kept = {key: value for key, value in tensors.items() if "sample." not in key}
    return {key: (value.dtype, value.shape) for key, value in kept.items()}


@pytest.mark.parametrize("name", frozen_models.MODELS)
def test_a_file_of_version_0_1_loads_and_predicts_the_same(name):
    model = load(frozen_models.FOLDER / f"{name}.sb")
    X, _ = frozen_models.MODELS[name][1]()
    expected = np.load(frozen_models.FOLDER / f"{name}.npz")
    np.testing.assert_allclose(model.predict_many(X), expected["after"], rtol=NEAR, atol=NEAR)


@pytest.mark.parametrize("name", frozen_models.MODELS)
def test_a_file_of_version_0_1_learns_on_as_it_began(name):
    """Version 0.1.0 loaded its own files, learned the same rows again, and gave these answers."""
    model = load(frozen_models.FOLDER / f"{name}.sb")
    X, y = frozen_models.MODELS[name][1]()
    expected = np.load(frozen_models.FOLDER / "continued.npz")[name]
    np.testing.assert_allclose(model.learn_many(X, y), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["span-linear-named-auto-range", "span-trees-replay"])
def test_a_growing_range_of_version_0_1_keeps_growing_bit_for_bit(name, tmp_path):
    loaded, (model, _) = load(frozen_models.FOLDER / f"{name}.sb"), frozen_models.learn(name)
    assert loaded.label_range == model.label_range == "growing"
    assert (loaded.labels.half, *loaded.labels.centre) == (model.labels.half, *model.labels.centre)
    X, y = frozen_models.MODELS[name][1]()
    far = y.copy()
    far[60] = 1e6
    with pytest.warns(LabelWarning, match="half-widths from the centre"):
        loaded.learn_many(X, far)
    assert loaded.labels.half >= 9e5
    save(loaded, tmp_path / "again.sb")
    assert load(tmp_path / "again.sb").label_range == "growing"


def test_the_parts_of_models_of_version_0_1_keep_growing():
    for name in ("auto-fast", "auto-fast-logistic", "committee-trees"):
        model = load(frozen_models.FOLDER / f"{name}.sb")
        ranges = {part.label_range for part in model.parts.values()}
        assert ranges == {"growing" if name == "auto-fast" else (-1, 1)}
    assert load(frozen_models.FOLDER / "auto-fast.sb").label_range == "growing"


@pytest.mark.parametrize(
    "name", [name for name in frozen_models.MODELS if not name.startswith("auto")]
)
def test_the_same_rows_give_the_same_model(name, tmp_path):
    """AutoBoost has other experts, and another way to combine them, since then."""
    model, before = frozen_models.learn(name)
    expected = np.load(frozen_models.FOLDER / f"{name}.npz")
    np.testing.assert_allclose(before, expected["before"], rtol=NEAR, atol=NEAR)
    save(model, tmp_path / "again.sb")
    again, kept = (
        file_arrays(tmp_path / "again.sb"),
        file_arrays(frozen_models.FOLDER / f"{name}.sb"),
    )
    if "trees" in name:  # these were numbered in another way
        save(load(frozen_models.FOLDER / f"{name}.sb"), tmp_path / "kept.sb")
        again, kept = unnumbered(again), unnumbered(file_arrays(tmp_path / "kept.sb"))
    assert shapes(again) == shapes(kept)
    for key, value in kept.items():
        if "sample." in key:
            continue
        np.testing.assert_allclose(again[key], value, rtol=1e-4, atol=1e-5, err_msg=key)
