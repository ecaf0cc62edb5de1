"""Adapter for Vowpal Wabbit workspaces."""

import math
from collections.abc import Iterator
from typing import Any


class VowpalWabbit:
    """A Vowpal Wabbit workspace per copy, created from command-line arguments.

    Rows are dictionaries of numbers and strings, or sequences of numbers; zeros are omitted.
    """

    single_output = True

    def __init__(self, arguments: str = "") -> None:
        self.arguments, self._workspace = arguments, None

    def __repr__(self) -> str:
        return f"VowpalWabbit({self.arguments!r})"

    def __getstate__(self) -> dict[str, Any]:
        if self._workspace is not None:
            raise TypeError("a Vowpal Wabbit workspace in use can be neither copied nor pickled")
        return vars(self)

    def predict_one(self, x: Any) -> float:
        """Return the workspace's prediction."""
        return float(self.workspace.predict(_example(x)))

    def learn_one(self, x: Any, y: float, w: float = 1.0) -> None:
        """Learn from a target."""
        self.workspace.learn(f"{y!r} {w!r} {_example(x)}")

    @property
    def workspace(self) -> Any:
        """The workspace of this copy, created on first use."""
        if self._workspace is None:
            try:
                from vowpalwabbit import Workspace
            except ImportError:
                raise ImportError(
                    "VowpalWabbit needs the package vowpalwabbit: pip install vowpalwabbit"
                ) from None
            self._workspace = Workspace(f"{self.arguments} --quiet")
        return self._workspace


def _example(x: Any) -> str:
    return f"|x {' '.join(_features(x))}"


def _features(x: Any) -> Iterator[str]:
    for name, value in x.items() if isinstance(x, dict) else enumerate(x):
        if isinstance(value, str):
            yield _escape(f"{name}={value}")
        elif value is not None and value != 0 and not math.isnan(value):  # omit missing values
            yield f"{_escape(str(name))}:{float(value)!r}"


def _escape(name: str) -> str:
    """Replace the characters that have a meaning in VW's text format."""
    return name.translate({ord(letter): "_" for letter in " :|\t\n"})
