"""The schema of a stream: its label, its weight, and its columns of numbers, times and categories.

The columns of a table are chosen once, from the first rows of the first file and the options. The
columns of every further file are matched by name. Categories are numbered in order of appearance.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from spanboost.data.decimal_marks import COMMA, POINT
from spanboost.data.kinds import (
    BOOLEANS,
    CATEGORY,
    HASHED_BITS,
    SPELLINGS,
    TIME,
    boolean_of,
    hash_category,
    is_index,
)
from spanboost.data.local_formats import ANY_SIGN, DAY_FIRST, MONTH_FIRST
from spanboost.data.problems import StreamError, suggest_name
from spanboost.data.target import Target, target_from_json
from spanboost.errors import suggest_column
from spanboost.rows.table_form import Categories, TableForm
from spanboost.rows.times import FIRST_PARTS, PARTS, are_parts, part_names

FORMS = ("vw", "svmlight", "table", "json")
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_NEEDED = "; the model needs this column; if its values are not known, leave its fields empty"


@dataclass
class Column:
    """One column of a table: numbers, times or categories.

    `codes` maps the categories so far to their numbers. With `bits`, categories are hashed into
    2^bits numbers instead. `booleans` are the texts of false and true in a column of booleans.
    `order` says whether the day or the month is first in dates such as 01/13/2025.
    """

    name: str
    category: bool
    codes: dict[str, int] = field(default_factory=dict)
    time: bool = False
    bits: int | None = None
    booleans: tuple[str, str] | None = None
    order: str | None = None

    def spelling(self, text: str) -> str:
        """Return a category as the column writes it: all spellings of a boolean are equal."""
        value = None if self.booleans is None else boolean_of(text)
        return text if self.booleans is None or value is None else self.booleans[value]

    @property
    def known(self) -> Collection[str]:
        """The learned categories, in all spellings of booleans."""
        if self.booleans is None:
            return self.codes.keys()
        equal = [text for text in (*BOOLEANS, "0", "1") if self.spelling(text) in self.codes]
        return {*self.codes, *equal}

    def state(self) -> dict[str, Any]:
        """Return the column as JSON values, without properties that version 0.1.0 does not know."""
        later = {"time": True} if self.time else {}
        hashed = {} if self.bits is None else {"bits": self.bits}
        first = {"name": self.name, "category": self.category, "codes": [*self.codes]}
        booleans = {} if self.booleans is None else {"booleans": [*self.booleans]}
        order = {} if self.order is None else {"order": self.order}
        return first | later | hashed | booleans | order


class ColumnPositions(NamedTuple):
    """Positions in a file of the columns that are read, counted from 0."""

    numbers: list[int]
    categories: list[int]
    label: int | None  # None if labels are not read
    weight: int | None
    times: Sequence[int] = ()
    kept: Sequence[int] = ()  # columns that are passed on as they are


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
    iso_times: bool = False  # whether strings of JSON that are dates or times are read as times
    decimal: str = POINT  # the decimal mark of the first file
    signs: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of numbers; others have none
    time_parts: tuple[str, ...] = PARTS  # the features of a time; earlier versions had others

    @property
    def numbers(self) -> list[Column]:
        """The numeric columns, in order."""
        return [one for one in self.columns or [] if not one.category and not one.time]

    @property
    def times(self) -> list[Column]:
        """The columns of times, in order."""
        return [column for column in self.columns or [] if column.time]

    @property
    def number_names(self) -> list[str]:
        """The names of the numeric features of a table: its numbers, then the parts of its times.

        This is their order in the rows that a model reads.
        """
        parts = (part for column in self.times for part in part_names(column.name, self.time_parts))
        return [*(column.name for column in self.numbers), *parts]

    @property
    def categories(self) -> list[Column]:
        """The categorical columns, in order."""
        return [column for column in self.columns or [] if column.category]

    def table_form(self) -> TableForm:
        """Return the columns of the rows that a model reads, by name."""
        categories = [
            Categories(one.name, [*one.codes], one.bits if self.bits is None else self.bits)
            for one in self.categories
        ]
        return TableForm(self.number_names, categories, self.time_features)

    @property
    def time_features(self) -> tuple[str, ...]:
        """The features of a time, if rows can contain times."""
        return self.time_parts if self.times or self.iso_times else ()

    def choose_features(
        self, file: str, names: Sequence[str], note: Callable[[str], None] = lambda text: None
    ) -> list[str]:
        """Choose the label among the columns of the first file; return the feature names.

        The index of a pandas frame is left out, with a note, unless an option names it.
        """
        _refuse_duplicates(file, names)
        required = [self.label, self.weight, *self.ignore, *self.categorical]
        for name in required:
            if name is not None and name not in names:
                raise _not_found(file, name, names, suggest_column(name, names))
        excluded = {self.weight, *self.ignore}
        for position, name in enumerate(names):
            if is_index(position, name) and name not in required:
                note(f"{file}: column {name!r}, the index of a data frame, is left out")
                excluded.add(name)
        if self.label is None:
            candidates = [name for name in names if name not in excluded]
            if not candidates:
                raise StreamError(f"{file}: --ignore and --weight leave no column for the label")
            self.label = "label" if "label" in candidates else candidates[-1]
        features = [name for name in names if name not in excluded | {self.label}]
        if not features:
            raise StreamError(
                f"{file}: there are no feature columns besides the label {self.label!r}"
                f"{_question_delimiter(names)}"
            )
        return features

    def set_columns(
        self, features: Iterable[str], kinds: Iterable[str], identifiers: Collection[str] = ()
    ) -> None:
        """Set the columns, of the kinds that were found, or categorical if an option says so.

        identifiers: columns with too many categories to number them, which are hashed instead.
        """
        self.columns = [
            Column(
                name,
                category=kind == CATEGORY or name in self.categorical,
                time=kind == TIME and name not in self.categorical,
                bits=HASHED_BITS if name in identifiers else None,
            )
            for name, kind in zip(features, kinds, strict=True)
        ]

    def positions(
        self, file: str, names: Sequence[str], labelled: bool, keep: Iterable[str] = ()
    ) -> ColumnPositions:
        """Return the positions of the schema's columns among the column names of a file.

        keep: columns that are passed on as they are.
        """
        _refuse_duplicates(file, names)
        position = {name: k for k, name in enumerate(names)}

        def find(columns: Iterable[str], hint: str = "") -> list[int]:
            for name in columns:
                if name not in position:
                    raise _not_found(file, name, names, hint)
            return [position[name] for name in columns]

        return ColumnPositions(
            numbers=find([column.name for column in self.numbers], _NEEDED),
            categories=find([column.name for column in self.categories], _NEEDED),
            label=find([self.label])[0] if labelled and self.label is not None else None,
            weight=find([self.weight])[0] if labelled and self.weight is not None else None,
            times=find([column.name for column in self.times], _NEEDED),
            kept=find([*keep]),
        )

    def encode(self, column: Column, texts: Iterable[str | None], learn: bool) -> list[int]:
        """Return the codes of distinct categories; -1 if missing, or unknown and not `learn`."""
        return [self._encode_one(column, text, learn) if text else -1 for text in texts]

    def is_hashed(self, column: Column) -> bool:
        """Return whether the categories of a column are hashed instead of numbered."""
        return self.bits is not None or column.bits is not None

    def _encode_one(self, column: Column, text: str, learn: bool) -> int:
        text = column.spelling(text)
        bits, known = column.bits if self.bits is None else self.bits, column.codes
        if bits is not None:
            return hash_category(text, bits)
        if learn:
            return known.setdefault(text, len(known))
        return known.get(text, -1)

    def state(self) -> dict[str, Any]:
        """Return the schema as JSON values, for `schema_from_json`."""
        columns = None if self.columns is None else [column.state() for column in self.columns]
        state = vars(self) | {
            "target": self.target.state(),
            "ignore": list(self.ignore),
            "categorical": list(self.categorical),
            "columns": columns,
            "signs": {name: [*signs] for name, signs in self.signs.items()},
            "time_parts": [*self.time_features],
        }
        first = {"iso_times": False, "decimal": POINT, "signs": {}}
        if self.time_features in ((), FIRST_PARTS):
            first["time_parts"] = state["time_parts"]
        for name, default in first.items():
            if state[name] == default:  # version 0.1.0 does not know it
                del state[name]
        return state


def schema_from_json(state: dict[str, Any]) -> Schema:
    """Return the schema that `Schema.state` described; raise ValueError if it is invalid."""
    try:
        fields = dict(state)
        columns = fields.pop("columns")
        fields.pop("time_parts", None)
        schema = Schema(
            form=fields.pop("form"),
            target=target_from_json(fields.pop("target")),
            ignore=_texts(fields.pop("ignore")),
            categorical=_texts(fields.pop("categorical")),
            columns=None if columns is None else [_column(**column) for column in columns],
            signs={name: _texts(signs) for name, signs in fields.pop("signs", {}).items()},
            **fields,
        )
        if schema.time_features:  # otherwise, the schema has not seen a time yet
            schema.time_parts = tuple(state.get("time_parts", FIRST_PARTS))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"invalid schema: {error}") from None
    _check(schema)
    return schema


def _column(
    name: Any,
    category: Any,
    codes: Any,
    time: Any = False,
    bits: Any = None,
    booleans: Any = None,
    order: Any = None,
) -> Column:
    texts = _texts(codes)
    if not isinstance(name, str) or not isinstance(category, bool):
        raise ValueError(f"invalid column: name {name!r:.40}, category {category!r:.40}")
    numbered = category and bits is None
    if len(set(texts)) < len(texts) or "" in texts or (texts and not numbered):
        raise ValueError(f"column {name!r:.40} has duplicate, empty or unexpected categories")
    if not isinstance(time, bool) or (time and category) or not _is_bits(bits):
        raise ValueError(f"column {name!r:.40} has an invalid kind")
    spellings = None if booleans is None else _texts(booleans)
    if spellings is not None and (not category or spellings not in SPELLINGS):
        raise ValueError(f"column {name!r:.40} has invalid booleans")
    if order not in (None, DAY_FIRST, MONTH_FIRST) or (order is not None and not time):
        raise ValueError(f"column {name!r:.40} has an invalid order of dates")
    codes_by_text = {text: code for code, text in enumerate(texts)}
    return Column(name, category, codes_by_text, time, bits, cast(Any, spellings), order)


def _is_bits(bits: Any) -> bool:
    return bits is None or (type(bits) is int and 0 <= bits <= 62)


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
    if not _is_bits(schema.bits):
        raise ValueError(f"bits must be an integer from 0 to 62 (got {schema.bits!r:.40})")
    if not isinstance(schema.iso_times, bool):
        raise ValueError(f"iso_times must be true or false (got {schema.iso_times!r:.40})")
    if not are_parts(schema.time_parts):
        raise ValueError(f"time_parts are unknown (got {schema.time_parts!r:.60})")
    if schema.decimal not in (POINT, COMMA):
        raise ValueError(f"decimal must be a point or a comma (got {schema.decimal!r:.40})")
    if not all({*signs} <= {*ANY_SIGN} for signs in schema.signs.values()):
        raise ValueError(f"signs of numbers are unknown (got {schema.signs!r:.60})")
    names = [column.name for column in schema.columns or []]
    if len(set(names)) < len(names):
        raise ValueError("duplicate column names")


def _refuse_duplicates(file: str, names: Sequence[str]) -> None:
    seen = set[str]()
    for name in names:
        if name in seen:
            raise StreamError(
                f"{file}: duplicate column {name!r:.40}; give every column another name"
            )
        seen.add(name)


def _not_found(file: str, name: str, names: Sequence[str], hint: str = "") -> StreamError:
    hint = _question_delimiter(names) or suggest_name(name, names) or hint
    if [*names] == [str(position) for position in range(1, len(names) + 1)]:
        without = "because line 1 does not contain names"
        hint = f"; columns are named 1 to {len(names)}, {without}; write a line of names before it"
    return StreamError(f"{file}: column {name!r:.40} not found{hint}")


def _question_delimiter(names: Sequence[str]) -> str:
    """Return the end of a message if the only column seems to be several."""
    if len(names) == 1:
        for delimiter, title in DELIMITERS.items():
            if delimiter in names[0]:
                option = "\\t" if delimiter == "\t" else delimiter
                return f"; if {title} separate the fields, use --delimiter '{option}'"
    return ""
