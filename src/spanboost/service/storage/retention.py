"""How long snapshots are kept, and with them the journal from which states can be restored."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from spanboost.errors import ModelFileError
from spanboost.models.files import read_run
from spanboost.service.limits import StateLimits

SNAPSHOTS = 2  # number of snapshots that are always kept


class SnapshotAge(NamedTuple):
    """When a snapshot was written, and how many rows its model had learned."""

    record: int
    time: float
    rows: int


def read_ages(paths: Sequence[Path]) -> list[SnapshotAge]:
    """Return the ages of all snapshots that are not damaged; OSError if one cannot be opened."""
    ages = list[SnapshotAge]()
    for path in paths:
        try:
            run = read_run(path)
            rows = (run["progress"] or {}).get("rows", 0)
            ages.append(SnapshotAge(run["record"], path.stat().st_mtime, rows))
        except (ModelFileError, TypeError, KeyError):
            continue  # nothing can be restored from it
    return ages


def oldest_kept(ages: Sequence[SnapshotAge], limits: StateLimits, now: float) -> int:
    """Return the record of the oldest snapshot to keep; the ages are in the order of records.

    A state between two snapshots is restored from the first of them. So the newest snapshot from
    before the time to keep is kept, too, and the same holds for rows.
    """
    last = ages[-1].rows
    old = [k for k, one in enumerate(ages) if one.time <= now - limits.keep_seconds]
    early = [k for k, one in enumerate(ages) if one.rows <= last - limits.keep_rows]
    by_number = max(len(ages) - SNAPSHOTS, 0)
    return ages[min(by_number, max(old, default=0), max(early, default=0))].record
