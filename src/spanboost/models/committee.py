"""Several boosters of one kind that have learned different rows: they answer by their average."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.models.booster import Booster, single_answer
from spanboost.rows.labels import Labels


class Committee:
    """Made of boosters with the same parameters, by `Team` where learners cannot be averaged.

    Answers are averages of the members' answers, in the users' units. Rows that it is given from
    then on are learned by all members.
    """

    def __init__(self, members: Sequence[Booster]) -> None:
        if not members:
            raise ValueError("a committee has members")
        self.members = list(members)
        first = self.members[0]
        self.learner, self.n, self.loss_ = first.learner, first.n, first.loss_
        self.schema: Any = first.schema  # how files were read for it, if they were

    def predict_one(self, x: Any) -> Any:
        """The prediction for one row: a number, or a vector of R^d."""
        return single_answer(self.predict_many([x]))

    def learn_one(self, x: Any, y: Any, weight: float = 1.0) -> Any:
        """Learn one row; returns the prediction made before the label was seen."""
        return single_answer(self.learn_many([x], [y], [weight]))

    def predict_many(self, X: Any) -> Array:
        """Predictions for a block of rows; learns nothing."""
        return np.mean([member.predict_many(X) for member in self.members], axis=0)

    def learn_many(self, X: Any, y: Any, weights: Any = None) -> Array:
        """Learn a block of rows, in order; returns the predictions, each made before its label.

        As for `SpanBoost`: the whole block is checked first.
        """
        blocks = [member.checked(X, y, weights) for member in self.members]
        pairs = zip(self.members, blocks, strict=True)
        return np.mean([member.learn_checked(block) for member, block in pairs], axis=0)

    @property
    def _labels(self) -> Labels:
        """Those of the member that has seen the last row."""
        return max((member._labels for member in self.members), key=lambda labels: labels.rows)

    @property
    def started(self) -> bool:
        """Whether it has seen a row."""
        return all(member.started for member in self.members)

    def __repr__(self) -> str:
        return f"<Committee of {len(self.members)}: {self.members[0]!r}>"
