"""What the rows of a model look like to a program that is not Python."""

from collections.abc import Sequence
from typing import NamedTuple

from spanboost.errors import UserError
from spanboost.models.model import Model


class Categories(NamedTuple):
    """A column of categories."""

    name: str
    texts: Sequence[str]  # the category of code 0, 1, ...; empty if they are hashed or unknown
    bits: int | None  # the code is the CRC-32 of the text, modulo 2^bits; None if it is not


class RowForm(NamedTuple):
    """Rows of numbers and category codes, or rows of (column, value) pairs."""

    sparse: bool
    numbers: int  # columns of numbers of a dense row
    names: Sequence[str]  # of the columns of numbers, or of all features; may be empty
    categories: Sequence[Categories]
    times: Sequence[str]  # columns of times, each of which is several columns of numbers
    named: bool  # sparse rows with names of features
    time_parts: Sequence[str] = ()  # the columns of numbers of a time


def row_form(model: Model) -> RowForm:
    """Return the form of the rows that a model has learned."""
    encoder, schema = model.encoder, model.schema
    kind, names = encoder.kind, encoder.names
    if kind is None or names is None or len(kind.shape) != 2:
        raise UserError("cannot export a model whose rows are not numbers and categories")
    columns, codes = kind.shape
    if kind.named:
        return RowForm(True, 0, [*names.columns], [], [], names.bits is None)
    if schema is not None and schema.form == "table":
        each = [
            Categories(
                one.name,
                [*one.codes],
                (one.bits if schema.bits is None else schema.bits),
            )
            for one in schema.categories
        ]
        times = [column.name for column in schema.times]
        return RowForm(False, columns, schema.number_names, each, times, False, schema.time_parts)
    if columns == 0 and codes > 0:
        raise UserError(
            "cannot export a model of sparse rows with category codes; use dense numbers"
        )
    plain = [Categories(f"code {j}", [], None) for j in range(codes)]
    return RowForm(columns == 0, columns, [*(encoder.columns or ())], plain, [], False)
