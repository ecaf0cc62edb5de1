"""The tables of speed and memory."""

from benchmarks.accuracy.datasets import TASKS
from benchmarks.accuracy.markdown import markdown
from benchmarks.accuracy.methods import METHODS, SHORT
from benchmarks.accuracy.results import Results

RATIOS = (  # ours, theirs, how many times the rows a second
    ("trees", "river-arf", 100),
    ("trees", "capymoa-sgbr", 50),
    ("auto-fast", "capymoa-sgbr", 100),
    ("auto-default", "capymoa-sgbr", 10),
)
TEXT = f"""\
Rows a second, predicted and learned, of the first {SHORT:,} rows of a shuffled data set, one run
after the other on a machine that does nothing else (`--speed`). Time to start, to read and to
convert rows is not counted.
"""
MEMORY = """\
All runs above, which shared the machine with other work: rows a second (slowest and fastest data
set), and the peak of a process's resident memory, data and libraries included, over all data sets
and orders (MiB).
"""


def tables_of(results: Results) -> list[str]:
    """Speed ratios, then rows a second and memory of every method."""
    return [TEXT, _ratios(results), MEMORY, _ranges(results)]


def speed_of(results: Results, data: str, method: str) -> float | None:
    """Rows a second in the timed run."""
    rows = [r for k, r in results.items() if (k.kind, k.data, k.method) == ("speed", data, method)]
    return rows[0].get("rows_per_s") if rows else None


def ratios(results: Results, ours: str, theirs: str) -> dict[str, float]:
    """How many times faster ours is, by data set."""
    pairs = {d: (speed_of(results, d, ours), speed_of(results, d, theirs)) for d in TASKS}
    return {data: own / other for data, (own, other) in pairs.items() if own and other}


def _ratios(results: Results) -> str:
    rows = []
    for ours, theirs, must in RATIOS:
        found = ratios(results, ours, theirs)
        cells = ", ".join(
            f"{data} {ratio:.0f} ({speed_of(results, data, ours):,.0f} to"
            f" {speed_of(results, data, theirs):,.0f})"
            for data, ratio in found.items()
        )
        met = "yes" if found and min(found.values()) >= must else "**no**" if found else "missing"
        names = METHODS[ours].title, METHODS[theirs].title
        rows.append([*names, f">= {must}", cells or "missing", met])
    return markdown(["ours", "against", "must", "ratio (rows/s)", "met"], rows)


def _ranges(results: Results) -> str:
    rows = []
    for name, method in METHODS.items():
        done = [
            row
            for key, row in results.items()
            if key.kind == "accuracy" and key.method == name and "error" not in row
        ]
        if not done:
            rows.append([method.title, method.group, "missing", "-", "-", "-"])
            continue
        speeds = [row["rows_per_s"] for row in done]
        peaks = [row["peak_mib"] for row in done]
        rows.append(
            [
                method.title,
                method.group,
                f"{min(speeds):,.0f} - {max(speeds):,.0f}",
                f"{min(peaks):,.0f} - {max(peaks):,.0f}",
                str(max(row["threads"] for row in done)),
                str(len(done)),
            ]
        )
    head = ["method", "kind", "rows/s", "peak MiB", "threads", "runs"]
    return markdown(head, rows)
