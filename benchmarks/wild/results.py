"""The keys of the results of `benchmarks.wild`, and where the results are."""

from typing import Any, NamedTuple

from benchmarks.results_files import FOLDER

FILE = FOLDER / "wild.jsonl"


class Key(NamedTuple):
    """The identity of a run."""

    label: str  # the code that was measured
    stream: str
    model: str
    loss: str
    seed: int


Results = dict[Key, dict[str, Any]]
