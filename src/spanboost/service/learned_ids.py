"""Which ids were learned: a window over the last rows."""

from collections.abc import Sequence


class LearnedIds:
    """Those of the last `window` rows at least, of twice as many at most.

    Rows without an id count too: the journal is kept as far back as ids are known, and must not
    grow for ever because of a few.
    """

    def __init__(self, window: int) -> None:
        self.window = window
        self._new: set[str] = set()
        self._old: set[str] = set()
        self._rows = 0  # that the new ones are from
        self._began_new = self._began_old = 0  # numbers of the records they are from

    def __contains__(self, id: str) -> bool:
        return id in self._new or id in self._old

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    def add(self, ids: Sequence[str | None], record: int) -> None:
        """Rows are learned, under these ids or none, by the record of this number."""
        if not self._rows:
            self._began_new = record
        self._new.update(id for id in ids if id is not None)
        self._rows += len(ids)
        if self._rows >= self.window:
            self._old, self._began_old = self._new, self._began_new
            self._new, self._rows = set(), 0

    @property
    def since(self) -> int | None:
        """The number of the first record whose ids are known; None if there are none."""
        if self._old:
            return self._began_old
        return self._began_new if self._new else None
