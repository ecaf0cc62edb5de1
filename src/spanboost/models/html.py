"""HTML that notebooks show instead of the `repr` of a model."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spanboost.models.model import Model

MOST_ROWS = 12  # all experts of AutoBoost fit; a choice of n and eta can have more candidates


def model_html(model: "Model") -> str:
    """Return the facts about a model, its parts and their weights as HTML.

    A model does not store its losses; `Evaluation` shows them.
    """
    title = repr(model).removeprefix("<").removesuffix(">")
    return section(title, table(_facts(model)) + _parts(model))


def section(title: str, body: str) -> str:
    """Return HTML with a title in bold print."""
    return f"<div><strong>{escape(title)}</strong>{body}</div>"


def table(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Return a table as HTML, with all texts escaped."""
    lines = [_line(head, "th")] if head else []
    lines += [_line(row, "td") for row in rows]
    return f"<table>{''.join(lines)}</table>"


def _line(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _facts(model: "Model") -> Iterator[tuple[str, str]]:
    """Yield what is known of a model, and its name."""
    health, ends = model.health, model.label_ends
    yield "loss function", repr(model.loss_)
    yield "rows learned", f"{health.labels.learned:,}"
    if ends is not None:
        yield "labels", f"from {ends.low:z.6g} to {ends.high:z.6g}"
    yield "health", ", ".join(health.problems()) or "good"


def _parts(model: "Model") -> str:
    """Return a table of the parts or candidates, with the largest weights first."""
    parts = {name: f"{one.n} x {type(one.learner).__name__}" for name, one in model.parts.items()}
    weights = model.weights_ or dict.fromkeys(parts, 1 / max(len(parts), 1))
    if not weights:
        return ""
    order = sorted(weights, key=lambda name: -weights[name])
    rows = [(name, parts.get(name, ""), f"{weights[name]:.1%}") for name in order[:MOST_ROWS]]
    rest = order[MOST_ROWS:]
    if rest:
        total = sum(weights[name] for name in rest)
        rows.append((f"{len(rest):,} others", "", f"{total:.1%}"))
    return table(rows, ("part", "copies", "weight"))
