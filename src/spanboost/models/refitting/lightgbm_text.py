"""Check the text form of a LightGBM model before LightGBM reads it.

LightGBM trusts its files: an index beyond its arrays reads memory that is not its own. A model file
may come from anyone, so all indices of the trees are checked here.
"""

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.errors import ModelFileError

_CATEGORICAL = 1  # bit of a decision type


def check_lightgbm_text(text: str) -> None:
    """Raise a ModelFileError if the trees of a text refer to what does not exist."""
    start, *trees = text.partition("end of trees")[0].split("\nTree=")
    try:
        features = 1 + int(_fields(start)["max_feature_idx"])
        sound = all(_is_sound(_fields(tree), features) for tree in trees)
    except (KeyError, ValueError):
        sound = False
    if not sound or not trees:
        raise ModelFileError("the trees of LightGBM are invalid")


def _fields(block: str) -> dict[str, str]:
    lines = [line.partition("=") for line in block.splitlines()]
    return {name: value for name, equals, value in lines if equals}


def _is_sound(tree: dict[str, str], features: int) -> bool:
    leaves, categories = int(tree["num_leaves"]), int(tree["num_cat"])
    if leaves < 1 or int(tree.get("is_linear", "0")) != 0 or not _has(tree, "leaf_value", leaves):
        return False
    if leaves == 1:
        return True
    splits = leaves - 1
    numbers = ("split_feature", "decision_type", "left_child", "right_child")
    if not all(_has(tree, name, splits) for name in (*numbers, "threshold")):
        return False
    feature, kind, left, right = (_integers(tree[name]) for name in numbers)
    node = np.arange(splits)
    for child in (left, right):  # a node comes before its children; -1 is the first leaf
        inside = ((child > node) & (child < splits)) | ((child < 0) & (child >= -leaves))
        if not inside.all():
            return False
    thresholds = np.array(tree["threshold"].split(), np.float64)[(kind & _CATEGORICAL) > 0]
    return (
        bool(((feature >= 0) & (feature < features)).all())
        and bool(((thresholds >= 0) & (thresholds < categories)).all())
        and (categories == 0 or _has_sets(tree, categories))
    )


def _has_sets(tree: dict[str, str], categories: int) -> bool:
    """Return whether the sets of categories lie within their table."""
    bounds, words = _integers(tree["cat_boundaries"]), tree["cat_threshold"].split()
    return (
        len(bounds) == categories + 1
        and bounds[0] == 0
        and bounds[-1] == len(words)
        and bool((np.diff(bounds) > 0).all())
    )


def _has(tree: dict[str, str], name: str, number: int) -> bool:
    return len(tree[name].split()) == number


def _integers(text: str) -> Array:
    return np.array(text.split(), np.int64)
