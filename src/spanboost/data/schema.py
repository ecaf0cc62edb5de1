"""The columns of a table: which are numbers and which categories, the label, and what is left out.

They are decided once, from the first rows of the first file and what was asked for; every further
file is matched to them by name. Categories are numbered in the order in which they come.
"""

import difflib
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spanboost.data.problems import StreamError
from spanboost.data.target import Target, target_from_json

FORMS = ("vw", "svmlight", "table", "json")


@dataclass
class Column:
    """One feature of a table; `codes` are the categories met so far, numbered."""

    name: str
    category: bool
    codes: dict[str, int] = field(default_factory=dict)


class ColumnPositions(NamedTuple):
    """Where a file has the columns that are read, counted from 0."""

    numbers: list[int]
    categories: list[int]
    label: int | None  # None where no labels are asked for
    weight: int | None


@dataclass
class Schema:
    """What the rows of a stream are made of."""

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
        """The columns that are numbers, in order."""
        return [column for column in self.columns or [] if not column.category]

    @property
    def categories(self) -> list[Column]:
        """The columns that are categories, in order."""
        return [column for column in self.columns or [] if column.category]

    def settle(self, file: str, names: Sequence[str]) -> list[str]:
        """Find the label among the columns of the first file; the names of the features."""
        _refuse_twice(file, names)
        asked = [self.label, self.weight, *self.ignore, *self.categorical]
        for name in asked:
            if name is not None and name not in names:
                raise _missing(file, name, names)
        left_out = {self.weight, *self.ignore}
        if self.label is None:
            free = [name for name in names if name not in left_out]
            if not free:
                raise StreamError(f"{file}: no column is left to be the label")
            self.label = "label" if "label" in free else free[-1]
        elif self.label in left_out:
            raise StreamError(f"the label {self.label!r} is ignored, or is the weight as well")
        features = [name for name in names if name not in left_out | {self.label}]
        if not features:
            raise StreamError(f"{file}: no column is left to learn from beside {self.label!r}")
        return features

    def decide(self, features: Iterable[str], texts: Iterable[bool]) -> None:
        """Make columns of features, of which some hold texts."""
        self.columns = [
            Column(name, text or name in self.categorical)
            for name, text in zip(features, texts, strict=True)
        ]

    def places(self, file: str, names: Sequence[str], labelled: bool) -> ColumnPositions:
        """Where a file with columns of these names has ours."""
        _refuse_twice(file, names)
        place = {name: k for k, name in enumerate(names)}

        def find(columns: Iterable[str]) -> list[int]:
            for name in columns:
                if name not in place:
                    raise _missing(file, name, names)
            return [place[name] for name in columns]

        return ColumnPositions(
            numbers=find([column.name for column in self.numbers]),
            categories=find([column.name for column in self.categories]),
            label=find([self.label])[0] if labelled and self.label is not None else None,
            weight=find([self.weight])[0] if labelled and self.weight is not None else None,
        )

    def codes(self, column: Column, texts: Iterable[str | None], learn: bool) -> list[int]:
        """The codes of distinct categories, in order of appearance; -1 where missing or unknown."""
        return [self._code(column.codes, text, learn) if text else -1 for text in texts]

    def _code(self, known: dict[str, int], text: str, learn: bool) -> int:
        if self.bits is not None:
            return zlib.crc32(text.encode()) % 2**self.bits
        if learn:
            return known.setdefault(text, len(known))
        return known.get(text, -1)

    def state(self) -> dict[str, Any]:
        """All of it, in terms of JSON."""
        columns = None if self.columns is None else [vars(column) for column in self.columns]
        return vars(self) | {
            "target": self.target.state(),
            "ignore": list(self.ignore),
            "categorical": list(self.categorical),
            "columns": columns and [column | {"codes": [*column["codes"]]} for column in columns],
        }


def schema_from_json(state: dict[str, Any]) -> Schema:
    """The schema that said this of itself; a ValueError if none did."""
    try:
        given = dict(state)
        columns = given.pop("columns")
        schema = Schema(
            form=given.pop("form"),
            target=target_from_json(given.pop("target")),
            ignore=_texts(given.pop("ignore")),
            categorical=_texts(given.pop("categorical")),
            columns=None if columns is None else [_column_of(**column) for column in columns],
            **given,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"this is no schema: {error}") from None
    _check(schema)
    return schema


def _column_of(name: Any, category: Any, codes: Any) -> Column:
    texts = _texts(codes)
    if not isinstance(name, str) or not isinstance(category, bool):
        raise ValueError(f"{name!r:.40} is no name of a column, or not said to be a category")
    if len(set(texts)) < len(texts) or "" in texts or (texts and not category):
        raise ValueError(f"the categories of {name!r:.40} do not fit together")
    return Column(name, category, {text: code for code, text in enumerate(texts)})


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{values!r:.40} is no list of strings")
    return tuple(values)


def _check(schema: Schema) -> None:
    if schema.form not in FORMS:
        raise ValueError(f"{schema.form!r:.40} is no form of data")
    for name in (schema.label, schema.weight):
        if name is not None and not isinstance(name, str):
            raise ValueError(f"{name!r:.40} is no name of a column")
    bits = schema.bits
    if bits is not None and (type(bits) is not int or not 0 <= bits <= 62):
        raise ValueError(f"{bits!r:.40} is no number of bits")
    names = [column.name for column in schema.columns or []]
    if len(set(names)) < len(names):
        raise ValueError("two columns have one name")


def _refuse_twice(file: str, names: Sequence[str]) -> None:
    seen = set[str]()
    for name in names:
        if name in seen:
            raise StreamError(f"{file}: two columns are called {name!r:.40}")
        seen.add(name)


def _missing(file: str, name: str, names: Sequence[str]) -> StreamError:
    near = difflib.get_close_matches(name, names)
    hint = f": did you mean {' or '.join(map(repr, near))}?" if near else ""
    return StreamError(f"{file}: there is no column {name!r:.40}{hint}")
