"""Learners as short text."""

from dataclasses import fields, is_dataclass
from typing import Any

LONGEST = 60  # characters of the text of a learner of another library


def copies_text(n: int, learner: Any) -> str:
    """Return the copies of a learner as text."""
    return f"{n} {'copy' if n == 1 else 'copies'} of {learner_text(learner)}"


def learner_text(learner: Any) -> str:
    """Return a learner as people write it: only the parameters that differ from the defaults.

    An object of another library whose text is long is only named.

    >>> from spanboost import LinearSGD
    >>> learner_text(LinearSGD(rate=0.1))
    'LinearSGD(rate=0.1)'
    """
    if not is_dataclass(learner) or isinstance(learner, type):
        text = repr(learner)
        short = len(text) <= LONGEST and "\n" not in text
        return text if short else f"{type(learner).__name__}(...)"
    values = {one.name: (getattr(learner, one.name), one.default) for one in fields(learner)}
    given = [
        f"{name}={_plain(value)}"
        for name, (value, default) in values.items()
        if not _equal(value, default)
    ]
    return f"{type(learner).__name__}({', '.join(given)})"


def _equal(value: Any, default: Any) -> bool:
    try:
        return value is default or bool(value == default)
    except ValueError:  # arrays
        return False


def _plain(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else repr(value)
