"""The labels of a model that predicts and does not learn (models/compact.py)."""

import math
from typing import Any, NoReturn

from spanboost.compiling.arrays import Array
from spanboost.errors import ModelFileError, UserError
from spanboost.rows.labels import LabelHealth, Labels
from spanboost.rows.mean_labels import to_means


class PredictionLabels(Labels):
    """The label range and the counts of a model that does not learn, without its largest labels.

    Every way to learn a row asks the labels first, so this class refuses all of them.
    """

    def __init__(self, labels: Labels) -> None:
        super().__init__(labels.loss, labels.d, 0.0, labels.half)
        self.centre, self.limits = labels.centre.copy(), labels.limits
        self.rows, self.seen = labels.rows, labels.seen
        self._health = labels.health

    @property
    def health(self) -> LabelHealth:
        """Facts about the labels that were learned."""
        return self._health

    def plan(self, y: Any, weights: Array) -> NoReturn:
        """Raise a UserError: the model cannot learn."""
        raise UserError(
            "a compact model predicts but cannot learn; load the full model file, which `save` "
            "writes without compact=True"
        )

    def single(self, y: Any) -> NoReturn:
        """Raise a UserError: the model cannot learn."""
        self.plan(y, y)

    def to_units(self, values: Array) -> Array:
        """Return float64 values [rows, d] in label units; scores are not converted."""
        return to_means(values, self.half) if self.log_link else super().to_units(values)

    def to_json(self) -> dict[str, Any]:
        """Return the range and the counts, as a model file holds them."""
        return super().to_json() | {"health": self._health._asdict()}

    def restore(self, state: dict[str, Any]) -> None:
        """Set the range and the counts to those that `to_json` returned."""
        super().restore(state)
        self.ends = None  # earlier versions wrote it; predictions do not depend on it
        health = LabelHealth(**state["health"])
        if not all(one is None or (type(one) is int and one >= 0) for one in health):
            raise ModelFileError("the facts about the labels are invalid")
        self._health = health

    def _allows(self, centre: Array, half: float) -> bool:
        return math.isfinite(half) and half >= 0 and all(map(math.isfinite, centre))
