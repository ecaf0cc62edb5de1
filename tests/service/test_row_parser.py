"""Labels in the rows of requests."""

import pytest

from spanboost.data.formats.jsonl import BadRowError
from spanboost.data.schema import Schema
from spanboost.data.target import NumberTarget
from spanboost.service.request_rows import RowParser


@pytest.mark.parametrize("row", [{"a": 1, "lable": 2}, {"id": "7", "lable": 2}])
def test_a_misspelt_key_of_the_label_gets_a_suggestion(row):
    parser = RowParser(Schema("json", NumberTarget()), "id", 100)
    with pytest.raises(BadRowError) as caught:
        parser.parse_example(row)
    assert str(caught.value) == ("the label is missing: no key 'label'; did you mean 'lable'?")
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
