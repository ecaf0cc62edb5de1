"""Checks of parameter values. Nothing heavy is imported: the command line's parser uses them."""

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from spanboost.errors import UserError

BREATHING = ("auto", "auto-zero")  # label ranges that follow the labels
MOST_CLASSES = 1000  # of a model that adds classes: a wrong number must not use up the memory
MOST_COPIES = 1_000_000  # of a learner
GROWING = ("growing", "growing-zero")  # label ranges that only grow with the labels
LABEL_RANGES = (*BREATHING, *GROWING)
STEP_TOLERANCE = 1e-12  # 1/n need not be exact in floating point


def is_number(value: Any) -> bool:
    """Return whether the value is a real number that a float can hold (and not a bool)."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    return not isinstance(value, int) or abs(value) < 2**1023


def is_integer(value: Any) -> bool:
    """Return whether the value is an integer (and not a bool)."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_round_count(t: int) -> bool:
    """Return whether t, from a file, is a number of rounds, with room for those that follow.

    >>> is_round_count(0), is_round_count(-1), is_round_count(2**63 - 1)
    (True, False, False)
    """
    return bool(0 <= t < 2**62)


def is_positive(value: Any) -> bool:
    """Return whether the value is a finite number above 0."""
    return is_number(value) and 0 < value < math.inf


def is_label_range(limits: Any) -> bool:
    """Return whether the value is (low, high) with low < high, or the name of a rule."""
    if isinstance(limits, str):
        return limits in LABEL_RANGES
    return (
        isinstance(limits, tuple | list)
        and len(limits) == 2
        and all(map(is_number, limits))
        and 0 < (limits[1] - limits[0]) / 2 < math.inf
    )


def is_step(eta: Any, n: int) -> bool:
    """Return whether eta is a step that Algorithm 1 can take with n copies."""
    return is_number(eta) and eta * n >= 1 - STEP_TOLERANCE and eta <= 1


def float_type(dtype: Any) -> Any:
    """Return np.float32 or np.float64 for any of their names; anything else is a ValueError."""
    import numpy as np

    try:
        found = None if dtype is None else np.dtype(dtype)
    except TypeError:
        found = None
    if found is None or found not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be float32 or float64 (got {dtype!r})")
    return found.type


def finite_or_none(value: float | None) -> float | None:
    """Return the number as JSON can hold it: None if it is not finite."""
    return None if value is None or not math.isfinite(value) else float(value)


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a row as JSON can hold it.

    Dates and times become text in ISO 8601, numbers of NumPy plain numbers. NaN and NaT are missing
    values, None.
    """
    if not hasattr(row, "items"):  # a row of pandas has it, too
        raise TypeError(
            f"a row must be a dictionary (got {row!r:.40}); use predict_many for several rows"
        )
    return {name: _plain(value) for name, value in row.items()}


def label_pairs(labels: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return labels by id as pairs; raise a TypeError if they are not a dictionary."""
    if not hasattr(labels, "items"):
        raise TypeError(f"labels must be a dictionary of ids and labels (got {labels!r:.40})")
    return [*labels.items()]


def _plain(value: Any) -> Any:
    if hasattr(value, "isoformat") or type(value).__name__ == "datetime64":
        text = value.isoformat() if hasattr(value, "isoformat") else str(value)
        return None if text == "NaT" else text
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and math.isnan(value) else value


def trust(certificate: str | None) -> Any:
    """Return what httpx needs to check the certificate of a service; UserError if it is invalid.

    certificate: the file with the certificate; None trusts those that the system trusts.
    """
    if certificate is None:
        return True
    import ssl

    try:
        return ssl.create_default_context(cafile=certificate)
    except OSError as error:
        raise UserError(f"certificate {certificate}: {error.strerror or error}") from None
