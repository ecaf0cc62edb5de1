"""Find the delimiter, the header and the decimal mark of a CSV file from its first records."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from spanboost.data.decimal_marks import COMMA, POINT, find_mark, parse_decimal
from spanboost.data.formats.csv_records import split_record
from spanboost.data.kinds import CATEGORY, MISSING, NUMBER, column_kind, is_of_kind
from spanboost.data.problems import StreamError
from spanboost.data.schema import DELIMITERS
from spanboost.errors import list_names

FIRST_RECORDS = 100  # these decide on the delimiter and the header


class Dialect(NamedTuple):
    """How a CSV file is written."""

    delimiter: str
    header: bool
    decimal: str = POINT
    numbered: bool = False  # whether columns are called 1, 2, 3, ..., whatever names line 1 has


def find_dialect(
    file: str,
    records: Sequence[str],
    delimiter: str | None,
    header: bool | None,
    decimal: str | None = None,
) -> Dialect:
    """Return the dialect of a file from its first records, where it is not given.

    Raise StreamError, which names the option to use, if the records are ambiguous.
    """
    first = records[:FIRST_RECORDS]
    found = delimiter or _find_delimiter(file, first)
    mark = decimal or find_decimal(records, found, POINT)
    if header is None:
        fields = [split_record(record, found) for record in first]
        header = _has_header([row for row in fields if not isinstance(row, str)], mark)
    if header is None:
        raise StreamError(
            f"{file}: cannot tell whether line 1 contains column names; use --header or --no-header"
        )
    return Dialect(found, header, mark)


def find_decimal(records: Sequence[str], delimiter: str, default: str) -> str:
    """Return the decimal mark of some records; it is a point if commas separate the fields.

    default: the mark if no value tells.
    """
    if delimiter == ",":
        return POINT
    rows = (split_record(record, delimiter) for record in records)
    return find_mark((text for row in rows if not isinstance(row, str) for text in row), default)


def match_dialect(
    record: str,
    names: Collection[str],
    delimiter: str | None,
    header: bool | None,
    *,
    numbered: bool,
) -> Dialect:
    """Return the dialect in which the first record of a file has the columns that a model reads.

    numbered: whether the model calls all columns 1, 2, 3, ..., as one trained without names does.
    """
    splits = {
        each: fields
        for each in ([delimiter] if delimiter else [*DELIMITERS, " "])
        if not isinstance(fields := split_record(record, each), str)
    }
    for each, fields in splits.items():
        given = [field.strip() for field in fields]
        positions = [str(position) for position in range(1, len(fields) + 1)]
        by_position = numbered and {*names} <= {*positions} and given != positions
        if header is not True and by_position:
            return Dialect(each, False)
        if header is not False and {*names} <= {*given}:
            return Dialect(each, True)
        if header is True and by_position:
            return Dialect(each, True, numbered=True)
    widest = max(splits, key=lambda each: len(splits[each]), default=delimiter or ",")
    return Dialect(widest, header is not False)


def refuse_names(file: str, record: str, dialect: Dialect, numbers: Collection[str]) -> None:
    """Raise StreamError if the first record of a file contains names, but a model has none.

    numbers: the positions of the columns that the model reads as numbers. If none of them has one,
        the record contains names.
    """
    fields = split_record(record, dialect.delimiter)
    texts = [str(fields[int(name) - 1]).strip() for name in numbers]
    values = (text in MISSING or is_of_kind(NUMBER, text, dialect.decimal) for text in texts)
    if texts and not any(values):
        raise StreamError(
            f"{file}: line 1 seems to contain column names ({texts[0]!r:.40}), but the model was "
            "trained on a file without names; use --header to skip line 1 and read the columns by "
            "position"
        )


def refuse_data(file: str, record: str, dialect: Dialect, names: Collection[str]) -> None:
    """Raise StreamError if the first record of a file contains data, but a model needs names.

    names: the columns that the model reads. If one of them is in the record, it contains names.
    """
    fields = split_record(record, dialect.delimiter)
    given = [] if isinstance(fields, str) else [field.strip() for field in fields]
    values = [text for text in given if is_of_kind(NUMBER, text, dialect.decimal)]
    if values and not {*names} & {*given}:
        raise StreamError(
            f"{file}: line 1 seems to contain data ({values[0]!r:.40}), but the model needs the "
            f"names of columns there: {list_names(sorted(names))}"
        )


def _find_delimiter(file: str, records: Sequence[str]) -> str:
    """Return the delimiter for which most records have as many fields as the first one."""
    scores = {each: _count_alike(records, each) for each in DELIMITERS}
    best = max(scores.values())
    if best == 0:
        if _count_alike(records, " ") == len(records):
            return " "
        if any("\r" in record for record in records):
            raise StreamError(
                f"{file}: lines end in carriage returns; convert the file with tr '\\r' '\\n'"
            )
        raise StreamError(
            f"{file}: no comma, semicolon, tab or vertical bar separates fields in line 1; use "
            "--delimiter, or --format if the file is not CSV"
        )
    first, *others = [each for each in DELIMITERS if scores[each] == best]
    if first == "," and len(others) == 1 and _has_decimal_commas(records, others[0]):
        return others[0]
    if others:
        raise StreamError(
            f"{file}: cannot tell the delimiter: {DELIMITERS[first]} and {DELIMITERS[others[0]]} "
            "are equally likely; name it with --delimiter"
        )
    return first


def _has_decimal_commas(records: Sequence[str], delimiter: str) -> bool:
    """Return whether all commas in the fields of some records are decimal commas."""
    rows = [split_record(record, delimiter) for record in records]
    fields = [text for row in rows if not isinstance(row, str) for text in row if COMMA in text]
    return all(parse_decimal(text.strip(), COMMA) is not None for text in fields)


def _count_alike(records: Sequence[str], delimiter: str) -> int:
    """Count the records with as many fields as the first one; 0 if that has only one field."""
    widths = [
        len(fields)
        for record in records
        if not isinstance(fields := split_record(record, delimiter), str)
    ]
    return widths.count(widths[0]) if widths and widths[0] > 1 else 0


def _has_header(rows: Sequence[list[str]], mark: str) -> bool | None:
    """Return whether the first row contains column names; None if that is unclear.

    In columns of numbers and times, text in the first row is a name, and a number is not. If there
    are no such columns, a text of the first row that occurs again in its column is not a name.
    """
    if not rows:
        return True
    first = [field.strip() for field in rows[0]]
    rest = [row for row in rows[1:] if len(row) == len(first)]
    if not rest:
        return not all(text in MISSING or is_of_kind(NUMBER, text, mark) for text in first)
    names = data = recurring = 0
    for position, text in enumerate(first):
        values = [row[position].strip() for row in rest]
        kind = column_kind(values, mark)
        if text in MISSING or all(value in MISSING for value in values):
            continue
        if kind == CATEGORY:
            recurring += text in values
        elif is_of_kind(kind, text, mark):
            data += 1
        else:
            names += 1
    if names and data:
        return None
    return names > 0 if names or data else recurring == 0
