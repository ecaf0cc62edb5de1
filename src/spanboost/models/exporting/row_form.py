"""What the rows of a model look like to a program that is not Python."""

from collections.abc import Sequence
from typing import NamedTuple

from spanboost.errors import UserError
from spanboost.models.model import Model
from spanboost.rows.feature_names import FeatureNames
from spanboost.rows.table_form import Categories, TableForm
from spanboost.rows.times import part_names

CODE_LIMIT = 2**40  # of codes and columns, as in a block of rows


class RowForm(NamedTuple):
    """Rows of numbers and category codes, or rows of (column, value) pairs."""

    numbers: int  # columns of numbers of a dense row
    names: Sequence[str]  # of the columns of numbers, or of all features; may be empty
    categories: Sequence[Categories]
    time_parts: Sequence[str] = ()  # the columns of numbers of a time; empty without times
    columns: str | None = None  # of sparse rows: "names", "hashed", "numbers", "svmlight" or "vw"

    @property
    def sparse(self) -> bool:
        """Whether rows are (column, value) pairs."""
        return self.columns is not None

    @property
    def named(self) -> bool:
        """Whether features of sparse rows have names."""
        return self.columns in ("names", "hashed")


def row_form(model: Model, table: TableForm | None = None) -> RowForm:
    """Return the form of the rows that a model has learned.

    table: the columns that an estimator reads from frames; its model knows only their numbers.
    """
    encoder, schema = model.encoder, model.schema
    kind, names = encoder.kind, encoder.names
    if kind is None or names is None or len(kind.shape) != 2:
        raise UserError("cannot export a model whose rows are not numbers and categories")
    columns, codes = kind.shape
    if kind.named:
        columns_of = "names" if names.bits is None else "hashed"
        return RowForm(0, [*names.columns], [], _time_parts(names), columns_of)
    if schema is not None and schema.form == "table":
        table = schema.table_form()
    if table is not None:
        return RowForm(columns, table.numbers, table.categories, table.time_parts)
    if columns == 0 and codes > 0:
        raise UserError(
            "cannot export a model of sparse rows with category codes; use dense numbers"
        )
    plain = [Categories(f"code {j}", [], None) for j in range(codes)]
    sparse = None if columns else "numbers" if schema is None else schema.form
    return RowForm(columns, [*(encoder.columns or ())], plain, (), sparse)


def _time_parts(names: FeatureNames) -> Sequence[str]:
    """Return the features of a time, if dictionaries have had times, or hashed ones may have."""
    if names.bits is not None:
        return names.time_parts if names.iso_times else ()
    first = f".{names.time_parts[0]}"
    bases = (name.removesuffix(first) for name in names.columns if name.endswith(first))
    found = any(set(part_names(base, names.time_parts)) <= names.columns.keys() for base in bases)
    return names.time_parts if found else ()
