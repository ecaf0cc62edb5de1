"""Accuracy targets, and whether the results meet them."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from benchmarks.accuracy.datasets import ORDERS, TASKS
from benchmarks.accuracy.methods import METHODS, named
from benchmarks.accuracy.results import Key, Results

AUTO, THOROUGH, TREES = "auto-default", "auto-thorough", "trees"
_SHARES = {0.5: "half", 2 / 3: "two thirds", 0.8: "four fifths", 0.9: "nine tenths", 1.0: "all"}


class Target(NamedTuple):
    """A target: the share of contests in which one of our methods must have less error."""

    against: str
    orders: tuple[str, ...]
    ours: str
    share: float
    margin: float = 1.0  # largest ratio of our error to theirs; 1.03 allows 3 % more
    peers: tuple[str, ...] = ()  # the best of them counts; empty for the paper's figures

    @property
    def must(self) -> str:
        """The target in words."""
        many = _SHARES[self.share]
        return f"{self.how} on {'' if many == 'all' else 'at least '}{many}"

    @property
    def how(self) -> str:
        """The error that counts as a win, relative to the other method's."""
        return "lower" if self.margin == 1 else f"at most {self.margin - 1:.0%} higher"

    @property
    def order(self) -> str:
        """The orders of the rows, in words."""
        return " and ".join(ORDERS[order] for order in self.orders)


_BATCH = "better of LightGBM and XGBoost, fitted to the first half"
_TUNED = "better of LightGBM tuned and CatBoost, fitted to the first half"
_CHUNKS = "best of LightGBM and XGBoost, trained in chunks"
_REFITTED = "LightGBM, refitted ten times over the scored half"
_FITTED, _CONTINUED = tuple(named("batch")), tuple(named("chunks"))
_CEILING, _CHOSEN = tuple(named("ceiling")), tuple(named("tuned"))
TARGETS = (
    Target("previous label", tuple(ORDERS), AUTO, 1.0, peers=tuple(named("baseline"))),
    Target(_BATCH, ("shuffled",), AUTO, 0.5, peers=_FITTED),
    Target(_BATCH, ("shuffled",), AUTO, 0.8, 1.03, peers=_FITTED),
    Target(_BATCH, ("file",), AUTO, 0.8, peers=_FITTED),
    Target(_TUNED, ("shuffled",), THOROUGH, 0.8, peers=_CHOSEN),
    Target(_TUNED, ("shuffled",), AUTO, 0.8, 1.03, peers=_CHOSEN),
    Target(_TUNED, ("file",), THOROUGH, 0.9, peers=_CHOSEN),
    Target(_TUNED, ("file",), AUTO, 0.9, peers=_CHOSEN),
    Target(_REFITTED, ("shuffled",), AUTO, 0.5, peers=_CEILING),
    Target(_REFITTED, ("shuffled",), AUTO, 0.8, 1.03, peers=_CEILING),
    Target(_REFITTED, ("file",), AUTO, 0.8, peers=_CEILING),
    Target(_CHUNKS, tuple(ORDERS), AUTO, 1.0, peers=_CONTINUED),
    *(
        Target(METHODS[peer].title, tuple(ORDERS), ours, share, peers=(peer,))
        for ours, share in ((AUTO, 1.0), (TREES, 2 / 3))
        for peer in named("streaming")
    ),
    Target("best result in the paper", ("file",), AUTO, 1.0),
)


class Contest(NamedTuple):
    """One of our methods against the best of its peers, on a data set in one order."""

    data: str
    order: str
    peer: str  # the best one
    ratio: float  # our loss divided by the peer's, on the same rows


class Found(NamedTuple):
    """The contests that decide a target."""

    contests: list[Contest]
    missing: list[str]  # contests with a missing run, or a failed run of ours
    void: list[str]  # nothing to compare: all peers failed, or all scored labels are equal

    def won(self, margin: float) -> list[Contest]:
        """Return the contests in which our error is within the margin."""
        return [c for c in self.contests if (c.ratio < 1 if margin == 1 else c.ratio <= margin)]

    def lost(self, margin: float) -> list[Contest]:
        """Return the other contests."""
        won = self.won(margin)
        return [contest for contest in self.contests if contest not in won]

    def met(self, target: Target) -> bool | None:
        """Return whether the target is met, or None while missing runs could decide it."""
        needed = target.share * (len(self.contests) + len(self.missing)) - 1e-9
        won = len(self.won(target.margin))
        if won >= needed and self.contests:
            return True
        return None if won + len(self.missing) >= needed else False


def find(results: Results, target: Target, ours: str) -> Found:
    """Compare one of our methods with the peers of a target."""
    found = Found([], [], [])
    for order in target.orders:
        for data, task in TASKS.items():
            if target.peers:
                ratios = {name: ratio(results, data, order, ours, name) for name in target.peers}
            elif task.paper is not None and task.coded_alike:
                ratios = {"paper": paper_ratio(results, data, ours)}
            else:
                continue
            real = [(r, name) for name, r in ratios.items() if r is not None and not math.isnan(r)]
            if None in ratios.values():
                found.missing.append(f"{data} ({ORDERS[order]})")
            elif real:
                largest, peer = max(real)
                found.contests.append(Contest(data, order, peer, largest))
            else:
                found.void.append(f"{data} ({ORDERS[order]})")
    return found


def ratio(results: Results, data: str, order: str, ours: str, peer: str) -> float | None:
    """Return our loss divided by a peer's, on the rows that the peer reached.

    The result is None if a run is missing. It is NaN if there is nothing to compare: the peer
    failed, or all scored labels are equal.
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
    """Return our loss on the second half of the first `rows` rows."""
    return row["mse"] if rows == row["rows"] else row["prefixes"].get(str(rows))


def paper_ratio(results: Results, data: str, ours: str) -> float | None:
    """Return our loss in file order divided by the best loss in the paper."""
    row, paper = results.get(Key("accuracy", data, "file", ours)), TASKS[data].paper
    return None if not row or "error" in row or paper is None else row["mse"] / paper


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of ratios."""
    return math.exp(sum(logs := [math.log(value) for value in values]) / len(logs))
