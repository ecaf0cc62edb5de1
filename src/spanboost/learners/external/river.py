"""Adapter for River regressors, which also accepts rows that are not dictionaries."""

import inspect
from typing import Any


class RiverRegressor:
    """A River regressor, or a pipeline that ends in one.

    A row that is a sequence is passed on as a dictionary from positions to values.
    """

    single_output = True

    def __init__(self, model: Any) -> None:
        if hasattr(model, "_multiclass"):
            raise TypeError(
                f"{type(model).__name__} is a classifier, but weak learners predict numbers: "
                "use a regressor"
            )
        self.model = model
        self.weighted = "w" in inspect.signature(model.learn_one).parameters

    def predict_one(self, x: Any) -> Any:
        """Return the model's prediction, or 0 if it has none yet."""
        prediction = self.model.predict_one(_to_dict(x))
        return 0.0 if prediction is None else prediction

    def learn_one(self, x: Any, y: float, w: float = 1.0) -> None:
        """Learn from a target."""
        weight = {"w": w} if self.weighted else {}
        self.model.learn_one(_to_dict(x), y, **weight)


def _to_dict(x: Any) -> dict[Any, Any]:
    return x if isinstance(x, dict) else dict(enumerate(map(float, x)))
