"""The cells of the reproduction, and the folder that keeps finished cells.

A cell is one experiment: a data set in one row order, a base learner and a feedback mode. It holds
the results of the learner alone and under both algorithms, tuned on the first half. Each finished
cell is written to a file, so that an interrupted run can resume.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from spanboost import __version__
from spanboost.atomic_files import atomic_write, create_folder

FEEDBACKS = ("linear", "greedy")  # the printed one first
ADVANTAGE = "greedy-advantage"  # greedy, with copies of stumps that rank features by advantage


def feedbacks_of(learner: str) -> tuple[str, ...]:
    """Return the feedbacks to run for a learner."""
    return (*FEEDBACKS, ADVANTAGE) if learner == "stumps" else FEEDBACKS


@dataclass(frozen=True)
class Chosen:
    """The model chosen on the first half, and its losses."""

    rate: float
    n: int
    eta: float | None  # the step of Algorithm 1
    first_half: float  # average loss
    second_half: float
    # loss of the first half with 1, 2, ... copies at the chosen rate and step
    against_n: Sequence[float | None]
    curve: Sequence[float]  # average loss of each hundredth of the stream


@dataclass(frozen=True)
class Cell:
    """The results of one experiment."""

    set: str
    order: str
    learner: str
    feedback: str
    rows: int
    seconds: float  # elapsed time
    models: dict[str, Chosen]  # baseline, span, hull

    def as_json(self) -> dict[str, Any]:
        """Return the cell as JSON types."""
        return asdict(self)


def cell_from_json(state: dict[str, Any]) -> Cell:
    """Return the cell that `as_json` was called on."""
    models = {way: Chosen(**one) for way, one in state["models"].items()}
    return Cell(**{**state, "models": models})


class CellStore:
    """A folder of cells, each with a stamp that identifies its inputs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        create_folder(folder)

    def find(self, stamp: str, *name: str) -> Cell | None:
        """Return the cell with this name and stamp, or None."""
        try:
            state = json.loads(self._file(*name).read_text())
            return cell_from_json(state["cell"]) if state["stamp"] == stamp else None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # missing or not a cell file: compute it again

    def save(self, stamp: str, cell: Cell) -> None:
        """Write a cell."""
        state = {"stamp": stamp, "cell": cell.as_json()}
        with atomic_write(self._file(cell.set, cell.order, cell.learner, cell.feedback)) as file:
            file.write(json.dumps(state).encode())

    def _file(self, *name: str) -> Path:
        return self.folder / f"{'-'.join(name)}.json"


def stamp_of(content: str, protocol: Any) -> str:
    """Return a stamp of the inputs of a cell: this version, the data, the grid and the learners."""
    return hashlib.sha256(repr((__version__, content, protocol)).encode()).hexdigest()
