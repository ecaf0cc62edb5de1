"""The tables of docs/wild.md: the worst figure of each group, model by model."""

from collections.abc import Iterator

from benchmarks.accuracy.markdown import markdown
from benchmarks.results_files import read
from benchmarks.wild.cases import MODELS, Group, Measure, groups
from benchmarks.wild.results import FILE, Key
from benchmarks.wild.tables import Reader, number

BEFORE, NOW = "before", "now"  # labels of the results that are shown: of version 0.1.0, and newer
TITLES = {
    "trees": "trees alone",
    "fast": "AutoBoost `fast`",
    "default": "AutoBoost",
    "thorough": "AutoBoost `thorough`",
}
SHOWN = "default"  # the model whose earlier figure is shown as well


def squared() -> str:
    """Return the table for squared loss."""
    return _table("squared")


def absolute() -> str:
    """Return the table for absolute loss."""
    return _table("absolute")


def _table(loss: str) -> str:
    reader = Reader(read(FILE, Key), NOW, BEFORE)
    head = ["stream", "figure", f"{TITLES[SHOWN]} 0.1.0", *TITLES.values()]
    return markdown(*_without_empty(head, list(_rows(reader, loss))))


def _without_empty(head: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Leave out the columns in which nothing was measured."""
    kept = [k for k in range(len(head)) if any(row[k] != "-" for row in rows)]
    return [head[k] for k in kept], [[row[k] for k in kept] for row in rows]


def _rows(reader: Reader, loss: str) -> Iterator[list[str]]:
    for group in groups():
        for measure in group.measures if loss in group.losses else ():
            if measure.against != "before":
                yield _row(reader, group, measure, loss)


def _row(reader: Reader, group: Group, measure: Measure, loss: str) -> list[str]:
    lines = {model: reader.line(group, measure, model, loss) for model in MODELS}
    now = [number(lines[model].now) for model in MODELS]
    cells = [group.name, measure.title, number(lines[SHOWN].before), *now]
    return ["-" if cell == "not measured" else cell for cell in cells]
