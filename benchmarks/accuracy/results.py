"""The keys of the results of `benchmarks.accuracy`, and where the results are."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from benchmarks.results_files import FOLDER

FILE = FOLDER / "accuracy.jsonl"


class Key(NamedTuple):
    """The identity of a run."""

    kind: str  # "accuracy", or "speed" for short runs on an idle machine
    data: str
    order: str
    method: str


Results = dict[Key, dict[str, Any]]


def missing(wanted: Iterable[Key], there: Results, again: Iterable[str]) -> list[Key]:
    """Return the runs that have no result, or that are to be repeated."""
    again = set(again)
    return [key for key in wanted if key not in there or key.method in again]
