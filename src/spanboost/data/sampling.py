"""Choose the columns of a schema from the first rows of a table."""

from collections.abc import Mapping, Sequence

from spanboost.data.decimal_marks import POINT
from spanboost.data.kinds import (
    CATEGORY,
    NUMBER,
    are_identifiers,
    boolean_spellings,
    column_kind,
    count_values,
    describe_column,
)
from spanboost.data.local_formats import date_order
from spanboost.data.problems import Problems
from spanboost.data.schema import Schema


def set_columns(
    schema: Schema,
    problems: Problems,
    file: str,
    samples: Mapping[str, Sequence[str | None]],
    typed: Mapping[str, str] | None = None,
    mark: str = POINT,
) -> None:
    """Set the columns of a schema, with notes on those that are read in a special way.

    samples: the first values of each feature, as text; empty if its kind is all that matters.
    typed: the kinds of features whose file has types; others are found in the sample.
    mark: the decimal mark of the file.
    """
    given = typed or {}
    kinds = {name: given.get(name) or column_kind(samples[name], mark) for name in samples}
    identifiers = set[str]()
    for name, kind in kinds.items():
        if name in schema.categorical:
            continue
        if text := describe_column(name, kind, samples[name], f"--ignore {name}"):
            problems.note(f"{file}: {text}")
        if kind == CATEGORY and schema.bits is None and are_identifiers(samples[name]):
            identifiers.add(name)
    schema.set_columns(kinds, kinds.values(), identifiers)
    for column in schema.columns or ():
        if column.category:
            column.booleans = boolean_spellings(samples[column.name])
        if column.time:
            column.order = date_order(count_values(samples[column.name]))


def text_kind(values: Sequence[str | None]) -> str:
    """Return the kind of a column of strings in a file with types, where no text is a number."""
    kind = column_kind(values)
    return CATEGORY if kind == NUMBER else kind
