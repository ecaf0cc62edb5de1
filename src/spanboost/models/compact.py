"""Compact models: everything that predictions depend on, and nothing else.

A compact model has no rows for replay, no sample of rows, no statistics of candidate splits, no
squared gradients and no history of labels. Its predictions have the same bits as those of the full
model. It refuses to learn (rows/prediction_labels.py). Prediction files and exports start from it.
"""

import copy
from typing import Any, TypeVar

from spanboost.errors import UserError, warn_caller
from spanboost.learners.tree_tables import predicting_part
from spanboost.models.booster_core import BoosterCore
from spanboost.models.header import not_data_error
from spanboost.models.model import Model
from spanboost.models.one_at_a_time import lock_of
from spanboost.models.wrapper import WrappedModel
from spanboost.rows.prediction_labels import PredictionLabels

M = TypeVar("M", bound=Model)


def compact_model(model: M) -> M:
    """Return a copy of a model that predicts as `without_corrections` does, and does not learn.

    A warning says that a model has corrections, since its copy has none.

    >>> import numpy as np
    >>> from spanboost import SpanBoost, Trees
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> model = SpanBoost(Trees(), n=8, label_range="auto")
    >>> predictions = model.learn_many(X, X[:, 0] * X[:, 1])
    >>> small = compact_model(model)
    >>> bool((small.predict_many(X) == model.predict_many(X)).all())
    True
    >>> small.learn_one(X[0], 1.0)
    Traceback (most recent call last):
        ...
    spanboost.errors.UserError: a compact model predicts but cannot learn; ...
    """
    check_compact(model)
    if not model.started:
        raise UserError(
            "the model has not learned any rows yet; train it before you export it or save it as a "
            "compact model"
        )
    plain = model.without_corrections()
    if plain is not model:
        warn_caller(
            UserWarning(
                "recent rows and past labels are not exported: the export predicts with the "
                "experts alone, as model.without_corrections() does"
            )
        )
    model = plain
    for booster in model.stored_boosters():
        if not booster.core.is_data:
            raise not_data_error(booster.core.learner)
    copies: dict[int, Any] = {}
    with lock_of(model):
        for booster in model.stored_boosters():
            copies[id(booster.core)] = compact_core(booster.core, copies)
        # deepcopy takes these copies instead of copying the cores, which may be large
        return copy.deepcopy(model, copies)


def check_compact(model: Model) -> None:
    """Raise a UserError if a compact copy would be calibrated for other predictions than its own.

    Intervals, sets and probabilities are calibrated for predictions with corrections.
    """
    if isinstance(model, WrappedModel) and model.without_corrections() is not model:
        raise UserError(
            f"{type(model).__name__} was calibrated with recent rows or past labels, which a "
            "compact model does not have; train it without --recent, --past and --key (in Python, "
            "with recent=False and past=False)"
        )


def compact_core(core: BoosterCore, copies: dict[int, Any]) -> BoosterCore:
    """Return a copy of a core that predicts the same and does not learn.

    copies: what has been copied so far, as `deepcopy` keeps it.
    """
    small = copy.copy(core)
    small.records = None
    small.encoder = copy.deepcopy(core.encoder, copies)
    small.state = copy.deepcopy(core.state._replace(bank=predicting_part(core.state.bank)))
    small.restrict()
    return small


def is_compact(model: Any) -> bool:
    """Return whether a model predicts and does not learn."""
    return isinstance(model.labels, PredictionLabels)
