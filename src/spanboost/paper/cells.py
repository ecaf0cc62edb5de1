"""The cells of the reproduction, and the folder that keeps those that are done.

A cell is a data set in one order, a base learner and a feedback mode: the learner alone and under
both algorithms, tuned on the first half. Each is a file, written when it is known, so that a run
that was stopped goes on where it was.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from spanboost import __version__
from spanboost.atomic_files import atomic_write
from spanboost.errors import UserError

ORDERS = ("file", "shuffled")
FEEDBACKS = ("greedy", "linear")


@dataclass(frozen=True)
class Chosen:
    """A model as it was chosen on the first half."""

    rate: float
    n: int
    eta: float | None  # the step of Algorithm 1
    first_half: float  # its average loss there
    second_half: float
    against_n: Sequence[
        float | None
    ]  # loss of the first half with 1, 2, ... copies, all else as chosen
    curve: Sequence[float]  # average loss of each hundredth of the stream


@dataclass(frozen=True)
class Cell:
    """What became of a data set, in an order, with a learner, under a feedback mode."""

    set: str
    order: str
    learner: str
    feedback: str
    rows: int
    seconds: float  # of processor time; on a cluster, from beginning to end
    models: dict[str, Chosen]  # baseline, span, hull

    def as_json(self) -> dict[str, Any]:
        """In terms of JSON."""
        return asdict(self)


def cell_from_json(state: dict[str, Any]) -> Cell:
    """The inverse of `as_json`."""
    models = {way: Chosen(**one) for way, one in state["models"].items()}
    return Cell(**{**state, "models": models})


class CellStore:
    """Cells in a folder, each with a stamp of what it was made from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{folder}: it cannot be made: {error.strerror}") from None

    def find(self, stamp: str, *name: str) -> Cell | None:
        """The cell of this name, if it is there and was made from the same."""
        try:
            state = json.loads(self._file(*name).read_text())
            return cell_from_json(state["cell"]) if state["stamp"] == stamp else None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # none, or one that was not written by us: it is made anew

    def keep(self, stamp: str, cell: Cell) -> None:
        """Write a cell."""
        state = {"stamp": stamp, "cell": cell.as_json()}
        with atomic_write(self._file(cell.set, cell.order, cell.learner, cell.feedback)) as file:
            file.write(json.dumps(state).encode())

    def _file(self, *name: str) -> Path:
        return self.folder / f"{'-'.join(name)}.json"


def stamp_of(content: str, grid: Any) -> str:
    """What a cell was made from: this version, these values, this grid."""
    return hashlib.sha256(repr((__version__, content, grid)).encode()).hexdigest()
