"""The delimiter, the header, the format and the columns of files are found in their first rows."""

import gzip
import os
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import read_all, source_of, table_schema

from spanboost.data.formats.csv import CsvReader
from spanboost.data.formats.dialect import find_dialect, match_dialect
from spanboost.data.problems import Problems, StreamError
from spanboost.data.schema import Schema, schema_from_json
from spanboost.data.sniffing import format_of_line
from spanboost.data.source import find_sources
from spanboost.data.stream import Stream
from spanboost.data.target import NumberTarget


def read(data, schema=None, labelled=True, **options):
    problems = Problems()
    options = {"delimiter": None, "header": None} | options
    reader = CsvReader(schema or table_schema(), problems, labelled=labelled, **options)
    return read_all(reader, source_of(data, "x.csv")), problems.notes


def sniff(text, delimiter=None, header=None):
    found = find_dialect("x.csv", text.split("\n"), delimiter, header)
    return found.delimiter, found.header


@pytest.mark.parametrize(
    ("text", "delimiter", "header"),
    [
        ("a,b\n1,2", ",", True),
        ("a;b\n1,5;2,5", ";", True),
        ("a;b\n1,5;2\n1;2,5", ";", True),
        ("a\tb c\n1\t2", "\t", True),
        ("a|b\n1|2", "|", True),
        ("a b c\n1 2 3", " ", True),
        ('"a;b",c\n"1;2",3', ",", True),
        ("1,2\n3,4", ",", False),
        ("1,2", ",", False),
        ("a,b", ",", True),
        ("39,clerk,1\n50,smith,0", ",", False),
        ("age,job,y\n39,clerk,1\n50,smith,0", ",", True),
        ("p,x\ne,x\np,y", ",", False),
        ("colour,shape\nred,round\nblue,round", ",", True),
        ("when,y\n2026-01-31,NA\n2026-02-01,1", ",", True),
        ("2026-01-30,x\n2026-01-31,y", ",", False),
        (",x\n0,1.5\n1,2.5", ",", True),
        ("a,b\n1,2\n3\n4,5,6", ",", True),
    ],
)
def test_the_dialect_is_found(text, delimiter, header):
    assert sniff(text) == (delimiter, header)


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("a,b;c\n1,2;3", "--delimiter"),
        ("price\n1", "--delimiter"),
        ("age,2019\n39,5\n50,6", "--header or --no-header"),
    ],
)
def test_an_unclear_dialect_is_an_error_that_names_the_option(text, option):
    with pytest.raises(StreamError, match=option):
        sniff(text)


def test_a_dialect_that_is_given_is_used():
    assert sniff("a,b;c\n1,2;3", delimiter=";") == (";", True)
    assert sniff("1,2\n3,4", header=True) == (",", True)
    assert sniff("age,2019\n39,5", header=False) == (",", False)


@pytest.mark.parametrize(
    ("record", "names", "expected"),
    [
        ("b;a;c", ["a", "b"], (";", True)),
        ("a", ["a"], (",", True)),
        ("5,6,7", ["1", "3"], (",", False)),
        ("1,2,3", ["1", "3"], (",", True)),
        ("5;6,5;7", ["1", "2", "3"], (";", False)),
        ("x;y", ["a", "b"], (";", True)),
        ("b a", ["a", "b"], (" ", True)),
        ("5 6", ["1", "2"], (" ", False)),
    ],
)
def test_later_files_are_matched_by_the_names_of_columns(record, names, expected):
    numbered = all(map(str.isdecimal, names))
    assert match_dialect(record, names, None, None, numbered=numbered)[:2] == expected


def test_a_file_without_names_is_read_again_by_its_positions():
    schema = table_schema()
    found, notes = read(b"5;x;2\n6;y;3\n", schema)
    assert (found.numbers, found.codes, found.y) == ([[5], [6]], [[0], [1]], [2, 3])
    assert [note.split(": ")[1][:15] for note in notes] == ["semicolons sepa", "line 1 contains"]
    found, _ = read(b"7,y\n", schema, labelled=False)
    assert (found.numbers, found.codes) == ([[7]], [[1]])
    wrong, _ = read(b"5,2\n6,3\n", table_schema(label="y"))
    assert "column 'y' not found; columns are named 1 to 2" in wrong.error


def test_data_in_place_of_names_are_named():
    schema = table_schema()
    read(b"size,town,rent\n5,x,2\n6,y,3\n", schema)
    for header in (None, True):
        found, _ = read(b"5,x\n5,y\n", schema, labelled=False, header=header)
        assert found.error == (
            "x.csv: line 1 seems to contain data ('5'), but the model needs the names of columns "
            "there: 'size', 'town'"
        )
    found, _ = read(b"5,x\n", schema, labelled=False, header=False)
    assert "line 1 does not contain names; write a line of names before it" in found.error
    found, _ = read(b"size,2019\n5,1\n", schema, labelled=False)  # a name may be a number
    assert "column 'town' not found; the model needs this column" in found.error


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("a,b,y", "if commas separate the fields, use --delimiter ','"),
        ("a|y", "if vertical bars separate the fields, use --delimiter '|'"),
        ("a\ty", r"if tabs separate the fields, use --delimiter '\t'"),
    ],
)
def test_a_single_column_questions_the_delimiter(line, hint):
    for label in (None, "y"):
        found, _ = read(f"{line}\n1\n".encode(), table_schema(label=label), delimiter=";")
        assert found.error.endswith(f"; {hint}")


def test_names_in_a_later_file_are_not_data():
    schema = table_schema()
    read(b"5,x,1,2\n6,y,4,3\n", schema)
    later = b"size,town,age,rent\n7,y,8,1\n"
    refused, _ = read(later, schema, labelled=False)
    assert "line 1 seems to contain column names ('size')" in refused.error
    assert "use --header" in refused.error
    found, _ = read(later, schema, labelled=False, header=True)
    assert (found.numbers, found.codes) == ([[7, 8]], [[1]])
    found, _ = read(b"age,2,3,4\n7,y,8,1\n", schema, labelled=False, header=False)
    assert found.error is not None  # --no-header reads line 1 as data
    wrong, _ = read(b"?,y,big,1\n", schema, labelled=False)  # a bad row, not names
    assert "'big' is not a number" in wrong.error


@pytest.mark.parametrize("names", ["0,1,2", "0,1,y", "3,5,y", "2019,2020,2021"])
def test_names_that_are_numbers_are_found_again(names):
    """Pandas calls columns 0, 1, 2, ... if they have no names."""
    schema = table_schema()
    read(f"{names}\n5,6,1\n7,8,2\n".encode(), schema, header=True)
    found, _ = read(f"{names}\n5,6,1\n7,8,2\n".encode(), schema, labelled=False)
    assert found.numbers == [[5, 6], [7, 8]]
    found, _ = read(f"{names.rpartition(',')[0]}\n5,6\n".encode(), schema, labelled=False)
    assert found.numbers == [[5, 6]]


CELLS = st.sampled_from(["1", "2.5", "x", "", "NA", "2026-01-31"])


@given(
    rows=st.lists(st.lists(CELLS, min_size=2, max_size=3), min_size=1, max_size=6),
    delimiter=st.sampled_from(",;|\t"),
    sizes=st.tuples(st.integers(1, 30), st.integers(1, 30)),
)
def test_the_size_of_pieces_does_not_change_what_is_found(rows, delimiter, sizes):
    data = "\n".join(map(delimiter.join, rows)).encode()
    first, second = (read(data, size=size) for size in sizes)
    assert first == second


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "__index_level_0__"])
def test_the_index_of_a_frame_is_left_out(name):
    found, notes = read(f"{name},x,y\n0,5,1\n1,6,2\n".encode())
    assert found.numbers == [[5], [6]]
    assert notes == [f"x.csv: column {name!r}, the index of a data frame, is left out"]
    if name:
        named, notes = read(f"{name},x,y\n0,5,1\n1,6,2\n".encode(), table_schema(label=name))
        assert (named.y, notes) == ([0, 1], [])


def test_an_unnamed_column_elsewhere_is_a_feature():
    found, notes = read(b"x,,y\n5,0,1\n6,1,2\n")
    assert (found.numbers, notes) == ([[5, 0], [6, 1]], [])


def test_identifiers_are_hashed_with_a_note():
    rows = "".join(f"u{k},{k % 7},{'ab'[k % 2]},{k}\n" for k in range(200))
    found, notes = read(b"user,x,kind,y\n" + rows.encode())
    user, _, kind = found.state["columns"]
    assert (user["codes"], user["bits"], kind["codes"]) == ([], 12, ["a", "b"])
    assert max(codes[0] for codes in found.codes) < 4096
    assert len({codes[0] for codes in found.codes}) > 150
    assert notes == [
        "x.csv: column 'user' has a different value in most rows; its categories are hashed to "
        "4,096 codes; consider --ignore user"
    ]
    assert schema_from_json(found.state).state() == found.state
    exact, notes = read(b"user,x,kind,y\n" + rows.encode(), table_schema(categorical=("user",)))
    assert (len(exact.state["columns"][0]["codes"]), notes) == (200, [])


def test_a_column_that_counts_the_rows_gets_a_note():
    rows = "".join(f"{k + 7},{k * k % 11},{k}\n" for k in range(200))
    found, notes = read(b"id,x,y\n" + rows.encode())
    assert notes == ["x.csv: column 'id' counts the rows; consider --ignore id"]
    assert len(found.numbers[0]) == 2


@pytest.mark.parametrize(
    ("texts", "what"),
    [
        ([f"{k},{k % 90 + 10}" for k in range(200)], "numbers like '0,10' have a decimal comma"),
        ([f"{k % 12 + 1:02}/01/{1800 + k}" for k in range(200)], "dates like '01/01/1800' may"),
    ],
)
def test_different_numbers_and_dates_are_not_called_identifiers(texts, what):
    rows = "".join(f"{text};{k}\n" for k, text in enumerate(texts))
    _, notes = read(b"x;y\n" + rows.encode(), decimal=".")
    assert len(notes) == 2
    assert notes[1].startswith(f"x.csv: column 'x' is read as categories, because {what}")


@pytest.mark.parametrize(
    ("line", "format"),
    [
        (b"PAR1\x15\x04", "parquet"),
        (b"ARROW1\0\0", "arrow"),
        (b"\xff\xff\xff\xff\x10", "arrow"),
        (b'{"a": 1}', "jsonl"),
        (b"310 |r size:40 city_Ulm", "vw"),
        (b"1 2.0 'tag |a x:1 |b y", "vw"),
        (b"| x:1 y", "vw"),
        (b"310 1:40 2:1", "svmlight"),
        (b"-1 qid:3 7:0.5 # note", "svmlight"),
        (b"size,city,rent", "csv"),
        (b"size|city|rent", "csv"),
        (b"40|Ulm|310", "csv"),
        (b"size: m,city", "csv"),
        (b"#id,size", "csv"),
        (b"# ,size", "csv"),
        (b"\x89PNG", None),
        (b"PK\x03\x04\0\0", None),
        (b"", None),
    ],
)
def test_the_format_is_found_in_the_first_line(line, format):
    assert format_of_line(line) == format


TEXT = b"\n\nsize;rent\n40;310\n80;520\n"


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("name", ["x.txt", "x", "x.data"])
def test_files_without_a_known_name_are_read(pack, name, tmp_path):
    path = tmp_path / name
    path.write_bytes(pack(TEXT))
    batches = list(Stream([str(path)]).batches(Schema("table", NumberTarget()), labelled=True))
    assert np.concatenate([batch.X for batch in batches]).tolist() == [[40], [80]]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_pipe_is_sniffed_and_read_from_its_beginning(pack, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(pack(TEXT),))
    writer.start()
    stream = Stream([str(path)])
    assert stream.formats == ["csv"]
    before = stream.fingerprint()
    (batch,) = stream.batches(Schema("table", NumberTarget()), labelled=True)
    writer.join()
    assert batch.y.tolist() == [310, 520]
    assert batch.lines.tolist() == [4, 5]
    assert before[0][0] is None


def test_a_long_first_line_is_not_read_to_its_end(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"a," * 100_000 + b"\n1\n")
    (source,) = find_sources([str(path)])
    assert len(source.first_line(1000)) == 1000
