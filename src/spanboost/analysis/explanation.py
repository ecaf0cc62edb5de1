"""The explanation of one prediction, as text and as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.models.html import MOST_ROWS, Bar, rounded, section, table
from spanboost.rows.user_types import Contribution

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEATURES = 5  # in the text of an explanation
_OUTPUTS = 8  # columns of a table, lines of a text
_ROUNDING = 1e-5  # a rest below this share of the other parts is a rounding error


class Part(NamedTuple):
    """A part of a prediction: a feature, or one of "(base)", "(3 more)" and "(rest)"."""

    name: str
    amount: Any  # a number, or a vector of R^d


class ExplanationParts(NamedTuple):
    """The fields of an explanation."""

    prediction: Contribution
    base: Contribution  # the part that depends on no feature
    contributions: dict[str | int, Contribution]  # by feature, the largest first
    rest: Contribution  # rounding errors for a booster; for AutoBoost see `explain`


class Explanation(ExplanationParts):
    """The parts of one prediction: prediction = base + sum of all contributions + rest.

    For predictions in R^d, every part is a vector. For classes, the prediction is the score of the
    second class, or the scores of all classes.

    Attributes:
        classes: The labels of the classes; empty if the prediction is no class.
        chances: Their probabilities, before a calibration; None if the model has none.
        calibrated: Whether the model calibrates these probabilities when it predicts.
        log_link: Whether the prediction is the logarithm of the predicted mean.
    """

    classes: Sequence[Any]
    chances: Array | None
    log_link: bool
    calibrated: bool

    def __new__(
        cls,
        prediction: Contribution,
        base: Contribution,
        contributions: dict[str | int, Contribution],
        rest: Contribution,
        classes: Sequence[Any] = (),
        chances: Array | None = None,
        log_link: bool = False,
        calibrated: bool = False,
    ) -> Self:
        """Return an explanation with these parts."""
        explanation = super().__new__(cls, prediction, base, contributions, rest)
        explanation.classes, explanation.chances = classes, chances
        explanation.log_link, explanation.calibrated = log_link, calibrated
        return explanation

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (*self, self.classes, self.chances, self.log_link, self.calibrated)

    def main_parts(self, most: int) -> list[Part]:
        """Return the base, at most this many features, their rest, and `rest` if it matters."""
        features = [Part(str(name), part) for name, part in self.contributions.items()]
        parts, others = [Part("(base)", self.base), *features[:most]], features[most:]
        if others:
            parts.append(Part(f"({len(others):,} more)", sum(part.amount for part in others)))
        if _size(self.rest) > _ROUNDING * max(map(_size, (part.amount for part in parts))):
            parts.append(Part("(rest)", self.rest))
        return parts

    def output(self, k: int) -> Explanation:
        """Return the explanation of output k of a vector, with the largest features first."""
        parts = {name: float(part[k]) for name, part in self.contributions.items()}
        order = sorted(parts, key=lambda name: -abs(parts[name]))
        return Explanation(
            float(self.prediction[k]),
            float(self.base[k]),
            {name: parts[name] for name in order},
            float(self.rest[k]),
            log_link=self.log_link,
        )

    def plot(
        self, most: int = 10, *, path: str | Path | None = None, ax: Axes | None = None
    ) -> Axes:
        """Plot the contributions as bars that lead from the base to the prediction.

        For three or more classes, they lead to the score of the predicted class.

        most: the number of features with a bar of their own, the largest first.
        path: the file to write, PNG or SVG; None shows the plot in notebooks.
        ax: axes to draw into.
        """
        from spanboost.analysis.explanation_picture import plot

        if not np.ndim(self.prediction):
            return plot(self, self.sum_name, most, path, ax)
        if not len(self.classes):
            raise ValueError("the prediction has several outputs; plot one of them: output(k)")
        return plot(self.output(self._predicted_class), self.sum_name, most, path, ax)

    def __repr__(self) -> str:
        if len(self.classes):
            k = self._explained_class
            own = self.output(k) if np.ndim(self.prediction) else self
            return f"<Explanation: {self._class_title()}; {self.sum_name} {own._sum()}>"
        if np.ndim(self.prediction):
            number = len(self.prediction)
            shown = range(min(number, _OUTPUTS))
            lines = [f"  output {k}: {self.output(k)._sum()}" for k in shown]
            lines += [f"  ... and {number - _OUTPUTS:,} more"] if number > _OUTPUTS else []
            return "\n".join([f"<Explanation: {number:,} outputs", *lines]) + ">"
        if self.log_link:
            return f"<Explanation: {self._mean_title()}; {self.sum_name} {self._sum()}>"
        return f"<Explanation: {self._sum()}>"

    def _sum(self) -> str:
        """Return the prediction, a number, as a sum of its parts."""
        first, *others = self.main_parts(_FEATURES)
        terms = [f"{first.amount:z.4g} {_quoted(first)}", *map(_signed, others)]
        return f"{self.prediction:z.4g} = {' '.join(terms)}"

    @property
    def _predicted_class(self) -> int:
        vector = np.ndim(self.prediction) > 0
        return int(np.argmax(self.prediction)) if vector else int(self.prediction > 0)

    @property
    def _explained_class(self) -> int:
        """The class whose score the parts add up to; of vectors, the predicted one."""
        return self._predicted_class if np.ndim(self.prediction) else 1

    @property
    def chance_name(self) -> str:
        """What `chances` are, in words."""
        return "probability before calibration" if self.calibrated else "probability"

    @property
    def sum_name(self) -> str:
        """What the parts add up to, in words; of the scores of classes, that of `__repr__`."""
        if len(self.classes):
            return f"score of {self.classes[self._explained_class]}"
        return "logarithm of the prediction" if self.log_link else "prediction"

    def _mean_title(self) -> str:
        return f"prediction {rounded(float(np.exp(self.prediction)))}"

    def _class_title(self) -> str:
        k = self._predicted_class
        sure = "" if self.chances is None else f", {self.chance_name} {self.chances[k]:z.4g}"
        return f"prediction {self.classes[k]}{sure}"

    def _repr_html_(self) -> str:
        parts = self.main_parts(MOST_ROWS)
        if np.ndim(self.prediction):
            return self._outputs_html(parts)
        title = f"prediction {rounded(self.prediction)}"
        if len(self.classes) or self.log_link:
            title = self._class_title() if len(self.classes) else self._mean_title()
            if len(self.classes) and self._explained_class != self._predicted_class:
                title += f"; contributions to the {self.sum_name}"
        base, *others = parts
        largest = max((abs(part.amount) for part in others), default=0.0) or 1.0
        rows: list[tuple[str, str, str | Bar]] = [
            (base.name, rounded(base.amount), ""),
            *((name, f"{amount:+z.6g}", Bar(amount / largest)) for name, amount in others),
            (self.sum_name, rounded(self.prediction), ""),
        ]
        return section(title, table(rows, ("feature", "contribution", "")))

    def _outputs_html(self, parts: Sequence[Part]) -> str:
        """Return a table with a column for each output, as far as they fit.

        Classes are in the order of their scores.
        """
        number = len(self.prediction)
        shown = list(range(min(number, _OUTPUTS)))
        heads = [f"output {k}" for k in shown]
        title, which, last = f"prediction of {number:,} outputs", "the first", "prediction"
        if len(self.classes):
            shown = np.argsort(-self.prediction, kind="stable")[:_OUTPUTS].tolist()
            heads = [str(self.classes[k]) for k in shown]
            title, which, last = f"{self._class_title()}: scores", "the largest", "score"
        elif self.log_link:
            title, last = f"logarithms of the predictions of {number:,} outputs", self.sum_name
        if len(shown) < number:
            title += f", {which} {len(shown)} of them"
        lines = [*parts, Part(last, self.prediction)]
        rows = [(name, *(f"{amount[k]:z.4g}" for k in shown)) for name, amount in lines]
        return section(title, table(rows, ("feature", *heads)))


def _size(amount: Any) -> float:
    return float(np.abs(amount).sum())


def _signed(part: Part) -> str:
    return f"{'-' if part.amount < 0 else '+'} {abs(part.amount):.4g} {_quoted(part)}"


def _quoted(part: Part) -> str:
    return part.name if part.name.startswith("(") else f"({part.name})"
