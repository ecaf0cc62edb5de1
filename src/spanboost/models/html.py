"""HTML that notebooks show instead of the `repr` of models and results."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from math import isnan
from typing import TYPE_CHECKING, NamedTuple

from spanboost.models.sample_loss import describe_loss, has_sample, sample_loss

if TYPE_CHECKING:
    from spanboost.models.model import Model

MOST_ROWS = 14  # all experts of AutoBoost fit; a choice of n and eta can have more candidates
_BAR_WIDTH = 10.0  # em
_COLOURS = {False: "#0072b2", True: "#d55e00"}  # of positive and negative bars


class Bar(NamedTuple):
    """A cell of a table that shows a number as a bar."""

    share: float  # its length, from -1 to 1

    def html(self) -> str:
        """Return the bar as an element; all bars of a table start at the same place."""
        length = _BAR_WIDTH * min(abs(self.share), 1.0)
        style = (
            f"width:{length:.3g}em;margin-right:{_BAR_WIDTH - length:.3g}em;height:.7em;"
            f"background:{_COLOURS[self.share < 0]}"
        )
        return f'<div style="{style}"></div>'


def model_html(model: "Model") -> str:
    """Return the facts about a model, its parts and their weights as HTML.

    AutoBoost records the losses so far. A single booster does not; for it, the table has the loss
    of the rows that it keeps.
    """
    title = repr(model).removeprefix("<").removesuffix(">")
    return section(title, table(_facts(model)) + _parts(model))


def section(title: str, body: str) -> str:
    """Return HTML with a title in bold print."""
    return f"<div><strong>{escape(title)}</strong>{body}</div>"


def table(rows: Iterable[Sequence[str | Bar]], head: Sequence[str] = ()) -> str:
    """Return a table as HTML, with all texts escaped."""
    lines = [_line(head, "th")] if head else []
    lines += [_line(row, "td") for row in rows]
    return f"<table>{''.join(lines)}</table>"


def rounded(value: float | None) -> str:
    """Return a number as people read it; one that is undefined is "n/a"."""
    return "n/a" if value is None or isnan(value) else f"{value:z.6g}"


def _line(cells: Sequence[str | Bar], tag: str) -> str:
    texts = [cell.html() if isinstance(cell, Bar) else escape(cell) for cell in cells]
    return f"<tr>{''.join(f'<{tag}>{text}</{tag}>' for text in texts)}</tr>"


def _facts(model: "Model") -> Iterator[tuple[str, str]]:
    """Yield what is known of a model, and its name."""
    health, ends = model.health, model.label_ends
    yield "loss function", repr(model.loss_)
    if ends is not None:
        yield "labels", f"from {ends.low:z.6g} to {ends.high:z.6g}"
    calibrated = model.uncalibrated is not model
    if model.average_loss is not None:
        yield "loss so far", describe_loss(model.average_loss, calibrated=calibrated)
    elif has_sample(model):
        yield "current loss", describe_loss(sample_loss(model), calibrated=calibrated)
    yield from model.own_facts().items()
    yield "health", ", ".join(health.problems()) or "good"


def _parts(model: "Model") -> str:
    """Return a table of the parts or candidates, with the largest weights first."""
    parts = {name: f"{one.n} x {type(one.learner).__name__}" for name, one in model.parts.items()}
    weights = model.weights_ or dict.fromkeys(parts, 1 / max(len(parts), 1))
    if not weights:
        return ""
    order = sorted(weights, key=lambda name: -weights[name])
    losses = {name: rounded(loss) for name, loss in model.losses_.items()}
    shown = [(name, parts.get(name, ""), losses.get(name, "")) for name in order[:MOST_ROWS]]
    shares = [weights[name] for name in order[:MOST_ROWS]]
    rest = order[MOST_ROWS:]
    if rest:
        shown.append((f"{len(rest):,} others", "", ""))
        shares.append(sum(weights[name] for name in rest))
    head, columns = ("part", "copies", "loss so far", "weight", ""), 3 if losses else 2
    rows: list[Sequence[str | Bar]] = [
        [*texts[:columns], f"{share:.1%}", Bar(share)]
        for texts, share in zip(shown, shares, strict=True)
    ]
    return table(rows, (*head[:columns], *head[3:]))
