"""Requests parsed column by column, against the same requests parsed row by row."""

from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanboost.data.schema import Column, Schema
from spanboost.data.target import BinaryTarget, NumberTarget
from spanboost.rows.column_rows import ColumnRows
from spanboost.service.column_parser import MIN_ROWS, parse_examples, parse_features
from spanboost.service.request_rows import (
    RowParser,
    collect_examples,
    collect_features,
    parse_rows,
)
from spanboost.service.storage.row_codec import decode_rows, encode_rows

COLUMNS = [Column("a", False), Column("b", True), Column("c", False, time=True)]
SCHEMAS = {
    "names": Schema("json", NumberTarget()),
    "options": Schema("json", NumberTarget(), "y", "w", ignore=["c"], categorical=["b"]),
    "texts": Schema("json", BinaryTarget()),
    "table": Schema("table", NumberTarget(), "y", columns=COLUMNS),
}
NUMBERS = st.one_of(
    st.floats(allow_nan=False), st.integers(-(2**70), 2**70), st.booleans(), st.just(-0.0)
)
TEXTS = st.one_of(
    st.sampled_from(["x", "", "7", "ü"]), st.sampled_from(["2026-01-31", "2026-02-30"])
)
KINDS = (
    st.floats(-10, 10),
    NUMBERS,
    TEXTS,
    st.one_of(NUMBERS, TEXTS, st.none(), st.just([1])),
)


def row_by_row(parser, values):
    rows, rejected = parse_rows(parser.parse_features, deepcopy(values))
    examples, bad = parse_rows(parser.parse_example, deepcopy(values))
    return (collect_features(rows), rejected), (collect_examples(examples), bad)


def shown(parsed):
    """Return parsed rows as text, which tells 1 from 1.0 and 0.0 from -0.0."""
    rows, rejected = parsed
    return [list(map(repr, column)) for column in rows], rejected


@pytest.mark.parametrize("name", SCHEMAS)
@given(st.data())
@settings(max_examples=150, deadline=None)
def test_columns_and_rows_have_the_same_content(name, data):
    parser = RowParser(SCHEMAS[name], "id", 6)
    names = data.draw(st.lists(st.sampled_from("abcd"), max_size=4, unique=True))
    kinds = {key: data.draw(st.sampled_from(KINDS)) for key in names}
    weights = st.one_of(st.floats(0, 2), st.integers(-1, 3), st.none())
    more = {
        "id": data.draw(st.sampled_from([st.text(max_size=2), st.integers(), st.none()])),
        parser.label: data.draw(st.sampled_from([st.floats(), NUMBERS, TEXTS, st.none()])),
        "w": weights,
    }
    kinds |= {key: kind for key, kind in more.items() if data.draw(st.booleans())}
    rows = data.draw(st.integers(MIN_ROWS - 1, MIN_ROWS + 3))
    values = data.draw(st.lists(st.fixed_dictionaries(kinds), min_size=rows, max_size=rows))
    if data.draw(st.integers(0, 9)) == 0:
        values[-1] = data.draw(st.sampled_from([{}, {"e": 1.0}, 5]))
    features, examples = row_by_row(parser, values)
    assert shown(parse_features(parser, deepcopy(values))) == shown(features)
    assert shown(parse_examples(parser, deepcopy(values))) == shown(examples)


def uniform(n=20):
    return [{"a": k / 3, "b": "xyz"[k % 3], "c": -k, "label": k / 7} for k in range(n)]


def test_uniform_rows_stay_in_columns():
    parser = RowParser(SCHEMAS["names"], "id", 10)
    examples, rejected = parse_examples(parser, uniform())
    assert isinstance(examples.rows, ColumnRows)
    assert not rejected
    features, _ = parse_features(parser, uniform())
    assert isinstance(features.rows, ColumnRows)
    assert features.rows[7] == {"a": 7 / 3, "b": "y", "c": -7.0}


@given(
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True),
    st.integers(1, 5),
    st.data(),
)
@settings(max_examples=100, deadline=None)
def test_columns_and_rows_are_encoded_in_the_same_bytes(names, rows, data):
    floats, texts = st.floats(allow_nan=False), st.text(max_size=3)
    kinds = {name: data.draw(st.sampled_from([floats, texts])) for name in names}
    values = [{name: data.draw(kinds[name]) for name in names} for _ in range(rows)]
    encoded = encode_rows(values)
    columns = decode_rows(*encoded)
    assert isinstance(columns, ColumnRows)
    assert list(map(repr, columns)) == list(map(repr, values))
    assert encode_rows(columns) == encoded
