"""A report of a reproduction as one self-contained HTML page."""

from collections.abc import Mapping, Sequence
from html import escape
from statistics import mean, median

from spanboost.cli.output.report import NONE, document, figure, section, table
from spanboost.paper import plots
from spanboost.paper.cells import FEEDBACKS, Cell
from spanboost.paper.datasets import SETS
from spanboost.paper.published import ALGORITHMS, LEARNERS
from spanboost.paper.reproduce import DataSetFacts
from spanboost.paper.summary import AVERAGED, VIEWS, SummaryLine, improvements, lines

NOTE = (
    "Every row was predicted before its label was seen. Parameters were chosen on the first half; "
    "losses are those of the second half."
)


def page(
    words: Sequence[str],
    cells: Sequence[Cell],
    facts: Mapping[str, DataSetFacts],
    absent: Mapping[str, str],
) -> str:
    """Return a page with the tables, plots, tuned parameters and data sets."""
    headline = lines(cells, "greedy", "headline")
    sections = [
        section("Relative improvement, average and median (Table 1)", _table_1(cells)),
    ]
    if headline:
        sections.append(section("Improvement on each data set", _improvements(headline)))
    for feedback in FEEDBACKS:
        for view, view_name in VIEWS.items():
            shown = lines(cells, feedback, view)
            if shown:
                heading = f"Table 2, {feedback} feedback, {view_name}"
                sections.append(section(heading, _table_2(shown)))
    drawn = [name for name in LEARNERS if any(line.cell.learner == name for line in headline)]
    sections += [
        *(section(f"Curves of {plots.TITLES[name]}", _curves(headline, name)) for name in drawn),
        section("Data sets", _sets(facts, absent)),
    ]
    return document("Online Gradient Boosting: the experiments reproduced", words, sections, NOTE)


def _table_1(cells: Sequence[Cell]) -> str:
    head = ["", *(f"{take}, Alg {k}" for take in ("average", "median") for k in (1, 2))]
    headline = lines(cells, "greedy", "headline")
    every = [("the paper, same data sets", headline, "paper")]
    every += [
        (f"{feedback} feedback, {view}", lines(cells, feedback, view), "ours")
        for feedback in FEEDBACKS
        for view in AVERAGED
    ]
    tables = [
        (words, [improvements(shown, take, whose) for take in (mean, median)])
        for words, shown, whose in every
    ]
    rows = [
        [
            f"{plots.TITLES[learner]}: {words}",
            *(f"{one[learner][a]:+.2%}" for one in takes for a in ALGORITHMS),
        ]
        for learner in LEARNERS
        for words, takes in tables
        if learner in takes[0]
    ]
    return f"<p>The headline is {VIEWS['headline']}.</p>\n{table(head, rows)}"


def _improvements(headline: Sequence[SummaryLine]) -> str:
    caption = (
        "Share of the base learner's loss on the second half that boosting saves, with greedy "
        "feedback. Filled: ours; hollow: the paper's."
    )
    label = "Relative improvement on each data set; the numbers are in the tables."
    return figure(plots.improvements(headline), label, caption)


def _table_2(shown: Sequence[SummaryLine]) -> str:
    head = ["data, learner", "alone", "Alg 1", "gain", "Alg 2", "gain", "chosen: rate"]
    head += ["Alg 1: rate, n, eta", "Alg 2: rate, n"]
    note = (
        "The paper's figures are in brackets. * Our learner alone has a lower loss than the "
        "paper's boosted ones."
    )
    return f"{table(head, map(_row, shown))}\n<p>{note}</p>"


def _row(line: SummaryLine) -> list[str]:
    ours, paper, models = line.ours, line.paper, line.cell.models
    span, hull = models["span"], models["hull"]
    step = "" if span.eta is None else f", {span.eta:g}"
    return [
        f"{line.cell.set}, {line.cell.learner}" + "*" * line.already_better,
        f"{ours.baseline:.4f} ({paper.baseline:.4f})",
        *(f"{ours.span:.4f} ({paper.span:.4f})", f"{ours.improvement('span'):+.1%}"),
        *(f"{ours.hull:.4f} ({paper.hull:.4f})", f"{ours.improvement('hull'):+.1%}"),
        f"{models['baseline'].rate:g}",
        f"{span.rate:g}, {span.n}{step}",
        f"{hull.rate:g}, {hull.n}",
    ]


def _curves(headline: Sequence[SummaryLine], learner: str) -> str:
    name = plots.TITLES[learner]
    return figure(
        plots.against_n(headline, learner),
        f"Loss of {name} against the number of copies on each data set.",
        "Average loss of the first half against the number of copies, at the rate and step that "
        "are best there. The dashed line is the learner alone at its best rate.",
    ) + figure(
        plots.curves(headline, learner),
        f"Learning curves of {name} on each data set.",
        "Average loss of each hundredth of the stream. Parameters were chosen on the rows left of "
        "the line.",
    )


def _sets(facts: Mapping[str, DataSetFacts], absent: Mapping[str, str]) -> str:
    head = [
        "name",
        "rows (paper's)",
        "features (paper's)",
        "active features a row (paper's)",
        "labels",
    ]
    head += ["as published", "licence", "source"]
    rows = []
    for name, one in SETS.items():
        if name not in facts and name not in absent:
            continue
        paper, here = one.paper, facts.get(name)
        counts = (NONE, NONE) if here is None else (f"{here.features}", f"{here.active:.2f}")
        rows.append(
            [
                name,
                f"{NONE if here is None else f'{here.rows:,}'} ({paper.rows:,})",
                f"{counts[0]} ({paper.features})",
                f"{counts[1]} ({paper.active:g})",
                one.coding,
                NONE if here is None or one.content is None else ("no", "yes")[here.published],
                one.licence,
                one.citation,
            ]
        )
    remarks = "".join(
        f"<li>{escape(name)}: {escape(one.remark)}</li>"
        for name, one in SETS.items()
        if one.remark and name in facts
    )
    missing = "".join(f"<li>{escape(n)}: {escape(why)}</li>" for n, why in absent.items())
    return (
        table(head, rows)
        + (f"<p>Remarks:</p><ul>{remarks}</ul>" if remarks else "")
        + (f"<p>Left out:</p><ul>{missing}</ul>" if missing else "")
    )
