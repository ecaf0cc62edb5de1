"""Split batches so that a progress bar moves several times a second."""

import time
from collections.abc import Callable, Iterable, Iterator

from spanboost.data.batch import Batch

FEWEST = 32  # rows in a piece
SHORT, LONG = 0.1, 0.4  # seconds that a piece should take


def pace_batches(
    batches: Iterable[Batch], clock: Callable[[], float] = time.perf_counter
) -> Iterator[Batch]:
    """Yield the same rows in pieces; a piece takes between SHORT and LONG seconds, if possible.

    The size of the pieces follows the time that the caller takes for each. Models do not depend on
    how rows are grouped.
    """
    size = FEWEST
    for batch in batches:
        first = 0
        while first < batch.rows:
            last = min(first + size, batch.rows)
            began = clock()
            yield batch.part(first, last) if last - first < batch.rows else batch
            took = clock() - began
            if took < SHORT and last - first == size:
                size *= 2
            elif took > LONG:
                size = max(size // 2, FEWEST)
            first = last
