"""Decimal commas in CSV files whose fields are not separated by commas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import read_all, source_of, table_schema

from spanboost.data.decimal_marks import find_mark, parse_decimal, sign_advice
from spanboost.data.formats.csv import CsvReader
from spanboost.data.formats.dialect import Dialect, find_dialect
from spanboost.data.kinds import find_signs
from spanboost.data.problems import Problems
from spanboost.data.schema import schema_from_json


def read(data, schema=None, *, skip=False, labelled=True, **options):
    problems = Problems(skip)
    options = {"delimiter": None, "header": None} | options
    reader = CsvReader(schema or table_schema(), problems, labelled=labelled, **options)
    return read_all(reader, source_of(data, "x.csv")), problems.notes


@pytest.mark.parametrize(
    ("texts", "mark"),
    [
        (["1,5"], ","),
        (["1.5"], "."),
        (["1,5", "2.5"], "default"),
        (["1,5", "2,5", "2.5"], ","),
        (["1,234", "5,678"], "default"),  # perhaps thousands
        (["1.234", "0,5"], ","),
        (["1,234.5", "7,25"], "default"),
        (["1,234.5"], "."),
        (["1.234,5"], ","),
        (["1,234,567", "31.01.2026", "10.0.0.1", "a,b", "7", ""], "default"),
        ([" -0,123 ", "1,5e-3"], ","),
        ([], "default"),
    ],
)
def test_the_mark_that_more_values_have(texts, mark):
    assert find_mark(texts, "default") == mark


@pytest.mark.parametrize(
    ("text", "with_point", "with_comma"),
    [
        ("1,5", None, 1.5),
        ("1.5", 1.5, None),
        ("7", 7, 7),
        ("-1e3", -1000, -1000),
        ("1,2,3", None, None),
        ("1.234,5", None, 1234.5),
        ("-1,234,567.5", -1234567.5, None),
        ("1,23.5", None, None),
        ("1.234", 1.234, None),
        ("1,234", None, 1.234),
        ("x", None, None),
    ],
)
def test_a_number_has_one_mark(text, with_point, with_comma):
    assert parse_decimal(text, ".") == with_point
    assert parse_decimal(text, ",") == with_comma


def test_decimal_commas_are_numbers_with_a_note():
    found, notes = read(b"size;city;rent\n40,5;Ulm;310,25\n;Ulm;520\n45;Bonn;-1,5e2\n")
    assert found.numbers == [[40.5], [None], [45.0]]
    assert found.y == [310.25, 520, -150]
    assert found.state["decimal"] == ","
    assert notes[1] == "x.csv: numbers have decimal commas; use --decimal . if not"


@pytest.mark.parametrize(
    "data", [b"x;y\n1.234,5;1.000,25\n2,5;3\n", b'x,y\n"1,234.5","1,000.25"\n2.5,3\n']
)
def test_thousands_are_read_if_the_decimal_mark_is_there(data):
    found, _ = read(data)
    assert (found.numbers, found.y) == ([[1234.5], [2.5]], [1000.25, 3])


def test_the_rows_after_the_sample_do_not_decide():
    rows = [f"{k};{k % 3},5" for k in range(1000)] + [f"{k};1.5" for k in range(5000)]
    data = ("x;y\n" + "\n".join(rows)).encode()
    found, _ = read(data)
    assert found.error == (
        "x.csv:1002: column 'y': the label '1.5' has a decimal point, but this file has decimal "
        "commas; write a comma, or use --decimal ."
    )
    assert len(found.y) == 1000


def test_one_row_does_not_decide():
    data = b"x;code;y\n1.5;1,5;2.5\n2.5;a;3.5\n"
    found, _ = read(data)
    assert (found.error, found.y) == (None, [2.5, 3.5])
    assert "decimal" not in found.state


def test_a_comma_between_fields_is_not_a_decimal_mark():
    found, notes = read(b'x,y\n"1,5",2\n"2,5",3\n')
    assert found.codes == [[0], [1]]
    assert "numbers like '1,5' have a decimal comma" in notes[0]
    forced, _ = read(b'x,y\n"1,5",2\n"2,5","3,5"\n', decimal=",")
    assert (forced.numbers, forced.y) == ([[1.5], [2.5]], [2, 3.5])


def test_the_mark_can_be_given():
    found, notes = read(b"x;y\n1,234;5\n1,235;6\n", decimal=",")
    assert found.numbers == [[np.float32(1.234)], [np.float32(1.235)]]
    assert len(notes) == 1
    found, notes = read(b"x;y\n1,5;5\n2,5;6\n", decimal=".")
    assert found.codes == [[0], [1]]


@pytest.mark.parametrize(
    ("text", "header"), [("1,5;2,5\n3,5;4,5", False), ("a;b\n3,5;4,5", True), ("1,5;2,5", False)]
)
def test_the_header_is_found_where_numbers_have_commas(text, header):
    assert find_dialect("x.csv", text.split("\n"), None, None) == Dialect(";", header, ",")


def test_later_files_may_have_the_other_mark():
    schema = table_schema()
    read(b"x;y\n1,5;2,5\n2,5;3,5\n", schema)
    schema = schema_from_json(schema.state())
    assert read(b"x;y\n1.5;2.5\n", schema)[0].numbers == [[1.5]]
    assert read(b"x,y\n1.5,2.5\n", schema)[0].numbers == [[1.5]]
    assert read(b"x;y\n1,234;2\n", schema)[0].numbers == [[np.float32(1.234)]]
    forced, _ = read(b"x;y\n1,5;2\n", schema, decimal=".")
    assert forced.error == (
        "x.csv:2: column 'x': '1,5' is not a number; it has a decimal comma; write 1.5, or use "
        "--decimal ,"
    )


def test_an_unknown_mark_in_a_model_file_is_refused():
    with pytest.raises(ValueError, match="decimal must be a point or a comma"):
        schema_from_json(table_schema().state() | {"columns": None, "decimal": ";"})


@given(
    st.lists(st.tuples(st.floats(width=32, allow_nan=False, allow_infinity=False)), min_size=1),
    st.sampled_from([";", "\t", "|"]),
    st.integers(1, 40),
)
def test_the_mark_does_not_change_the_rows(rows, delimiter, size):
    """Both marks give the same rows, from Arrow and record by record."""
    text = f"x{delimiter}y\n" + "".join(f"{x!r}{delimiter}{x!r}\n" for (x,) in rows)
    with_point, _ = read(text.encode(), decimal=".", delimiter=delimiter)
    with_comma, _ = read(text.replace(".", ",").encode(), decimal=",", size=size)
    assert with_comma.numbers == with_point.numbers
    assert with_comma.y == with_point.y
    padded = text.replace(".", ",").replace(delimiter, f" {delimiter} ").encode()  # not for Arrow
    assert read(padded, decimal=",", header=True)[0].numbers == with_point.numbers


@pytest.mark.parametrize(
    ("text", "mark", "number"),
    [
        ("$1,200.50", ".", 1200.5),
        ("1.200,50 €", ",", 1200.5),
        ("-12.5%", ".", -0.125),
        (" 12,5 % ", ",", 0.125),
        ("£-3", ".", -3.0),
        ("$1,200", ".", None),  # perhaps a decimal comma
        ("$", ".", None),
    ],
)
def test_signs_of_currencies_and_per_cent(text, mark, number):
    assert parse_decimal(text, mark) == number


@pytest.mark.parametrize(
    ("texts", "signs"),
    [
        (["5", "6"], {""}),
        (["$5", "6"], {"", "$"}),
        (["$5"], {"", "$"}),  # the sign of a currency changes no number
        (["5%", "6 %"], {"%"}),
        (["5%", "6"], {"", "%"}),
        (["x", "5%", "nan", None], {"%"}),
        ([], {""}),
    ],
)
def test_signs_are_those_of_the_first_rows(texts, signs):
    assert {*find_signs(texts, ".")} == signs


@given(
    st.integers(-999, 999).map(lambda number: f"{number / 8:g}"),
    st.sampled_from(["", "$", "€", "%"]),
    st.sets(st.sampled_from(["", "$", "€", "%"])),
)
def test_a_number_has_one_of_the_signs_of_its_column(amount, sign, signs):
    text = f"{amount}{sign}"
    value = float(amount) / 100 if sign == "%" else float(amount)
    assert parse_decimal(text, ".", signs) == (value if sign in signs else None)


@pytest.mark.parametrize(
    ("text", "mark", "advice"),
    [
        ("12%", ".", "has the sign %, unlike the first rows learned; write 12 or 0.12"),
        ("12,5 %", ",", "has the sign %, unlike the first rows learned; write 12,5 or 0,125"),
        ("$12", ".", "has the sign $, unlike the first rows learned; write 12"),
        ("0.5", ".", "has no %, unlike the first rows learned; write 0.5% or 50%"),
        ("x", ".", None),
    ],
)
def test_a_sign_that_the_first_rows_do_not_have_is_named(text, mark, advice):
    assert sign_advice(text, mark) == advice


@pytest.mark.parametrize(
    ("first", "stray", "what"),
    [
        ("12", "12%", "has the sign %, unlike the first rows learned; write 12 or 0.12"),
        ("12", "$12", "has the sign $, unlike the first rows learned; write 12"),
        ("$12", "12 €", "has the sign €, unlike the first rows learned; write 12"),
        ("12%", "12", "has no %, unlike the first rows learned; write 12% or 1200%"),
    ],
)
@pytest.mark.parametrize("column", ["x", "y"])
def test_a_late_sign_is_a_bad_row(first, stray, what, column):
    """It would be read as a number that is 100 times too small or too large, or in another unit."""
    rows = [f"{first},7\n" if column == "x" else f"7,{first}\n" for _ in range(1500)]
    rows[1200] = rows[1200].replace(first, stray)
    name = "column 'x':" if column == "x" else "column 'y': the label"
    expected = f"x.csv:1202: {name} '{stray}' {what}"
    data = "".join(["x,y\n", *rows]).encode()
    assert read(data)[0].error == f"{expected}; to leave out such rows, use --on-error skip"
    skipped, _ = read(data, skip=True)
    assert skipped.bad == [1, expected]
    assert len(skipped.numbers) == 1499


def test_signs_in_the_first_rows_may_be_mixed_with_a_note():
    found, notes = read(b"x,y\n12%,1\n12,2\n$12,3\n")
    assert found.numbers == [[np.float32(0.12)], [12], [12]]
    assert "12% is read as 0.12; 2 of 3 values have no % and are not divided by 100" in notes[0]


def test_a_model_reads_the_signs_that_it_has_learned():
    schema = table_schema()
    read(b"x,y\n12%,1\n13%,2\nNA,2\n", schema)
    schema = schema_from_json(schema.state())
    assert read(b"x\n50%\n", schema, labelled=False)[0].numbers == [[0.5]]
    assert "has no %" in read(b"x\n50\n", schema, labelled=False)[0].error
    plain = table_schema()
    read(b"x,y\n12,1\n13,2\n", plain)
    assert "signs" not in plain.state()  # as in earlier versions
    assert "sign %" in read(b"x\n50%\n", schema_from_json(plain.state()), labelled=False)[0].error


def test_weights_may_have_signs():
    found, notes = read(b"x,w,y\n1,50%,2\n2,100%,3\n", table_schema(weight="w"))
    assert found.weights == [0.5, 1]
    assert notes == ["x.csv: column 'w': 12% is read as 0.12"]


@pytest.mark.parametrize("signs", [{"x": ["?"]}, {"x": "%"}, ["x"]])
def test_unknown_signs_in_a_model_file_are_refused(signs):
    with pytest.raises(ValueError, match=r"sign|list of strings|invalid schema"):
        schema_from_json(table_schema().state() | {"columns": None, "signs": signs})
