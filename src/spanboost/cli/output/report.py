"""A report of a pass as one self-contained HTML page."""

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from spanboost import __version__
from spanboost.analysis import comparison_curves, figures, loss_curves
from spanboost.analysis.calibration_picture import inline_calibration
from spanboost.analysis.comparison_curves import ComparisonCurve
from spanboost.analysis.interval_picture import IntervalPicture, inline_intervals
from spanboost.analysis.progressive import LossTape
from spanboost.analysis.regret_picture import Regret, inline_regret
from spanboost.atomic_files import atomic_write, check_writable
from spanboost.cli.output.comparisons import format_end, format_interval, verdict
from spanboost.cli.output.interval_results import compared_rows, interval_rows, window_lines
from spanboost.cli.output.metrics_table import confusion_rows, model_rows, part_rows
from spanboost.cli.output.summary import baseline_of, improvement, losses_of_each
from spanboost.errors import UserError
from spanboost.models.model import Model

NONE = "\N{EN DASH}"
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"  # data: for colour bars
PLOTS = {  # headings of the plots of --plot-KIND
    "predictions": "Predictions and labels",
    "residuals": "Residuals",
    "stages": "Stages",
    "sigma": "Shrinkage",
    "importance": "Importance of features",
}
STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --soft: #59636e;
  --line: #d5dae0; --tint: #f4f6f8; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171b; --ink: #e3e7eb; --soft: #9aa5b1;
  --line: #363d46; --tint: #1e2329; } }
@media print { :root { color-scheme: light; --paper: #fff; --ink: #000; --soft: #444;
  --line: #bbb; --tint: #f4f4f4; } }
body { background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif;
  margin: 0 auto; max-width: 64rem; padding: 2rem 1.25rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 1rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.25rem 0 .75rem; }
pre { background: var(--tint); border: 1px solid var(--line); border-radius: 6px;
  overflow-wrap: anywhere; padding: .75rem 1rem; white-space: pre-wrap; }
figure { margin: 1.25rem 0 0; }
svg { display: block; height: auto; max-width: 100%; }
figcaption, footer { color: var(--soft); font-size: .875rem; }
footer { border-top: 1px solid var(--line); margin-top: 2.5rem; padding-top: .75rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .9rem; text-align: right;
  vertical-align: top; white-space: nowrap; }
tr > :first-child { padding-left: 0; text-align: left; }
thead th { border-bottom: 2px solid var(--soft); max-width: 12rem; vertical-align: bottom;
  white-space: normal; }
tbody th { font-weight: 600; }
li { overflow-wrap: anywhere; }
@media print { body { font-size: 11px; max-width: none; padding: 0; } .wide { overflow: visible; }
  th, td { padding: .2rem .5rem; white-space: normal; } h2 { break-after: avoid; }
  figure, tr, pre { break-inside: avoid; } }
"""


def check(path: str | Path) -> None:
    """Raise a UserError if a report cannot be written to this path."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise UserError(f"{path}: a report must be a .html file")
    check_writable(path)
    figures.check_matplotlib()


def save(path: str | Path, text: str) -> None:
    """Write a page; characters that UTF-8 cannot encode, from file names, are escaped."""
    check(path)
    with atomic_write(path) as file:
        file.write(text.encode("utf-8", "backslashreplace"))


def page(
    words: Sequence[str],
    files: Sequence[str],
    models: Mapping[str, Model],
    tape: LossTape,
    result: Mapping[str, Any],
    bad_rows: Sequence[str],
    compared: Mapping[str, ComparisonCurve],
    regret: Regret | None = None,
    drawn: Mapping[str, Any] | None = None,
    band: IntervalPicture | None = None,
) -> str:
    """Return the report of a command as HTML.

    words: the arguments of the command. bad_rows: messages about the first rows left out.
    compared: the curves of the other models, compared with the first; empty without --compare.
    regret: the measured bound of the certificate. drawn: figures of other plots, by kind.
    band: the intervals of the first model.
    """
    title = f"spanboost {words[0]}: {files[0]}"
    if len(files) > 1:
        title += f" and {len(files) - 1:,} more"
    names = list(models)
    sections = [
        section("Loss", _losses(names, tape)),
        section("Metrics", _metrics(result, drawn or {})) if "metrics" in result else "",
        section("Curves", _curves(names, tape, result)),
        section("Intervals", _intervals(result, band)) if band is not None else "",
        *(section(PLOTS[kind], _plot(kind, one)) for kind, one in (drawn or {}).items()),
        section("Comparison", _comparison(result, compared)) if compared else "",
        section("Drift", _drift(result["drift"])) if "drift" in result else "",
        section("Certificate", _certificate(result["certificate"], regret))
        if "certificate" in result
        else "",
        section("The stream", _stream(result)),
        section("Rows left out", _left_out(result["skipped"], bad_rows)) if bad_rows else "",
        section("Average loss so far", _progress(names, tape)),
        section("Average loss of each window", _windows(names, result["windows"])),
        section("Parameters", _parameters(models)),
    ]
    note = "Every row was predicted before its label was seen."
    return document(title, words, filter(None, sections), note)


def document(title: str, words: Sequence[str], sections: Iterable[str], note: str) -> str:
    """Return a page with a title, the command, the sections, and a note below them."""
    body = "\n".join(
        [
            f"<h1>{escape(title)}</h1>",
            f"<pre><code>{escape(shlex.join(['spanboost', *words]))}</code></pre>",
            *sections,
        ]
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<main>
{body}
</main>
<footer>{note} spanboost {__version__}</footer>
</body>
</html>
"""


def section(heading: str, body: str) -> str:
    """Return a section of a page."""
    return f"<section>\n<h2>{heading}</h2>\n{body}\n</section>"


def _losses(names: Sequence[str], tape: LossTape) -> str:
    each = losses_of_each(names, tape)
    head = ["model", "average loss", "first half", "second half"]
    compares = any(baseline_of(name) in each for name in names)
    if compares:
        head.append("improvement over its learner alone, second half")
    rows = []
    for name, one in each.items():
        row = [
            name,
            *(format_number(one[key]) for key in ("loss", "loss_first_half", "loss_second_half")),
        ]
        if compares:
            gain = improvement(one, each[baseline_of(name)]) if baseline_of(name) in each else None
            row.append(NONE if gain is None else f"{gain:+.2%}")
        rows.append(row)
    return table(head, rows)


def _metrics(result: Mapping[str, Any], drawn: Mapping[str, Any]) -> str:
    """Return the metrics of each part of the stream, the confusion counts and the calibration.

    drawn: the other plots of the page; that of the predictions of classes has the calibration, too.
    """
    whole = result["metrics"]["whole"]
    parts = [_table_of(part_rows(result))]
    if "compared" in result:
        parts.append(_table_of(model_rows(result)))
    if whole.get("roc_auc_error") is not None:
        parts.append(
            "<p>The area under the ROC curve is that of a histogram of the scores. Over the whole "
            f"stream it differs from the exact one by at most {whole['roc_auc_error']:.2g}.</p>"
        )
    if confusion_rows(whole):
        parts.append(_table_of(confusion_rows(whole)))
    if whole.get("reliability"):
        parts.append(_calibration(whole, only_shares="predictions" in drawn))
    return "\n".join(parts)


def _calibration(metrics: Mapping[str, Any], *, only_shares: bool) -> str:
    """Return the plot of the calibration, or only how often each probability is predicted."""
    labels = metrics["confusion"]["labels"]
    event = f"the label is {labels[1]}" if len(labels) == 2 else "the predicted class is right"
    label = "Frequency against predicted probability; the numbers are in the output of --json."
    caption = (
        f"How often {event}, against the predicted probability of this (points on the line are "
        "calibrated), and how many rows have these probabilities."
    )
    if only_shares:
        label = "Predicted probabilities; the numbers are in the output of --json."
        caption = f"The predicted probabilities that {event}. The calibration is drawn below."
    svg = inline_calibration(metrics["reliability"], only_shares=only_shares)
    return figure(svg, label, caption)


def _table_of(rows: Sequence[Sequence[str]]) -> str:
    return table(rows[0], rows[1:])


def _curves(names: Sequence[str], tape: LossTape, result: Mapping[str, Any]) -> str:
    moments = result["drift"]["rows"] if "drift" in result else ()
    svg = loss_curves.inline_svg(names, tape, result["best_constant_loss"], moments)
    label = f"Loss curves of {', '.join(names)} over {tape.rows:,} rows; the numbers are below."
    caption = "The average over all rows so far (rows on a logarithmic scale), and of each window."
    return figure(svg, label, caption)


def _intervals(result: Mapping[str, Any], band: IntervalPicture) -> str:
    """Return the metrics of the intervals, and their plot."""
    words = "".join(f"<p>{escape(line)}</p>" for line in window_lines(result))
    parts = [_table_of(interval_rows(result)), words]
    if "compared" in result:
        parts.append(_table_of(compared_rows(result)))
    label = "Intervals of the last rows, and coverage over the rows; the numbers are above."
    caption = "The intervals of the last rows with their labels, and the coverage in windows."
    return "\n".join([*parts, figure(inline_intervals(band), label, caption)])


def _plot(kind: str, drawn: Any) -> str:
    """Return a plot that the command has also written to a file."""
    label = f"{PLOTS[kind]}: the plot that --plot-{kind} writes."
    return figure(figures.inline_figure(drawn), label, label)


def _comparison(result: Mapping[str, Any], compared: Mapping[str, ComparisonCurve]) -> str:
    """Return the difference of the first model and each other one, as a table and a plot."""
    rows = [
        [
            f"{one['first']} - {one['second']}",
            format_end(one["difference"]),
            format_interval(one),
            verdict(one),
        ]
        for one in result["comparisons"]
    ]
    head = ["difference of average losses", "value", "95% interval", "result"]
    svg = comparison_curves.inline_svg(result["model"], compared)
    label = f"Difference of the losses of {result['model']} and of each other model over the rows."
    caption = (
        "The difference of the average losses after each row (rows on a logarithmic scale). With a "
        "probability of 95%, all bands are right at every row."
    )
    return f"{table(head, rows)}\n{figure(svg, label, caption)}"


def figure(svg: str, label: str, caption: str) -> str:
    """Return a figure with a caption, and a label for screen readers."""
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)
    return f"<figure>\n{svg}<figcaption>{escape(caption)}</figcaption>\n</figure>"


def _certificate(certificate: Mapping[str, Any], regret: Regret | None) -> str:
    """Return the plot of the regret, the comparisons, and the words of the command."""
    keys = ("comparator_loss", "regret", "measured_bound", "bound")
    head = ["compared with", "its loss", "regret", "measured bound", "bound for every stream"]
    compared = [one for one in (certificate, *certificate["others"]) if one["comparator"]]
    rows = [[one["comparator"], *(format_number(one[key]) for key in keys)] for one in compared]
    words = f"<pre>{escape(chr(10).join(certificate['words']))}</pre>"
    parts = [table(head, rows), words]
    if regret is not None:
        label = f"Causes of the regret against {regret.comparator}; the numbers are below."
        caption = "The measured bound on the regret, by cause and by stage."
        parts.insert(0, figure(inline_regret(regret), label, caption))
    return "\n".join(parts)


def _stream(result: Mapping[str, Any]) -> str:
    rows = [
        ["rows", f"{result['examples']:,}"],
        ["summed weights", f"{result['weight']:.10g}"],
        ["best constant", format_number(result["best_constant"])],
        ["best constant's loss", format_number(result["best_constant_loss"])],
        ["rows left out", f"{result['skipped']:,}"],
        ["seconds", f"{result['seconds']:,.2f}"],
        ["seconds of compiling", f"{result['compile_seconds']:,.2f}"],
        ["rows a second, without compiling", f"{result['examples_per_second']:,.0f}"],
    ]
    return table(["measure", "value"], rows)


def _left_out(count: int, messages: Sequence[str]) -> str:
    some = f"{count:,} rows, the first {len(messages)}:" if count > len(messages) else f"{count:,}:"
    items = "\n".join(f"<li>{escape(message)}</li>" for message in messages)
    return f"<p>{some}</p>\n<ul>\n{items}\n</ul>"


def _progress(names: Sequence[str], tape: LossTape) -> str:
    rows = [
        [f"{row:,}", *(format_number(float(loss)) for loss in tape.average(0, row))]
        for row in _powers(tape.rows)
    ]
    return table(["rows", *names], rows)


def _windows(names: Sequence[str], windows: Mapping[str, Any]) -> str:
    columns = [windows["loss"][name] for name in names]
    rows = [
        [f"{first + 1:,} to {last:,}", *map(format_number, losses)]
        for (first, last), *losses in zip(pairwise([0, *windows["rows"]]), *columns, strict=True)
    ]
    return table(["rows", *names], rows)


def _drift(drift: Mapping[str, Any]) -> str:
    """Return the rows at which errors rise."""
    moments = ", ".join(f"{row:,}" for row in drift["rows"])
    where = f"rise after rows {moments}; the curves are marked there" if moments else "do not rise"
    return f"<p>The errors of the first model {where} (detector: {escape(drift['detector'])}).</p>"


def _powers(last: int) -> Iterator[int]:
    """Yield 1, 2, 4, 8, ... and the last number."""
    power = 1
    while power < last:
        yield power
        power *= 2
    yield last


def _parameters(models: Mapping[str, Model]) -> str:
    """Return a table of the parameters that are set in any model."""
    each = {name: model.parameters() for name, model in models.items()}
    given = {name: {"booster": one["booster"], **one["parameters"]} for name, one in each.items()}
    known = [(key, value) for one in given.values() for key, value in one.items()]
    keys = list(dict.fromkeys(key for key, value in known if value is not None))
    rows = [
        [name, *(_format_parameter(one.get(key)) for key in keys)] for name, one in given.items()
    ]
    return table(["model", *keys], rows)


def _format_parameter(value: Any) -> str:
    """Return a parameter as Python code would state it."""
    if value is None:
        return NONE
    if isinstance(value, dict):
        inside = (
            f"{k}={_format_parameter(v)}" for k, v in value["fields"].items() if v is not None
        )
        return f"{value['class']}({', '.join(inside)})"
    if isinstance(value, list):
        return ", ".join(map(_format_parameter, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the first cell of each row is its header."""
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    lines = [
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for name, *cells in rows
    ]
    body = "\n".join(lines)
    return (
        f'<div class="wide"><table>\n<thead><tr>{top}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def format_number(value: float | None) -> str:
    """Return a loss as text."""
    return NONE if value is None or math.isnan(value) else f"{value:z.6g}"
