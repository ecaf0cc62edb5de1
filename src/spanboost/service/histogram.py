"""Histograms of durations, in the text format of Prometheus."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 600.0)


class Histogram:
    """Counts durations by size. One thread adds them; all threads may read the counts."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0  # sum of all durations

    def add(self, seconds: float) -> None:
        """Count a duration."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Count how long a block takes, also if it raises an error."""
        began = perf_counter()
        try:
            yield
        finally:
            self.add(perf_counter() - began)


def format_histograms(name: str, help: str, histograms: Mapping[str, Histogram]) -> list[str]:
    """Return the lines of a metric, given its histograms by their labels."""
    lines = [f"# HELP {name} {help}", f"# TYPE {name} histogram"]
    for labels, histogram in list(histograms.items()):
        total, comma = 0, "," if labels else ""
        for limit, count in zip((*map(str, BUCKETS), "+Inf"), histogram.counts, strict=True):
            total += count
            lines.append(f'{name}_bucket{{{labels}{comma}le="{limit}"}} {total}')
        braces = f"{{{labels}}}" if labels else ""
        lines.append(f"{name}_sum{braces} {histogram.seconds!r}")
        lines.append(f"{name}_count{braces} {total}")
    return lines
