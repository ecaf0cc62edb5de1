"""The ids of recently learned rows, which detect duplicates and changed labels."""

import zlib
from collections.abc import Collection, Sequence

from spanboost.data.target import canonical


class LearnedIds:
    """The ids of at least the last `window` rows, and of at most twice as many, with label marks.

    Rows without an id count as well. The journal is kept as far back as the ids reach, and a few
    rows with ids must not make it grow without limit.
    """

    def __init__(self, window: int) -> None:
        self.window = window
        self._new: dict[str, int] = {}
        self._old: dict[str, int] = {}
        self._new_rows = 0  # rows counted for the new ids
        self._first_new = self._first_old = 0  # numbers of the first records of both sets

    def __contains__(self, id: str) -> bool:
        return id in self._new or id in self._old

    def isdisjoint(self, ids: Collection[str]) -> bool:
        """Return whether none of some ids is known."""
        return self._new.keys().isdisjoint(ids) and self._old.keys().isdisjoint(ids)

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    def mark(self, id: str) -> int | None:
        """Return the mark of the label that was learned under an id; None if it is not known."""
        return self._new.get(id, self._old.get(id))

    def add(self, ids: Sequence[str | None], labels: Sequence[float | str], record: int) -> None:
        """Add the ids of the rows in the journal record of this number; None: a row without id."""
        if not self._new_rows:
            self._first_new = record
        for id, label in zip(ids, labels, strict=True):
            if id is not None:
                self._new[id] = label_mark(label)
        self._new_rows += len(ids)
        if self._new_rows >= self.window:
            self._old, self._first_old = self._new, self._first_new
            self._new, self._new_rows = {}, 0

    @property
    def first_record(self) -> int | None:
        """The number of the oldest record whose ids are remembered; None if there are no ids."""
        if self._old:
            return self._first_old
        return self._first_new if self._new else None


def label_mark(label: float | str) -> int:
    """Return a checksum of a label, equal for all spellings of it; labels can be long texts."""
    text = canonical(label) if isinstance(label, str) else f"{label + 0.0:.17g}"  # not -0
    return zlib.crc32(text.encode())
