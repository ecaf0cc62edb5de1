"""The kind of a column of text: numbers, times or categories. docs/data-formats.md has the rule.

The kind is the one of the majority in the first rows. A single value never changes it, wherever it
is: a value that does not fit the kind is missing, or it is an error that names the column and line.
"""

import re
import zlib
from collections import Counter
from collections.abc import Sequence

from spanboost.data.decimal_marks import POINT, parse_decimal
from spanboost.data.local_formats import (
    CURRENCIES,
    DAY_FIRST,
    MONTH_FIRST,
    NO_SIGN,
    PERCENT,
    date_order,
    describe_digit_dates,
    describe_local_format,
    describe_order,
    describe_seconds,
    describe_signs,
    parse_date,
    split_sign,
)
from spanboost.rows.key_kinds import is_numeral, is_quantity

NUMBER, TIME, CATEGORY = "number", "time", "category"
SAMPLE_ROWS = 1000  # the first rows, which determine the kinds of columns
# values that are missing in columns of numbers and times
MISSING = (
    *("", "-", "--", ".", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan"),
    *("null", "NULL", "None", "none"),
)
SPELLINGS = (("False", "True"), ("false", "true"), ("FALSE", "TRUE"))  # of booleans
_DIGITS = ("0", "1")
BOOLEANS = {text: spellings for spellings in SPELLINGS for text in spellings}
HASHED_BITS = 12  # of the codes of a column of identifiers
_DIGITS_OF_TIMES = 16  # fewer than this, in seconds or milliseconds since 1970
_FEWEST = 100  # values from which on a column can be recognised as identifiers
_INDEX = re.compile(r"Unnamed: 0|__index_level_\d+__")


def column_kind(values: Sequence[str | None], mark: str = POINT) -> str:
    """Return the kind of a column, given the values of its first rows and the decimal mark.

    Of the values that are not missing, at least half are numbers: the column contains numbers. At
    least half are times: it contains times. Otherwise, it contains categories.
    """
    numbers = times = total = 0
    counts = count_values(values)
    order = date_order(counts)
    for text, count in counts.items():
        total += count
        if parse_decimal(text, mark) is not None:
            numbers += count
        elif parse_date(text, order) is not None:
            times += count
    if 2 * numbers >= total:
        return NUMBER
    return TIME if 2 * times >= total else CATEGORY


def is_of_kind(kind: str, text: str, mark: str = POINT) -> bool:
    """Return whether a value that is not missing is a number or a time, as its column."""
    if kind == NUMBER:
        return parse_decimal(text, mark) is not None
    return any(parse_date(text, order) is not None for order in (DAY_FIRST, MONTH_FIRST))


def find_signs(values: Sequence[str | None], mark: str = POINT) -> tuple[str, ...]:
    """Return the signs that the numbers of a column may have, given the values of its first rows.

    A sign of a currency may always be left out. Per cent may be left out only if a value does so.
    """
    text = "".join(filter(None, values))
    if not any(sign in text for sign in (*CURRENCIES, PERCENT)):  # as in most columns
        return NO_SIGN
    numbers = [one for one in count_values(values) if parse_decimal(one, mark) is not None]
    signs = {split_sign(number)[1] for number in numbers}
    return tuple(sorted(signs if PERCENT in signs else signs | {""}))


def are_identifiers(values: Sequence[str | None]) -> bool:
    """Return whether more than half of at least 100 categories are different from all others."""
    counts = count_values(values)
    return counts.total() >= _FEWEST and 2 * len(counts) > counts.total()


def are_quantities(values: Sequence[str | None]) -> bool:
    """Return whether there are values, and all are numbers without the leading zeros of codes."""
    counts = count_values(values)
    return counts.total() > 0 and all(map(is_quantity, counts))


def describe_quantities(name: str, values: Sequence[str | None]) -> str | None:
    """Return a note on a column of categories, at least half of them numbers; None for others.

    A column with numbers that have leading zeros contains codes.
    """
    counts = count_values(values)
    numbers = [text for text in counts if is_numeral(text)]
    others = [text for text in counts if not is_numeral(text)]
    most = 2 * sum(counts[text] for text in numbers) >= counts.total() > 0
    if not others or not most or not all(map(is_quantity, numbers)):
        return None
    return (
        f"column {name!r:.40} is read as categories, because it contains texts like "
        f"{others[0]!r:.40} besides numbers like {numbers[0]!r:.40}"
    )


def boolean_spellings(values: Sequence[str | None]) -> tuple[str, str] | None:
    """Return how a column of booleans writes false and true; None for any other column."""
    counts = count_values(values)
    if not counts or not counts.keys() <= BOOLEANS.keys():
        return None
    return BOOLEANS[next(iter(counts))]


def boolean_of(text: str) -> bool | None:
    """Return the boolean that a value of a column of booleans stands for; None for any other.

    In JSON, booleans are read as the numbers 0 and 1.
    """
    spellings = BOOLEANS.get(text, _DIGITS)
    return text == spellings[1] if text in spellings else None


def hash_category(text: str, bits: int) -> int:
    """Return the code of a category in a hashed column."""
    return zlib.crc32(text.encode()) % 2**bits


def is_index(position: int, name: str) -> bool:
    """Return whether a column has the name that pandas gives to the index of a frame."""
    return (position == 0 and not name) or _INDEX.fullmatch(name) is not None


def describe_column(
    name: str, kind: str, values: Sequence[str | None], remedy: str = "leaving it out"
) -> str | None:
    """Return a note for the user on how a column is read; None if there is nothing to say.

    remedy: what to consider if the column is of no use.
    """
    if kind == TIME:
        order = describe_order(count_values(values))
        return (
            f"column {name!r:.40} contains times{order}; features: days, hour, weekday, day of the "
            "year"
        )
    if kind == NUMBER:
        note = f"column {name!r:.40} counts the rows; consider {remedy}"
        counts = count_values(values)
        found = describe_signs(name, counts) or describe_digit_dates(name, counts)
        whole = [int(text) for text in counts if text.isdecimal() and len(text) < _DIGITS_OF_TIMES]
        found = found or (describe_seconds(name, whole) if len(whole) == len(counts) else None)
        return note if _counts_rows(values) else found
    if local := describe_local_format(name, count_values(values)):
        return local
    if are_identifiers(values):
        return (
            f"column {name!r:.40} has a different value in most rows; its categories are hashed to "
            f"{2**HASHED_BITS:,} codes; consider {remedy}"
        )
    return None


def count_values(values: Sequence[str | None]) -> Counter[str]:
    """Count the values that are not missing."""
    counts = Counter(text.strip() for text in values if text is not None)
    for text in MISSING:
        counts.pop(text, None)
    return counts


def _counts_rows(values: Sequence[str | None]) -> bool:
    if len(values) < _FEWEST or not all(text and text.strip().isdecimal() for text in values):
        return False
    first = int(values[0] or 0)
    return all(int(text or 0) == first + t for t, text in enumerate(values))
