"""Dates and times as features.

A time becomes seven numbers: the days since the start of 2020, and the sine and cosine of the hour,
the weekday and the day of the year, all in UTC. A time without a zone counts as UTC. The numbers do
not depend on other rows, so every source of rows gives the same features.

Models of earlier versions have the hour, the weekday and the day of the year themselves. Within a
year, the day of the year differs from the days by a constant. So a linear model divides a trend
between the two, and its forecasts jump on the next 1 January. Sine and cosine have no trend and no
jumps.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array

CYCLES = {"hour": 24.0, "weekday": 7.0, "yearday": 365.25}
FIRST_PARTS = ("days", *CYCLES)  # in models of earlier versions
PARTS = ("days", *(f"{cycle}_{wave}" for cycle in CYCLES for wave in ("sin", "cos")))
_HOUR = 3_600_000_000  # in microseconds
_DAY = 24 * _HOUR
_ORIGIN = 18_262 * _DAY  # 2020-01-01
_MICROSECONDS = "datetime64[us]"
_NO_TIME = np.datetime64("NaT", "us")
_CLOCK = r"[T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?"
_ISO = re.compile(rf"\d{{4}}-\d\d-\d\d({_CLOCK}(Z|[+-]\d\d:?\d\d)?)?", re.ASCII)


def part_names(name: str, parts: Sequence[str]) -> list[str]:
    """Return the names of the features of a column of times."""
    return [f"{name}.{part}" for part in parts]


def cycle_of(name: str) -> str:
    """Return the name of a part of a time without its wave: "t.hour" for "t.hour_sin"."""
    return name.removesuffix("_sin").removesuffix("_cos")


def time_features(moments: Array, parts: Sequence[str]) -> Array:
    """Return the features [rows, parts] of times (datetime64[us]); NaN if a time is missing.

    They are float32 numbers, as those of files are: so all rows give the same bits, and the last
    digits of a wave depend on the processor. Only models of earlier versions read more digits.

    parts: PARTS, or FIRST_PARTS for a model of an earlier version.
    """
    microseconds = moments.astype(np.int64)
    day, rest = np.divmod(microseconds, _DAY)
    dates = day.astype("datetime64[D]")
    years = dates.astype("datetime64[Y]").astype("datetime64[D]")
    numbers = {
        "days": (microseconds - _ORIGIN).astype(np.float64) / _DAY,
        "hour": rest / _HOUR,
        "weekday": (day + 3) % 7,  # 1970-01-01 was a Thursday; 0 is Monday
        "yearday": (dates - years).astype(np.int64) + 1,
    }
    kind = np.float64 if tuple(parts) == FIRST_PARTS else np.float32
    features = np.empty((len(moments), len(parts)), kind)
    for j, part in enumerate(parts):
        features[:, j] = numbers[part] if part in numbers else _wave(part, numbers)
    features[np.isnat(moments)] = np.nan
    return features.astype(np.float64)


def _wave(part: str, numbers: dict[str, Array]) -> Array:
    """Return the sine or cosine of a cycle."""
    cycle, _, wave = part.partition("_")
    angles = numbers[cycle] * (2 * np.pi / CYCLES[cycle])
    return np.asarray(np.sin(angles) if wave == "sin" else np.cos(angles))


def are_parts(parts: Any) -> bool:
    """Return whether a file describes the features of times in one of the two ways."""
    return isinstance(parts, list | tuple) and tuple(parts) in (PARTS, FIRST_PARTS)


def parse_time(text: str) -> Any:
    """Return the time (datetime64[us]) of a date or time in ISO 8601; None for any other text.

    Examples: 2026-01-31, 2026-01-31 12:30, 2026-01-31T12:30:00.5Z, 2026-01-31T12:30:00+01:00.
    """
    if not _ISO.fullmatch(text):
        return None
    try:
        return as_moment(datetime.fromisoformat(text))
    except (ValueError, OverflowError):  # such as February 30
        return None


def is_time(value: Any) -> bool:
    """Return whether a value is a date or time object: of Python, NumPy or pandas."""
    return isinstance(value, date | np.datetime64)


def as_moment(value: Any) -> Any:
    """Return a date or time object as datetime64[us]; NaT if it is missing."""
    if isinstance(value, np.datetime64):
        return value.astype(_MICROSECONDS)
    if value != value:  # noqa: PLR0124 - only NaT of pandas differs from itself
        return _NO_TIME
    zone = getattr(value, "tzinfo", None)
    plain = value if zone is None else value.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(plain).astype(_MICROSECONDS)


def expand_times(
    rows: Sequence[Any], parse: Callable[[Any, str], Any], parts: Sequence[str]
) -> Sequence[Any]:
    """Return rows (dictionaries) with the features of every date or time instead of it.

    If there are no dates or times, the rows are returned as they are.

    parse: returns the time that a string stands for, given its name; None if it is a category.
    """
    kinds = {kind for row in rows if isinstance(row, dict) for kind in map(type, row.values())}
    if not any(issubclass(kind, date | np.datetime64 | str) for kind in kinds):
        return rows
    expanded = [_expand(row, parse, parts) for row in rows]
    changed = any(new is not row for new, row in zip(expanded, rows, strict=True))
    return expanded if changed else rows


def _expand(row: Any, parse: Callable[[Any, str], Any], parts: Sequence[str]) -> Any:
    """Return a row with the features of its times; the row itself if it has none."""
    if not isinstance(row, dict):
        return row
    moments = {name: _moment(name, value, parse) for name, value in row.items()}
    if all(moment is None for moment in moments.values()):
        return row
    expanded = dict[Any, Any]()
    for name, value in row.items():
        if moments[name] is None:
            expanded[name] = value
        else:
            expanded.update(time_entries(str(name), moments[name], parts))
    return expanded


def _moment(name: Any, value: Any, parse: Callable[[Any, str], Any]) -> Any:
    if isinstance(value, str):
        return parse(name, value)
    return as_moment(value) if is_time(value) else None


def time_entries(name: str, moment: Any, parts: Sequence[str]) -> dict[str, float]:
    """Return the features of one time by name; `moment` is a datetime64[us]."""
    numbers = time_features(np.array([moment], _MICROSECONDS), parts)[0].tolist()
    return dict(zip(part_names(name, parts), numbers, strict=True))
