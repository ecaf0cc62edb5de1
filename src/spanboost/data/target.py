"""Encode the labels of a file as the numbers that a loss needs.

Numeric labels stay as they are. Binary labels become -1 and +1: 0 or -1 against 1, the value named
as positive against all others, or two strings. Of these, "true" and "yes" stand for +1, if they
appear first; otherwise the first string stands for -1. Classes are numbered from 0, in order of
appearance.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spanboost.checks import MOST_CLASSES, is_integer, is_number
from spanboost.compiling.arrays import Array
from spanboost.data.local_formats import comma_advice

NON_NEGATIVE, POSITIVE = "non-negative", "positive"  # domains of labels
_AFFIRMATIVE = ("true", "yes")  # labels that stand for +1 even if they appear first


class LabelError(NamedTuple):
    """Why a label is invalid: the problem, and options of the command line that help."""

    problem: str
    advice: str = ""


class Target:
    """Encodes labels. `values` lists the distinct labels so far, unless labels are numeric."""

    kind: str
    as_text = True  # readers pass labels as strings, not as numbers

    def __init__(self) -> None:
        self.values: list[str] = []

    def encode_numbers(self, labels: Array) -> Array:
        """Encode labels [rows] that are numbers in their file; NaN for invalid labels."""
        distinct, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
        codes = np.full(len(distinct), math.nan)
        for k in np.argsort(first):  # register new labels in order of appearance
            codes[k] = self.encode_text(f"{distinct[k]:.17g}")
        return codes[inverse]

    def encode_text(self, label: str) -> float:
        """Encode one label, registering it if it is new and allowed; NaN if it is invalid."""
        value = canonical(label)
        return math.nan if value in ("", "nan") else self._encode(value)

    def error_message(self, label: str | float | None, *, advise: bool = True) -> str:
        """Return why a label is invalid; `advise` names options of the command line."""
        text = "" if label is None else label if isinstance(label, str) else f"{label:.15g}"
        if canonical(text) in ("", "nan"):
            return "the label is missing"
        if not self.as_text and (number := as_number(text)) is not None:
            text = f"{number:.15g}"  # a reader may pass the text or the number
            if math.isinf(number):  # perhaps the text was 1e400
                return "the label is infinite, or too large for a 64-bit float"
        error = self._error(text)
        advice = f"; {error.advice}" if advise and error.advice else ""
        return f"the label {text!r:.40} {error.problem}{advice}"

    def state(self) -> dict[str, Any]:
        """Return the target as JSON values, for `target_from_json`."""
        return {"kind": self.kind} | vars(self) | {"values": [*self.values]}

    def check(self) -> None:
        """Raise a ValueError if a parameter is invalid."""
        raise NotImplementedError

    def _encode(self, value: str) -> float:
        raise NotImplementedError

    def _error(self, text: str) -> LabelError:
        raise NotImplementedError

    def _index(self, value: str, limit: int) -> float:
        """Return the index of a label among `values`; NaN if it would exceed the limit."""
        if value not in self.values:
            if len(self.values) >= limit:
                return math.nan
            self.values.append(value)
        return float(self.values.index(value))

    def _show_values(self) -> str:
        return ", ".join(map(repr, self.values))


class NumberTarget(Target):
    """Numeric labels, optionally within limits.

    domain: "non-negative" or "positive" if the loss takes only such labels.
    """

    kind = "number"
    as_text = False

    def __init__(self, limits: Sequence[float] | None = None, domain: str | None = None) -> None:
        super().__init__()
        self.limits, self.domain = limits, domain

    def encode_numbers(self, labels: Array) -> Array:
        """Return the labels [rows]; NaN for invalid labels."""
        low, high = self.limits or (-math.inf, math.inf)
        good = np.isfinite(labels) & (labels >= low) & (labels <= high)
        if self.domain is not None:
            good &= labels > 0 if self.domain == POSITIVE else labels >= 0
        return np.where(good, labels, math.nan)

    def state(self) -> dict[str, Any]:
        """Return the target as JSON values; other models have no domain, as in version 0.1.0."""
        known = super().state()
        return {name: value for name, value in known.items() if (name, value) != ("domain", None)}

    def check(self) -> None:
        """Raise a ValueError if a parameter is invalid."""
        if self.domain not in (None, NON_NEGATIVE, POSITIVE):
            raise ValueError(f"unknown domain of labels {self.domain!r:.40}")
        limits = self.limits
        if limits is None:
            return
        if not (len(limits) == 2 and all(map(is_number, limits)) and limits[0] < limits[1]):
            raise ValueError(f"limits must be (low, high) with low < high (got {limits!r:.40})")

    def _encode(self, value: str) -> float:
        number = as_number(value)
        return math.nan if number is None else float(self.encode_numbers(np.array([number]))[0])

    def _error(self, text: str) -> LabelError:
        number = as_number(text)
        if number is None and (comma := comma_advice(text)):
            return LabelError(comma)
        if number is None:
            advice = "for two classes use --loss logistic, for more --loss softmax"
            return LabelError("is not a number", advice)
        if number < 0 and self.domain is not None:
            least = "above 0" if self.domain == POSITIVE else "of at least 0"
            return LabelError(f"is negative; the loss needs labels {least}")
        if number == 0 and self.domain == POSITIVE:
            return LabelError("is not positive; the loss needs labels above 0")
        assert self.limits is not None  # every finite number is allowed without them
        return LabelError("is outside the label range {:g} to {:g}".format(*self.limits))


class BinaryTarget(Target):
    """Binary labels, encoded as -1 and +1."""

    kind = "binary"

    def __init__(self, positive: str | None = None, affirmed: bool = False) -> None:
        super().__init__()
        self.positive = positive  # encoded as +1, every other value as -1
        self.affirmed = affirmed  # whether the only label so far stands for +1

    def check(self) -> None:
        """Raise a ValueError if a parameter is invalid."""
        if not (self.positive is None or isinstance(self.positive, str)):
            raise ValueError(f"positive must be a string (got {self.positive!r:.40})")
        if not isinstance(self.affirmed, bool):
            raise ValueError(f"affirmed must be true or false (got {self.affirmed!r:.40})")

    def state(self) -> dict[str, Any]:
        """Return the target as JSON values; only a single label needs to be affirmed."""
        known = super().state()
        return {name: value for name, value in known.items() if name != "affirmed" or value}

    def _encode(self, value: str) -> float:
        if self.positive is not None:
            if value == canonical(self.positive):
                return 1.0
            self._index(value, 2)  # two other labels are enough to know that they need no name
            return -1.0
        values = {value, *self.values}
        if values <= {"0", "1"} or values <= {"-1", "1"}:
            self._index(value, 2)
            return 1.0 if value == "1" else -1.0
        if any(as_number(known) is not None for known in values):
            return math.nan
        if not self.values:
            self.affirmed = value.casefold() in _AFFIRMATIVE
        elif self.affirmed and value not in self.values:
            self.values.insert(0, value)  # the first label stays the positive one
            self.affirmed = False
        sign = 2 * self._index(value, 2) - 1
        return -sign if self.affirmed else sign

    def _error(self, text: str) -> LabelError:
        advice = "name the positive label with --positive VALUE, or use --loss softmax for classes"
        if not self.values:
            return LabelError("is not 0, 1 or -1", advice)
        return LabelError(f"cannot be used together with {self._show_values()}", advice)


class ClassTarget(Target):
    """Classes, encoded as 0, 1, 2, ..., in order of appearance."""

    kind = "classes"

    def __init__(self, classes: int | None = None) -> None:
        super().__init__()
        self.classes = classes  # the number of classes; None if it is not known

    def check(self) -> None:
        """Raise a ValueError if a parameter is invalid."""
        if self.classes is None:
            return
        if not (is_integer(self.classes) and self.classes >= len(self.values)):
            raise ValueError(f"classes must be None or an integer (got {self.classes!r:.40})")

    def _encode(self, value: str) -> float:
        return self._index(value, MOST_CLASSES if self.classes is None else self.classes)

    def _error(self, text: str) -> LabelError:
        if self.classes is None:
            most = f"would be class number {MOST_CLASSES + 1}; the limit is {MOST_CLASSES}"
            if all(as_number(one) is not None for one in (text, *self.values)):
                return LabelError(most, "the labels look like numbers: use --loss squared")
            return LabelError(most)
        return LabelError(f"is not one of the {self.classes} classes {self._show_values()}")


def target_from_json(state: dict[str, Any]) -> Target:
    """Return the target that `Target.state` described.

    Raise a KeyError, TypeError or ValueError if it is invalid.
    """
    parameters = dict(state)
    kinds = {cls.kind: cls for cls in (NumberTarget, BinaryTarget, ClassTarget)}
    cls, values = kinds[parameters.pop("kind")], parameters.pop("values")
    target = cls(**parameters)
    target.values = [str(value) for value in values]
    target.check()
    return target


def canonical(label: str) -> str:
    """Return the canonical form of a label: no surrounding blanks, one spelling per number."""
    text = label.strip()
    number = as_number(text)
    if number is None:
        return text
    return f"{number:.17g}" if number else "0"  # -0 becomes 0


def as_number(text: str) -> float | None:
    """Return the number that a string represents; None if it is not a number."""
    try:
        return None if "_" in text else float(text)  # float() accepts 1_000
    except ValueError:
        return None
