"""Numbers of CSV files: their decimal mark, a point or a comma, and their signs.

A file has one mark, so a text is never a number with one mark in a row and with the other in the
next: 1,234 and 1.234 would be ambiguous. For the same reason, a number of a column has one of the
signs of the first rows: 12 and 12% would be a factor of 100 apart. docs/data-formats.md has the
rules.
"""

import re
from collections.abc import Collection, Iterable

from spanboost.data.local_formats import ANY_SIGN, PERCENT, comma_advice, split_sign
from spanboost.data.target import as_number

POINT, COMMA = ".", ","
_EXPONENT = r"([eE][+-]?\d+)?"
_WITH_COMMA = re.compile(rf"[+-]?(\d*|\d{{1,3}}(\.\d{{3}})+),\d+{_EXPONENT}", re.ASCII)
_WITH_POINT = re.compile(rf"[+-]?(\d*|\d{{1,3}}(,\d{{3}})+)\.\d+{_EXPONENT}", re.ASCII)
_GROUPED = {  # numbers with separators of thousands, by the mark
    POINT: re.compile(r"[+-]?\d{1,3}(,\d{3})+\.\d+", re.ASCII),
    COMMA: re.compile(r"[+-]?\d{1,3}(\.\d{3})+,\d+", re.ASCII),
}
_UNCLEAR = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}", re.ASCII)  # perhaps a separator of thousands


def find_mark(texts: Iterable[str], default: str) -> str:
    """Return the decimal mark that more of these values have; `default` if neither has more.

    Values like 1,234 and 1.234, whose mark may separate thousands, do not count.
    """
    commas = points = 0
    for text in texts:
        value, _ = split_sign(text.strip())
        if _UNCLEAR.fullmatch(value):
            continue
        if _WITH_COMMA.fullmatch(value):
            commas += 1
        elif _WITH_POINT.fullmatch(value):
            points += 1
    return default if commas == points else COMMA if commas > points else POINT


def parse_decimal(text: str, mark: str, signs: Collection[str] = ANY_SIGN) -> float | None:
    """Return the number that a text represents with this mark; None if it is not a number.

    The other mark may separate thousands, if the number has both: 1,234.5 or 1.234,5. A sign of a
    currency is left out, and 12% is 0.12. A number with none of these `signs` is not a number.
    """
    amount, sign = split_sign(text.strip())
    number = _parse_amount(amount, mark) if sign in signs else None
    return number / 100 if number is not None and sign == PERCENT else number


def _parse_amount(text: str, mark: str) -> float | None:
    other = COMMA if mark == POINT else POINT
    if other in text:
        if not _GROUPED[mark].fullmatch(text):
            return None
        text = text.replace(other, "")
    return as_number(text if mark == POINT else text.replace(COMMA, POINT))


def sign_advice(text: str, mark: str) -> str | None:
    """Return what is wrong with a number whose sign its column does not have; None for a text."""
    number = parse_decimal(text, mark)
    if number is None:
        return None
    amount, sign = split_sign(text.strip())
    if not sign:
        return "has no %, unlike the first rows learned; write " + " or ".join(
            f"{percent:.15g}%".replace(POINT, mark) for percent in (number, 100 * number)
        )
    decimal = f" or {number:.15g}".replace(POINT, mark) if sign == PERCENT else ""
    return f"has the sign {sign}, unlike the first rows learned; write {amount}{decimal}"


def mark_advice(text: str, mark: str) -> str | None:
    """Return what is wrong with a number that has the other mark; None for any other text."""
    text, _ = split_sign(text.strip())
    if mark == POINT:
        advice = comma_advice(text)
        return None if advice is None else f"{advice}, or use --decimal ,"
    if as_number(text) is None:
        return None
    return (
        "has a decimal point, but this file has decimal commas; write a comma, or use --decimal ."
    )
