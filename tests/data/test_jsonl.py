"""JSON Lines, compared with a slow reader."""

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

from spanboost.data.formats.jsonl import BadRowError, JsonReader, decode_json
from spanboost.data.problems import Problems, StreamError
from spanboost.data.source import Source
from spanboost.data.target import BinaryTarget, ClassTarget, NumberTarget
from spanboost.rows.times import FIRST_PARTS


@dataclass
class Schema:
    target: Any
    label: str | None = None
    weight: str | None = None
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    form: str = "json"
    iso_times: bool = False
    time_parts: tuple[str, ...] = FIRST_PARTS  # easier to read than sine and cosine


class AllProblems(Problems):
    """Skips bad rows and keeps every message."""

    def __init__(self):
        super().__init__(skip=True)
        self.messages = []

    def report(self, file, line, what):
        super().report(file, line, what)
        self.messages.append(f"{file}:{line}: {what}")


def source_of(data):
    return Source("x.json", len(data), lambda: io.BytesIO(data))


def read(data, schema, labelled=True, size=1 << 20):
    """Return the columns of all batches, and the messages about bad rows."""
    problems = AllProblems()
    reader = JsonReader(schema, problems, labelled=labelled, size=size)
    batches = list(reader.batches(source_of(data)))
    assert all(batch.rows for batch in batches)
    assert {batch.file for batch in batches} <= {"x.json"}
    columns = [
        [v for batch in batches if batch[k] is not None for v in batch[k]] for k in (0, 1, 2, 4)
    ]
    return columns, problems.messages


def read_line(text, **options):
    """Return the row of a single line, or its error message."""
    columns, messages = read(text.encode(), Schema(**{"target": NumberTarget()} | options))
    return columns[0][0] if columns[0] else messages[0].removeprefix("x.json:1: ")


class Literal(str):
    """A number as written in the file."""


class Invalid(Exception):  # noqa: N818
    pass


def oracle(data, schema, labelled):
    """Read line by line: features, labels, weights and line numbers; and the bad lines."""
    columns, bad = ([], [], [], []), []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            text = line.decode()
            if not text.strip():
                continue
            row = oracle_object(text)
            values = oracle_row(row, schema, labelled)
        except (Invalid, UnicodeDecodeError, json.JSONDecodeError):
            bad.append(number)
            continue
        for column, value in zip(columns, (*values, number), strict=True):
            if value is not None:
                column.append(value)
    return list(columns), bad


def oracle_object(text):
    def members(pairs):
        if len({name for name, _ in pairs}) < len(pairs):
            raise Invalid
        return dict(pairs)

    def constant(name):
        raise Invalid

    row = json.loads(
        text,
        object_pairs_hook=members,
        parse_constant=constant,
        parse_int=Literal,
        parse_float=Literal,
    )
    if type(row) is not dict or re.search("[\ud800-\udfff]", "".join(strings(row))):
        raise Invalid
    return row


def strings(value):
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    return [s for item in value for s in strings(item)] if isinstance(value, list) else []


def oracle_row(row, schema, labelled):
    label_name = schema.label or "label"
    features = {}
    for name, value in row.items():
        if name in (*schema.ignore, label_name, schema.weight):
            continue
        if isinstance(value, dict | list):
            raise Invalid
        if name in schema.categorical:
            features[name] = oracle_text(value)
            if features[name] in ("inf", "-inf") and isinstance(value, Literal):
                raise Invalid
            continue
        features[name] = value
        if isinstance(value, bool | Literal):
            features[name] = float(value)
            with np.errstate(over="ignore"):
                if not np.isfinite(np.float32(features[name])):
                    raise Invalid
    weight = None
    if schema.weight and labelled:
        weight = row.get(schema.weight)
        if not isinstance(weight, Literal) or not 0 <= float(weight) <= 1e19:
            raise Invalid
        weight = float(weight)
    if not labelled:
        return features, None, None
    label = row.get(label_name)
    if isinstance(label, dict | list):
        raise Invalid
    code = schema.target.encode_text(oracle_text(label) or "")
    if math.isnan(code):
        raise Invalid
    return features, code, weight


def oracle_text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Literal):
        number = float(value)
        whole = "." not in value and "e" not in value.lower() and math.isfinite(number)
        return str(int(value)) if whole else repr(number)
    return value


ALLOWED = "must be a number, a string, a boolean or null"
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


def to_json(pairs):
    return "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in pairs) + "}"


OBJECTS = st.lists(st.tuples(NAMES, VALUES), max_size=6).map(to_json)
GOOD = st.tuples(SCALARS, st.sampled_from(["0", "1.5", "2"]), SCALARS).map(
    lambda v: to_json(zip(("label", "w", "c"), v, strict=True))
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
def test_rows_are_those_of_the_oracle(data, edits, options, target, labelled, size):
    changed = bytearray(data)
    for number, length, piece in edits:
        place = number % (len(data) + 1)
        changed[place : place + length] = piece
    data = bytes(changed)
    assume(data[:2] not in PACKED and data[1:3] != b"\x2a\x4d")
    schemas = [Schema(target(), **options) for _ in range(3)]
    columns, bad = oracle(data, schemas[0], labelled)
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
        list(JsonReader(schema, Problems(), labelled=labelled).batches(source_of(data)))
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
    (batch,) = JsonReader(schema, Problems(), labelled=True).batches(source_of(data))
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
    (batch,) = JsonReader(schema, Problems(), labelled=False).batches(source_of(data))
    assert batch.X == [{"a": 1.0}, {}, {}]
    assert batch.y is None
    assert batch.weights is None
    assert schema.target.values == []


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"a": 1', "invalid JSON at column 8: Expecting ',' delimiter: ''"),
        ('{"a": 1} x', "invalid JSON at column 10: Extra data: 'x'"),
        ("[1, 2]", "expected a JSON object, got a list"),
        ('"' + "x" * 90 + '"', "expected a JSON object, got '" + "x" * 39),
        ("null", "expected a JSON object, got null"),
        ('{"a": 1, "\\u0061": 2, "label": 3}', "duplicate key 'a'"),
        ('{"a": [1], "label": 3}', f"'a' {ALLOWED} (got a list)"),
        ('{"a": {}, "label": 3}', f"'a' {ALLOWED} (got an object)"),
        ('{"a": 1e39, "label": 3}', "'a' is too large for a 32-bit float"),
        ('{"a": NaN, "label": 3}', "NaN is not valid JSON"),
        ('{"a": "\\ud800", "label": 3}', "a string contains an unpaired surrogate"),
        (
            '{"a": 1, "b": 2}',
            "the label is missing: no key 'label'; name its key with --label; "
            "the keys are 'a', 'b'",
        ),
        ('{"lable": 1}', "the label is missing: no key 'label'; did you mean 'lable'?"),
        ('{"label": null}', "key 'label': the label is missing"),
        ('{"label": {}}', "the label must be a number, a string or a boolean (got an object)"),
        ('{"label": 1e999}', "key 'label': the label is infinite, or too large for a 64-bit float"),
        ('{"label": 9}', "key 'label': the label '9' is outside the label range -2 to 2"),
        ('{"label": 1, "w": -1}', "the weight must be a number between 0 and 1e+19 (got -1)"),
        ('{"label": 1, "w": true}', "the weight must be a number between 0 and 1e+19 (got true)"),
        ('{"label": 1, "w": null}', "the weight is missing"),
    ],
)
def test_error_messages(line, what):
    weight = "w" if '"w"' in line else None
    assert read_line(line, target=NumberTarget((-2.0, 2.0)), weight=weight) == what


def test_strings_as_numeric_labels():
    assert read_line('{"label": " 2.50"}') == {}
    message = read_line('{"label": "two"}')
    assert message.startswith("key 'label': the label 'two' is not a number; for two classes")
    assert read_line('{"label": true}').startswith("key 'label': the label 'true' is not a number")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, '{"a":' + "[" * 900 + "]" * 900]
)
def test_deep_nesting_is_a_bad_row(text):
    assert isinstance(read_line(text), str)


def test_integers_of_any_length():
    digits = "9" * 5000
    for text, options in ((digits, {}), ("-" + digits, {}), (digits, {"categorical": ("a",)})):
        line = '{"label": 1, "a": ' + text + "}"
        assert read_line(line, **options) == "'a' is too large for a 32-bit float"
    assert (
        read_line('{"label": ' + digits + "}")
        == "key 'label': the label is infinite, or too large for a 64-bit float"
    )
    assert read_line('{"label": 1, "a": ' + digits + "}", ignore=("a",)) == {}
    few = digits[:25]
    assert read_line('{"label": 1, "a": ' + few + "}", categorical=("a",)) == {"a": few}


def test_the_first_bad_row_is_the_one_reported():
    data = b'{"label": 1}\n{"label": 9}\n{"label": 1\n{"label": "x"}\n'
    reader = JsonReader(Schema(NumberTarget((0.0, 2.0))), Problems(), labelled=True)
    with pytest.raises(StreamError, match=r"^x.json:2: key 'label': the label '9' is outside"):
        list(reader.batches(source_of(data)))


def test_the_target_learns_nothing_from_bad_rows():
    schema = Schema(ClassTarget(2))
    labels = b'{"label": "x"}\n{"label": "y"}\n{"label": "z"}\n{"label": "x"}'
    data = b'{"label": "bad", "a": []}\n' + labels
    columns, messages = read(data, schema)
    assert columns[1] == [0, 1, 0]
    assert schema.target.values == ["x", "y"]
    assert messages == [
        f"x.json:1: 'a' {ALLOWED} (got a list)",
        "x.json:4: key 'label': the label 'z' is not one of the 2 classes 'x', 'y'",
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
def test_json_is_decoded_as_the_standard_library_does(value, ascii, spaced):
    text = json.dumps(value, ensure_ascii=ascii, separators=(" , ", " : ") if spaced else None)
    assert repr(decode_json(text, exact=True)) == repr(json.loads(text))


def test_a_duplicate_among_many_keys_is_found_quickly():
    names = [f'"name {k}":1' for k in range(200_000)]
    with pytest.raises(BadRowError, match="duplicate key 'name 199999'"):
        decode_json(f"{{{','.join([*names, names[-1]])}}}", exact=False)


@given(
    st.lists(st.sampled_from(['"a"', '"b"', '"a:"', '"\\u0061"']), min_size=1, max_size=4),
    st.lists(st.sampled_from(["1", '":"', '"\\u003a"', '"x\\":"', "null"]), min_size=4, max_size=4),
    st.sampled_from([":", " : "]),
)
def test_no_duplicate_key_is_missed(names, values, colon):
    pairs = [name + colon + value for name, value in zip(names, values, strict=False)]
    text = "[{}, {" + ",".join(pairs) + "}]"
    distinct = {json.loads(name) for name in names}
    if len(distinct) == len(names):
        assert decode_json(text, exact=False) == json.loads(text)
    else:
        with pytest.raises(BadRowError, match="duplicate key"):
            decode_json(text, exact=False)


def test_long_integers_are_floats_unless_exact():
    text = f"[{2**64 - 1}, {2**64}, {-(2**63)}, {-(2**63) - 1}]"
    row = f'{{"a": {2**64}, "b": {2**64 - 1}}}'
    assert decode_json(row, exact=False) == {"a": 2.0**64, "b": 2**64 - 1}
    assert type(decode_json(row, exact=False)["a"]) is float
    assert repr(decode_json(text, exact=True)) == text


def test_notes_on_times_and_identifiers():
    rows = [{"t": "2020-01-03", "id": f"u{k}", "c": "ab"[k % 2], "label": k} for k in range(200)]
    problems = Problems()
    reader = JsonReader(Schema(NumberTarget(), iso_times=True), problems, labelled=True)
    data = "\n".join(map(json.dumps, rows)).encode()
    assert sum(batch.rows for batch in reader.batches(source_of(data))) == 200
    identifiers, times = sorted(problems.notes)
    assert times.startswith("x.json: column 't' contains times; features: days, hour, weekday")
    assert identifiers.startswith("x.json: 'id' has a different value in most rows")


def test_strings_that_are_times():
    text = '{"t": "2020-01-03T06:00Z", "c": "x", "d": "2020-01-03", "label": 1}'
    schema = Schema(NumberTarget(), categorical=("d",), iso_times=True)
    columns, messages = read(text.encode(), schema)
    assert messages == []
    times = {"t.days": 2.25, "t.hour": 6.0, "t.weekday": 4.0, "t.yearday": 3.0}
    assert columns[0] == [{"c": "x", "d": "2020-01-03", **times}]
    columns, _ = read(text.encode(), Schema(NumberTarget()))  # as earlier versions
    assert columns[0] == [{"t": "2020-01-03T06:00Z", "c": "x", "d": "2020-01-03"}]
