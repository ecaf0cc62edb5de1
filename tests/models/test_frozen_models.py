"""Models written by version 0.1.0 load and predict the same, and can be reproduced."""

import frozen_models
import numpy as np
import pytest
from safetensors.numpy import load_file

from spanboost import load, save

NEAR = 1e-6  # processors differ in the last bits of exp and log


@pytest.mark.parametrize("name", frozen_models.MODELS)
def test_a_file_of_version_0_1_loads_and_predicts_the_same(name):
    model = load(frozen_models.FOLDER / f"{name}.sb")
    X, y = frozen_models.MODELS[name][1]()
    expected = np.load(frozen_models.FOLDER / f"{name}.npz")
    np.testing.assert_allclose(model.predict_many(X), expected["after"], rtol=NEAR, atol=NEAR)
    model.learn_many(X, y)


@pytest.mark.parametrize("name", frozen_models.MODELS)
def test_the_same_rows_give_the_same_model(name, tmp_path):
    model, before = frozen_models.learn(name)
    expected = np.load(frozen_models.FOLDER / f"{name}.npz")
    np.testing.assert_allclose(before, expected["before"], rtol=NEAR, atol=NEAR)
    save(model, tmp_path / "again.sb")
    again, kept = load_file(tmp_path / "again.sb"), load_file(frozen_models.FOLDER / f"{name}.sb")
    assert {key: (value.dtype, value.shape) for key, value in again.items()} == {
        key: (value.dtype, value.shape) for key, value in kept.items()
    }
    for key, value in kept.items():
        np.testing.assert_allclose(again[key], value, rtol=1e-4, atol=1e-5, err_msg=key)
