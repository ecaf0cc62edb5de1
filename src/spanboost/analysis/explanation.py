"""The explanation of one prediction, as text and as HTML."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spanboost.models.html import MOST_ROWS, Bar, rounded, section, table

_FEATURES = 5  # in the text of an explanation
_OUTPUTS = 8  # columns of a table
_ROUNDING = 1e-5  # a rest below this share of the other parts is a rounding error


class Part(NamedTuple):
    """A part of a prediction: a feature, or one of "(base)", "(3 more)" and "(rest)"."""

    name: str
    amount: Any  # a number, or a vector of R^d


class Explanation(NamedTuple):
    """The parts of one prediction: prediction = base + sum of all contributions + rest.

    For predictions in R^d, every part is a vector.
    """

    prediction: Any
    base: Any  # the part that depends on no feature
    contributions: dict[str | int, Any]  # by feature, the largest first
    rest: Any  # rounding errors for a booster; for AutoBoost see `explain`

    def main_parts(self, most: int) -> list[Part]:
        """Return the base, at most this many features, their rest, and `rest` if it matters."""
        features = [Part(str(name), part) for name, part in self.contributions.items()]
        parts, others = [Part("(base)", self.base), *features[:most]], features[most:]
        if others:
            parts.append(Part(f"({len(others):,} more)", sum(part.amount for part in others)))
        if _size(self.rest) > _ROUNDING * max(map(_size, (part.amount for part in parts))):
            parts.append(Part("(rest)", self.rest))
        return parts

    def output(self, k: int) -> "Explanation":
        """Return the explanation of output k of a vector, with the largest features first."""
        parts = {name: float(part[k]) for name, part in self.contributions.items()}
        order = sorted(parts, key=lambda name: -abs(parts[name]))
        return Explanation(
            float(self.prediction[k]),
            float(self.base[k]),
            {name: parts[name] for name in order},
            float(self.rest[k]),
        )

    def __repr__(self) -> str:
        parts = self.main_parts(_FEATURES)
        if np.ndim(self.prediction):
            names = ", ".join(str(name) for name in list(self.contributions)[:_FEATURES])
            return (
                f"<Explanation: {len(self.prediction)} outputs, {len(self.contributions):,} "
                f"features; the largest contributions: {names or 'none'}>"
            )
        first, *others = parts
        terms = [f"{first.amount:z.4g} {_quoted(first)}", *map(_signed, others)]
        return f"<Explanation: {self.prediction:z.4g} = {' '.join(terms)}>"

    def _repr_html_(self) -> str:
        parts = self.main_parts(MOST_ROWS)
        if np.ndim(self.prediction):
            return self._outputs_html(parts)
        base, *others = parts
        largest = max((abs(part.amount) for part in others), default=0.0) or 1.0
        rows: list[tuple[str, str, str | Bar]] = [
            (base.name, rounded(base.amount), ""),
            *((name, f"{amount:+z.6g}", Bar(amount / largest)) for name, amount in others),
            ("prediction", rounded(self.prediction), ""),
        ]
        title = f"prediction {rounded(self.prediction)}"
        return section(title, table(rows, ("feature", "contribution", "")))

    def _outputs_html(self, parts: Sequence[Part]) -> str:
        """Return a table with a column for each output, as far as they fit."""
        number = len(self.prediction)
        shown = min(number, _OUTPUTS)
        title = f"prediction of {number:,} outputs"
        title += f", the first {shown} of them" if shown < number else ""
        lines = [*parts, Part("prediction", self.prediction)]
        rows = [(name, *(f"{value:z.4g}" for value in amount[:shown])) for name, amount in lines]
        return section(title, table(rows, ("feature", *(f"output {k}" for k in range(shown)))))


def _size(amount: Any) -> float:
    return float(np.abs(amount).sum())


def _signed(part: Part) -> str:
    return f"{'-' if part.amount < 0 else '+'} {abs(part.amount):.4g} {_quoted(part)}"


def _quoted(part: Part) -> str:
    return part.name if part.name.startswith("(") else f"({part.name})"
