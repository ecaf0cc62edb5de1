"""The tables of a reproduction, for the terminal, the page and the report."""

from collections.abc import Callable, Mapping, Sequence
from statistics import mean, median
from typing import NamedTuple

from spanboost.paper.cells import Cell, feedbacks_of
from spanboost.paper.choices import choices
from spanboost.paper.protocol import Grid
from spanboost.paper.published import ALGORITHMS, LEARNERS
from spanboost.paper.reproduce import DataSetFacts
from spanboost.paper.row_order import FILE
from spanboost.paper.summary import (
    PRINTED,
    Result,
    SummaryLine,
    distance,
    gains,
    headline_lines,
    log_ratio,
    of_learner,
    results_of,
    shuffled_lines,
    with_same_coding,
)

TITLES = {"linear": "SGD", "stumps": "regression stumps", "network": "networks"}
NUMBERS = {"span": 1, "hull": 2}  # of the algorithms


class Table(NamedTuple):
    """A table with a title, and notes below it."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def as_lines(self) -> list[str]:
        """Return the title, the table in Markdown with aligned columns, and the notes."""
        every = [list(self.head), *map(list, self.rows)]
        widths = [max(map(len, column)) for column in zip(*every, strict=True)]
        padded = [
            [cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in every
        ]
        rule = ["-" * width for width in widths]
        table = [f"| {' | '.join(row)} |" for row in (padded[0], rule, *padded[1:])]
        notes = [line for note in self.notes for line in ("", note)]
        return [self.title, "", *table, *notes]


def tables(
    cells: Sequence[Cell], facts: Mapping[str, DataSetFacts], grid: Grid
) -> dict[str, Table]:
    """Return all tables by name."""
    lines = headline_lines(cells, {name: one.order for name, one in facts.items()})
    learners = [name for name in LEARNERS if of_learner(lines, name)]
    found = {"averages": averages(lines, learners)}
    for learner in learners:
        mine = of_learner(lines, learner)
        for algorithm in ALGORITHMS:
            found[f"gains-{learner}-{algorithm}"] = gain_table(mine, algorithm)
        found[f"losses-{learner}"] = loss_table(mine)
        found[f"parameters-{learner}"] = parameter_table(mine)
    shuffled = shuffled_lines(cells)
    for learner in learners:
        mine = of_learner(shuffled, learner)
        if len({line.order for line in mine}) > 1:
            found[f"shuffles-{learner}"] = shuffle_table(mine)
    return found | {"orders": order_table(facts), "choices": choice_table(grid)}


def describe(result: Result) -> str:
    """Return a result in words."""
    return f"{result.feedback} or alone" if result.falls_back else result.feedback


def averages(lines: Sequence[SummaryLine], learners: Sequence[str]) -> Table:
    """Return Table 1 of the paper: average and median gains, and their distance from the paper."""
    head = ["learner", "feedback", "average Alg 1", "Alg 2", "median Alg 1", "Alg 2"]
    head += ["averages above the paper's", "distance of the gains, in points"]
    rows = []
    for learner in learners:
        mine = of_learner(lines, learner)
        for result in (None, *results_of(learner)):
            each = [gains(mine, result, algorithm) for algorithm in ALGORITHMS]
            shown = [f"{take(one):+.2%}" for take in (mean, median) for one in each]
            name = "the paper" if result is None else describe(result)
            if result is None:
                paper, more = each, ["", ""]
            else:
                higher = [mean(a) > mean(b) for a, b in zip(each, paper, strict=True)]
                words = ", ".join(("no", "yes")[one] for one in higher)
                more = [words, f"{distance(mine, result):.1f}"]
            rows.append([TITLES[learner], name, *shown, *more])
    notes = [
        f"Data sets: {len({line.set for line in lines})}. The paper's figures are those of its "
        "table of losses, over the same data sets. The distance is the mean absolute difference "
        'of our gains from the paper\'s, over data sets and both algorithms. "Or alone" falls back '
        "to the learner alone where it is better on the first half."
    ]
    return Table("Relative improvement over the learner alone", head, rows, notes)


def gain_table(lines: Sequence[SummaryLine], algorithm: str) -> Table:
    """Return the gains of an algorithm on each data set, and their distance from the paper's."""
    learner = lines[0].learner
    columns: list[Result | None] = [None, *results_of(learner)]
    head = ["data", "the paper", *map(describe, results_of(learner))]
    rows = [
        [line.set, *(f"{line.gain(result, algorithm):+.1%}" for result in columns)]
        for line in lines
    ]
    averages = [mean(gains(lines, result, algorithm)) for result in columns]
    rows.append(["**average**", *(f"{one:+.1%}" for one in averages)])
    distances = [distance(lines, result, [algorithm]) for result in results_of(learner)]
    rows.append(["**distance**", "", *(f"{one:.1f}" for one in distances)])
    title = f"Gains of Algorithm {NUMBERS[algorithm]} over {TITLES[learner]} alone"
    return Table(title, head, rows, ["The distance is in points."])


def loss_table(lines: Sequence[SummaryLine]) -> Table:
    """Return the losses of one learner on each data set (Table 2 of the paper)."""
    learner = lines[0].learner
    feedbacks = feedbacks_of(learner)
    head = ["data", "order", "alone", "paper", "ratio"]
    for algorithm in ALGORITHMS:
        head += [f"Alg {NUMBERS[algorithm]} {feedbacks[0]}", *feedbacks[1:], "paper"]
    rows = []
    for line in lines:
        alone, paper = line.ours(PRINTED).baseline, line.paper.baseline
        row = [line.set, _order(line.order), f"{alone:.4f}", f"{paper:.4f}", f"{alone / paper:.3f}"]
        for algorithm in ALGORITHMS:
            ours = [getattr(line.ours(Result(feedback)), algorithm) for feedback in feedbacks]
            row += [f"{loss:.4f}" for loss in (*ours, getattr(line.paper, algorithm))]
        rows.append(row)
    note = f"Mean |log ratio| of the learner alone: {log_ratio(lines):.3f}"
    fitting = with_same_coding(lines)
    if 0 < len(fitting) < len(lines):
        others = " and ".join(line.set for line in lines if line not in fitting)
        note += f"; without {others}, {log_ratio(fitting):.3f}"
    return Table(f"Losses of {TITLES[learner]} on the second half", head, rows, [f"{note}."])


def parameter_table(lines: Sequence[SummaryLine]) -> Table:
    """Return the parameters that were chosen on the first half."""
    learner = lines[0].learner
    feedbacks = feedbacks_of(learner)
    head = ["data", "alone: rate"]
    head += [f"Alg 1 {feedback}: rate, n, step" for feedback in feedbacks]
    head += [f"Alg 2 {feedback}: rate, n" for feedback in feedbacks]
    rows = []
    for line in lines:
        row = [line.set, f"{line.chosen(PRINTED, 'baseline').rate:g}"]
        for algorithm in ALGORITHMS:
            for feedback in feedbacks:
                one = line.chosen(Result(feedback), algorithm)
                step = "" if one.eta is None else f", {one.eta:g}"
                row.append(f"{one.rate:g}, {one.n}{step}")
        rows.append(row)
    return Table(f"Parameters chosen for {TITLES[learner]}", head, rows)


def shuffle_table(lines: Sequence[SummaryLine]) -> Table:
    """Return the gains of one learner over several shuffles, each tuned and run on its own."""
    shuffles = sorted({line.order for line in lines})
    feedbacks = feedbacks_of(lines[0].learner)
    head = ["data", "alone"]
    for algorithm in ALGORITHMS:
        head += [f"Alg {NUMBERS[algorithm]} {feedbacks[0]}", *feedbacks[1:], "paper"]
    sets = list(dict.fromkeys(line.set for line in lines))
    complete = [name for name in sets if sum(line.set == name for line in lines) == len(shuffles)]
    rows = []
    for name in complete:
        mine = [line for line in lines if line.set == name]
        row = [name, _interval([line.ours(PRINTED).baseline for line in mine], "{:.4f}".format)]
        rows.append(row + _shuffle_cells([[line] for line in mine], feedbacks))
    by_shuffle = [
        [line for line in lines if line.order == order and line.set in complete]
        for order in shuffles
    ]
    rows.append(["**average**", "", *_shuffle_cells(by_shuffle, feedbacks)])
    note = (
        f"Mean of {len(shuffles)} shuffles, and the least and largest of them. Every shuffle is "
        "tuned on its own first half. An interval from the least to the largest misses the median "
        f"over all shuffles with probability {2.0 ** (1 - len(shuffles)):.2g}."
    )
    return Table(f"Gains over {TITLES[lines[0].learner]}, all rows shuffled", head, rows, [note])


def _shuffle_cells(groups: Sequence[Sequence[SummaryLine]], feedbacks: Sequence[str]) -> list[str]:
    """Return the cells of a row; each group holds the lines of one shuffle."""
    cells = []
    for algorithm in ALGORITHMS:
        for feedback in feedbacks:
            means = [mean(gains(group, Result(feedback), algorithm)) for group in groups]
            cells.append(_interval(means, "{:+.1%}".format))
        cells.append(f"{mean(gains(groups[0], None, algorithm)):+.1%}")
    return cells


def _interval(values: Sequence[float], form: Callable[[float], str]) -> str:
    return f"{form(mean(values))} ({form(min(values))} to {form(max(values))})"


def order_table(facts: Mapping[str, DataSetFacts]) -> Table:
    """Return what decides the order of the rows of each data set."""
    head = ["data", "gap of the halves, in standard errors", "order"]
    rows = [[name, f"{one.gap:.1f}", _order(one.order)] for name, one in facts.items()]
    return Table("Order of the rows", head, rows)


def choice_table(grid: Grid) -> Table:
    """Return all choices; those made after seeing the paper's figures are marked."""
    head = ["choice", "chosen", "reason", "made after seeing the paper's figures"]
    rows = [
        [one.what, one.chosen, one.reason, ("no", "**yes**")[one.fitted]] for one in choices(grid)
    ]
    return Table("Choices that the paper leaves open", head, rows)


def _order(order: str) -> str:
    return FILE if order == FILE else "shuffled"
