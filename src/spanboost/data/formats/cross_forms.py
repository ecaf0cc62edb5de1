"""Read JSON Lines for a model of tables, and tables for a model of JSON Lines.

Names have the same meaning in both: a column is a key. A model keeps the rows of the form that it
was trained with; these readers convert rows of the other form.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.data.batch import Batch
from spanboost.data.formats.jsonl import BadRowError, JsonReader
from spanboost.data.kinds import CATEGORY, TIME
from spanboost.data.messages.message_rows import MessageRows
from spanboost.data.problems import Problems, StreamError, suggest_name
from spanboost.data.schema import Schema
from spanboost.data.source import Source
from spanboost.data.table_names import TableNames
from spanboost.errors import DataError, did_you_mean, list_names
from spanboost.rows.block import Rows


class TableFromJson(JsonReader):
    """Reads JSON Lines as the rows of a table; a key that is absent is a missing value."""

    def __init__(
        self,
        schema: Schema,
        problems: Problems,
        *,
        labelled: bool,
        learn: bool = True,
        keep: Sequence[str] = (),
        size: int = 1 << 20,
    ) -> None:
        super().__init__(schema, problems, labelled=labelled, keep=keep, size=size)
        self.names, self.learn = TableNames(schema), learn and labelled

    def batches(self, source: Source | MessageRows) -> Iterator[Batch]:
        """Yield the good rows of a file, or of messages."""
        for batch in super().batches(source):
            if not self.learn:
                self.problems.unknown.watch_rows(batch.X, self.names.categories())
            X, new = self.names.read(batch.X, self.learn)
            self.names.add(new)
            yield batch._replace(X=X)

    def split(self, row: dict[str, Any]) -> tuple[Any, Any]:
        """Remove label and weight from a row and return them; check the cells of the table."""
        label, weight = super().split(row)
        try:
            self.names.check(row)
        except DataError as error:
            raise BadRowError(error.what) from None
        return label, weight

    def _note_keys(self, file: str, rows: list[dict[str, Any]]) -> None:
        """Add a note on columns that do not occur in the first rows."""
        keys = dict.fromkeys(name for row in rows for name in row)
        absent = [name for name in self.names.names if name not in keys]
        if absent:
            others = [name for name in keys if name not in self.names.names]
            near = next(filter(None, (did_you_mean(name, others) for name in absent)), "")
            what, whose = ("key", "its") if len(absent) == 1 else ("keys", "their")
            self.problems.note(
                f"{file}: no {what} {list_names(absent)} in the first rows; {whose} values are "
                f"missing{near}"
            )


class JsonFromTable:
    """Reads a table as rows of JSON Lines: dictionaries of numbers and strings.

    make: returns the reader of the table for a schema.
    """

    def __init__(self, schema: Schema, labelled: bool, make: Callable[[Schema], Any]) -> None:
        self.table = _NamedColumns(
            form="table",
            target=schema.target,
            label=(schema.label or "label") if labelled else None,
            weight=schema.weight if labelled else None,
            ignore=(*schema.ignore, schema.label or "label", schema.weight or ""),
            categorical=schema.categorical,
            iso_times=schema.iso_times,
            time_parts=schema.time_parts,
        )
        self.reader = make(self.table)
        self.reader.learn = True  # categories are names here, which the model may learn or not

    def batches(self, source: Source) -> Iterator[Batch]:
        """Yield the good rows of a file."""
        for batch in self.reader.batches(source):
            yield batch._replace(X=self._rows(batch.X))

    def _rows(self, X: Any) -> list[dict[str, Any]]:
        """Return rows as dictionaries; a missing number is None, a missing category is absent."""
        numbers, codes = (X.numbers, X.codes) if isinstance(X, Rows) else (X, None)
        rows: list[dict[str, Any]] = [{} for _ in range(len(X))]
        if numbers is not None:
            for name, values in zip(self.table.number_names, numbers.T, strict=True):
                _set_values(rows, name, values)
        if codes is not None:
            for column, values in zip(self.table.categories, codes.T, strict=True):
                texts = [*column.codes]
                for row, code in zip(rows, values.tolist(), strict=True):
                    if code >= 0:
                        row[column.name] = texts[code]
        return rows


class _NamedColumns(Schema):
    """The columns of one file; all are features, except the label, the weight and ignored ones."""

    def choose_features(
        self, file: str, names: Sequence[str], note: Callable[[str], None] = lambda text: None
    ) -> list[str]:
        """Return the names of the features."""
        for name in (self.label, self.weight):
            if name is not None and name not in names:
                near = suggest_name(name, names)
                raise StreamError(f"{file}: column {name!r:.40} not found{near}")
        features = [name for name in names if name not in self.ignore]
        if not features:
            raise StreamError(f"{file}: there are no feature columns")
        return features

    def set_columns(
        self, features: Iterable[str], kinds: Iterable[str], identifiers: Any = ()
    ) -> None:
        """Set the columns; no category is hashed, because every one is a name."""
        known = [CATEGORY if kind == TIME and not self.iso_times else kind for kind in kinds]
        super().set_columns(features, known)


def _set_values(rows: list[dict[str, Any]], name: str, values: Array) -> None:
    """Add a number to each row; None if it is missing."""
    for row, value in zip(rows, values.astype(np.float64).tolist(), strict=True):
        row[name] = None if value != value else value  # noqa: PLR0124 - NaN differs from itself
