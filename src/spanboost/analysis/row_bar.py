"""A progress bar over rows in memory, in notebooks and terminals."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from spanboost.data.batch import Batch

BLOCK = 1000  # rows between two updates of the bar


def row_bar(rows: int, *, shown: bool = True) -> Any:
    """Return a bar over this number of rows, which `update` moves."""
    with warnings.catch_warnings():  # without ipywidgets, notebooks show text, which is good enough
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm
    return tqdm(total=rows, unit="rows", unit_scale=True, disable=not shown)


@contextmanager
def with_bar(whole: Batch) -> Iterator[Iterator[Batch]]:
    """Yield a batch in blocks, and show how many rows are done; models do not depend on blocks.

    An error or an interrupt closes the bar, although its traceback keeps the blocks.
    """
    with row_bar(whole.rows) as bar:
        yield _blocks(whole, bar)


def _blocks(whole: Batch, bar: Any) -> Iterator[Batch]:
    for first in range(0, whole.rows, BLOCK):
        part = whole.part(first, min(first + BLOCK, whole.rows))
        yield part
        bar.update(part.rows)
