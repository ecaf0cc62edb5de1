"""The columns of a table: the label, the kinds, the codes; and a schema as data."""

import json
import subprocess
import sys
import zlib

import pytest
from tables import table

from spanboost.data.problems import StreamError
from spanboost.data.schema import Column, schema_from_json
from spanboost.data.target import BinaryTarget, ClassTarget, NumberTarget


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
def test_the_label_is_found(options, label, features):
    schema = table(**options)
    assert schema.settle("x", ["a", "b", "label", "c"]) == features
    assert schema.label == label


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"label": "agee"}, "x: there is no column 'agee': did you mean 'age'?"),
        ({"weight": "w"}, "x: there is no column 'w'"),
        ({"ignore": ("ag",)}, "x: there is no column 'ag': did you mean 'age'?"),
        ({"categorical": ("siz",)}, "x: there is no column 'siz': did you mean 'size'?"),
        ({"ignore": ("age", "size", "job")}, "x: no column is left to be the label"),
        ({"ignore": ("age", "size")}, "x: no column is left to learn from beside 'job'"),
        ({"label": "age", "ignore": ("age",)}, "the label 'age' is ignored, or is the weight"),
        ({"label": "age", "weight": "age"}, "the label 'age' is ignored, or is the weight"),
    ],
)
def test_what_cannot_be(options, what):
    with pytest.raises(StreamError, match="^" + what.replace("?", r"\?")):
        table(**options).settle("x", ["age", "size", "job"])


def test_names_stand_for_one_column():
    with pytest.raises(StreamError, match="x: two columns are called 'b'"):
        table().settle("x", ["a", "b", "b"])


def decided(**options):
    schema = table(**options)
    schema.decide(schema.settle("x", ["n", "c", "z", "label"]), [False, True, False])
    return schema


def test_columns_have_kinds_and_places():
    schema = decided(categorical=("z",))
    assert [column.category for column in schema.columns] == [False, True, True]
    names = ["more", "label", "z", "c", "n"]
    assert schema.places("x", names, labelled=True) == ([4], [3, 2], 1, None)
    assert schema.places("x", names[2:], labelled=False) == ([2], [1, 0], None, None)
    with pytest.raises(StreamError, match="y: there is no column 'label'"):
        schema.places("y", names[2:], labelled=True)
    with pytest.raises(StreamError, match="y: two columns are called 'n'"):
        schema.places("y", [*names, "n"], labelled=True)


def test_codes_are_numbered_as_they_come():
    schema = decided()
    column = schema.columns[1]
    assert schema.codes(column, ["b", None, "a", "", "b"], learn=True) == [0, -1, 1, -1, 0]
    assert schema.codes(column, ["a", "new"], learn=False) == [1, -1]
    assert column.codes == {"b": 0, "a": 1}


def test_hashed_codes_need_no_memory():
    schema = decided(bits=5)
    column = schema.columns[1]
    expected = [zlib.crc32("é".encode()) % 32, -1]
    assert schema.codes(column, ["é", ""], learn=True) == expected
    assert schema.codes(column, ["é", ""], learn=False) == expected
    assert column.codes == {}


@pytest.mark.parametrize("target", [NumberTarget([0, 1]), BinaryTarget("yes"), ClassTarget(3)])
def test_a_schema_as_data(target):
    for options in ({}, {"bits": 7, "categorical": ("z",)}):
        schema = decided(target=target, **options)
        assert schema_from_json(table(target, **options).state()).columns is None
        schema.codes(schema.columns[1], ["v", "u"], learn=True)
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
def test_nonsense_is_no_schema(changes):
    assert schema_from_json(GOOD).columns == [Column("c", True, {"u": 0, "v": 1})]
    with pytest.raises(ValueError, match=r".") as caught:
        schema_from_json(GOOD | changes)
    assert not isinstance(caught.value, StreamError)


@pytest.mark.parametrize("state", [None, 3, [], "table", {}, [1, 2]])
def test_other_things_are_no_schema(state):
    with pytest.raises(ValueError, match=r"."):
        schema_from_json(state)


@pytest.mark.process
def test_a_schema_needs_no_arrow():
    code = "import spanboost, sys, spanboost.data.schema; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
