"""What the threads of the service do for requests, and what they return."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from spanboost.models.quantiles.asked_levels import End
from spanboost.service.learning.memory_pool import Reservation
from spanboost.service.learning.worker import Job
from spanboost.service.request_rows import Examples, RejectedRow, Row
from spanboost.service.storage.control import Control
from spanboost.service.storage.journal_tail import ShippedRecord
from spanboost.service.storage.state import State


class Predictions(NamedTuple):
    """Predictions, column by column; `ids` is None if the rows are not kept for their labels."""

    ids: list[str] | None
    columns: dict[str, list[Any]]


class Outcome(NamedTuple):
    """The result of a request to learn."""

    learned: int
    duplicates: int
    rejected: list[RejectedRow]


class StorageError(Exception):
    """A write to the disk failed, so nothing was learned; retry later."""


class RowConflictError(Exception):
    """Other rows wait under the ids of some rows; `reasons` has the positions of these rows."""

    def __init__(self, reasons: dict[int, str]) -> None:
        super().__init__()
        self.reasons = reasons


class PredictJob(Job):
    """Predict rows; with `keep`, store them under their ids until their labels arrive.

    ends: the ends of intervals to predict, too.
    record: of the journal that belongs to the rows, as in `PendingRows.add`.
    """

    def __init__(
        self,
        features: Sequence[Row],
        ids: Sequence[str | None],
        keep: bool,
        memory: Reservation | None = None,
        ends: tuple[End, ...] = (),
        record: int | None = None,
    ) -> None:
        super().__init__(len(features), memory)
        self.features, self.ids, self.keep, self.ends = features, ids, keep, ends
        self.record = record


def group_alike(jobs: Sequence[PredictJob]) -> list[list[PredictJob]]:
    """Return the jobs in groups whose rows can be predicted and stored at once."""
    groups: dict[Any, list[PredictJob]] = {}
    for job in jobs:
        groups.setdefault((job.ends, job.record), []).append(job)
    return list(groups.values())


class LearnJob(Job):
    """Learn the labelled rows of a request; with `skip`, skip bad ones.

    The result arrives when the rows are in the journal; with `wait`, when they are learned. The
    positions in streams after these rows are written in the same record of the journal.
    """

    def __init__(
        self,
        examples: Examples,
        skip: bool,
        wait: bool = False,
        memory: Reservation | None = None,
        positions: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        super().__init__(len(examples.numbers), memory)
        self.examples, self.skip, self.wait = examples, skip, wait
        self.positions = positions


class ControlJob(Job):
    """Write a control to the journal and obey it; the result is the number of its record."""

    def __init__(self, control: Control) -> None:
        super().__init__(0)
        self.control = control


class StateJob(Job):
    """Call a function with the state folder, after all rows of the group are learned.

    The result is what it returns. An OSError becomes a StorageError.
    """

    def __init__(self, action: Callable[[State], Any]) -> None:
        super().__init__(0)
        self.action = action


class CopyJob(Job):
    """Return the model as the bytes of a file."""

    def __init__(self) -> None:
        super().__init__(0)


class ShipmentJob(Job):
    """Store and learn records of the leader's journal."""

    def __init__(self, records: Sequence[ShippedRecord]) -> None:
        super().__init__(0)
        self.records = records
