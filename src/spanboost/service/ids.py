"""Which ids were learned: a window over the last ones."""

from collections.abc import Collection


class Ids:
    """The last `window` ids at least, twice as many at most."""

    def __init__(self, window: int) -> None:
        self.window = window
        self._new: set[str] = set()
        self._old: set[str] = set()
        self._began_new = self._began_old = 0  # numbers of the records they are from

    def __contains__(self, id: str) -> bool:
        return id in self._new or id in self._old

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    def add(self, ids: Collection[str], record: int) -> None:
        """These are learned, by the record of this number."""
        if not ids:
            return
        if not self._new:
            self._began_new = record
        self._new.update(ids)
        if len(self._new) >= self.window:
            self._old, self._began_old = self._new, self._began_new
            self._new = set()

    @property
    def since(self) -> int | None:
        """The number of the first record whose ids are known; None if there are none."""
        if self._old:
            return self._began_old
        return self._began_new if self._new else None
