"""A report of a reproduction as one self-contained HTML page."""

from collections.abc import Mapping, Sequence
from html import escape

from spanboost.cli.output.report import NONE, document, figure, section, table
from spanboost.paper import plots
from spanboost.paper.cells import FEEDBACKS, Cell, feedbacks_of
from spanboost.paper.datasets import SETS
from spanboost.paper.published import LEARNERS
from spanboost.paper.reproduce import DataSetFacts
from spanboost.paper.summary import Result, SummaryLine, headline_lines, of_learner
from spanboost.paper.tables import TITLES, Table

NOTE = (
    "Every row was predicted before its label was seen. Parameters were chosen on the first half; "
    "losses are those of the second half."
)


def page(
    words: Sequence[str],
    cells: Sequence[Cell],
    facts: Mapping[str, DataSetFacts],
    absent: Mapping[str, str],
    tables: Mapping[str, Table],
) -> str:
    """Return a page with the tables, plots, tuned parameters and data sets."""
    lines = headline_lines(cells, {name: one.order for name, one in facts.items()})
    drawn = [name for name in LEARNERS if of_learner(lines, name)]
    sections = [
        *(section(one.title, _table(one)) for one in tables.values()),
        *(
            section(f"Improvement on each data set, {feedback} feedback", _gains(lines, feedback))
            for feedback in FEEDBACKS
        ),
        *(
            section(f"Curves of {TITLES[name]}, {feedback} feedback", _curves(mine, feedback))
            for name in drawn
            for feedback in feedbacks_of(name)
            if (mine := of_learner(lines, name))
        ),
        section("Data sets", _sets(facts, absent)),
    ]
    return document("Online Gradient Boosting: the experiments reproduced", words, sections, NOTE)


def _table(one: Table) -> str:
    rows = [[cell.replace("**", "").replace("`", "") for cell in row] for row in one.rows]
    notes = "".join(f"<p>{escape(note)}</p>" for note in one.notes)
    return f"{table(list(one.head), rows)}\n{notes}"


def _gains(lines: Sequence[SummaryLine], feedback: str) -> str:
    caption = (
        "Share of the base learner's loss on the second half that boosting saves. Filled: ours; "
        "hollow: the paper's."
    )
    label = "Relative improvement on each data set; the numbers are in the tables."
    return figure(plots.improvements(lines, Result(feedback)), label, caption)


def _curves(lines: Sequence[SummaryLine], feedback: str) -> str:
    name = TITLES[lines[0].learner]
    return figure(
        plots.against_n(lines, feedback),
        f"Loss of {name} against the number of copies on each data set.",
        "Average loss of the first half against the number of copies, at the rate and step that "
        "are best there. The dashed line is the learner alone at its best rate.",
    ) + figure(
        plots.curves(lines, feedback),
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
