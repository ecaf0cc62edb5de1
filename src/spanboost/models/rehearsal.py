"""Rehearsals: a copy of a model learns and predicts one row, to see which code it needs."""

import copy
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from spanboost.compiling.rehearsal import Need, recorded_jobs
from spanboost.data.batch import as_batch

if TYPE_CHECKING:
    from spanboost.models.model import Model


def rehearse(model: "Model", X: Any, y: Any) -> Need:
    """Return the code that the model needs to learn rows like these, and to predict them.

    It is only used to compile early, so it may be incomplete: if the first row is invalid, which
    the real call reports, and if a part of the model is code of the user, which must not run more
    often than the user asks for.
    """
    need = Need([], [])
    with suppress(Exception), np.errstate(all="ignore"):
        model.parameters()  # a ValueError if a part is code
        row = as_batch(X, y).part(0, 1)
        with recorded_jobs(need.now):
            double = copy.deepcopy(model)
            double.learn_many(row.X, row.labels)
        with recorded_jobs(need.later):
            if isinstance(X, list) and len(X) == 1:
                double.predict_one(X[0])  # first, because more single rows follow
            double.predict_many(row.X)
    return need
