"""Parquet and Arrow files give the same rows as CSV, for any format and batch size."""

import datetime as dt
import io
import os
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, feather, ipc, parquet
from tables import read_all, source_of, table_schema

from spanboost.data.formats.arrow import TableReader
from spanboost.data.formats.csv import CsvReader
from spanboost.data.problems import Problems
from spanboost.data.source import find_sources
from spanboost.data.target import BinaryTarget, ClassTarget
from spanboost.rows.times import FIRST_PARTS


def to_parquet(rows, **options):
    out = io.BytesIO()
    parquet.write_table(rows, out, **options)
    return out.getvalue()


def to_arrow(rows, make, size=None):
    out = io.BytesIO()
    with make(out, rows.schema) as writer:
        writer.write_table(rows, size)
    return out.getvalue()


def to_feather(rows):
    out = io.BytesIO()
    feather.write_feather(rows, out)
    return out.getvalue()


FORMATS = {
    "Parquet": to_parquet,
    "Parquet in small groups": lambda rows: to_parquet(rows, row_group_size=3),
    "Arrow file": lambda rows: to_arrow(rows, ipc.new_file),
    "Arrow stream": lambda rows: to_arrow(rows, ipc.new_stream, 2),
    "Feather": to_feather,
}
EVERY_FORMAT = pytest.mark.parametrize("format", FORMATS)


def read(data, schema=None, *, skip=False, labelled=True, name="x", **options):
    reader = TableReader(schema or table_schema(), Problems(skip), labelled=labelled, **options)
    return read_all(reader, source_of(data, name))


def from_csv(rows, schema=None, *, skip=False):
    """Read the same table, written as CSV."""
    out = io.BytesIO()
    csv.write_csv(rows, out)
    found = read_all(
        CsvReader(schema or table_schema(), Problems(skip), labelled=True),
        source_of(out.getvalue()),
    )
    # CSV rows are one line further down because of the header
    return found._replace(lines=[line - 1 for line in found.lines])


SMALL = pa.table(
    {
        "n": pa.array([1, 2, None, 4], pa.int16()),
        "job": pa.array(["b", "a", None, "b"]),
        "x": pa.array([0.5, None, float("nan"), -1e-40]),
        "city": pa.array(["u", "v", "u", ""]).dictionary_encode(),
        "y": pa.array([1.0, 2, 3, 4]),
    }
)


@EVERY_FORMAT
def test_a_small_table(format):
    found = read(FORMATS[format](SMALL))
    assert found.error is None
    assert found.numbers == [[1, 0.5], [2, None], [None, None], [4, float(np.float32(-1e-40))]]
    assert found.codes == [[0, 0], [1, 1], [-1, 0], [0, -1]]
    assert found.y == [1, 2, 3, 4]
    assert found.lines == [1, 2, 3, 4]
    assert found == from_csv(SMALL)


VALUES = {
    pa.float64(): st.floats(allow_infinity=False, allow_nan=False, max_value=1e38, min_value=-1e38),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint8(): st.integers(0, 255),
    pa.string(): st.text(st.sampled_from('ab,"\n1é'), max_size=3),
    pa.dictionary(pa.int8(), pa.string()): st.sampled_from(["u", "v", "w w"]),
}


@st.composite
def tables(draw):
    kinds = draw(st.lists(st.sampled_from([*VALUES]), min_size=1, max_size=4))
    count = draw(st.integers(1, 20))
    columns = [
        pa.array(draw(st.lists(st.none() | VALUES[kind], min_size=count, max_size=count)), kind)
        for kind in kinds
    ]
    y = draw(st.lists(st.none() | st.integers(-5, 5), min_size=count, max_size=count))
    names = [f"c{k}" for k in range(len(kinds))]
    return pa.table([*columns, pa.array(y, pa.float32())], names=[*names, "y"])


@given(
    rows=tables(),
    format=st.sampled_from([*FORMATS]),
    size=st.integers(1, 9),
    bits=st.none() | st.just(3),
)
def test_every_format_gives_the_same_rows(rows, format, size, bits):
    # text in one format must not look like a number in the other
    texts = tuple(
        field.name
        for field in rows.schema
        if pa.types.is_string(field.type) or pa.types.is_dictionary(field.type)
    )
    expected = from_csv(rows, table_schema(categorical=texts, bits=bits), skip=True)
    for pieces in (size, 1 << 16):
        found = read(
            FORMATS[format](rows),
            table_schema(categorical=texts, bits=bits),
            skip=True,
            size=pieces,
        )
        assert found.bad[0] == expected.bad[0]
        assert found._replace(bad=[], lines=[]) == expected._replace(bad=[], lines=[])


def test_numeric_types():
    values = {
        "bool": pa.array([True, False, None]),
        "half": pa.array(np.array([1.5, 2, np.nan], np.float16)),
        "decimal": pa.array([Decimal("1.25"), None, Decimal("-3")]),
        "null": pa.nulls(3),
        "big": pa.array([2**63 - 1, None, 2**53 + 1]),
        "unsigned": pa.array([2**64 - 1, 0, 1], pa.uint64()),
    }
    found = read(to_parquet(pa.table(values | {"y": [1, 2, 3]})))
    assert found.error is None
    assert found.numbers == [
        [1, 1.5, 1.25, None, 2.0**63, 2.0**64],
        [0, 2, None, None, None, 0],
        [None, None, -3, None, 2.0**53, 1],
    ]


def test_categorical_types():
    values = {
        "large": pa.array(["b", "a"], pa.large_string()),
        "numbers": pa.array([7, 3]).dictionary_encode(),
        "asked": pa.array([3, None]),
        "true": pa.array([True, False]),
        "none": pa.nulls(2),
        "null": pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array([None, "z"])),
        "twice": pa.DictionaryArray.from_arrays(pa.array([2, 1]), pa.array(["u", "v", "v"])),
    }
    data = to_arrow(pa.table(values | {"y": [1, 2]}), ipc.new_stream)
    found = read(data, table_schema(categorical=("asked", "true", "none")))
    assert found.error is None
    assert found.codes == [[0, 0, 0, 0, -1, 0, 0], [1, 1, -1, 1, -1, -1, 0]]
    assert [column["codes"] for column in found.state["columns"]] == [
        ["b", "a"], ["7", "3"], ["3"], ["true", "false"], [], ["z"], ["v"],
    ]  # fmt: skip


DAYS = [dt.datetime(2020, 1, 2), dt.datetime(2020, 1, 3, 6), None]
TIMES = {
    **{f"timestamp {unit}": pa.array(DAYS, pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
    "zone": pa.array(DAYS, pa.timestamp("us", "UTC")).cast(pa.timestamp("us", "Asia/Tokyo")),
    "text": pa.array(["2020-01-02", "2020-01-03T06:00", None]),
    "large text": pa.array(["2020-01-02", "2020-01-03 06:00:00", ""], pa.large_string()),
    "dictionary": pa.array(DAYS, pa.timestamp("ns")).dictionary_encode(),
}


@EVERY_FORMAT
@pytest.mark.parametrize("name", TIMES)
def test_times_of_every_type_are_the_same(format, name):
    table = pa.table({"t": TIMES[name], "x": [7, 8, 9], "y": [1, 2, 3]})
    found = read(FORMATS[format](table), table_schema(time_parts=FIRST_PARTS))
    assert found.error is None
    assert found.numbers == [
        [7, 1, 0, 3, 2],
        [8, 2.25, 6, 4, 3],
        [9, None, None, None, None],
    ]
    assert found.state["columns"][0]["time"] is True


def test_dates_durations_and_times_of_day():
    table = pa.table(
        {
            "date": pa.array([dt.date(2020, 1, 3)], pa.date32()),
            "seconds": pa.array([dt.timedelta(minutes=1.5)], pa.duration("ns")),
            "hours": pa.array([dt.time(6, 30)], pa.time32("s")),
            "y": [1],
        }
    )
    found = read(to_parquet(table), table_schema(time_parts=FIRST_PARTS))
    assert found.numbers == [[90, 6.5, 2, 0, 4, 3]]


def test_a_model_of_times_refuses_numbers_and_the_reverse():
    schema = table_schema()
    read(to_parquet(pa.table({"t": TIMES["zone"], "x": [7, 8, 9], "y": [1, 2, 3]})), schema)
    wrong = read(to_parquet(pa.table({"t": [1], "x": [1], "y": [1]})), schema).error
    assert wrong == "x: column 't' must contain dates or times (got int64)"
    wrong = read(to_parquet(pa.table({"t": ["2020-01-01"], "x": DAYS[:1], "y": [1]})), schema)
    assert wrong.error == "x: column 'x' must be numeric (got timestamp[us])"
    stray = read(
        to_parquet(pa.table({"t": ["2020-01-01", "-", "x"], "x": [1] * 3, "y": [1] * 3})), schema
    )
    assert stray.error.startswith("x:3: column 't': 'x' is not a date or time")
    label = read(to_parquet(pa.table({"x": [1], "y": DAYS[:1]})))
    assert label.error == "x: column 'y' must be numeric (got timestamp[us])"


def test_identifiers_are_hashed():
    ids = [f"u{k}" for k in range(1500)]
    table = pa.table({"id": ids, "kind": ["a", "b", "c"] * 500, "y": range(1500)})
    states = [
        read(write(table)).state["columns"]
        for write in (to_parquet, lambda t: to_arrow(t, ipc.new_stream))
    ]
    assert states[0] == states[1]
    assert (states[0][0]["codes"], states[0][0]["bits"]) == ([], 12)
    assert states[0][1]["codes"] == ["a", "b", "c"]


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.struct({"a": pa.int8()}), pa.binary()])
def test_other_types_are_refused(kind):
    rows = pa.table({"a": [1], "t": pa.nulls(1, kind), "y": [2]})
    found = read(to_parquet(rows))
    assert found.error.startswith("x: column 't' has the unsupported type ")
    assert found.error.endswith("; exclude it with --ignore")
    assert read(to_parquet(rows), table_schema(ignore=("t",))).numbers == [[1]]


@EVERY_FORMAT
def test_bad_rows(format):
    rows = pa.table(
        {
            "a": [1.0, np.inf, 2.0, 1e39, 3.0, 4.0, 5.0],
            "c": ["u", "v", "w", "x", "y", "z", "u"],
            "w": [1.0, 1.0, -1.0, 1.0, None, 1.0, 2.0],
            "y": [1.0, 1.0, 1.0, 1.0, 1.0, None, 0.0],
        }
    )
    data = FORMATS[format](rows)
    found = read(data, table_schema(weight="w"), skip=True)
    assert found.lines == [1, 7]
    assert found.weights == [1, 2]
    assert found.codes == [[0], [0]]
    assert found.state["columns"][1]["codes"] == ["u"]
    assert found.bad == [
        5,
        "x:2: column 'a': the value is infinite, or too large for a 64-bit float",
        "x:3: the weight must be between 0 and 1e+19 (got -1)",
        "x:4: column 'a': '1e+39' is too large for a 32-bit float",
        "x:5: the weight is missing",
        "x:6: column 'y': the label is missing",
    ]
    stopped = read(data, table_schema(weight="w"), size=2)
    assert stopped.lines == [1]
    assert (
        stopped.error == "x:2: column 'a': the value is infinite, or too large for a 64-bit float"
    )


@pytest.mark.parametrize("texts", [True, False])
def test_targets(texts):
    labels = pa.array([3, 1, 3, 1, None])
    rows = pa.table({"a": [1, 2, 3, 4, 5], "y": labels.cast(pa.string()) if texts else labels})
    assert read(to_parquet(rows), skip=True).y == [3, 1, 3, 1]
    assert read(to_parquet(rows), table_schema(ClassTarget(2)), skip=True).y == [0, 1, 0, 1]
    assert read(to_parquet(rows), table_schema(BinaryTarget("1")), skip=True).y == [-1, 1, -1, 1]
    found = read(to_parquet(rows), table_schema(BinaryTarget()), skip=True)
    assert found.lines == [2, 4]
    assert found.bad[1].startswith("x:1: column 'y': the label '3' is not 0, 1 or -1")
    assert found.bad[2].startswith(
        "x:3: column 'y': the label '3' cannot be used together with '1'"
    )
    words = pa.table({"a": [1, 2], "y": ["no", "yes"]})
    assert read(to_parquet(words)).error.startswith(
        "x:1: column 'y': the label 'no' is not a number; for two"
    )
    assert read(to_parquet(words), table_schema(BinaryTarget())).y == [-1, 1]


def test_predicting():
    schema = table_schema()
    read(to_parquet(SMALL), schema)
    before = schema.state()
    rows = pa.table(
        {"city": ["v", "new"], "x": [1, 2], "more": ["q", "r"], "n": [3, 4], "job": ["a", None]}
    )
    for format in FORMATS.values():
        found = read(format(rows), schema, labelled=False)
        assert found.error is None
        assert found.numbers == [[3, 1], [4, 2]]
        assert found.codes == [[1, 1], [-1, -1]]
        assert found.state == before
    assert read(to_parquet(rows.drop(["n"])), schema, labelled=False, name="z").error == (
        "z: column 'n' not found; the model needs this column; if its values are not known, leave "
        "its fields empty"
    )
    text = rows.set_column(3, "n", [["3", "4"]])
    assert read(to_parquet(text), schema, labelled=False).error == (
        "x: column 'n' must be numeric (got string)"
    )


def test_text_that_is_not_utf8():
    strange = pa.array([b"u", b"\xff"]).view(pa.string())
    for column in (strange, strange.dictionary_encode()):
        rows = pa.table({"a": column, "y": [1, 2]})
        for format in FORMATS.values():
            assert read(format(rows)).error.startswith("x: damaged")


def test_names_with_dots():
    rows = pa.table({"a": [1, 2], "a.b": [3, 4], "a.y": [5, 6]})
    found = read(to_parquet(rows), table_schema(ignore=("a.b",)))
    assert found.numbers == [[1], [2]]
    assert found.y == [5, 6]


def test_no_rows():
    for format in FORMATS.values():
        found = read(format(SMALL.slice(0, 0)))
        assert found.error is None
        assert found.lines == []


@pytest.mark.parametrize(
    "data", [b"", b"PAR1", b"ARROW1", b"a,b\n1,2\n", b"\xff" * 20, b"PAR1" * 9]
)
def test_files_in_other_formats(data):
    assert read(data).error.startswith("x")


@given(format=st.sampled_from([*FORMATS]), data=st.data())
def test_files_cut_short_or_damaged(format, data):
    raw = bytearray(FORMATS[format](SMALL))
    if data.draw(st.booleans()):
        raw = raw[: data.draw(st.integers(0, len(raw) - 1))]
    else:
        for _ in range(data.draw(st.integers(1, 3))):
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    found = read(bytes(raw), skip=data.draw(st.booleans()))
    assert found.error is None or found.error.startswith("x")


@pytest.mark.parametrize("format", ["Arrow file", "Arrow stream", "Feather"])
def test_names_that_are_not_text(format):
    raw = FORMATS[format](pa.table({"zebra crossing": [1, 2], "y": [5, 6]}))
    found = read(raw.replace(b"zebra", b"zebr\xff"))
    assert found.error.startswith("x: damaged or not supported: 'utf-8'")


DATA = Path(os.environ.get("SPANBOOST_DATA", "no such folder"))


@pytest.mark.skipif(not DATA.is_dir(), reason="SPANBOOST_DATA is not a folder with the data sets")
@pytest.mark.parametrize(("name", "target"), [("abalone", None), ("adult", BinaryTarget(">50K"))])
def test_real_tables(name, target, tmp_path):
    path = DATA / f"{name}.parquet"
    rows = parquet.read_table(path)
    found = read_all(
        TableReader(table_schema(target), Problems(), labelled=True), *find_sources([str(path)])
    )
    assert found.error is None
    columns = rows.to_pydict()
    label = columns.pop("label")
    assert found.y == (label if target is None else [1.0 if y == ">50K" else -1.0 for y in label])
    numbers = [values for values in columns.values() if not isinstance(values[0], str)]
    np.testing.assert_array_equal(np.array(found.numbers), np.array(numbers, np.float32).T)
    texts = [values for values in columns.values() if isinstance(values[0], str)]
    for j, values in enumerate(texts):
        known = {}
        expected = [known.setdefault(value, len(known)) for value in values]
        assert [row[j] for row in found.codes] == expected
    assert from_csv(rows, table_schema(target)) == found
    feather.write_feather(rows, tmp_path / "x.feather")
    reader = TableReader(table_schema(target), Problems(), labelled=True)
    assert read_all(reader, *find_sources([str(tmp_path / "x.feather")])) == found
