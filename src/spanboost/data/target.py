"""Labels as they stand in files, made the numbers a loss asks for.

Numbers stay numbers. Of two labels one is -1 and the other +1: 0 or -1 against 1, the value called
positive against all others, or two strings in the order in which they come. Of classes, each is
numbered in that order too.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array


class Target:
    """Labels; `values` are those met so far, in order, where labels are not just numbers."""

    kind: str
    as_text = True  # labels are to be given as strings where the file can say what they are

    def __init__(self) -> None:
        self.values: list[str] = []

    def numbers(self, labels: Array) -> Array:
        """Labels that are numbers in their file [rows]: encoded; NaN where one is not allowed."""
        distinct, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
        codes = np.full(len(distinct), math.nan)
        for k in np.argsort(first):  # new values are taken in as they come
            codes[k] = self.code(f"{distinct[k]:.17g}")
        return codes[inverse]

    def code(self, label: str) -> float:
        """The number of one label; a new one is taken in where there is room for it."""
        value = canonical(label)
        return math.nan if value in ("", "nan") else self._code(value)

    def complaint(self, label: str | float | None) -> str:
        """Why a label is not allowed."""
        text = "" if label is None else label if isinstance(label, str) else f"{label:.15g}"
        if canonical(text) in ("", "nan"):
            return "the label is missing"
        return f"the label {text!r:.40} {self._complaint(text)}"

    def state(self) -> dict[str, Any]:
        """All of it, in terms of JSON."""
        return {"kind": self.kind} | vars(self) | {"values": [*self.values]}

    def _code(self, value: str) -> float:
        raise NotImplementedError

    def _complaint(self, text: str) -> str:
        raise NotImplementedError

    def _place(self, value: str, room: int) -> float:
        if value not in self.values:
            if len(self.values) >= room:
                return math.nan
            self.values.append(value)
        return float(self.values.index(value))

    def _known(self) -> str:
        return ", ".join(map(repr, self.values))


class NumberTarget(Target):
    """Numbers, between two limits where there are any."""

    kind = "number"
    as_text = False

    def __init__(self, limits: Sequence[float] | None = None) -> None:
        super().__init__()
        self.limits = limits

    def numbers(self, labels: Array) -> Array:
        """Labels [rows]; NaN where one is not allowed."""
        low, high = self.limits or (-math.inf, math.inf)
        return np.where(np.isfinite(labels) & (labels >= low) & (labels <= high), labels, math.nan)

    def _code(self, value: str) -> float:
        number = as_number(value)
        return math.nan if number is None else float(self.numbers(np.array([number]))[0])

    def _complaint(self, text: str) -> str:
        number = as_number(text)
        if number is None:
            return (
                "is no number: for two classes give --loss logistic and --positive VALUE, for more "
                "--loss softmax"
            )
        if not math.isfinite(number) or self.limits is None:
            return "is not finite"
        return "is outside the label range, {:g} to {:g}".format(*self.limits)


class BinaryTarget(Target):
    """Two labels: -1 and +1."""

    kind = "binary"

    def __init__(self, positive: str | None = None) -> None:
        super().__init__()
        self.positive = positive  # this value is +1, every other -1

    def _code(self, value: str) -> float:
        if self.positive is not None:
            return 1.0 if value == canonical(self.positive) else -1.0
        together = {value, *self.values}
        if together <= {"0", "1"} or together <= {"-1", "1"}:
            self._place(value, 2)
            return 1.0 if value == "1" else -1.0
        if any(as_number(known) is not None for known in together):
            return math.nan
        return 2 * self._place(value, 2) - 1

    def _complaint(self, text: str) -> str:
        if not self.values:
            return "is neither 0 nor 1, nor -1: name the positive one with --positive VALUE"
        return f"does not go with {self._known()}: name the positive one with --positive VALUE"


class ClassTarget(Target):
    """Classes 0, 1, 2, ..., so many of them."""

    kind = "classes"

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.classes = classes

    def _code(self, value: str) -> float:
        return self._place(value, self.classes)

    def _complaint(self, text: str) -> str:
        return f"is one more than the {self.classes} classes {self._known()}"


def target_from_json(state: dict[str, Any]) -> Target:
    """The target that said this of itself; a KeyError or TypeError if none did."""
    parameters = dict(state)
    kinds = {cls.kind: cls for cls in (NumberTarget, BinaryTarget, ClassTarget)}
    cls, values = kinds[parameters.pop("kind")], parameters.pop("values")
    target = cls(**parameters)
    target.values = [str(value) for value in values]
    return target


def canonical(label: str) -> str:
    """A label as it is known: numbers in one way of writing them, without blanks around."""
    text = label.strip()
    number = as_number(text)
    if number is None:
        return text
    return f"{number:.17g}" if number else "0"  # there is no -0


def as_number(text: str) -> float | None:
    """The number a string stands for; None if it stands for none."""
    try:
        return None if "_" in text else float(text)  # Python would read 1_000
    except ValueError:
        return None
