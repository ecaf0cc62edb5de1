"""The comparisons of `evaluate --compare`: the first model with each of the others."""

from collections.abc import Mapping, Sequence
from typing import Any

from spanboost.analysis.comparison import LEVEL, Comparison
from spanboost.analysis.comparison_curves import ComparisonCurve
from spanboost.analysis.progressive import Step
from spanboost.checks import finite_or_none


class PairComparisons:
    """Compares the first of several models with each of the others, as rows arrive.

    The level is divided among the pairs, so that all intervals are valid together.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.first, *self.others = names
        level = LEVEL / max(1, len(self.others))
        self._pairs = {name: Comparison(level) for name in self.others}
        self.curves = {name: ComparisonCurve() for name in self.others}

    def add(self, step: Step) -> None:
        """Add the losses of a batch."""
        for k, name in enumerate(self.others, 1):
            found = self._pairs[name].add(step.losses[:, 0], step.losses[:, k], step.batch.weights)
            self.curves[name].add(found)

    def as_json(self) -> list[dict[str, Any]]:
        """Return the result of each pair, for --json."""
        return [self._result(name, pair) for name, pair in self._pairs.items()]

    def _result(self, name: str, pair: Comparison) -> dict[str, Any]:
        better = {"first": self.first, "second": name, None: None}[pair.better]
        return {
            "first": self.first,
            "second": name,
            "difference": finite_or_none(pair.difference),
            "interval": [finite_or_none(end) for end in pair.interval],
            "better": better,
            "since": pair.since,
            "limited_rows": pair.limited,
        }


def describe(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the results as lines of text."""
    together = "" if len(results) == 1 else " together"
    return [
        f"differences of average losses, with {1 - LEVEL:.0%} intervals that are valid{together} "
        "at every row:",
        *(
            f"  {one['first']} - {one['second']} = {format_end(one['difference'])} "
            f"({format_interval(one)}): {verdict(one)}"
            for one in results
        ),
    ]


def verdict(result: Mapping[str, Any]) -> str:
    """Return which model is better, in words."""
    if result["better"] is None:
        return "not certain which is better"
    return f"{result['better']} is better, certain since row {result['since']:,}"


def format_interval(result: Mapping[str, Any]) -> str:
    """Return both ends of an interval as text."""
    low, high = result["interval"]
    return "unbounded" if low is None else f"{format_end(low)} to {format_end(high)}"


def format_end(value: float | None) -> str:
    """Return a difference as text."""
    return "n/a" if value is None else f"{value:z.6g}"
