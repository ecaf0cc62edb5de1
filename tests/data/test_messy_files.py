"""Files as other programs write them: they are read, or a sentence says what to do."""

import gzip
import io
import zipfile

import pyarrow
import pytest
from pyarrow import feather, parquet
from tables import read_all, source_of, table_schema

from spanboost.data.formats.csv import CsvReader
from spanboost.data.problems import Problems, StreamError
from spanboost.data.schema import Schema
from spanboost.data.stream import Stream
from spanboost.data.target import NumberTarget


def read(data, **options):
    problems = Problems()
    options = {"delimiter": None, "header": None} | options
    reader = CsvReader(table_schema(), problems, labelled=True, **options)
    return read_all(reader, source_of(data, "x.csv")), problems.notes


@pytest.mark.parametrize("line", [b"sep=;\n", b'"sep=;"\r\n', b"\xef\xbb\xbfsep=;\n"])
@pytest.mark.parametrize("size", [4, 1 << 20])
def test_a_line_for_excel_names_the_delimiter(line, size):
    found, _ = read(line + b"x;y\n1,5;2\n2,5;3\n", size=size)
    assert (found.error, found.numbers, found.y) == (None, [[1.5], [2.5]], [2, 3])
    assert found.lines == [3, 4]


def test_other_first_lines_are_not_for_excel():
    found, _ = read(b"sep=a,y\n1,2\n3,4\n")
    assert found.state["columns"][0]["name"] == "sep=a"


def test_carriage_returns_are_named():
    found, _ = read(b"x,y\r1,2\r3,4\r")
    assert found.error == (
        "x.csv: lines end in carriage returns; convert the file with tr '\\r' '\\n'"
    )


@pytest.mark.parametrize(
    ("texts", "note"),
    [
        (("$1,200.50", "$3.50"), "the sign of the currency in numbers like '$3.50' is left out"),
        (("3.50 €", "4 €"), "the sign of the currency in numbers like '4 €' is left out"),
        (("3.50\u00a0€", "5"), "the sign of the currency in numbers like '3.50\\xa0€' is left out"),
        (("10%", "20 %", "NA"), "12% is read as 0.12"),
    ],
)
def test_signs_of_currencies_are_left_out_with_a_note(texts, note):
    rows = "".join(f"{text};{k}\n" for k, text in enumerate(texts))
    found, notes = read(f"x;y\n{rows}".encode(), decimal=".")
    assert len(found.numbers) == len(texts)
    assert found.numbers[0] != []
    assert f"x.csv: column 'x': {note}" in notes


def test_signs_are_not_numbers():
    found, notes = read(b"x;y\n$;1\n%;2\na%;3\n10%;4\n", decimal=".")
    assert found.numbers == [[], [], [], []]
    assert notes == ["x.csv: semicolons separate the fields"]


def test_labels_with_signs_are_read_with_a_note():
    found, notes = read(b"x;y\n1;12%\n2;50 %\n")
    assert found.y == [0.12, 0.5]
    assert "x.csv: column 'y': 12% is read as 0.12" in notes


@pytest.mark.parametrize("text", ['[{"a": 1, "label": 2}]', '[\n {"a": 1}\n]', " [ {"])
def test_a_json_array_is_refused_with_a_command(text, tmp_path):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(StreamError, match=r"JSON array; convert it .* with jq -c"):
        Stream([str(path)])


def test_json_objects_over_several_lines_are_refused_with_a_command(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{\n "a": 1,\n "label": 2\n}\n')
    with pytest.raises(StreamError, match=r"have several lines; .* with jq -c \."):
        Stream([str(path)])


@pytest.mark.parametrize("text", ["# my data\nsize,label\n1,2\n", "#\n1 3:4\n", "## notes\n"])
def test_a_comment_in_the_first_line_is_refused_with_the_format_that_has_them(text, tmp_path):
    path = tmp_path / "x.txt"
    path.write_text(text)
    with pytest.raises(StreamError, match=r"is a comment, which only svmlight .* delete the line"):
        Stream([str(path)])
    assert Stream([str(path)], "svmlight").formats == ["svmlight"]


def test_a_table_may_begin_with_a_bracket(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("[a],y\n1,2\n")
    assert Stream([str(path)]).formats == ["csv"]


def zipped(data):
    with io.BytesIO() as file:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("x.csv", data)
        return file.getvalue()


def written(write):
    with io.BytesIO() as file:
        write(pyarrow.table({"x": [1, 2], "y": [3, 4]}), file)
        return file.getvalue()


CSV = b"x,y\n1,3\n2,4\n"
PARQUET, ARROW = written(parquet.write_table), written(feather.write_feather)


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        ("x.csv", PARQUET, "the file is Parquet, not text; use --format parquet, or a name"),
        ("x.jsonl", PARQUET, "the file is Parquet, not text"),
        ("x.vw", ARROW, "the file is Arrow, not text; use --format arrow, or a name that ends"),
        ("x.parquet", CSV, "not a Parquet or Arrow file; use --format csv, or a name that ends"),
        ("x.parquet", gzip.compress(CSV, mtime=0), "not a Parquet or Arrow file; use --format csv"),
        (
            "x.parquet",
            gzip.compress(PARQUET, mtime=0),
            "the file is compressed; decompress it first",
        ),
        ("x.parquet", zipped(CSV), "the file is a zip archive; extract it first"),
        ("x.parquet", b"\0\1\2\n", "not a Parquet or Arrow file"),
        ("x.csv", zipped(CSV), "the file is a zip archive; extract it first"),
    ],
)
def test_a_file_with_the_name_of_another_format_is_named(name, data, error, tmp_path):
    path = tmp_path / name
    path.write_bytes(data)
    stream = Stream([str(path)])
    schema = Schema(stream.form, NumberTarget())
    with pytest.raises(StreamError) as stop:
        list(stream.batches(schema, labelled=True))
    assert str(stop.value).startswith(f"{path}: {error}")


@pytest.mark.parametrize("data", [PARQUET, ARROW])
def test_arrow_files_may_have_each_others_names(data, tmp_path):
    for name in ("x.parquet", "x.arrow"):
        path = tmp_path / name
        path.write_bytes(data)
        (batch,) = Stream([str(path)]).batches(table_schema(), labelled=True)
        assert batch.y.tolist() == [3, 4]


def test_a_column_may_have_the_name_that_begins_parquet_files():
    found, _ = read(b"PAR1,ARROW1\n1,2\n3,4\n")
    assert found.y == [2, 4]
