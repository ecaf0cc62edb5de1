"""The losses of predictions, as progressive validation counts them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.losses import Softmax, is_binary, on_vectors, scores_of, values_of

if TYPE_CHECKING:
    from spanboost.models.model import Model


def losses_of(model: Model, y: Any, answers: Array) -> Array:
    """Return the loss of each row, [rows], in the units of the labels."""
    loss = on_vectors(model.loss_)
    if isinstance(model.loss_, Softmax):
        y = np.eye(loss.d)[np.asarray(y, np.int64)]
    elif is_binary(model.loss_):  # the lower label may be 0 or False
        y = np.where(np.asarray(y, np.float64) > model.labels.centre.item(), 1.0, -1.0)
    shape, answers = (len(answers), loss.d), scores_of(model.loss_, answers)
    return values_of(loss, *(np.array(v, np.float64).reshape(shape) for v in (y, answers)))
