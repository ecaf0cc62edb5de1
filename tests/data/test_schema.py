"""The schema: choice of the label, column types, category codes, and JSON."""

import json
import subprocess
import sys
import zlib

import pytest
from tables import table_schema

from spanboost.data.problems import StreamError
from spanboost.data.schema import Column, schema_from_json
from spanboost.data.target import BinaryTarget, ClassTarget, NumberTarget
from spanboost.rows.times import PARTS


@pytest.mark.parametrize(
    ("options", "label", "features"),
    [
        ({}, "label", ["a", "b", "c"]),
        ({"ignore": ("label",)}, "c", ["a", "b"]),
        ({"ignore": ("label", "c")}, "b", ["a"]),
        ({"label": "a"}, "a", ["b", "label", "c"]),
        ({"weight": "c", "ignore": ("label",)}, "b", ["a"]),
        ({"label": "b", "weight": "label"}, "b", ["a", "c"]),
    ],
)
def test_the_label_is_chosen(options, label, features):
    schema = table_schema(**options)
    assert schema.choose_features("x", ["a", "b", "label", "c"]) == features
    assert schema.label == label


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"label": "agee"}, "x: column 'agee' not found; did you mean 'age'?"),
        ({"weight": "w"}, "x: column 'w' not found"),
        ({"ignore": ("ag",)}, "x: column 'ag' not found; did you mean 'age'?"),
        ({"categorical": ("siz",)}, "x: column 'siz' not found; did you mean 'size'?"),
        (
            {"ignore": ("age", "size", "job")},
            "x: --ignore and --weight leave no column for the label",
        ),
        ({"ignore": ("age", "size")}, "x: there are no feature columns besides the label 'job'"),
    ],
)
def test_impossible_choices(options, what):
    with pytest.raises(StreamError, match="^" + what.replace("?", r"\?")):
        table_schema(**options).choose_features("x", ["age", "size", "job"])


def test_duplicate_columns_are_refused():
    with pytest.raises(StreamError, match="x: duplicate column 'b'"):
        table_schema().choose_features("x", ["a", "b", "b"])


def schema_with_columns(**options):
    schema = table_schema(**options)
    features = schema.choose_features("x", ["n", "c", "z", "label"])
    schema.set_columns(features, ["number", "category", "number"])
    return schema


def test_columns_have_types_and_positions():
    schema = schema_with_columns(categorical=("z",))
    assert [column.category for column in schema.columns] == [False, True, True]
    names = ["more", "label", "z", "c", "n"]
    assert schema.positions("x", names, labelled=True) == ([4], [3, 2], 1, None, [], [])
    assert schema.positions("x", names[2:], labelled=False) == ([2], [1, 0], None, None, [], [])
    with pytest.raises(StreamError, match="y: column 'label' not found"):
        schema.positions("y", names[2:], labelled=True)
    with pytest.raises(StreamError, match="y: duplicate column 'n'"):
        schema.positions("y", [*names, "n"], labelled=True)


def test_schemas_of_earlier_versions_have_no_times():
    """A schema without columns of times is written as before, and read as before."""
    state = schema_with_columns().state()
    assert state.keys() == {
        "form",
        "target",
        "label",
        "weight",
        "ignore",
        "categorical",
        "bits",
    } | {"columns"}
    assert all(column.keys() == {"name", "category", "codes"} for column in state["columns"])
    again = schema_from_json(state)
    assert (again.times, again.iso_times) == ([], False)


def test_columns_of_times_and_hashed_columns_are_stored():
    schema = table_schema(categorical=("z",))
    schema.set_columns(["t", "n", "id", "z"], ["time", "number", "category", "time"], {"id"})
    assert [column.name for column in schema.times] == ["t"]
    assert schema.number_names == ["n", *(f"t.{part}" for part in PARTS)]
    again = schema_from_json(json.loads(json.dumps(schema.state())))
    assert (again.columns, again.time_parts) == (schema.columns, PARTS)
    assert again.encode(again.columns[2], ["u17"], learn=True)[0] in range(4096)
    assert again.columns[2].codes == {}


@pytest.mark.parametrize(
    "change",
    [{"time": 1}, {"time": True}, {"bits": 1.5}, {"bits": 63}, {"bits": 3, "codes": ["a"]}],
)
def test_invalid_columns_are_refused(change):
    state = schema_with_columns().state()
    state["columns"][1] |= change
    with pytest.raises(ValueError, match="column 'c'"):
        schema_from_json(state)


def test_categories_are_numbered_in_order_of_appearance():
    schema = schema_with_columns()
    column = schema.columns[1]
    assert schema.encode(column, ["b", None, "a", "", "b"], learn=True) == [0, -1, 1, -1, 0]
    assert schema.encode(column, ["a", "new"], learn=False) == [1, -1]
    assert column.codes == {"b": 0, "a": 1}


def test_hashed_categories_are_not_stored():
    schema = schema_with_columns(bits=5)
    column = schema.columns[1]
    expected = [zlib.crc32("é".encode()) % 32, -1]
    assert schema.encode(column, ["é", ""], learn=True) == expected
    assert schema.encode(column, ["é", ""], learn=False) == expected
    assert column.codes == {}


@pytest.mark.parametrize("target", [NumberTarget([0, 1]), BinaryTarget("yes"), ClassTarget(3)])
def test_a_schema_as_json(target):
    for options in ({}, {"bits": 7, "categorical": ("z",)}):
        schema = schema_with_columns(target=target, **options)
        assert schema_from_json(table_schema(target, **options).state()).columns is None
        schema.encode(schema.columns[1], ["v", "u"], learn=True)
        state = json.loads(json.dumps(schema.state()))
        again = schema_from_json(state)
        assert again.state() == schema.state()
        assert again.columns == schema.columns


GOOD = {
    "form": "table",
    "target": {"kind": "number", "values": [], "limits": None},
    "label": "y",
    "weight": None,
    "ignore": [],
    "categorical": [],
    "bits": None,
    "columns": [{"name": "c", "category": True, "codes": ["u", "v"]}],
}


def column(**changes):
    return {"columns": [GOOD["columns"][0] | changes]}


@pytest.mark.parametrize(
    "changes",
    [
        {"form": "excel"},
        {"form": ["table"]},
        {"target": {"kind": "other", "values": []}},
        {"target": 3},
        {"target": {"kind": "number", "values": [], "limits": "ab"}},
        {"target": {"kind": "number", "values": [], "limits": [1, 0]}},
        {"target": {"kind": "binary", "values": [], "positive": 1}},
        {"target": {"kind": "classes", "values": ["a", "b"], "classes": 1}},
        {"target": {"kind": ["number"], "values": []}},
        {"label": 3},
        {"weight": []},
        {"ignore": "ab"},
        {"ignore": [1]},
        {"categorical": {"a": 1}},
        {"bits": 2.5},
        {"bits": -1},
        {"bits": True},
        {"bits": 99},
        {"columns": 7},
        {"columns": [7]},
        {"columns": ["name"]},
        {"columns": [{"name": "c"}]},
        {"columns": [GOOD["columns"][0], GOOD["columns"][0]]},
        column(name=1),
        column(category=1),
        column(codes=["u", "u"]),
        column(codes=[""]),
        column(codes={"u": 0}),
        column(category=False),
        column(more=1),
        {"more": 1},
    ],
)
def test_invalid_schemas_are_refused(changes):
    assert schema_from_json(GOOD).columns == [Column("c", True, {"u": 0, "v": 1})]
    with pytest.raises(ValueError, match=r".") as caught:
        schema_from_json(GOOD | changes)
    assert not isinstance(caught.value, StreamError)


@pytest.mark.parametrize("state", [None, 3, [], "table", {}, [1, 2]])
def test_values_that_are_not_schemas_are_refused(state):
    with pytest.raises(ValueError, match=r"."):
        schema_from_json(state)


@pytest.mark.process
def test_the_schema_does_not_import_arrow():
    code = "import spanboost, sys, spanboost.data.schema; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_many_numbers_as_classes_are_referred_to_another_loss():
    numbers, names = ClassTarget(), ClassTarget()
    for k in range(1000):
        assert numbers.encode_text(str(k / 4)) == names.encode_text(f"c{k}") == k
    assert "the labels look like numbers: use --loss squared" in numbers.error_message("7000.5")
    assert "--loss" not in names.error_message("another")
