"""What must hold, and whether it does: pure arithmetic on the results."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from benchmarks.accuracy.datasets import ORDERS, TASKS
from benchmarks.accuracy.methods import METHODS, named
from benchmarks.accuracy.results import Key, Results

AUTO, TREES = "auto-default", "trees"


class Demand(NamedTuple):
    """A line of the table of demands: ours must be better on a share of the contests."""

    against: str
    orders: tuple[str, ...]
    ours: str
    share: float
    margin: float = 1.0  # the most that ours may be of theirs; 1 is better, 1.03 within 3 %
    peers: tuple[str, ...] = ()  # the strongest of them counts; none for the paper's figures

    @property
    def must(self) -> str:
        """In words."""
        how = "better" if self.margin == 1 else f"within {self.margin - 1:.0%}"
        many = {0.5: "half", 0.8: "four fifths", 1.0: "all", 2 / 3: "two thirds"}[self.share]
        return f"{how} on {'' if many == 'all' else 'at least '}{many}"


_BATCH = "the better of LightGBM and XGBoost, fitted to the first half"
_CHUNKS = "the best of LightGBM and XGBoost in chunks"
_FITTED, _CONTINUED = tuple(named("batch")), tuple(named("chunks"))
DEMANDS = (
    Demand(_BATCH, ("shuffled",), AUTO, 0.5, peers=_FITTED),
    Demand(_BATCH, ("shuffled",), AUTO, 0.8, 1.03, peers=_FITTED),
    Demand(_BATCH, ("file",), AUTO, 0.8, peers=_FITTED),
    Demand(_CHUNKS, ORDERS, AUTO, 1.0, peers=_CONTINUED),
    *(
        Demand(METHODS[peer].title, ORDERS, ours, share, peers=(peer,))
        for ours, share in ((AUTO, 1.0), (TREES, 2 / 3))
        for peer in named("streaming")
    ),
    Demand("the paper's best", ("file",), AUTO, 1.0),
)


class Contest(NamedTuple):
    """Ours on a data set in an order against the strongest of some others."""

    data: str
    order: str
    peer: str  # the strongest
    ratio: float  # our loss over its, on the same rows: the largest over the others


class Found(NamedTuple):
    """How a demand turns out."""

    contests: list[Contest]
    missing: list[str]  # contests of which a run is not there, or of ours failed
    void: list[str]  # nothing to win: all others failed, or all labels scored are the same

    def won(self, margin: float) -> list[Contest]:
        """Where ours is better, or near enough."""
        return [c for c in self.contests if (c.ratio < 1 if margin == 1 else c.ratio <= margin)]

    def lost(self, margin: float) -> list[Contest]:
        """Where it is not."""
        won = self.won(margin)
        return [contest for contest in self.contests if contest not in won]

    def met(self, demand: Demand) -> bool | None:
        """Whether the demand is met; None while that is open."""
        needed = demand.share * (len(self.contests) + len(self.missing)) - 1e-9
        won = len(self.won(demand.margin))
        if won >= needed and self.contests:
            return True
        return None if won + len(self.missing) >= needed else False


def find(results: Results, demand: Demand, ours: str) -> Found:
    """Hold one of ours against a demand."""
    found = Found([], [], [])
    for order in demand.orders:
        for data, task in TASKS.items():
            if demand.peers:
                ratios = {name: ratio(results, data, order, ours, name) for name in demand.peers}
            elif task.paper is not None and task.coded_alike:
                ratios = {"paper": paper_ratio(results, data, ours)}
            else:
                continue
            real = [(r, name) for name, r in ratios.items() if r is not None and not math.isnan(r)]
            if None in ratios.values():
                found.missing.append(f"{data} ({order})")
            elif real:
                largest, peer = max(real)
                found.contests.append(Contest(data, order, peer, largest))
            else:
                found.void.append(f"{data} ({order})")
    return found


def ratio(results: Results, data: str, order: str, ours: str, peer: str) -> float | None:
    """Our loss over a peer's on the rows the peer reached.

    None if a run is not there; NaN if there is nothing to compare: the peer failed, or all labels
    scored are one and the same.
    """
    our, their = (results.get(Key("accuracy", data, order, name)) for name in (ours, peer))
    if not our or not their or "error" in our:
        return None
    if "error" in their or not their["variance"]:
        return math.nan
    own = loss_at(our, their["rows"])
    if own is None:
        return None
    return own / their["mse"] if their["mse"] else math.inf


def loss_at(row: dict, rows: int) -> float | None:
    """Our loss on the second half of the first rows."""
    return row["mse"] if rows == row["rows"] else row["prefixes"].get(str(rows))


def paper_ratio(results: Results, data: str, ours: str) -> float | None:
    """Our loss in file order over the paper's best."""
    row, paper = results.get(Key("accuracy", data, "file", ours)), TASKS[data].paper
    return None if not row or "error" in row or paper is None else row["mse"] / paper


def geometric_mean(values: Iterable[float]) -> float:
    """The mean of ratios."""
    return math.exp(sum(logs := [math.log(value) for value in values]) / len(logs))
