"""The results of a reproduction, line by line, next to the paper's."""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, median
from typing import Any, NamedTuple

from spanboost.paper.cells import Cell, Chosen, feedbacks_of
from spanboost.paper.datasets import SETS
from spanboost.paper.published import ALGORITHMS, LEARNERS, TABLE_2, Losses
from spanboost.paper.row_order import FILE


class Result(NamedTuple):
    """A way to read a cell: the algorithms under a feedback, with or without a fallback.

    With a fallback, an algorithm whose loss on the first half is not below that of the learner
    alone is replaced by the learner alone.
    """

    feedback: str
    falls_back: bool = False


PRINTED = Result("linear")  # the feedback that the algorithms print


def results_of(learner: str) -> list[Result]:
    """Return the results to show for a learner."""
    return [
        Result(feedback, falls) for feedback in feedbacks_of(learner) for falls in (False, True)
    ]


class SummaryLine(NamedTuple):
    """Our losses and the paper's for a data set in one order and a base learner."""

    set: str
    order: str
    learner: str
    cells: Mapping[str, Cell]  # by feedback

    @property
    def paper(self) -> Losses:
        """The paper's losses."""
        return TABLE_2[self.set][self.learner]

    def chosen(self, result: Result, algorithm: str) -> Chosen:
        """Return the model of an algorithm."""
        models = self.cells[result.feedback].models
        one, alone = models[algorithm], models["baseline"]
        return one if not result.falls_back or one.first_half < alone.first_half else alone

    def ours(self, result: Result) -> Losses:
        """Return our losses."""
        return Losses(*(self.chosen(result, way).second_half for way in Losses._fields))

    def gain(self, result: Result | None, algorithm: str) -> float:
        """Return the share of the learner's loss that an algorithm saves; None is the paper's."""
        losses = self.paper if result is None else self.ours(result)
        return losses.improvement(algorithm)


def all_lines(cells: Iterable[Cell]) -> list[SummaryLine]:
    """Return a line for each data set, order and learner, in the order of the paper's tables."""
    found: dict[tuple[str, str, str], dict[str, Cell]] = {}
    for cell in cells:
        found.setdefault((cell.set, cell.order, cell.learner), {})[cell.feedback] = cell
    lines = [SummaryLine(*name, each) for name, each in found.items()]
    places = list(SETS)
    return sorted(lines, key=lambda one: (LEARNERS.index(one.learner), places.index(one.set)))


def headline_lines(cells: Iterable[Cell], orders: Mapping[str, str]) -> list[SummaryLine]:
    """Return the lines of the headline; `orders` are those of the data sets."""
    return [line for line in all_lines(cells) if line.order == orders[line.set]]


def shuffled_lines(cells: Iterable[Cell]) -> list[SummaryLine]:
    """Return the lines of all shuffles."""
    return [line for line in all_lines(cells) if line.order != FILE]


def of_learner(lines: Iterable[SummaryLine], learner: str) -> list[SummaryLine]:
    """Return the lines of a learner."""
    return [line for line in lines if line.learner == learner]


def gains(lines: Iterable[SummaryLine], result: Result | None, algorithm: str) -> list[float]:
    """Return the gain on each line; `result` None is the paper's."""
    return [line.gain(result, algorithm) for line in lines]


def distance(
    lines: Sequence[SummaryLine], result: Result, algorithms: Sequence[str] = ALGORITHMS
) -> float:
    """Return the mean absolute difference of our gains from the paper's, in points."""
    return 100 * mean(
        abs(line.gain(result, algorithm) - line.gain(None, algorithm))
        for line in lines
        for algorithm in algorithms
    )


def log_ratio(lines: Sequence[SummaryLine]) -> float:
    """Return the mean |log(ours / the paper's)| of the losses of the learner alone."""
    return mean(abs(math.log(line.ours(PRINTED).baseline / line.paper.baseline)) for line in lines)


def with_same_coding(lines: Sequence[SummaryLine]) -> list[SummaryLine]:
    """Return the lines of the data sets whose labels the paper may have coded as we do."""
    return [line for line in lines if SETS[line.set].coding_fits]


def as_json(cells: Sequence[Cell], orders: Mapping[str, str]) -> dict[str, Any]:
    """Return the summary of the headline as JSON types, and all cells."""
    lines = headline_lines(cells, orders)
    learners = [name for name in LEARNERS if of_learner(lines, name)]
    return {
        "average_relative_improvement": _table(lines, learners, mean),
        "median_relative_improvement": _table(lines, learners, median),
        "mean_difference_from_the_paper_in_points": {
            learner: {
                _name(result): distance(of_learner(lines, learner), result)
                for result in results_of(learner)
            }
            for learner in learners
        },
        "cells": [cell.as_json() for cell in cells],
    }


def _table(lines: Sequence[SummaryLine], learners: Sequence[str], take: Any) -> dict[str, Any]:
    return {
        learner: {
            _name(result): {
                algorithm: float(take(gains(of_learner(lines, learner), result, algorithm)))
                for algorithm in ALGORITHMS
            }
            for result in (None, *results_of(learner))
        }
        for learner in learners
    }


def _name(result: Result | None) -> str:
    if result is None:
        return "paper"
    return result.feedback + ("_or_alone" if result.falls_back else "")
