"""Bodies that are parsed as a whole, against the same bodies parsed line by line."""

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spanboost.data.formats.jsonl import BadRowError, decode_json
from spanboost.data.schema import Schema
from spanboost.data.target import NumberTarget
from spanboost.rows.column_rows import ColumnRows
from spanboost.service.column_parser import parse_examples
from spanboost.service.http.request_bodies import ARROW, JSON, JSON_LINES, parse_body
from spanboost.service.limits import RequestLimits
from spanboost.service.request_rows import RowParser

LIMITS = RequestLimits()
PIECES = st.sampled_from(
    [
        *('{"a": 1}', '{"a": "x"}', '{"a": "{"}', '{"a": 1}\r', ' {"a": 1}', '{"a": {}}'),
        *('{"a": 1', '"a": 1}', '{"a": [1', '{"b": 2}]}', '{"a": 1},5', '{"a": 1, "a": 2}'),
        *(" ", "5", ",", "[]", "}"),
    ]
)


def parse_line(line):
    try:
        return decode_json(line, exact=False)
    except BadRowError as error:
        return error


@given(st.lists(st.lists(PIECES, min_size=1, max_size=2).map("".join), min_size=1, max_size=5))
@example(['{"a": [1', '{"b": 2}]}', '{"a": 1},5'])  # as many values as lines, but not one each
@example(['{"a": 1}'] * 5)
@settings(max_examples=500, deadline=None)
def test_lines_have_the_same_values_as_alone(lines):
    body = parse_body(JSON_LINES, "\n".join(lines).encode(), LIMITS, exact=False)
    expected = [parse_line(line) for line in lines if not line.isspace()]
    assert [*map(repr, body.rows)] == [*map(repr, expected)]


def test_all_formats_give_the_same_columns():
    rows = [{"a": k / 3, "b": "xyz"[k % 3], "c": k, "label": k / 7} for k in range(20)]
    sink = pa.BufferOutputStream()
    table = pa.Table.from_pylist(rows)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    lines = "\n".join(str(row).replace("'", '"') for row in rows)
    bodies = {
        JSON: str(rows).replace("'", '"').encode(),
        JSON_LINES: lines.encode(),
        ARROW: sink.getvalue().to_pybytes(),
    }
    parser = RowParser(Schema("json", NumberTarget()), "id", 10)
    for media_type, data in bodies.items():
        body = parse_body(media_type, data, LIMITS, exact=False)
        examples, rejected = parse_examples(parser, body.rows)
        assert not rejected
        assert isinstance(examples.rows, ColumnRows)
        assert examples.rows == [{"a": k / 3, "b": "xyz"[k % 3], "c": k} for k in range(20)]
        assert examples.labels == [k / 7 for k in range(20)]
