"""The page of tables, written from the results alone."""

import math
from typing import Any

from benchmarks.accuracy import speeds, verdicts
from benchmarks.accuracy.datasets import ORDERS, TASKS
from benchmarks.accuracy.markdown import markdown
from benchmarks.accuracy.methods import METHODS, SHORT, named
from benchmarks.accuracy.results import Key, Results
from benchmarks.accuracy.verdicts import AUTO, DEMANDS, Demand

WHOLE = [name for group in ("ours", "batch", "chunks", "ceiling") for name in named(group)]
TITLES = {"shuffled": "shuffled (seed 0)", "file": "in file order"}
INTRODUCTION = """\
# Accuracy, speed and memory against other libraries

This page is written by `python -m benchmarks.accuracy` from `benchmarks/results/accuracy.jsonl`,
which holds a line for every run: loss, variance of the labels, rows, seconds, memory, seed,
versions. Data sets, labels and peers are described in
[`benchmarks/README.md`](../benchmarks/README.md). Nothing is left out: a run that failed or is
missing is said to be.

Each row is predicted before it is learned, in one pass; the figure is the mean squared error on
the second half, in units of the variance of the labels there (1 is what the best constant gets).
Defaults for everybody, seed 0 where there is one. *Batch*: fitted to the first half at once.
*Refitted*: fitted from scratch to everything seen so far, ten times over the second half; it
keeps all rows, and is the ceiling rather than a peer. *+1, +10*: that many trees fitted to each
chunk of 1,000 rows after it was predicted, continued from the trees so far, without end; XGBoost
also with LightGBM's step of 0.1. The least figure of a row is bold, the ceiling aside.
"""
SHORT_TEXT = f"""\
These libraries learn row by row in Python or Java. They get the first {SHORT:,} rows of each
order and two minutes of processor time; one that gets no further in that time is scored on the
second half of the rows it reached, with ours on the same rows in brackets. They get categories
one-hot, SGBR as nominal attributes.
"""
PAPER_TEXT = """\
Mean squared error on the second half in file order, in the units of the paper's labels; the
paper's is its best of nine (three learners; alone and under two algorithms, tuned). For activity
the paper does not say either which classes are +1; movement is, here. Nor does it say how prices
were brought to [0, 1] for cal_housing: if they were divided by 500001, ours are to be multiplied
by 0.941. Its rows of bank were hardly in the order of the file: a linear function alone comes to
0.381 in that order and to 0.295 shuffled (`LinearSGD`, rate 1), the paper's to 0.2971.
"""


def page(results: Results) -> str:
    """Everything."""
    parts = [INTRODUCTION, *_verdicts(results)]
    for order, title in TITLES.items():
        parts += [f"## Whole streams, {title}\n", _whole(results, order)]
    parts += [f"## Streaming libraries, the first {SHORT:,} rows\n", SHORT_TEXT]
    for order, title in TITLES.items():
        parts += [f"### {title.capitalize()}\n", _short(results, order)]
    parts += ["## The paper's figures\n", *_paper(results)]
    parts += ["## Speed and memory\n", *speeds.tables_of(results), "## Runs\n", *_runs(results)]
    return "\n".join(parts)


def _verdicts(results: Results) -> list[str]:
    ours = named("ours")
    head = ["against", "order", "must", *(METHODS[name].title for name in ours), "met"]
    rows, losses = [], []
    for demand in DEMANDS:
        found = verdicts.find(results, demand, demand.ours)
        met = {True: "yes", False: "**no**", None: "open"}[found.met(demand)]
        who = METHODS[demand.ours].title
        counts = [_count(results, demand, name) for name in ours]
        rows.append(
            [demand.against, " and ".join(demand.orders), f"{who} {demand.must}", *counts, met]
        )
        losses += _lost(demand, found)
    return ["## What must hold\n", markdown(head, rows), *losses, *_ceiling(results)]


def _count(results: Results, demand: Demand, ours: str) -> str:
    found = verdicts.find(results, demand, ours)
    text = f"{len(found.won(demand.margin))} of {len(found.contests)}"
    return text + (f" ({len(found.missing)} missing)" if found.missing else "")


def _lost(demand: Demand, found: verdicts.Found) -> list[str]:
    lost = sorted(found.lost(demand.margin), key=lambda contest: -contest.ratio)
    what = f"{METHODS[demand.ours].title} against {demand.against}, {' and '.join(demand.orders)}"
    cells = [f"{c.data} {c.ratio:.3f} ({c.order}, {_title(c.peer)})" for c in lost]
    how = "not better" if demand.margin == 1 else f"not within {demand.margin - 1:.0%}"
    lines = [f"- {what}, {how} (our error over theirs): {', '.join(cells)}."] if lost else []
    if found.void:
        lines.append(f"- {what}, no contest (all labels scored are one): {', '.join(found.void)}.")
    return lines


def _title(peer: str) -> str:
    return METHODS[peer].title if peer in METHODS else peer


def _ceiling(results: Results) -> list[str]:
    lines = []
    for order in ORDERS:
        ratios = [verdicts.ratio(results, data, order, AUTO, "lightgbm-refit") for data in TASKS]
        there = [ratio for ratio in ratios if ratio is not None and not math.isnan(ratio)]
        if there:
            lines.append(
                f"- The ceiling, {order} order: AutoBoost's error is {min(there):.2f} to"
                f" {max(there):.2f} times that of LightGBM refitted ten times, in the geometric"
                f" mean {verdicts.geometric_mean(there):.3f} ({len(there)} data sets)."
            )
    return [*lines, ""]


def _whole(results: Results, order: str) -> str:
    head = ["data", "rows", "variance", *(METHODS[name].title for name in WHOLE)]
    rows = []
    for data in TASKS:
        there = {name: results.get(Key("accuracy", data, order, name)) for name in WHOLE}
        good = [row for row in there.values() if row and "error" not in row]
        fair = [row["mse"] for name, row in there.items() if row in good and _is_peer(name)]
        cells = [_cell(row, min(fair, default=None)) for row in there.values()]
        size = [f"{good[0]['rows']:,}", f"{good[0]['variance']:.4g}"] if good else ["-", "-"]
        rows.append([data, *size, *cells])
    return markdown(head, rows)


def _is_peer(name: str) -> bool:
    return METHODS[name].group != "ceiling"


def _cell(row: dict[str, Any] | None, least: float | None) -> str:
    if not row:
        return "missing"
    if "error" in row:
        return "failed"
    text = _figure(row["mse"], row["variance"])
    text = f"**{text}**" if row["mse"] == least else text
    return text if row["complete"] else f"{text} (first {row['rows']:,})"


def _figure(mse: float, variance: float) -> str:
    return f"{mse / variance:.4g}" if variance else f"MSE {mse:.1e}"


def _short(results: Results, order: str) -> str:
    peers, ours = named("streaming"), named("ours")
    head = ["data", "rows", *(METHODS[name].title for name in [*ours, *peers])]
    rows = []
    for data in TASKS:
        own = {name: results.get(Key("accuracy", data, order, name)) for name in ours}
        their = [results.get(Key("accuracy", data, order, name)) for name in peers]
        whole = next((row for row in their if row and row.get("complete")), None)
        cells = [_ours_at(row, whole) for row in own.values()]
        cells += [_reached(row, own[AUTO]) for row in their]
        rows.append([data, f"{whole['rows']:,}" if whole else "-", *cells])
    return markdown(head, rows)


def _ours_at(row: dict[str, Any] | None, whole: dict[str, Any] | None) -> str:
    if not row or not whole or "error" in row:
        return "failed" if row and "error" in row else "missing" if not row else "-"
    loss = verdicts.loss_at(row, whole["rows"])
    return "-" if loss is None else _figure(loss, whole["variance"])


def _reached(row: dict[str, Any] | None, auto: dict[str, Any] | None) -> str:
    text = _cell(row, None)
    if not row or row.get("complete", True) or not auto or "error" in auto:
        return text
    loss = verdicts.loss_at(auto, row["rows"])
    return f"{text[:-1]}: AutoBoost {_figure(loss, row['variance'])})" if loss is not None else text


def _paper(results: Results) -> list[str]:
    runs = [*((name, "file") for name in named("ours")), (AUTO, "shuffled")]
    rows = []
    for data, task in TASKS.items():
        if task.paper is None:
            continue
        own = [results.get(Key("accuracy", data, order, name)) for name, order in runs]
        cells = [f"{row['mse']:.4g}" if row and "error" not in row else "missing" for row in own]
        comparable = "yes" if task.coded_alike else "no: the paper does not say"
        rows.append([data, f"{task.paper:.4f}", *cells, comparable])
    titles = [*(METHODS[name].title for name in named("ours")), "AutoBoost, shuffled"]
    head = ["data", "paper", *titles, "labels coded alike"]
    return [PAPER_TEXT, markdown(head, rows)]


def _runs(results: Results) -> list[str]:
    done = [row for row in results.values() if "error" not in row]
    found = sorted({f"{k} {v}" for row in done for k, v in row["versions"].items()})
    stamps = sorted({row["stamp"] for row in done if "stamp" in row})
    lines = [f"Versions: {', '.join(found)}."]
    lines.append(f"Sources of spanboost (hash of its files): {', '.join(stamps) or 'none yet'}.")
    for key, row in results.items():
        if "error" in row:
            lines.append(f"- failed: {key.method} on {key.data}, {key.order} order: {row['error']}")
    wanted = [Key("accuracy", d, o, m) for m in METHODS for d in TASKS for o in ORDERS]
    absent = sum(key not in results for key in wanted)
    lines.append(f"\nRuns that are missing: {absent} of {len(wanted)}.\n")
    return ["\n".join(lines)]
