"""Workspaces of Vowpal Wabbit."""

import math
from collections.abc import Iterator
from typing import Any


class VowpalWabbit:
    """A workspace of Vowpal Wabbit for each copy, made of the words of a command line.

    Rows are dictionaries of numbers and strings, or sequences of numbers; zeros are left out.
    """

    def __init__(self, arguments: str = "") -> None:
        self.arguments, self._workspace = arguments, None

    def __repr__(self) -> str:
        return f"VowpalWabbit({self.arguments!r})"

    def __getstate__(self) -> dict[str, Any]:
        if self._workspace is not None:
            raise TypeError("a Vowpal Wabbit workspace in use can be neither copied nor pickled")
        return vars(self)

    def predict_one(self, x: Any) -> float:
        """As the workspace predicts."""
        return float(self.workspace.predict(_example(x)))

    def learn_one(self, x: Any, y: float, w: float = 1.0) -> None:
        """Learn from a target."""
        self.workspace.learn(f"{y!r} {w!r} {_example(x)}")

    @property
    def workspace(self) -> Any:
        """Its own, made when it is needed first."""
        if self._workspace is None:
            try:
                from vowpalwabbit import Workspace
            except ImportError:
                raise ImportError(
                    "a VowpalWabbit learner needs its Python package: pip install vowpalwabbit"
                ) from None
            self._workspace = Workspace(f"{self.arguments} --quiet")
        return self._workspace


def _example(x: Any) -> str:
    return f"|x {' '.join(_features(x))}"


def _features(x: Any) -> Iterator[str]:
    for name, value in x.items() if isinstance(x, dict) else enumerate(x):
        if isinstance(value, str):
            yield _plain(f"{name}={value}")
        elif value is not None and value != 0 and not math.isnan(value):  # missing is absent
            yield f"{_plain(str(name))}:{float(value)!r}"


def _plain(name: str) -> str:
    """A name without the letters that mean something in VW's text."""
    return name.translate({ord(letter): "_" for letter in " :|\t\n"})
