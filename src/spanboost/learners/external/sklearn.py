"""Adapter for scikit-learn regressors with `partial_fit`."""

import inspect
from typing import Any

import numpy as np

from spanboost.learners.external import to_vector


class PartialFit:
    """A regressor with `partial_fit(X, y)` and `predict(X)`, called with one row at a time.

    It predicts 0 until it has learned a row. The values of a dictionary are passed on in the order
    of the first one.
    """

    single_output = True
    names: list[Any] | None = None  # the keys of the first row that is a dictionary

    def __init__(self, regressor: Any) -> None:
        names = inspect.signature(regressor.partial_fit).parameters
        if "classes" in names:
            raise TypeError(
                f"{type(regressor).__name__} is a classifier, but weak learners predict numbers: "
                "use a regressor"
            )
        self.regressor, self.started = regressor, False
        self.weighted = "sample_weight" in names

    def predict_one(self, x: Any) -> Any:
        """Return the regressor's prediction."""
        if not self.started:
            return 0.0
        answers = np.asarray(self.regressor.predict(self._block(x)))
        return answers[0] if answers.size else answers

    def learn_one(self, x: Any, y: float, w: float = 1.0) -> None:
        """Learn from a target."""
        weight = {"sample_weight": [w]} if self.weighted else {}
        self.regressor.partial_fit(self._block(x), [y], **weight)
        self.started = True

    def _block(self, x: Any) -> Any:
        values = self._values(x) if isinstance(x, dict) else x
        return to_vector(values, self.regressor).reshape(1, -1)

    def _values(self, x: dict[Any, Any]) -> list[Any]:
        if self.names is None:
            self.names = [*x]
        if x.keys() != {*self.names}:
            different = ", ".join(sorted(map(repr, x.keys() ^ {*self.names})))
            raise ValueError(
                f"{type(self.regressor).__name__} needs all rows to have the same columns; these "
                f"are not in all of them: {different:.200}"
            )
        return [x[name] for name in self.names]
