"""Regressors of River, with rows that are no dictionaries too."""

import inspect
from typing import Any


class RiverRegressor:
    """A regressor of River, or a pipeline that ends in one.

    A row that is a sequence is given to it as a dictionary: places and values.
    """

    def __init__(self, model: Any) -> None:
        if hasattr(model, "_multiclass"):
            raise TypeError(
                f"{type(model).__name__} is a classifier, and a weak learner predicts numbers: "
                "take a regressor"
            )
        self.model = model
        self.weighted = "w" in inspect.signature(model.learn_one).parameters

    def predict_one(self, x: Any) -> Any:
        """As the model predicts; a model that has nothing to say yet says 0."""
        prediction = self.model.predict_one(_named(x))
        return 0.0 if prediction is None else prediction

    def learn_one(self, x: Any, y: float, w: float = 1.0) -> None:
        """Learn from a target."""
        weight = {"w": w} if self.weighted else {}
        self.model.learn_one(_named(x), y, **weight)


def _named(x: Any) -> dict[Any, Any]:
    return x if isinstance(x, dict) else dict(enumerate(map(float, x)))
