"""Check the JSON form of a CatBoost model before CatBoost reads it.

CatBoost trusts its files, as LightGBM does (lightgbm_text.py). Trees of its usual kind, which ask
one question on each level, are checked here.
"""

from typing import Any

from spanboost.errors import ModelFileError


def check_catboost_json(content: Any) -> None:
    """Raise a ModelFileError if the trees of a model refer to what does not exist."""
    try:
        features = content["features_info"].get("float_features", [])
        borders = sum(len(one["borders"]) for one in features)
        flat = [one["flat_feature_index"] for one in features]
        sound = sorted(flat) == list(range(len(flat)))
        outputs = len(content["scale_and_bias"][1])
        for tree in content.get("oblivious_trees", ()):
            sound = sound and _is_sound(tree, len(features), borders, outputs)
    except (AttributeError, KeyError, TypeError, IndexError):
        sound = False
    if not sound:
        raise ModelFileError("the trees of CatBoost are invalid")


def _is_sound(tree: Any, features: int, borders: int, outputs: int) -> bool:
    splits = tree["splits"] or []  # null for a tree without splits
    return len(tree["leaf_values"]) == outputs * 2 ** len(splits) and all(
        split["split_type"] == "FloatFeature"
        and 0 <= split["float_feature_index"] < features
        and 0 <= split["split_index"] < borders
        for split in splits
    )
