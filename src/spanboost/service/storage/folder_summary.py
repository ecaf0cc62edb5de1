"""What a state folder has learned, for people: its model, and the rows that follow in the journal.

Nothing is written and no lock is needed, so a server may use the folder.
"""

from pathlib import Path
from typing import NamedTuple

from spanboost.models.model import Model
from spanboost.service.storage.backup import snapshot_paths
from spanboost.service.storage.entry import decode_ids
from spanboost.service.storage.record_files import file_number
from spanboost.service.storage.replica import ReplicaState, reaches_end


class FolderSummary(NamedTuple):
    """The newest snapshot of a state folder, and the rows after it."""

    path: Path  # of the snapshot
    model: Model
    record: int  # number of the last journal record in the snapshot
    learned: int  # rows that the model has learned
    queued: int  # rows in the journal after the snapshot


def summarise_folder(folder: Path) -> FolderSummary:
    """Return what a folder has learned; StateError or OSError if it cannot be read."""
    state = ReplicaState(folder)
    path = max(snapshot_paths(folder), key=file_number)
    queued, complete = 0, False
    while not complete:
        shipment = state.read()
        for record in shipment.records:
            queued += len(decode_ids(memoryview(record.payload)))
            state.note_learned(record)
        complete = reaches_end(shipment)
    return FolderSummary(path, state.model, state.learned_record, state.progress.rows, queued)
