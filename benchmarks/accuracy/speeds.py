"""The tables of speed and memory in docs/accuracy.md."""

from benchmarks.accuracy.datasets import TASKS
from benchmarks.accuracy.markdown import markdown
from benchmarks.accuracy.methods import METHODS, SHORT
from benchmarks.accuracy.results import Results

RATIOS = (  # ours, theirs, smallest ratio of rows per second
    ("trees", "river-arf", 100),
    ("trees", "capymoa-sgbr", 50),
    ("auto-fast", "capymoa-sgbr", 100),
    ("auto-default", "capymoa-sgbr", 10),
)
TEXT = f"""\
The first table shows rows per second, predicted and learned, on the first {SHORT:,} rows of a
shuffled data set. The runs follow each other on an idle machine (`--speed`). The times exclude
starting, reading and converting rows.
"""
MEMORY = """\
The second table covers all runs above, which shared the machine with other work. It shows rows per
second (slowest to fastest data set) and the peak resident memory of a process in MiB. The memory
includes data and libraries; the range is over all data sets and orders.
"""


def tables_of(results: Results) -> list[str]:
    """Return the texts and tables of the section on speed and memory."""
    return [TEXT, _ratios(results), MEMORY, _ranges(results)]


def speed_of(results: Results, data: str, method: str) -> float | None:
    """Return the rows per second of a timed run, or None if it is missing."""
    rows = [r for k, r in results.items() if (k.kind, k.data, k.method) == ("speed", data, method)]
    return rows[0].get("rows_per_s") if rows else None


def ratios(results: Results, ours: str, theirs: str) -> dict[str, float]:
    """Return how many times faster our method is, by data set."""
    pairs = {d: (speed_of(results, d, ours), speed_of(results, d, theirs)) for d in TASKS}
    return {data: own / other for data, (own, other) in pairs.items() if own and other}


def targets(results: Results) -> list[list[str]]:
    """Return the speed targets, as rows of the table of targets."""
    rows = []
    for ours, theirs, must in RATIOS:
        found = ratios(results, ours, theirs)
        least = min(found.values(), default=None)
        met = "open" if least is None else "yes" if least >= must else "NO"
        names = METHODS[ours].title, METHODS[theirs].title
        count = "-" if least is None else f"{least:.0f} times"
        rows.append([*names, "shuffled", f"at least {must} times the rows/s", count, met])
    return rows


def _ratios(results: Results) -> str:
    rows = []
    for ours, theirs, _ in RATIOS:
        cells = ", ".join(
            f"{data} {ratio:.0f} ({speed_of(results, data, ours):,.0f} to"
            f" {speed_of(results, data, theirs):,.0f})"
            for data, ratio in ratios(results, ours, theirs).items()
        )
        rows.append([METHODS[ours].title, METHODS[theirs].title, cells or "missing"])
    return markdown(["method", "compared with", "ratio (rows/s)"], rows)


def _ranges(results: Results) -> str:
    rows = []
    for name, method in METHODS.items():
        if method.group == "baseline":  # it has nothing to learn
            continue
        done = [
            row
            for key, row in results.items()
            if key.kind == "accuracy" and key.method == name and "error" not in row
        ]
        if not done:
            continue
        speeds = [row["rows_per_s"] for row in done]
        peaks = [row["peak_mib"] for row in done]
        rows.append(
            [
                method.title,
                "refitted" if method.group == "ceiling" else method.group,
                f"{min(speeds):,.0f} - {max(speeds):,.0f}",
                f"{min(peaks):,.0f} - {max(peaks):,.0f}",
                str(max(row["threads"] for row in done)),
                str(len(done)),
            ]
        )
    head = ["method", "kind", "rows/s", "peak MiB", "threads", "runs"]
    return markdown(head, rows)
