"""What the cells of a reproduction come to: Table 2, line by line, and Table 1."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, median
from typing import Any, NamedTuple

from spanboost.paper.cells import Cell
from spanboost.paper.datasets import SETS
from spanboost.paper.published import ALGORITHMS, LEARNERS, TABLE_2, Losses

Table = dict[str, dict[str, float]]  # {learner: {algorithm: share}}


class SummaryLine(NamedTuple):
    """A data set and a base learner: our losses, and the paper's."""

    cell: Cell
    ours: Losses
    paper: Losses

    @property
    def already_better(self) -> bool:
        """Whether our learner alone loses less than the paper's boosted ones."""
        return self.ours.baseline < min(self.paper.span, self.paper.hull)


_TOO_EASY = " and ".join(name for name, one in SETS.items() if not one.ordered)
VIEWS = {
    "headline": f"file order, {_TOO_EASY} shuffled",
    "shuffled": "one fixed shuffle",
    "file": f"{_TOO_EASY} in file order",
}
AVERAGED = ("headline", "shuffled")  # what is too easy says nothing of improvements


def is_headline(cell: Cell) -> bool:
    """Of both orders, the one the headline tables have."""
    return cell.order == ("file" if SETS[cell.set].ordered else "shuffled")


def lines(cells: Iterable[Cell], feedback: str, view: str) -> list[SummaryLine]:
    """Table 2: of all cells those of this feedback, in this one of the `VIEWS`."""
    kept = [
        cell
        for cell in cells
        if cell.feedback == feedback
        and (is_headline(cell) if view == "headline" else cell.order == view)
        and not (view == "file" and SETS[cell.set].ordered)
    ]
    kept.sort(key=lambda cell: (list(SETS).index(cell.set), LEARNERS.index(cell.learner)))
    return [
        SummaryLine(
            cell,
            Losses(*(cell.models[way].second_half for way in Losses._fields)),
            TABLE_2[cell.set][cell.learner],
        )
        for cell in kept
    ]


def improvements(table: Sequence[SummaryLine], take: Any = mean, whose: str = "ours") -> Table:
    """Table 1: the average (or median) relative improvement over the data sets of these lines."""
    return {
        learner: {
            algorithm: float(take([getattr(line, whose).improvement(algorithm) for line in mine]))
            for algorithm in ALGORITHMS
        }
        for learner in LEARNERS
        if (mine := [line for line in table if line.cell.learner == learner])
    }


def on_both(table: Sequence[SummaryLine]) -> dict[str, Table]:
    """The two halves of Table 1."""
    return {
        "average_relative_improvement": improvements(table, mean),
        "median_relative_improvement": improvements(table, median),
    }


def as_json(cells: Sequence[Cell], absent: Mapping[str, str]) -> dict[str, Any]:
    """Everything: the headline (greedy) table on top, the others under names of their own."""
    headline = lines(cells, "greedy", "headline")
    return {
        **on_both(headline),
        "linear_feedback": on_both(lines(cells, "linear", "headline")),
        "shuffled": {
            "greedy": on_both(lines(cells, "greedy", "shuffled")),
            "linear": on_both(lines(cells, "linear", "shuffled")),
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
