"""Parquet and Arrow: the same rows as from CSV, whatever the file and the pieces."""

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
from tables import file, outcome, table

from spanboost.data.formats.arrow import TableReader
from spanboost.data.formats.csv import CsvReader
from spanboost.data.problems import Problems
from spanboost.data.source import sources
from spanboost.data.target import BinaryTarget, ClassTarget


def parquet_of(rows, **options):
    out = io.BytesIO()
    parquet.write_table(rows, out, **options)
    return out.getvalue()


def arrow_of(rows, make, size=None):
    out = io.BytesIO()
    with make(out, rows.schema) as writer:
        writer.write_table(rows, size)
    return out.getvalue()


def feather_of(rows):
    out = io.BytesIO()
    feather.write_feather(rows, out)
    return out.getvalue()


FORMS = {
    "Parquet": parquet_of,
    "Parquet in small groups": lambda rows: parquet_of(rows, row_group_size=3),
    "Arrow file": lambda rows: arrow_of(rows, ipc.new_file),
    "Arrow stream": lambda rows: arrow_of(rows, ipc.new_stream, 2),
    "Feather": feather_of,
}
EVERY = pytest.mark.parametrize("form", FORMS)


def read(data, schema=None, *, skip=False, labelled=True, name="x", **options):
    reader = TableReader(schema or table(), Problems(skip), labelled=labelled, **options)
    return outcome(reader, file(data, name))


def from_csv(rows, schema=None, *, skip=False):
    """The same table by way of text."""
    out = io.BytesIO()
    csv.write_csv(rows, out)
    found = outcome(
        CsvReader(schema or table(), Problems(skip), labelled=True), file(out.getvalue())
    )
    # its rows stand one line further down, behind the header
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


@EVERY
def test_a_small_table(form):
    found = read(FORMS[form](SMALL))
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
    form=st.sampled_from([*FORMS]),
    size=st.integers(1, 9),
    bits=st.none() | st.just(3),
)
def test_every_form_gives_the_same(rows, form, size, bits):
    # what is text in one form must not look like a number in the other
    texts = tuple(
        field.name
        for field in rows.schema
        if pa.types.is_string(field.type) or pa.types.is_dictionary(field.type)
    )
    expected = from_csv(rows, table(categorical=texts, bits=bits), skip=True)
    for pieces in (size, 1 << 16):
        found = read(FORMS[form](rows), table(categorical=texts, bits=bits), skip=True, size=pieces)
        assert found.bad[0] == expected.bad[0]
        assert found._replace(bad=[], lines=[]) == expected._replace(bad=[], lines=[])


def test_kinds_of_numbers():
    values = {
        "bool": pa.array([True, False, None]),
        "half": pa.array(np.array([1.5, 2, np.nan], np.float16)),
        "decimal": pa.array([Decimal("1.25"), None, Decimal("-3")]),
        "null": pa.nulls(3),
        "big": pa.array([2**63 - 1, None, 2**53 + 1]),
        "unsigned": pa.array([2**64 - 1, 0, 1], pa.uint64()),
    }
    found = read(parquet_of(pa.table(values | {"y": [1, 2, 3]})))
    assert found.error is None
    assert found.numbers == [
        [1, 1.5, 1.25, None, 2.0**63, 2.0**64],
        [0, 2, None, None, None, 0],
        [None, None, -3, None, 2.0**53, 1],
    ]


def test_kinds_of_categories():
    values = {
        "large": pa.array(["b", "a"], pa.large_string()),
        "numbers": pa.array([7, 3]).dictionary_encode(),
        "asked": pa.array([3, None]),
        "true": pa.array([True, False]),
        "none": pa.nulls(2),
        "null": pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array([None, "z"])),
        "twice": pa.DictionaryArray.from_arrays(pa.array([2, 1]), pa.array(["u", "v", "v"])),
    }
    data = arrow_of(pa.table(values | {"y": [1, 2]}), ipc.new_stream)
    found = read(data, table(categorical=("asked", "true", "none")))
    assert found.error is None
    assert found.codes == [[0, 0, 0, 0, -1, 0, 0], [1, 1, -1, 1, -1, -1, 0]]
    assert [column["codes"] for column in found.state["columns"]] == [
        ["b", "a"], ["7", "3"], ["3"], ["true", "false"], [], ["z"], ["v"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    "kind", [pa.timestamp("s"), pa.list_(pa.int8()), pa.struct({"a": pa.int8()}), pa.binary()]
)
def test_other_kinds_are_refused(kind):
    rows = pa.table({"a": [1], "t": pa.nulls(1, kind), "y": [2]})
    found = read(parquet_of(rows))
    assert found.error.startswith("x: column 't' holds ")
    assert found.error.endswith("leave it out with --ignore")
    assert read(parquet_of(rows), table(ignore=("t",))).numbers == [[1]]


@EVERY
def test_bad_rows(form):
    rows = pa.table(
        {
            "a": [1.0, np.inf, 2.0, 1e39, 3.0, 4.0, 5.0],
            "c": ["u", "v", "w", "x", "y", "z", "u"],
            "w": [1.0, 1.0, -1.0, 1.0, None, 1.0, 2.0],
            "y": [1.0, 1.0, 1.0, 1.0, 1.0, None, 0.0],
        }
    )
    data = FORMS[form](rows)
    found = read(data, table(weight="w"), skip=True)
    assert found.lines == [1, 7]
    assert found.weights == [1, 2]
    assert found.codes == [[0], [0]]
    assert found.state["columns"][1]["codes"] == ["u"]
    assert found.bad == [
        5,
        "x:2: 'inf' is not finite in column 'a'",
        "x:3: the weight '-1' is not between 0 and 1e+19",
        "x:4: '1e+39' is too large a number in column 'a'",
        "x:5: the weight is missing",
        "x:6: the label is missing",
    ]
    stopped = read(data, table(weight="w"), size=2)
    assert stopped.lines == [1]
    assert stopped.error == "x:2: 'inf' is not finite in column 'a'"


@pytest.mark.parametrize("texts", [True, False])
def test_targets(texts):
    labels = pa.array([3, 1, 3, 1, None])
    rows = pa.table({"a": [1, 2, 3, 4, 5], "y": labels.cast(pa.string()) if texts else labels})
    assert read(parquet_of(rows), skip=True).y == [3, 1, 3, 1]
    assert read(parquet_of(rows), table(ClassTarget(2)), skip=True).y == [0, 1, 0, 1]
    assert read(parquet_of(rows), table(BinaryTarget("1")), skip=True).y == [-1, 1, -1, 1]
    found = read(parquet_of(rows), table(BinaryTarget()), skip=True)
    assert found.lines == [2, 4]
    assert found.bad[1].startswith("x:1: the label '3' is neither 0 nor 1")
    assert found.bad[2].startswith("x:3: the label '3' does not go with '1'")
    words = pa.table({"a": [1, 2], "y": ["no", "yes"]})
    assert read(parquet_of(words)).error.startswith("x:1: the label 'no' is no number: for two")
    assert read(parquet_of(words), table(BinaryTarget())).y == [-1, 1]


def test_predicting():
    schema = table()
    read(parquet_of(SMALL), schema)
    before = schema.state()
    rows = pa.table(
        {"city": ["v", "new"], "x": [1, 2], "more": ["q", "r"], "n": [3, 4], "job": ["a", None]}
    )
    for form in FORMS.values():
        found = read(form(rows), schema, labelled=False)
        assert found.error is None
        assert found.numbers == [[3, 1], [4, 2]]
        assert found.codes == [[1, 1], [-1, -1]]
        assert found.state == before
    assert read(parquet_of(rows.drop(["n"])), schema, labelled=False, name="z").error == (
        "z: there is no column 'n'"
    )
    text = rows.set_column(3, "n", [["3", "4"]])
    assert read(parquet_of(text), schema, labelled=False).error == "x: column 'n' holds no numbers"


def test_texts_that_are_not_utf8():
    strange = pa.array([b"u", b"\xff"]).view(pa.string())
    for column in (strange, strange.dictionary_encode()):
        rows = pa.table({"a": column, "y": [1, 2]})
        for form in FORMS.values():
            assert read(form(rows)).error.startswith("x: damaged")


def test_names_with_dots():
    rows = pa.table({"a": [1, 2], "a.b": [3, 4], "a.y": [5, 6]})
    found = read(parquet_of(rows), table(ignore=("a.b",)))
    assert found.numbers == [[1], [2]]
    assert found.y == [5, 6]


def test_no_rows():
    for form in FORMS.values():
        found = read(form(SMALL.slice(0, 0)))
        assert found.error is None
        assert found.lines == []


@pytest.mark.parametrize(
    "data", [b"", b"PAR1", b"ARROW1", b"a,b\n1,2\n", b"\xff" * 20, b"PAR1" * 9]
)
def test_foreign_files(data):
    assert read(data).error.startswith("x")


@given(form=st.sampled_from([*FORMS]), data=st.data())
def test_files_cut_short_or_damaged(form, data):
    raw = bytearray(FORMS[form](SMALL))
    if data.draw(st.booleans()):
        raw = raw[: data.draw(st.integers(0, len(raw) - 1))]
    else:
        for _ in range(data.draw(st.integers(1, 3))):
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    found = read(bytes(raw), skip=data.draw(st.booleans()))
    assert found.error is None or found.error.startswith("x")


DATA = Path(os.environ.get("SPANBOOST_DATA", "no such folder"))


@pytest.mark.skipif(not DATA.is_dir(), reason="SPANBOOST_DATA names no folder with the data sets")
@pytest.mark.parametrize(("name", "target"), [("abalone", None), ("adult", BinaryTarget(">50K"))])
def test_real_tables(name, target, tmp_path):
    path = DATA / f"{name}.parquet"
    rows = parquet.read_table(path)
    found = outcome(TableReader(table(target), Problems(), labelled=True), *sources([str(path)]))
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
    by_text = from_csv(rows, table(target))
    assert by_text == found
    feather.write_feather(rows, tmp_path / "x.feather")
    reader = TableReader(table(target), Problems(), labelled=True)
    assert outcome(reader, *sources([str(tmp_path / "x.feather")])) == found
