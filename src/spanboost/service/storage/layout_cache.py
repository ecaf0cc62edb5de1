"""The layouts of pending rows that were used last.

Most groups of rows have the same layout, but a client can send rows with other names every time.
So groups refer to layouts by number, and only some layouts are held in memory.
"""

from collections import OrderedDict

import orjson

from spanboost.service.storage.row_codec import Layout

MAX_BYTES = 1 << 20  # size of the layouts in memory, as JSON; as objects, up to 20 times as much


class LayoutCache:
    """Layouts by number; equal layouts have the same number while they are in memory."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.max_bytes = max_bytes
        self._layouts: OrderedDict[int, tuple[Layout, bytes]] = OrderedDict()  # recent ones last
        self._numbers: dict[bytes, int] = {}  # by JSON
        self._size = 0
        self._last = 0

    def add(self, layout: Layout) -> int:
        """Return the number of a layout."""
        text = orjson.dumps([*layout])
        number = self._numbers.get(text)
        if number is None:
            self._last += 1
            number = self._last
            self._put(number, layout, text)
        return number

    def get(self, number: int) -> Layout | None:
        """Return the layout of this number; None if it is no longer in memory."""
        if number not in self._layouts:
            return None
        self._layouts.move_to_end(number)
        return self._layouts[number][0]

    def restore(self, number: int, layout: Layout) -> None:
        """Put back a layout that is no longer in memory."""
        self._put(number, layout, orjson.dumps([*layout]))

    def _put(self, number: int, layout: Layout, text: bytes) -> None:
        self._layouts[number] = layout, text
        self._numbers[text] = number
        self._size += len(text)
        while self._size > self.max_bytes and len(self._layouts) > 1:
            oldest, (_, text) = self._layouts.popitem(last=False)
            self._size -= len(text)
            if self._numbers.get(text) == oldest:
                del self._numbers[text]
