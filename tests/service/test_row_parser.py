"""Labels in the rows of requests."""

import pytest

from spanboost.data.formats.jsonl import BadRowError
from spanboost.data.schema import Column, Schema
from spanboost.data.target import NumberTarget
from spanboost.service.column_parser import MIN_ROWS, parse_examples, parse_features
from spanboost.service.request_rows import RowParser


@pytest.mark.parametrize("row", [{"a": 1, "lable": 2}, {"id": "7", "lable": 2}])
def test_a_misspelt_key_of_the_label_gets_a_suggestion(row):
    parser = RowParser(Schema("json", NumberTarget()), "id", 100)
    with pytest.raises(BadRowError) as caught:
        parser.parse_example(row)
    assert str(caught.value) == "the label is missing: found 'lable'; the label is named 'label'"
    assert caught.value.field == "label"


@pytest.mark.parametrize("row", [{"a": 1}, {"id": "7", "label": 2}])
def test_the_missing_key_of_the_label_is_named(row):
    parser = RowParser(Schema("json", NumberTarget(), label="rings"), "id", 100)
    with pytest.raises(BadRowError) as caught:
        parser.parse_example(row)
    assert str(caught.value) == "the label is missing: no key 'rings'"
    assert caught.value.field == "rings"


def test_a_label_that_is_only_missing_is_left_to_the_target():
    parser = RowParser(Schema("json", NumberTarget()), "id", 100)
    assert parser.parse_example({"a": 1, "label": None, "lable": 2}).label == ""


def test_a_labelled_row_without_features_is_refused():
    parser = RowParser(Schema("json", NumberTarget(), weight="w", ignore=("x",)), "id", 100)
    message = (
        "the row has a label but no features; if their values are not known, give one of them as "
        "null"
    )
    for row in ({"label": 1, "w": 1}, {"label": 1, "w": 1, "x": 5}, {"label": 1, "id": None}):
        with pytest.raises(BadRowError) as caught:
            parser.parse_example(dict(row))
        assert str(caught.value) == message
        _, rejected = parse_examples(parser, [dict(row) for _ in range(MIN_ROWS)])
        assert [one.reason for one in rejected] == [message] * MIN_ROWS
    assert parser.parse_example({"label": 1, "w": 1, "a": None}).row == {"a": None}
    assert parser.parse_example({"label": 1, "id": "7"}).row is None  # the label of a pending row
    no_columns = RowParser(Schema("table", NumberTarget(), columns=[]), "id", 100)
    assert no_columns.parse_example({"label": 1}).row == {}


TABLE = Schema(
    "table",
    NumberTarget(),
    columns=[Column("size", category=False), Column("city", category=True)],
)


@pytest.mark.parametrize(
    ("row", "near"),
    [({"weight": 3}, ""), ({}, ""), ({"id": "7"}, ""), ({"sise": 3}, "; did you mean 'size'?")],
)
def test_a_row_with_none_of_the_columns_of_a_table(row, near):
    parser = RowParser(TABLE, "id", 100)
    message = f"the row has none of the model's columns (size, city){near}"
    with pytest.raises(BadRowError) as caught:
        parser.parse_features(row)
    assert str(caught.value) == message
    if "id" not in row:  # otherwise, a label alone is that of a pending row
        with pytest.raises(BadRowError) as caught:
            parser.parse_example(row | {"label": 1})
        assert str(caught.value) == message
    for parse in (parse_features, parse_examples):
        _, rejected = parse(parser, [row | {"label": 1, "other": k} for k in range(MIN_ROWS)])
        assert [one.reason for one in rejected] == [message] * MIN_ROWS


def test_rows_that_are_accepted_without_a_value_for_each_column():
    parser = RowParser(TABLE, "id", 100)
    assert parser.parse_features({"city": None, "other": 1})[1] == {"city": None}
    assert parser.parse_example({"id": "7", "label": 1}).row is None
    assert RowParser(Schema("json", NumberTarget()), "id", 100).parse_features({})[1] == {}
