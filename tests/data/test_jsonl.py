import io
import json
import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from spanboost.data.formats.jsonl import BadRowError, JsonReader, decoded
from spanboost.data.problems import Problems, StreamError
from spanboost.data.source import Source
from spanboost.data.target import BinaryTarget, ClassTarget, NumberTarget


@dataclass
class Schema:
    target: Any
    label: str | None = None
    weight: str | None = None
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    form: str = "json"


class AllProblems(Problems):
    """Keeps every message."""

    def __init__(self):
        super().__init__(skip=True)
        self.messages = []

    def bad(self, file, line, what):
        super().bad(file, line, what)
        self.messages.append(f"{file}:{line}: {what}")


def of_bytes(data):
    return Source("x.json", len(data), lambda: io.BytesIO(data))


def read(data, schema, labelled=True, size=1 << 20):
    """The columns of all batches, and messages about bad rows."""
    problems = AllProblems()
    batches = list(
        JsonReader(schema, problems, labelled=labelled, size=size).batches(of_bytes(data))
    )
    assert all(batch.rows for batch in batches)
    assert {batch.file for batch in batches} <= {"x.json"}
    columns = [
        [v for batch in batches if batch[k] is not None for v in batch[k]] for k in (0, 1, 2, 4)
    ]
    return columns, problems.messages


def one(text, **options):
    """What becomes of a single line: a row, or what is wrong with it."""
    columns, messages = read(text.encode(), Schema(**{"target": NumberTarget()} | options))
    return columns[0][0] if columns[0] else messages[0].removeprefix("x.json:1: ")


class Literal(str):
    """A number as it is written."""


class Wrong(Exception):  # noqa: N818
    pass


def plain(data, schema, labelled):
    """Line by line, slowly: features, labels, weights, numbers of lines; and the bad lines."""
    columns, bad = ([], [], [], []), []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            text = line.decode()
            if not text.strip():
                continue
            row = plain_object(text)
            values = plain_row(row, schema, labelled)
        except (Wrong, UnicodeDecodeError, json.JSONDecodeError):
            bad.append(number)
            continue
        for column, value in zip(columns, (*values, number), strict=True):
            if value is not None:
                column.append(value)
    return list(columns), bad


def plain_object(text):
    def members(pairs):
        if len({name for name, _ in pairs}) < len(pairs):
            raise Wrong
        return dict(pairs)

    def constant(name):
        raise Wrong

    row = json.loads(
        text,
        object_pairs_hook=members,
        parse_constant=constant,
        parse_int=Literal,
        parse_float=Literal,
    )
    if type(row) is not dict or re.search("[\ud800-\udfff]", "".join(strings(row))):
        raise Wrong
    return row


def strings(value):
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    return [s for item in value for s in strings(item)] if isinstance(value, list) else []


def plain_row(row, schema, labelled):
    label_name = schema.label or "label"
    features = {}
    for name, value in row.items():
        if name in (*schema.ignore, label_name, schema.weight):
            continue
        if isinstance(value, dict | list):
            raise Wrong
        if name in schema.categorical:
            features[name] = plain_text(value)
            if features[name] in ("inf", "-inf") and isinstance(value, Literal):
                raise Wrong
            continue
        features[name] = value
        if isinstance(value, bool | Literal):
            features[name] = float(value)
            with np.errstate(over="ignore"):
                if not np.isfinite(np.float32(features[name])):
                    raise Wrong
    weight = None
    if schema.weight and labelled:
        weight = row.get(schema.weight)
        if not isinstance(weight, Literal) or not 0 <= float(weight) <= 1e19:
            raise Wrong
        weight = float(weight)
    if not labelled:
        return features, None, None
    label = row.get(label_name)
    if isinstance(label, dict | list):
        raise Wrong
    code = schema.target.code(plain_text(label) or "")
    if math.isnan(code):
        raise Wrong
    return features, code, weight


def plain_text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Literal):
        number = float(value)
        whole = "." not in value and "e" not in value.lower() and math.isfinite(number)
        return str(int(value)) if whole else repr(number)
    return value


NAMES = st.sampled_from(["label", "w", "c", "skip", "a", "b", "é"])
NUMBERS = st.sampled_from(
    [
        *("0", "-0", "1", "2.0", "-1", "3e5", "0.1", "5e-324", "1e19", "1.1e19", "1e999", "-1e39"),
        *("3.4028235e38", "3.4028235677973366e38", "1" * 5000, "9" * 308, "1" + "0" * 309),
    ]
)
STRINGS = st.sampled_from(
    ["", "x", "y", "true", "1", " 1.0 ", "nan", "inf", "é", "\u2028", "\ud800"]
)
SCALARS = st.one_of(
    NUMBERS, st.sampled_from(["true", "false", "null", "NaN", "-Infinity"]), STRINGS.map(json.dumps)
)
VALUES = SCALARS | st.sampled_from(["[]", "[1, [2]]", "{}", '{"a": 1, "a": 2}'])


def written(pairs):
    return "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in pairs) + "}"


OBJECTS = st.lists(st.tuples(NAMES, VALUES), max_size=6).map(written)
GOOD = st.tuples(SCALARS, st.sampled_from(["0", "1.5", "2"]), SCALARS).map(
    lambda v: written(zip(("label", "w", "c"), v, strict=True))
)
LINES = st.one_of(
    st.sampled_from(["", " \r", '{"label": 1', "[1]", "5", '"a"', "{} {}", "\ufeff{}", "null"]),
    OBJECTS,
    GOOD,
    GOOD.map(lambda text: f" {text}\r"),
)
FILES = st.lists(LINES, max_size=12).map(lambda lines: "\n".join(lines).encode())
PACKED = b"\x1f\x8b", b"\x28\xb5"  # how gzip and zstd begin
EDITS = st.lists(st.tuples(st.integers(0), st.integers(0, 3), st.binary(max_size=3)), max_size=4)
SCHEMAS = st.builds(
    dict,
    label=st.sampled_from([None, None, "a"]),
    weight=st.sampled_from([None, "w"]),
    ignore=st.sampled_from([(), ("skip",)]),
    categorical=st.sampled_from([(), ("c", "b")]),
)
TARGETS = st.sampled_from(
    [
        NumberTarget,
        lambda: NumberTarget((-2.0, 2.0)),
        BinaryTarget,
        lambda: BinaryTarget("true"),
        lambda: ClassTarget(3),
    ]
)


@given(FILES, EDITS, SCHEMAS, TARGETS, st.booleans(), st.integers(1, 100))
@example(b'{"label": 5}\n{"label": 1}\n{"label": "x"}', [], {}, BinaryTarget, True, 1)
def test_json_lines_are_what_reading_line_by_line_gives(
    data, edits, options, target, labelled, size
):
    changed = bytearray(data)
    for number, length, piece in edits:
        place = number % (len(data) + 1)
        changed[place : place + length] = piece
    data = bytes(changed)
    assume(data[:2] not in PACKED and data[1:3] != b"\x2a\x4d")
    schemas = [Schema(target(), **options) for _ in range(3)]
    columns, bad = plain(data, schemas[0], labelled)
    found, messages = read(data, schemas[1], labelled)
    assert found == columns
    assert [int(message.split(":")[1]) for message in messages] == bad
    assert (found, messages) == read(data, schemas[2], labelled, size)
    assert schemas[0].target.values == schemas[1].target.values == schemas[2].target.values
    assert all("\n" not in message and len(message) < 200 for message in messages)


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_read_or_refused(data, labelled):
    schema = Schema(BinaryTarget(), weight="w", categorical=("c",))
    try:
        list(JsonReader(schema, Problems(), labelled=labelled).batches(of_bytes(data)))
    except StreamError as error:
        message = str(error)
    else:
        message = "x.json"
    assert message.startswith("x.json")


def test_rows_are_features_labels_and_weights():
    schema = Schema(
        ClassTarget(3), label="kind", weight="w", ignore=("id", "tags"), categorical=("zip", "on")
    )
    data = b"""\xef\xbb\xbf{"a": 1, "b": 2.5, "c": "red", "d": true, "kind": "x", "w": 2, "id": 7}\r
{"zip": 1234, "on": false, "c": null, "tags": [{}], "kind": 4, "w": 0}

{"zip": 1.50, "kind": 4.0, "w": 1e19}"""
    (batch,) = JsonReader(schema, Problems(), labelled=True).batches(of_bytes(data))
    assert batch.X == [
        {"a": 1.0, "b": 2.5, "c": "red", "d": 1.0},
        {"zip": "1234", "on": "false", "c": None},
        {"zip": "1.5"},
    ]
    assert all(type(batch.X[0][name]) is float for name in "abd")
    np.testing.assert_array_equal(batch.y, [0, 1, 1])
    np.testing.assert_array_equal(batch.weights, [2, 0, 1e19])
    np.testing.assert_array_equal(batch.lines, [1, 2, 4])
    assert schema.target.values == ["x", "4"]


def test_predicting_needs_neither_labels_nor_weights_and_learns_nothing():
    schema = Schema(ClassTarget(2), weight="w")
    data = b'{"a": 1}\n{"label": [1], "w": "no"}\n{"label": "new"}'
    (batch,) = JsonReader(schema, Problems(), labelled=False).batches(of_bytes(data))
    assert batch.X == [{"a": 1.0}, {}, {}]
    assert batch.y is None
    assert batch.weights is None
    assert schema.target.values == []


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"a": 1', "Expecting ',' delimiter: column 8, ''"),
        ('{"a": 1} x', "Extra data: column 10, 'x'"),
        ("[1, 2]", "a list where an object is expected"),
        ('"' + "x" * 90 + '"', "'" + "x" * 39 + " where an object is expected"),
        ("null", "null where an object is expected"),
        ('{"a": 1, "\\u0061": 2, "label": 3}', "'a' stands there twice"),
        ('{"a": [1], "label": 3}', "'a' is a list"),
        ('{"a": {}, "label": 3}', "'a' is an object"),
        ('{"a": 1e39, "label": 3}', "'a' is too large a number"),
        ('{"a": NaN, "label": 3}', "NaN is not JSON"),
        ('{"a": "\\ud800", "label": 3}', "half a surrogate pair in a string"),
        ('{"a": 1}', "the label is missing"),
        ('{"label": null}', "the label is missing"),
        ('{"label": {}}', "the label is an object"),
        ('{"label": 1e999}', "the label 'inf' is not finite"),
        ('{"label": 9}', "the label '9' is outside the label range, -2 to 2"),
        ('{"label": 1, "w": -1}', "the weight is -1, not a number from 0 to 1e+19"),
        ('{"label": 1, "w": true}', "the weight is true, not a number from 0 to 1e+19"),
        ('{"label": 1, "w": null}', "the weight is missing"),
    ],
)
def test_what_is_wrong_with_a_line(line, what):
    weight = "w" if '"w"' in line else None
    assert one(line, target=NumberTarget((-2.0, 2.0)), weight=weight) == what


def test_strings_that_are_no_numbers_under_a_numeric_loss():
    assert one('{"label": " 2.50"}') == {}
    assert one('{"label": "two"}').startswith("the label 'two' is no number: for two classes")
    assert one('{"label": true}').startswith("the label 'true' is no number")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, '{"a":' + "[" * 900 + "]" * 900]
)
def test_deep_nesting_is_a_bad_row(text):
    assert isinstance(one(text), str)


def test_whole_numbers_of_any_length():
    digits = "9" * 5000
    for text, options in ((digits, {}), ("-" + digits, {}), (digits, {"categorical": ("a",)})):
        assert one('{"label": 1, "a": ' + text + "}", **options) == "'a' is too large a number"
    assert one('{"label": ' + digits + "}") == "the label 'inf' is not finite"
    assert one('{"label": 1, "a": ' + digits + "}", ignore=("a",)) == {}
    few = digits[:25]
    assert one('{"label": 1, "a": ' + few + "}", categorical=("a",)) == {"a": few}


def test_the_first_bad_row_is_the_one_reported():
    data = b'{"label": 1}\n{"label": 9}\n{"label": 1\n{"label": "x"}\n'
    reader = JsonReader(Schema(NumberTarget((0.0, 2.0))), Problems(), labelled=True)
    with pytest.raises(StreamError, match=r"^x.json:2: the label '9' is outside"):
        list(reader.batches(of_bytes(data)))


def test_rows_left_out_leave_nothing_behind():
    schema = Schema(ClassTarget(2))
    data = (
        b'{"label": "bad", "a": []}\n{"label": "x"}\n{"label": "y"}\n{"label": "z"}\n{"label": "x"}'
    )
    columns, messages = read(data, schema)
    assert columns[1] == [0, 1, 0]
    assert schema.target.values == ["x", "y"]
    assert messages == [
        "x.json:1: 'a' is a list",
        "x.json:4: the label 'z' is one more than the 2 classes 'x', 'y'",
    ]


ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
)
OBJECTS = st.dictionaries(st.text(max_size=3), st.one_of(ATOMS, st.lists(ATOMS, max_size=2)))


@given(st.one_of(OBJECTS, st.lists(st.one_of(OBJECTS, ATOMS))), st.booleans(), st.booleans())
def test_what_is_decoded_is_what_the_standard_library_reads(value, ascii, spaced):
    text = json.dumps(value, ensure_ascii=ascii, separators=(" , ", " : ") if spaced else None)
    assert repr(decoded(text, exact=True)) == repr(json.loads(text))


def test_of_very_many_names_the_one_that_stands_twice_is_found_at_once():
    names = [f'"name {k}":1' for k in range(200_000)]
    with pytest.raises(BadRowError, match="'name 199999' stands there twice"):
        decoded(f"{{{','.join([*names, names[-1]])}}}", exact=False)


@given(
    st.lists(st.sampled_from(['"a"', '"b"', '"a:"', '"\\u0061"']), min_size=1, max_size=4),
    st.lists(st.sampled_from(["1", '":"', '"\\u003a"', '"x\\":"', "null"]), min_size=4, max_size=4),
    st.sampled_from([":", " : "]),
)
def test_no_name_that_stands_twice_is_missed(names, values, colon):
    pairs = [name + colon + value for name, value in zip(names, values, strict=False)]
    text = "[{}, {" + ",".join(pairs) + "}]"
    distinct = {json.loads(name) for name in names}
    if len(distinct) == len(names):
        assert decoded(text, exact=False) == json.loads(text)
    else:
        with pytest.raises(BadRowError, match="stands there twice"):
            decoded(text, exact=False)


def test_long_whole_numbers_are_floats_where_digits_do_not_matter():
    text = f"[{2**64 - 1}, {2**64}, {-(2**63)}, {-(2**63) - 1}]"
    row = f'{{"a": {2**64}, "b": {2**64 - 1}}}'
    assert decoded(row, exact=False) == {"a": 2.0**64, "b": 2**64 - 1}
    assert type(decoded(row, exact=False)["a"]) is float
    assert repr(decoded(text, exact=True)) == text
