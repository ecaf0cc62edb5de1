"""A model that follows the folder of a running server, and only reads it.

It begins with the last snapshot of the server and learns the records after it from the journal. It
needs no lock of the folder, because it writes nothing.
"""

from pathlib import Path

from spanboost.models.files import load_checkpoint
from spanboost.service.storage.backup import snapshot_paths
from spanboost.service.storage.journal_tail import (
    SHIPMENT_BYTES,
    Cursor,
    JournalTail,
    Shipment,
    ShippedRecord,
)
from spanboost.service.storage.model_state import ModelState
from spanboost.service.storage.record_files import StateError, file_number


class ReplicaState(ModelState):
    """The model of another process's folder. One thread reads and learns."""

    def __init__(self, folder: Path) -> None:
        """Load the last snapshot; raise StateError if the folder has no snapshots."""
        self.folder = folder
        paths = snapshot_paths(folder)
        if not paths:
            raise StateError(f"{folder}: there is no snapshot")
        self.restore(*load_checkpoint(max(paths, key=file_number)))
        self._tail = JournalTail(folder / "journal")
        # the server has checked that its journal continues its snapshot, so any mark will do
        self._cursor = Cursor(self.learned_record, self._tail.read(None).mark)

    def read(self) -> Shipment:
        """Return the next records, which may be none.

        Raises StateError or OSError if the journal cannot be read now, and DivergedError if it
        does not contain the last record that was learned.
        """
        return self._tail.read(self._cursor)

    def note_learned(self, record: ShippedRecord) -> None:
        """Continue after a record that was learned."""
        self._cursor = record.cursor()


def reaches_end(shipment: Shipment) -> bool:
    """Return whether a shipment has all records that the journal had when it was read."""
    records = shipment.records
    if not records:
        return True
    size = sum(len(record.payload) for record in records)
    return records[-1].mark == shipment.mark and size <= SHIPMENT_BYTES
