"""One model for each target of rows that have several, named by dictionaries or data frames."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanboost.compiling.arrays import Array
from spanboost.errors import DataError
from spanboost.models.model import Model


class TargetModels:
    """The models so far, by target.

    new_model: returns the model of a new target; called once to refuse invalid parameters.
    """

    def __init__(self, new_model: Callable[[], Model]) -> None:
        self._new_model = new_model
        new_model()
        self.models: dict[Any, Model] = {}

    def learn(
        self, rows: Sequence[Any], targets: Mapping[Any, Sequence[Any]], weights: ArrayLike
    ) -> None:
        """Learn a block of rows; a target that is None or NaN in a row is not learned from it.

        A block that is refused changes nothing. A DataError names the row and the target.
        """
        models, blocks, each = dict[Any, Model](), dict[Any, Any](), np.asarray(weights)
        for name, values in targets.items():
            present = [t for t, value in enumerate(values) if not _is_missing(value)]
            if present:
                model = models[name] = self.models.get(name) or self._new_model()
                labels = [values[t] for t in present]
                try:
                    blocks[name] = model.check([rows[t] for t in present], labels, each[present])
                except DataError as error:
                    what = f"target {name!r:.40}: {error.what}"
                    raise DataError(present[error.row], what, error.field) from None
        for name, model in models.items():
            model.learn_checked(blocks[name])
        self.models.update(models)

    def predict(self, rows: Sequence[Any]) -> dict[Any, Array]:
        """Return the predictions of all targets so far."""
        return {name: np.asarray(model.predict_many(rows)) for name, model in self.models.items()}


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float | np.floating) and bool(np.isnan(value)))
