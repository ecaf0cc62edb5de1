"""Recognise numbers with commas and dates that are not ISO 8601, to say how to write them."""

import re
from collections.abc import Collection, Mapping

_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)
_AMOUNT = r"[+-]?\d[\d.,]*"
_SIGNED = re.compile(rf"[+-]?[$€£¥] ?{_AMOUNT}|{_AMOUNT} ?[$€£¥%]", re.ASCII)
TIME_EXAMPLE = "such as 2026-01-31 or 2026-01-31 12:30"  # the forms of ISO 8601 that are read
_DIGITS = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])", re.ASCII)
_DAY = r"(0?[1-9]|[12]\d|3[01])"  # or a month, as either may come first
_CLOCK = r"\d{1,2}:\d\d(:\d\d([.,]\d+)?)?( ?[AaPp][Mm])?"
_DATE = re.compile(
    rf"({_DAY}([./-]){_DAY}\3(\d{{4}}|\d\d)|\d{{4}}([./]){_DAY}\6{_DAY})(,?[ T]{_CLOCK})?", re.ASCII
)


def comma_advice(text: str) -> str | None:
    """Return what to write instead of a number with a comma; None for any other text.

    The comma of 1,234 may separate thousands or decimals.
    """
    text = text.strip()
    if not _COMMA.fullmatch(text):
        return None
    decimal = text.replace(".", "").replace(",", ".")
    if _THOUSANDS.fullmatch(text):
        return f"has a comma; write {text.replace(',', '')} or {decimal}"
    return f"has a decimal comma; write {decimal}"


def is_local_date(text: str) -> bool:
    """Return whether a text looks like a date that is not ISO 8601: 31.01.2026, 1/31/26 9:30."""
    return _DATE.fullmatch(text) is not None


def describe_local_format(name: str, counts: Mapping[str, int]) -> str | None:
    """Return a note on a column of categories, at least half of them numbers or dates.

    counts: how often each value occurs.
    """
    half = sum(counts.values()) / 2
    numbers = [text for text in counts if comma_advice(text) is not None]
    if numbers and sum(counts[text] for text in numbers) >= half:
        unclear = all(_THOUSANDS.fullmatch(text) for text in numbers)
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
            f"column {name!r:.40} is read as categories, because dates like {dates[0]!r:.40} are "
            "not in ISO 8601; write them as 2026-01-31 or 2026-01-31 12:30"
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
