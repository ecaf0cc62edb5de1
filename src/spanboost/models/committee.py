"""Committee: the average of boosters with equal parameters that learned different rows."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.interrupts import finishes
from spanboost.errors import ModelFileError
from spanboost.models.booster import Booster
from spanboost.models.booster_core import CheckedBlock
from spanboost.models.members import members_header, members_tensors, restore_members
from spanboost.models.model import Composition, Model
from spanboost.rows.encoder import RowEncoder
from spanboost.rows.label_ends import LabelEnds, merge_ends
from spanboost.rows.labels import LabelHealth, Labels
from spanboost.rows.user_types import RowsLike


class Committee(Model):
    """Boosters with the same parameters. `Team` returns one if learners cannot be averaged.

    Predictions are the averages of the members' predictions, in label units. Every member learns
    all rows that the committee learns.
    """

    why_not_covered = "a committee averages several boosters; the theorems are about one booster"

    def __init__(self, members: Sequence[Booster]) -> None:
        if not members:
            raise ValueError("a committee needs at least one member")
        self.members = list(members)
        first = self.members[0]
        self.learner, self.n, self.loss_ = first.learner, first.n, first.loss_
        self.schema = first.schema

    @property
    def parts(self) -> Mapping[str, Booster]:
        """The members, by their numbers."""
        return {str(k): member for k, member in enumerate(self.members)}

    @property
    def labels(self) -> Labels:
        """The labels of the member that has seen the most rows."""
        return max((member.labels for member in self.members), key=lambda labels: labels.rows)

    @property
    def label_ends(self) -> LabelEnds | None:
        """The smallest and the largest label of all members; None if they are unknown."""
        return merge_ends([one.labels.ends for one in self.members if one.labels.seen > 0])

    @property
    def label_health(self) -> LabelHealth:
        """Facts about the labels of all members: sums, and the latest changes of a range."""
        each = [member.label_health for member in self.members]
        return LabelHealth(
            learned=sum(one.learned for one in each),
            clipped=sum(one.clipped for one in each),
            widened=_latest(one.widened for one in each),
            shrunk=_latest(one.shrunk for one in each),
            new_units=_latest(one.new_units for one in each),
            unchecked=sum(one.unchecked for one in each),
        )

    @property
    def encoder(self) -> RowEncoder:
        """The encoder of rows, with their kind and the names of features."""
        return self.members[0].encoder

    @property
    def started(self) -> bool:
        """Whether the committee has seen a row."""
        return all(member.started for member in self.members)

    def predict_many(self, X: RowsLike) -> Array:
        """Return predictions for a block of rows; learn nothing."""
        return np.mean([member.predict_many(X) for member in self.members], axis=0)

    def check(self, X: Any, y: Any, weights: Any = None) -> list[CheckedBlock]:
        """Return a block that the members can learn; a `DataError` names the first bad row."""
        return [member.check(X, y, weights) for member in self.members]

    @finishes
    def learn_checked(self, block: list[CheckedBlock]) -> Array:
        """Learn a block that was checked; nothing else may have been learned since."""
        pairs = zip(self.members, block, strict=True)
        return np.mean([member.learn_checked(part) for member, part in pairs], axis=0)

    def compose(self, predictions: Sequence[Array]) -> Composition:
        """Return how the predictions of the members compose the prediction for one row."""
        n = len(predictions)
        mean = np.mean([prediction[0] for prediction in predictions], axis=0)
        return Composition(mean, np.full(n, 1 / n), 0.0)

    def parameters(self) -> dict[str, Any]:
        """Return the class ("booster") and the parameters of the members, as JSON."""
        return self.members[0].parameters() | {"booster": type(self).__name__}

    def details(self) -> dict[str, Any]:
        """Return what `inspect` shows besides parameters, as JSON."""
        return {"members": len(self.members)}

    def header(self) -> dict[str, Any]:
        """Return everything except the arrays, as JSON."""
        return self.parameters() | {"members": members_header(self.members)}

    def tensors(self) -> Iterator[tuple[str, Array]]:
        """Yield the arrays of all members, by name."""
        return members_tensors(self.members)

    @classmethod
    def restore(cls, header: dict[str, Any], tensors: dict[str, Array]) -> Self:
        """Build the committee from a header and arrays; a `ModelFileError` if they do not match."""
        members = restore_members(header["members"], tensors)
        if len({json.dumps(member.parameters()) for member in members}) != 1:
            raise ModelFileError("the members of the committee differ in their parameters")
        return cls(members)

    def call_text(self) -> str:
        """Return what the committee consists of; it is made of trained members."""
        return f"Committee of {len(self.members)} {self.members[0].call_text()}"


def _latest(rows: Iterable[int | None]) -> int | None:
    return max((row for row in rows if row is not None), default=None)
