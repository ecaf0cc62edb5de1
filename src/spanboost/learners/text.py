"""Learners as short text."""

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

LONGEST = 60  # characters of the text of a learner of another library


def learner_text(learner: Any) -> str:
    """Return a learner as people write it: only the parameters that differ from the defaults.

    An object is only named if its text is long, or is the address that Python shows by default.

    >>> from spanboost import LinearSGD
    >>> learner_text(LinearSGD(rate=0.1))
    'LinearSGD(rate=0.1)'
    """
    if is_dataclass(learner) and not isinstance(learner, type):
        return call_text(learner)
    text = repr(learner)
    default = text == object.__repr__(learner)
    short = len(text) <= LONGEST and "\n" not in text and not default
    return text if short else f"{type(learner).__name__}(...)"


def call_text(thing: Any, name: str | None = None) -> str:
    """Return the call that makes this dataclass, with the parameters that are not the defaults.

    name: the name of the class, if it is public under another one.

    >>> import numpy as np
    >>> from spanboost import Ridge, SpanBoost
    >>> SpanBoost(Ridge(dtype=np.float32), n=1)
    SpanBoost(Ridge(dtype=np.float32), n=1)
    """
    given = [
        learner_text(value) if one.name == "learner" else f"{one.name}={_plain(value)}"
        for one in sorted(fields(thing), key=lambda one: one.name != "learner")
        if not _equal(value := getattr(thing, one.name), one.default)
    ]
    return f"{name or type(thing).__name__}({', '.join(given)})"


def _equal(value: Any, default: Any) -> bool:
    try:
        return value is default or bool(value == default)
    except ValueError:  # arrays
        return False


def _plain(value: Any) -> str:
    """Return a value as source; the type of numbers as `np.float64`."""
    if isinstance(value, type) and issubclass(value, np.generic):
        return f"np.{value.__name__}"
    return value.__name__ if isinstance(value, type) else repr(value)
