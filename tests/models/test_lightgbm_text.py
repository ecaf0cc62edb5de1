"""The check of LightGBM's text form accepts its models and refuses wrong indices."""

import re

import numpy as np
import pytest

from spanboost.errors import ModelFileError
from spanboost.models.refitting.lightgbm_text import check_lightgbm_text

lightgbm = pytest.importorskip("lightgbm")


@pytest.fixture(scope="module")
def text():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-1, 1, (500, 2)), rng.integers(0, 100, 500)])
    X[::9, 0] = np.nan
    y = X[:, 0] + np.sin(X[:, 2])
    quiet = {"verbosity": -1, "num_threads": 1, "min_data_per_group": 5, "cat_smooth": 1}
    rows = lightgbm.Dataset(X, np.nan_to_num(y), categorical_feature=[2], params=quiet)
    return lightgbm.train(quiet, rows, 5).model_to_string()


def test_models_of_lightgbm_are_sound(text):
    assert "cat_threshold" in text
    check_lightgbm_text(text)
    one = lightgbm.Dataset(np.zeros((50, 1)), np.arange(50.0), params={"verbosity": -1})
    single = lightgbm.train({"verbosity": -1}, one, 2)  # trees without a split
    check_lightgbm_text(single.model_to_string())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("split_feature", "3"),
        ("split_feature", "-1"),
        ("left_child", "0"),
        ("left_child", "999"),
        ("right_child", "-999"),
        ("right_child", "999"),
        ("num_leaves", "999"),
        ("num_leaves", "0"),
        ("num_cat", "99"),
        ("cat_boundaries", "1"),
        ("leaf_value", ""),
        ("threshold", "x"),
        ("max_feature_idx", "1"),
        ("max_feature_idx", "none"),
        ("is_linear", "1"),
    ],
)
def test_wrong_numbers_are_refused(text, name, value):
    found = re.search(rf"^{name}=(\S+)", text, re.MULTILINE)
    assert found is not None
    forged = text[: found.start(1)] + value + text[found.end(1) :]
    with pytest.raises(ModelFileError, match="the trees of LightGBM are invalid"):
        check_lightgbm_text(forged)


def test_a_text_without_trees_is_refused(text):
    for forged in ("", "tree", text.partition("Tree=0")[0]):
        with pytest.raises(ModelFileError, match="the trees of LightGBM are invalid"):
            check_lightgbm_text(forged)
