"""The schema of a stream: its label, its weight, and its numeric and categorical columns.

The columns of a table are chosen once, from the first rows of the first file and the options. The
columns of every further file are matched by name. Categories are numbered in order of appearance.
"""

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spanboost.data.problems import StreamError
from spanboost.data.target import Target, target_from_json
from spanboost.errors import did_you_mean

FORMS = ("vw", "svmlight", "table", "json")


@dataclass
class Column:
    """One feature of a table. `codes` maps the categories so far to their numbers."""

    name: str
    category: bool
    codes: dict[str, int] = field(default_factory=dict)


class ColumnPositions(NamedTuple):
    """Positions in a file of the columns that are read, counted from 0."""

    numbers: list[int]
    categories: list[int]
    label: int | None  # None if labels are not read
    weight: int | None


@dataclass
class Schema:
    """Description of the rows of a stream. `columns` is None until a table is read."""

    form: str
    target: Target
    label: str | None = None
    weight: str | None = None
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    bits: int | None = None
    columns: list[Column] | None = None

    @property
    def numbers(self) -> list[Column]:
        """The numeric columns, in order."""
        return [column for column in self.columns or [] if not column.category]

    @property
    def categories(self) -> list[Column]:
        """The categorical columns, in order."""
        return [column for column in self.columns or [] if column.category]

    def choose_features(self, file: str, names: Sequence[str]) -> list[str]:
        """Choose the label among the columns of the first file; return the feature names."""
        _refuse_duplicates(file, names)
        required = [self.label, self.weight, *self.ignore, *self.categorical]
        for name in required:
            if name is not None and name not in names:
                raise _not_found(file, name, names)
        excluded = {self.weight, *self.ignore}
        if self.label is None:
            candidates = [name for name in names if name not in excluded]
            if not candidates:
                raise StreamError(f"{file}: --ignore and --weight leave no column for the label")
            self.label = "label" if "label" in candidates else candidates[-1]
        elif self.label in excluded:
            raise StreamError(f"the label column {self.label!r} is also in --ignore or --weight")
        features = [name for name in names if name not in excluded | {self.label}]
        if not features:
            raise StreamError(
                f"{file}: there are no feature columns besides the label {self.label!r}"
            )
        return features

    def set_columns(self, features: Iterable[str], is_text: Iterable[bool]) -> None:
        """Set the columns: features that contain text, or are declared so, are categorical."""
        self.columns = [
            Column(name, text or name in self.categorical)
            for name, text in zip(features, is_text, strict=True)
        ]

    def positions(self, file: str, names: Sequence[str], labelled: bool) -> ColumnPositions:
        """Return the positions of the schema's columns among the column names of a file."""
        _refuse_duplicates(file, names)
        position = {name: k for k, name in enumerate(names)}

        def find(columns: Iterable[str]) -> list[int]:
            for name in columns:
                if name not in position:
                    raise _not_found(file, name, names)
            return [position[name] for name in columns]

        return ColumnPositions(
            numbers=find([column.name for column in self.numbers]),
            categories=find([column.name for column in self.categories]),
            label=find([self.label])[0] if labelled and self.label is not None else None,
            weight=find([self.weight])[0] if labelled and self.weight is not None else None,
        )

    def encode(self, column: Column, texts: Iterable[str | None], learn: bool) -> list[int]:
        """Return the codes of distinct categories; -1 if missing, or unknown and not `learn`."""
        return [self._encode_one(column.codes, text, learn) if text else -1 for text in texts]

    def _encode_one(self, known: dict[str, int], text: str, learn: bool) -> int:
        if self.bits is not None:
            return zlib.crc32(text.encode()) % 2**self.bits
        if learn:
            return known.setdefault(text, len(known))
        return known.get(text, -1)

    def state(self) -> dict[str, Any]:
        """Return the schema as JSON values, for `schema_from_json`."""
        columns = None if self.columns is None else [vars(column) for column in self.columns]
        return vars(self) | {
            "target": self.target.state(),
            "ignore": list(self.ignore),
            "categorical": list(self.categorical),
            "columns": columns and [column | {"codes": [*column["codes"]]} for column in columns],
        }


def schema_from_json(state: dict[str, Any]) -> Schema:
    """Return the schema that `Schema.state` described; raise ValueError if it is invalid."""
    try:
        fields = dict(state)
        columns = fields.pop("columns")
        schema = Schema(
            form=fields.pop("form"),
            target=target_from_json(fields.pop("target")),
            ignore=_texts(fields.pop("ignore")),
            categorical=_texts(fields.pop("categorical")),
            columns=None if columns is None else [_column(**column) for column in columns],
            **fields,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"invalid schema: {error}") from None
    _check(schema)
    return schema


def _column(name: Any, category: Any, codes: Any) -> Column:
    texts = _texts(codes)
    if not isinstance(name, str) or not isinstance(category, bool):
        raise ValueError(f"invalid column: name {name!r:.40}, category {category!r:.40}")
    if len(set(texts)) < len(texts) or "" in texts or (texts and not category):
        raise ValueError(f"column {name!r:.40} has duplicate, empty or unexpected categories")
    return Column(name, category, {text: code for code, text in enumerate(texts)})


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"expected a list of strings (got {values!r:.40})")
    return tuple(values)


def _check(schema: Schema) -> None:
    if schema.form not in FORMS:
        raise ValueError(f"form must be one of {', '.join(FORMS)} (got {schema.form!r:.40})")
    for name in (schema.label, schema.weight):
        if name is not None and not isinstance(name, str):
            raise ValueError(f"invalid column name {name!r:.40}")
    bits = schema.bits
    if bits is not None and (type(bits) is not int or not 0 <= bits <= 62):
        raise ValueError(f"bits must be an integer from 0 to 62 (got {bits!r:.40})")
    names = [column.name for column in schema.columns or []]
    if len(set(names)) < len(names):
        raise ValueError("duplicate column names")


def _refuse_duplicates(file: str, names: Sequence[str]) -> None:
    seen = set[str]()
    for name in names:
        if name in seen:
            raise StreamError(f"{file}: duplicate column {name!r:.40}")
        seen.add(name)


def _not_found(file: str, name: str, names: Sequence[str]) -> StreamError:
    return StreamError(f"{file}: column {name!r:.40} not found{did_you_mean(name, names)}")
