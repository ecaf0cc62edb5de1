"""Numbers and dates as people write them: signs of currencies, commas, dates that are not ISO 8601.

Signs of currencies and per cent are read, and so are dates with a clear order. Everything else is
recognised, to say how to write it.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from spanboost.rows.times import parse_time

_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)
_AMOUNT = r"[+-]?\d[\d.,]*"
CURRENCIES, PERCENT = "$€£¥", "%"
NO_SIGN = ("",)
ANY_SIGN = (*NO_SIGN, *CURRENCIES, PERCENT)
_SPACE = "[ \u00a0\u202f]?"  # spreadsheets write spaces that do not break a line
_SIGNED = re.compile(
    rf"([+-]?)([{CURRENCIES}]){_SPACE}({_AMOUNT})|({_AMOUNT}){_SPACE}([{CURRENCIES}{PERCENT}])",
    re.ASCII,
)
TIME_EXAMPLE = "such as 2026-01-31 or 2026-01-31 12:30"  # the forms of ISO 8601 that are read
_DIGITS = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])", re.ASCII)
_DAY = r"(0?[1-9]|[12]\d|3[01])"  # or a month, as either may come first
_CLOCK = r"\d{1,2}:\d\d(:\d\d([.,]\d+)?)?( ?[AaPp][Mm])?"
_DATE = re.compile(
    rf"({_DAY}([./-]){_DAY}\3(\d{{4}}|\d\d)|\d{{4}}([./]){_DAY}\6{_DAY})(,?[ T]{_CLOCK})?", re.ASCII
)
_TIME_OF_DAY = r"(?:,?[ T](\d{1,2})(:\d\d(?::\d\d)?))?"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY_FIRST = re.compile(
    rf"(?P<day>\d{{1,2}})\.(?P<month>\d{{1,2}})\.(?P<year>\d{{4}}){_TIME_OF_DAY}", re.ASCII
)
_NAMED = re.compile(
    rf"(?P<day>\d{{1,2}})([ -])(?P<month>{'|'.join(_MONTHS)})\2(?P<year>\d{{4}}){_TIME_OF_DAY}",
    re.ASCII,
)
_SLASHED = re.compile(
    rf"(\d{{1,2}})([/-])(\d{{1,2}})\2(\d{{4}}){_TIME_OF_DAY}(?: ?([ap])m)?",
    re.ASCII | re.IGNORECASE,
)
_SINCE_1970 = {"milliseconds": 10**3, "seconds": 1}  # units per second
_FIRST_SECOND, _LAST_SECOND = 631_152_000, 4_102_444_800  # of the years 1990 to 2099
_TIME_NAME = re.compile(r"date|time|day|when|stamp|created|updated|(^|_)(at|ts)$", re.IGNORECASE)
DAY_FIRST, MONTH_FIRST = "day", "month"  # orders of dates such as 01/13/2025


def split_sign(text: str) -> tuple[str, str]:
    """Return a number without its sign of a currency or per cent, and the sign, if it has one."""
    found = _SIGNED.fullmatch(text)
    if found is None:
        return text, ""
    minus, before, amount, other, after = found.groups()
    return (minus + amount, before) if before else (other, after)


def describe_signs(name: str, counts: Mapping[str, int]) -> str | None:
    """Return a note on a column of numbers that has signs; None for others.

    counts: how often each value occurs.
    """
    signs = {sign: text for text in counts for _, sign in [split_sign(text)] if sign}
    if not signs:
        return None
    notes = [f"in numbers like {text!r:.40}" for sign, text in signs.items() if sign != PERCENT]
    left_out = [f"the sign of the currency {' and '.join(notes)} is left out"] if notes else []
    percent = ["12% is read as 0.12"] if PERCENT in signs else []
    others = sum(count for text, count in counts.items() if split_sign(text)[1] != PERCENT)
    mixed = [f"{others:,} of {sum(counts.values()):,} values have no % and are not divided by 100"]
    return (
        f"column {name!r:.40}: {'; '.join(left_out + percent + mixed * bool(percent and others))}"
    )


def parse_date(text: str, order: str | None = None) -> Any:
    """Return the time of a date in ISO 8601 or with a clear order; None for any other text.

    Clear are 31.01.2026, 31-Jan-2026 and 31 Jan 2026, perhaps with a time of day. 01/02/2026 is
    not: the month is first in some countries, and the day in others.

    order: which of them is first in the column of the text; None if that is not clear.
    """
    moment = parse_time(text)
    if moment is None:
        moment = parse_time(_to_iso(text))
    return parse_time(_slashed_to_iso(text, order)) if moment is None and order else moment


def date_order(texts: Iterable[str]) -> str | None:
    """Return the order of dates such as 01/13/2025, if they exclude the other; None otherwise.

    The day is first if a first number exceeds 12 and no second one does, and the reverse.
    """
    found = [match for text in texts if (match := _SLASHED.fullmatch(text))]
    first = any(int(match[1]) > 12 for match in found)
    second = any(int(match[3]) > 12 for match in found)
    return None if first == second else DAY_FIRST if first else MONTH_FIRST


def describe_order(texts: Collection[str]) -> str:
    """Return what a note says about the order of dates such as 01.02.2026; nothing without any."""
    order = date_order(texts)
    slashed = [text for text in texts if order is not None and _SLASHED.fullmatch(text)]
    dotted = [text for text in texts if _DAY_FIRST.fullmatch(text)]
    if slashed:
        excluding = next(text for text in slashed if date_order([text]))
        return f", the {order} first, as in {excluding!r:.40}"
    return f", the day first, as in {dotted[0]!r:.40}" if dotted else ""


def _to_iso(text: str) -> str:
    """Return a date with a clear order in ISO 8601; an empty text for any other."""
    found = _DAY_FIRST.fullmatch(text) or _NAMED.fullmatch(text.lower())
    if found is None:
        return ""
    year, month, day = found.group("year", "month", "day")
    number = int(month) if month.isdecimal() else 1 + _MONTHS.index(month)
    hour, minutes = found.groups()[-2:]
    clock = "" if hour is None else f" {int(hour):02}{minutes}"
    return f"{year}-{number:02}-{int(day):02}{clock}"


def _slashed_to_iso(text: str, order: str) -> str:
    """Return a date such as 01/13/2025 3:05 PM in ISO 8601; an empty text for any other."""
    found = _SLASHED.fullmatch(text)
    if found is None:
        return ""
    first, _, second, year, hour, minutes, half = found.groups()
    month, day = (first, second) if order == MONTH_FIRST else (second, first)
    date = f"{year}-{int(month):02}-{int(day):02}"
    if hour is None:
        return "" if half else date
    if half is None:
        return f"{date} {int(hour):02}{minutes}"
    hours = int(hour) % 12 + 12 * (half.lower() == "p")
    return f"{date} {hours:02}{minutes}" if 1 <= int(hour) <= 12 else ""


def comma_advice(text: str) -> str | None:
    """Return what to write instead of a number with a comma; None for any other text.

    The comma of 1,234 may separate thousands or decimals.
    """
    text = text.strip()
    if not _COMMA.fullmatch(text):
        return None
    decimal = text.replace(".", "").replace(",", ".")
    if _THOUSANDS.fullmatch(text):
        whole = text.replace(",", "")
        return f"has a comma; if it separates thousands, write {whole}; if not, write {decimal}"
    return f"has a decimal comma; write {decimal}"


def is_local_date(text: str) -> bool:
    """Return whether a text looks like a date that is not ISO 8601: 31.01.2026, 1/31/26 9:30."""
    return _DATE.fullmatch(text) is not None


def describe_local_format(name: str, counts: Mapping[str, int]) -> str | None:
    """Return a note on a column of categories, at least half of them numbers or dates.

    counts: how often each value occurs.
    """
    half = sum(counts.values()) / 2
    numbers = [text for text in counts if comma_advice(split_sign(text)[0]) is not None]
    if numbers and sum(counts[text] for text in numbers) >= half:
        unclear = all(_THOUSANDS.fullmatch(split_sign(text)[0]) for text in numbers)
        return (
            f"column {name!r:.40} is read as categories, because numbers like {numbers[0]!r:.40} "
            f"have a {'' if unclear else 'decimal '}comma; write them with a decimal point and "
            "without a separator of thousands"
        )
    signed = [text for text in counts if _SIGNED.fullmatch(text)]
    if signed and sum(counts[text] for text in signed) >= half:
        return (
            f"column {name!r:.40} is read as categories, because numbers like {signed[0]!r:.40} "
            "have a sign of a currency or of per cent; write them without it"
        )
    dates = [text for text in counts if is_local_date(text)]
    if dates and sum(counts[text] for text in dates) >= half:
        return (
            f"column {name!r:.40} is read as categories, because dates like {dates[0]!r:.40} may "
            "have the day or the month first; write them as 2026-01-31 or 2026-01-31 12:30"
        )
    return None


def describe_digit_dates(name: str, texts: Collection[str]) -> str | None:
    """Return a note on a column of numbers that are all dates without hyphens; None for others."""
    if len(texts) < 2 or not all(map(_DIGITS.fullmatch, texts)):
        return None
    text = next(iter(texts))
    return (
        f"column {name!r:.40} is read as numbers; if {text} is a date, write it as "
        f"{text[:4]}-{text[4:6]}-{text[6:]}"
    )


def describe_seconds(name: str, numbers: Collection[float]) -> str | None:
    """Return a note on a column of numbers that are probably times, counted from 1970; or None.

    All are whole, and within 1990 to 2099. The name is one of a time, or all are whole seconds that
    are written in milliseconds, as pandas writes them.
    """
    named = _TIME_NAME.search(name) is not None
    for unit, size in _SINCE_1970.items():
        within = all(_FIRST_SECOND * size <= one < _LAST_SECOND * size for one in numbers)
        if not within or len(numbers) < 2 or any(one % 1 for one in numbers):
            continue
        if named or (size > 1 and not any(one % size for one in numbers)):
            one = int(next(iter(numbers)))
            moment = str(np.datetime64(one // size, "s")).replace("T", " ")
            return (
                f"column {name!r:.40} is read as numbers; if {one} is a time, in {unit} since "
                f"1970, write it as {moment} (in pandas, to_json(date_format='iso'))"
            )
    return None
