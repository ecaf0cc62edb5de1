"""The table: one line for each group, figure, model and loss, with the worst of its cases."""

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from benchmarks import common
from benchmarks.wild.cases import Case, Group, Measure
from benchmarks.wild.results import Key, Results
from benchmarks.wild.runs import PEER

HEAD = ("stream", "figure", "model", "loss", "before", "now", "worst case", "target", "met")


class Line(NamedTuple):
    """A line of the table. A figure is None if a run is missing."""

    group: Group
    measure: Measure
    model: str
    loss: str
    before: float | None
    now: float | None
    worst: str

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without a target or without a measurement."""
        known = self.now is not None and self.measure.must
        return common.meets(self.now, self.measure.must) if known else None

    @property
    def cells(self) -> tuple[str, ...]:
        """The line as text."""
        what = self.group.name, self.measure.title, self.model, self.loss
        figures = number(self.before), number(self.now)
        return (*what, *figures, self.worst, self.measure.must or "-", common.yes_no(self.met))


class Reader(NamedTuple):
    """The results of one version of the code, and of the one that it is compared with."""

    results: Results
    label: str
    before: str

    def lines(self, groups: Iterable[Group], models: Iterable[str]) -> Iterator[Line]:
        """Yield the lines for these groups and models."""
        models = set(models)
        for group in groups:
            chosen = [model for model in group.models if model in models]
            for measure in group.measures:
                for loss in group.losses:
                    for model in chosen:
                        yield self.line(group, measure, model, loss)

    def line(self, group: Group, measure: Measure, model: str, loss: str) -> Line:
        """Return one line of the table."""
        now, worst = self.worst(group, measure, model, loss)
        before, _ = self._replace(label=self.before).worst(group, measure, model, loss)
        return Line(group, measure, model, loss, before, now, worst)

    def worst(
        self, group: Group, measure: Measure, model: str, loss: str
    ) -> tuple[float | None, str]:
        """Return the largest figure of a group and the name of its case."""
        figures = {}
        for case in group.cases:
            keys = [Key(self.label, case.name, model, loss, s) for s in group.seeds(model)]
            found = [self.figure(case, measure, key) for key in keys]
            values = [value for value in found if value is not None]
            if len(values) == len(keys):
                figures[case.name] = sum(values) / len(values)
        if len(figures) < len(group.cases):
            return None, "-"
        name = max(figures, key=lambda case: figures[case])
        return figures[name], name.removeprefix(group.name).removeprefix(": ") or "-"

    def figure(self, case: Case, measure: Measure, key: Key) -> float | None:
        """Return the figure of one run: infinite if it failed, None if it is missing."""
        run = self.results.get(key)
        if run is None:
            return None
        if "error" in run:
            return math.inf
        names = [measure.score] if measure.score else list(run["mse"])
        figures = [self.relative(case, measure, key, name) for name in names]
        known = [value for value in figures if value is not None]
        return max(known) if len(known) == len(names) else None

    def relative(self, case: Case, measure: Measure, key: Key, score: str) -> float | None:
        """Return one error of a run, relative to the error it is compared with."""
        error = self.results[key]["mse"][score]
        if not measure.against:
            return error
        other = self.other(case, measure, key, score)
        if other is None:
            return None
        ratio = error / other if other else math.inf if error else 1.0
        if measure.form == "from 1":
            return abs(ratio - 1)
        return math.sqrt(ratio) if measure.form == "rmse" else ratio

    def other(self, case: Case, measure: Measure, key: Key, score: str) -> float | None:
        """Return the error that a run is compared with; None if it is missing."""
        if measure.against == "experts":
            return min(errors[score] for errors in self.results[key]["experts"].values())
        if measure.against == "reference":
            key = key._replace(stream=case.reference.name)
        elif measure.against == "before":
            if key.label == self.before:
                return None
            key = key._replace(label=self.before)
        else:
            key = Key(PEER, case.name, PEER, "squared", key.seed)
        return self.results.get(key, {}).get("mse", {}).get(score)


def number(figure: float | None) -> str:
    """Format a figure."""
    if figure is None:
        return "not measured"
    if math.isinf(figure):
        return "failed"
    return f"{figure:.3f}" if 0.001 <= figure < 1_000 else f"{figure:.3g}"
