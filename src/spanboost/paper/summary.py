"""The results of a reproduction: Table 2, line by line, and Table 1."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, median
from typing import Any, NamedTuple

from spanboost.paper.cells import Cell
from spanboost.paper.datasets import SETS
from spanboost.paper.published import ALGORITHMS, LEARNERS, TABLE_2, Losses

Table = dict[str, dict[str, float]]  # {learner: {algorithm: share}}


class SummaryLine(NamedTuple):
    """Our losses and the paper's for a data set and a base learner."""

    cell: Cell
    ours: Losses
    paper: Losses

    @property
    def already_better(self) -> bool:
        """Whether our learner alone has a lower loss than the paper's boosted ones."""
        return self.ours.baseline < min(self.paper.span, self.paper.hull)


_TOO_EASY = " and ".join(name for name, one in SETS.items() if not one.ordered)
VIEWS = {
    "headline": f"file order, {_TOO_EASY} shuffled",
    "shuffled": "one fixed shuffle",
    "file": f"{_TOO_EASY} in file order",
}
AVERAGED = ("headline", "shuffled")  # data sets that are too easy show no improvement


def is_headline(cell: Cell) -> bool:
    """Return whether the headline tables use the row order of this cell."""
    return cell.order == ("file" if SETS[cell.set].ordered else "shuffled")


def lines(cells: Iterable[Cell], feedback: str, view: str) -> list[SummaryLine]:
    """Return the lines of Table 2 for one feedback mode and one of the `VIEWS`."""
    selected = [
        cell
        for cell in cells
        if cell.feedback == feedback
        and (is_headline(cell) if view == "headline" else cell.order == view)
        and not (view == "file" and SETS[cell.set].ordered)
    ]
    selected.sort(key=lambda cell: (list(SETS).index(cell.set), LEARNERS.index(cell.learner)))
    return [
        SummaryLine(
            cell,
            Losses(*(cell.models[way].second_half for way in Losses._fields)),
            TABLE_2[cell.set][cell.learner],
        )
        for cell in selected
    ]


def improvements(table: Sequence[SummaryLine], take: Any = mean, whose: str = "ours") -> Table:
    """Return Table 1: the average (or median) relative improvement over data sets."""
    return {
        learner: {
            algorithm: float(take([getattr(line, whose).improvement(algorithm) for line in mine]))
            for algorithm in ALGORITHMS
        }
        for learner in LEARNERS
        if (mine := [line for line in table if line.cell.learner == learner])
    }


def average_and_median(table: Sequence[SummaryLine]) -> dict[str, Table]:
    """Return both parts of Table 1."""
    return {
        "average_relative_improvement": improvements(table, mean),
        "median_relative_improvement": improvements(table, median),
    }


def as_json(cells: Sequence[Cell], absent: Mapping[str, str]) -> dict[str, Any]:
    """Return all results as JSON types; the headline (greedy) table is at the top level."""
    headline = lines(cells, "greedy", "headline")
    return {
        **average_and_median(headline),
        "linear_feedback": average_and_median(lines(cells, "linear", "headline")),
        "shuffled": {
            "greedy": average_and_median(lines(cells, "greedy", "shuffled")),
            "linear": average_and_median(lines(cells, "linear", "shuffled")),
        },
        "paper_on_the_same_sets": {
            "average_relative_improvement": improvements(headline, mean, "paper"),
            "median_relative_improvement": improvements(headline, median, "paper"),
        },
        "sets": sorted({cell.set for cell in cells}),
        "absent": dict(absent),
        "already_better_than_the_paper": [
            f"{line.cell.set} {line.cell.learner}" for line in headline if line.already_better
        ],
        "cells": [cell.as_json() for cell in cells],
    }
