"""The page docs/accuracy.md, and the table of targets, both made from the results."""

import math
from collections.abc import Iterable
from typing import Any

from benchmarks.accuracy import speeds, verdicts
from benchmarks.accuracy.datasets import ORDERS, TASKS
from benchmarks.accuracy.markdown import markdown
from benchmarks.accuracy.methods import METHODS, SHORT, named
from benchmarks.accuracy.results import Key, Results
from benchmarks.accuracy.verdicts import AUTO, TARGETS, Target

_GROUPS = ("baseline", "ours", "batch", "chunks", "ceiling")
WHOLE = [name for group in _GROUPS for name in named(group)]
TITLES = {"shuffled": "shuffled (seed 0)", "file": "in file order"}
INTRODUCTION = """\
# Accuracy, speed and memory against other libraries

`python -m benchmarks.accuracy` generates this page from `benchmarks/results/accuracy.jsonl`. That
file has one line for each run: loss, variance of the labels, rows, seconds, memory, seed and
versions. [`benchmarks/README.md`](../benchmarks/README.md) describes the data sets, the labels and
the other libraries. Failed and missing runs are shown as such.

Each method makes one pass and predicts each row before it learns from it. The figures are mean
squared errors on the second half, in units of the variance of the labels there. Predicting the best
constant would score 1. All methods use their default settings, and seed 0 if they have a seed.

- **previous label** (baseline): predicts the label of the row before, and learns nothing. Where it
  has little error, neighbouring rows of a file have equal labels. In file order, such a data set
  rewards a method for following the labels, which a model fitted once cannot do. Then compare with
  this column, or with the shuffled rows.
- **LightGBM, XGBoost** (batch): fitted to the whole first half.
- **LightGBM refitted**: fitted from scratch to all rows seen so far, ten times over the second
  half. It is the fair opponent of a model that learns all the time, but it keeps all rows, so it is
  not a streaming method.
- **+1, +10** (chunks): 1 or 10 trees are fitted to each chunk of 1,000 rows after the chunk is
  predicted. They are added to the existing trees, without a limit on their number. XGBoost also
  runs with LightGBM's step of 0.1.
- **trees alone**: `SpanBoost(Trees(), n=100, eta=0.1, label_range="auto")`.

The smallest figure in each row is bold, not counting LightGBM refitted.
"""
SHORT_TEXT = f"""\
These libraries learn row by row in Python or Java. They run on the first {SHORT:,} rows of each
order, for at most two minutes of processor time. A library that runs out of time is scored on the
second half of the rows it reached; the figure in brackets is AutoBoost's on the same rows.
Categories are one-hot encoded, except for SGBR, which gets nominal attributes.
"""
PAPER_TEXT = """\
The table shows the mean squared error on the second half in file order, in the units of the paper's
labels. The paper's figure is the best of its nine tuned results (three learners, each alone and
under two algorithms). The paper leaves some details open:

- activity: it does not say which classes are +1. Here movement is +1.
- cal_housing: it does not say how prices were scaled to [0, 1]. If they were divided by 500001,
  multiply our figures by 0.941.
- bank: its rows were probably not in file order. A linear function alone (`LinearSGD`, rate 1)
  reaches 0.381 in file order and 0.295 shuffled; the paper reports 0.2971.
"""
COUNTS_TEXT = """\
Each cell counts the data sets on which the method named at the top has a lower error than the one
named on the left, or an error at most 3 % higher where the table says so.
"""
LOST_TEXT = """\
The next table lists the data sets on which AutoBoost does not have a lower error. It also lists
those on which trees alone do not have a lower error than a streaming library. The error ratio is
our error divided by the other method's.
"""
VOID_TEXT = """\
If all scored labels of a data set are equal, or all other methods failed, it is not counted:
"""
CEILING_TEXT = """\
Compared with LightGBM refitted (in file order, look at the previous label, too):
"""


def page(results: Results) -> str:
    """Return the whole page."""
    parts = [INTRODUCTION, *_counts(results)]
    for order, title in TITLES.items():
        parts += [f"## Whole streams, {title}\n", _whole(results, order)]
    parts += [f"## Streaming libraries, the first {SHORT:,} rows\n", SHORT_TEXT]
    for order, title in TITLES.items():
        parts += [f"### {title.capitalize()}\n", _short(results, order)]
    parts += ["## The paper's figures\n", *_paper(results)]
    parts += ["## Speed and memory\n", *speeds.tables_of(results), "## Runs\n", *_runs(results)]
    return "\n".join(parts)


def targets(results: Results) -> list[list[str]]:
    """Return the rows of the table of targets: who, against, order, target, found, met."""
    rows = []
    for target in TARGETS:
        found = verdicts.find(results, target, target.ours)
        met = {True: "yes", False: "NO", None: "open"}[found.met(target)]
        who, count = METHODS[target.ours].title, _count(results, target, target.ours)
        must = f"error {target.must}"
        rows.append([who, target.against, target.order, must, count, met])
    return rows + speeds.targets(results)


def _counts(results: Results) -> list[str]:
    ours = named("ours")
    head = ["compared with", "order of rows", "error", *(METHODS[name].title for name in ours)]
    rows, void = {}, {}
    lost = set[tuple[str, verdicts.Contest]]()
    for target in TARGETS:
        if target.peers and not measured(results, target.peers):
            continue
        key = target.against, target.order, target.how
        rows[key] = [*key, *(_count(results, target, name) for name in ours)]
        found = verdicts.find(results, target, target.ours)
        lost |= {(METHODS[target.ours].title, contest) for contest in found.lost(1.0)}
        for place in found.void:
            void.setdefault(place, {})[target.against] = None
    notes = [f"- No comparison on {place}: {', '.join(peers)}." for place, peers in void.items()]
    parts = ["## Comparison by data set\n", COUNTS_TEXT, markdown(head, rows.values())]
    more = [VOID_TEXT, *notes, ""] if notes else []
    return [*parts, LOST_TEXT, _lost(lost), *more, CEILING_TEXT, *_ceiling(results)]


def _count(results: Results, target: Target, ours: str) -> str:
    found = verdicts.find(results, target, ours)
    text = f"{len(found.won(target.margin))} of {len(found.contests)}"
    return text + (f" ({len(found.missing)} not measured)" if found.missing else "")


def _lost(lost: set[tuple[str, verdicts.Contest]]) -> str:
    head = ["method", "data", "order of rows", "compared with", "error ratio"]
    rows = [
        [ours, c.data, ORDERS[c.order], _title(c.peer), f"{c.ratio:.3f}"]
        for ours, c in sorted(lost, key=lambda pair: (pair[0], -pair[1].ratio, pair[1]))
    ]
    return markdown(head, rows)


def _title(peer: str) -> str:
    return METHODS[peer].title if peer in METHODS else f"best result in the {peer}"


def _ceiling(results: Results) -> list[str]:
    lines = []
    for order in ORDERS:
        ratios = [verdicts.ratio(results, data, order, AUTO, "lightgbm-refit") for data in TASKS]
        there = [ratio for ratio in ratios if ratio is not None and not math.isnan(ratio)]
        if there:
            lines.append(
                f"- {ORDERS[order]}: the error of AutoBoost is {min(there):.2f} to"
                f" {max(there):.2f} times that of LightGBM refitted ten times (geometric mean"
                f" {verdicts.geometric_mean(there):.3f}, {len(there)} data sets)."
            )
    return [*lines, ""]


def _whole(results: Results, order: str) -> str:
    names = WHOLE + measured(results, named("tuned"))
    head = ["data", "rows", "variance", *(METHODS[name].title for name in names)]
    rows = []
    for data in TASKS:
        there = {name: results.get(Key("accuracy", data, order, name)) for name in names}
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


def measured(results: Results, names: Iterable[str]) -> list[str]:
    """Return the methods that have a result for any data set."""
    there = {key.method for key in results if key.kind == "accuracy"}
    return [name for name in names if name in there]


def _short(results: Results, order: str) -> str:
    peers, ours = measured(results, named("streaming")), named("ours")
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
        comparable = "yes" if task.coded_alike else "unknown"
        rows.append([data, f"{task.paper:.4f}", *cells, comparable])
    titles = [*(METHODS[name].title for name in named("ours")), "AutoBoost, shuffled"]
    head = ["data", "paper", *titles, "same label coding"]
    return [PAPER_TEXT, markdown(head, rows)]


def _runs(results: Results) -> list[str]:
    done = [row for row in results.values() if "error" not in row]
    found = sorted({f"{k} {v}" for row in done for k, v in row["versions"].items()})
    stamps = sorted({row["stamp"] for row in done if "stamp" in row})
    lines = [f"Versions: {', '.join(found)}."]
    lines.append(f"Hashes of the spanboost source: {', '.join(stamps) or 'none yet'}.")
    for key, row in results.items():
        if "error" in row:
            where = f"{key.method} on {key.data}, {ORDERS[key.order]}"
            lines.append(f"- failed: {where}: {row['error']}")
    known = measured(results, METHODS)
    wanted = [Key("accuracy", d, o, m) for m in known for d in TASKS for o in ORDERS]
    absent = sum(key not in results for key in wanted)
    lines.append(f"\nMissing runs: {absent} of {len(wanted)}.")
    if others := [method.title for name, method in METHODS.items() if name not in known]:
        lines.append(f"Not measured: {', '.join(others)}.")
    lines.append("")
    return ["\n".join(lines)]
