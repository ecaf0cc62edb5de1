"""Rows of requests with dates and times are read as the files that the model was trained on."""

import numpy as np
import pytest
from tables import read_all, source_of, table_schema

from spanboost.data.formats.csv import CsvReader
from spanboost.data.formats.jsonl import BadRowError
from spanboost.data.problems import Problems
from spanboost.data.schema import Schema
from spanboost.data.target import NumberTarget
from spanboost.rows.times import PARTS, time_entries
from spanboost.service.request_rows import RowParser, prediction_batches

CSV = b"when,x,y\n2020-01-03T06:00Z,5,1\n2020-02-29,6,2\n,7,3\n"
VALUES = ["2020-01-03 06:00", "2020-02-29T00:00:00+00:00", None]


def test_a_model_of_a_table_knows_its_columns_of_times():
    schema = table_schema()
    found = read_all(CsvReader(schema, Problems(), labelled=True), source_of(CSV))
    parser = RowParser(schema, "id", 100)
    rows = [parser.parse_features({"when": v, "x": 5 + k})[1] for k, v in enumerate(VALUES)]
    (batch,) = prediction_batches(schema, rows)
    np.testing.assert_array_equal(batch.X, np.array(found.numbers, np.float32))
    for wrong in (7, "soon", "2020-02-30", True):
        with pytest.raises(
            BadRowError, match=r"'when' is .* expected a date or time, such as 2026"
        ):
            parser.parse_features({"when": wrong})


def test_a_model_of_json_finds_times_in_strings():
    value = {"when": "2020-01-03T06:00", "kind": "a"}
    new = RowParser(Schema("json", NumberTarget(), iso_times=True), "id", 100)
    expected = time_entries("when", np.datetime64("2020-01-03T06:00"), PARTS)
    assert new.parse_features(dict(value))[1] == {"kind": "a", **expected}
    earlier = RowParser(Schema("json", NumberTarget()), "id", 100)
    assert earlier.parse_features(dict(value))[1] == value
