"""CSV files give the rows that Python's csv module gives, for any size of pieces."""

import csv
import datetime as dt
import io
import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import csv_oracle, read_all, source_of, table_schema

from spanboost.data.columns import TimeColumn
from spanboost.data.formats import csv_records
from spanboost.data.formats.csv import CsvReader
from spanboost.data.formats.csv_records import Parser
from spanboost.data.formats.lines import Chunk
from spanboost.data.kinds import MISSING, column_kind
from spanboost.data.problems import Problems, StreamError
from spanboost.data.schema import Schema
from spanboost.data.target import BinaryTarget, ClassTarget, NumberTarget, target_from_json
from spanboost.rows.times import FIRST_PARTS, parse_time

pytestmark = pytest.mark.slow  # the file as a whole

PLAIN = b'age,job,size,label\n39,clerk,1.5,1\n50,"smith, ""Joe""",,0\n\n38,,NA,1\n'


def read(data, schema=None, *, skip=False, labelled=True, **options):
    reader = CsvReader(schema or table_schema(), Problems(skip), labelled=labelled, **options)
    return read_all(reader, source_of(data, "x.csv"))


def test_a_plain_file():
    found = read(PLAIN)
    assert found.numbers == [[39, 1.5], [50, None], [38, None]]
    assert found.codes == [[0], [1], [-1]]
    assert found.y == [1, 0, 1]
    assert found.lines == [2, 3, 5]
    assert found.error is None
    assert found.state["label"] == "label"
    assert found.state["columns"][1]["codes"] == ["clerk", 'smith, "Joe"']


class CountedName(str):
    """A name that counts how often names are compared."""

    comparisons = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        CountedName.comparisons += 1
        return super().__eq__(other)


def test_wide_tables_do_not_compare_every_name_with_every_other(monkeypatch):
    columns = 500
    names = [f"c{k}" for k in range(columns)]
    data = ",".join([*names, "label"]) + "\n" + ",".join("1" * (columns + 1)) + "\n"
    choose = Schema.choose_features
    monkeypatch.setattr(Schema, "choose_features", lambda *args: [*map(CountedName, choose(*args))])
    CountedName.comparisons = 0
    assert read(data.encode()).numbers == [[1.0] * columns]
    assert 0 < CountedName.comparisons < 10 * columns


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "x.csv: the file is empty"),
        (b"\n\r\n\n", "x.csv: the file is empty"),
        (b"\xef\xbb\xbf", "x.csv: the file is empty"),
        (b"y\n1\n", "x.csv: there are no feature columns besides the label 'y'"),
        (b"a,b,a\n1,2,3\n", "x.csv: duplicate column 'a'; give every column another name"),
        (b"a,y\n1,2\n1,2,3\n", "x.csv:3: expected 2 fields, got 3"),
        (b"a,y\n1,2\n1\n", "x.csv:3: expected 2 fields, got 1"),
        (b"a,y\n1,2\ninf,3\n", "x.csv:3: column 'a': the value is infinite, or too large"),
        (b"a,y\n1,2\n-1e999,3\n", "x.csv:3: column 'a': the value is infinite, or too large"),
        (b"a,y\n1,2\n1e39,3\n", "x.csv:3: column 'a': '1e+39' is too large for a 32-bit float"),
        (b"a,y\n1,2\n1,\n", "x.csv:3: column 'y': the label is missing"),
        (b"a,y\n1,2\n1,?\n", "x.csv:3: column 'y': the label is missing"),
        (
            b"a,y\n1,2\n1,inf\n",
            "x.csv:3: column 'y': the label is infinite, or too large for a 64-bit float",
        ),
        (
            b"a,y\n1,2\n1,-1e400\n",
            "x.csv:3: column 'y': the label is infinite, or too large for a 64-bit float",
        ),
        (
            b"a,y\n1,2\n1,yes\n",
            "x.csv:3: column 'y': the label 'yes' is not a number; for two classes",
        ),
        (
            b'a,y\n1,2\n1,"3,5"\n',
            "x.csv:3: column 'y': the label '3,5' has a decimal comma; write 3.5",
        ),
        (
            b'a,y\n1,2\n"3,5",1\n',
            "x.csv:3: column 'a': '3,5' is not a number; it has a decimal comma; write 3.5",
        ),
        (
            b"a,y\n1,2\n1,2\nx,3\n",
            "x.csv:4: column 'a': 'x' is not a number, unlike the first rows; to leave out such "
            "rows, use --on-error skip; to read categories, use --categorical a",
        ),
        (b"a,y\n1,2\n1\xff,3\n", "x.csv:3: b'\\xff,3\\n' is not UTF-8"),
        (b'a,y\n1,2\n"1"2,3\n', "x.csv:3: unexpected double quote: '\"1\"2,3'"),
        (b'a,y\n1,2\n"1,3\n', "x.csv:3: unclosed double quote"),
        (b"a,y\n1,2\r1,2\n", "x.csv:2: carriage return inside a line"),
        (b"\xff,y\n1,2\n", "x.csv:1: b'\\xff"),
        (b'"a"b,y\n1,2\n', "x.csv:1: unexpected double quote"),
    ],
)
def test_error_messages(data, what):
    assert read(data).error.startswith(what)


@pytest.mark.parametrize("weight", ["-1", "nan", "inf", "1e20", ""])
def test_weights(weight):
    data = f"a,w,y\n1,2,3\n1,{weight},3\n".encode()
    found = read(data, table_schema(weight="w"))
    assert found.error.startswith("x.csv:3: the weight ")
    assert found.weights == [2]
    assert found.numbers == [[1]]
    assert read(b"a,w,y\n1,x,3\n", table_schema(weight="w")).error == (
        "x.csv:2: column 'w': 'x' is not a number"
    )


def test_a_bad_label_is_shown_alike_by_both_parsers():
    for other in (b"1,2\n", b"1\n"):  # only the first is parsed by Arrow
        found = read(b"a,y\n" + other + b"1,-Infinity\n", skip=True)
        assert (
            found.bad[-1]
            == "x.csv:3: column 'y': the label is infinite, or too large for a 64-bit float"
        )


def test_rows_that_are_left_out_get_no_advice_to_leave_them_out():
    bad = read(b"a,y\n1,2\n1,2\nx,3\n", skip=True).bad[-1]
    what = "x.csv:4: column 'a': 'x' is not a number, unlike the first rows"
    assert bad == f"{what}; to read categories, use --categorical a"


def test_rows_before_a_bad_one_come_first():
    found = read(b"a,c,y\n1,x,1\n2,y,2\n3,z,bad\n4,u,3\n")
    assert found.lines == [2, 3]
    assert found.state["columns"][1]["codes"] == ["x", "y"]


def test_bad_rows_teach_nothing():
    data = b"a,c,y\n1,x\n2,y,no\ninf,z,maybe\n3,u,0\n3,v,yes\n3,w,neither\n"
    found = read(data, table_schema(BinaryTarget()), skip=True)
    assert found.state["columns"][1]["codes"] == ["y", "v"]
    assert found.state["target"]["values"] == ["no", "yes"]
    assert [what.split(":")[1] for what in found.bad[1:]] == ["2", "4", "5", "7"]
    assert found.bad[3].startswith(
        "x.csv:5: column 'y': the label '0' cannot be used together with 'no';"
    )


def test_header_only_and_no_header():
    assert read(b"a,b,y\n").lines == []
    found = read(b"1,x,3\n2,y,4\n", header=False)
    assert found.numbers == [[1], [2]]
    assert found.y == [3, 4]
    assert found.state["label"] == "3"
    assert found.lines == [1, 2]
    assert read(b"\xff,1,2\n1,2,3\n", header=False, skip=True).lines == [2]


def test_tabs():
    found = read(b'a\tb\ty\n1,a\t"x\ty"\t2\n', table_schema(), delimiter="\t")
    assert found.codes == [[0, 0]]
    assert found.state["columns"][0]["codes"] == ["1,a"]
    assert found.y == [2]


def test_columns_are_matched_by_name():
    reader = CsvReader(table_schema(), Problems(), labelled=True)
    a, b = source_of(b"a,c,y\n1,u,2\n"), source_of(b"extra,y,c,a\nx,4,v,3\n")
    found = read_all(reader, a, b)
    assert found.numbers == [[1], [3]]
    assert found.codes == [[0], [1]]
    assert found.y == [2, 4]
    absent = read_all(reader, source_of(b"y,c\n1,2\n", "z.csv")).error
    needed = "the model needs this column; if its values are not known, leave its fields empty"
    assert absent == f"z.csv: column 'a' not found; {needed}"
    assert read_all(reader, source_of(b"y,c,a\n1,u,\n", "z.csv")).numbers == [[None]]
    near = read_all(reader, source_of(b"y,C,a\n1,2,3\n", "z.csv")).error
    assert near == "z.csv: column 'c' not found; did you mean 'C'?"


def test_predicting_learns_nothing_and_needs_no_label():
    schema = table_schema(BinaryTarget(), weight="w")
    read(b"a,c,w,y\n1,u,1,no\n2,v,1,yes\n", schema)
    before = schema.state()
    for data in (b"a,c\n3,v\n4,new\n5,\n", b"y,c,a\nmaybe,v,3\n,new,4\nx,,5\n"):
        found = read(data, schema, labelled=False)
        assert found.numbers == [[3], [4], [5]]
        assert found.codes == [[1], [-1], [-1]]
        assert (found.y, found.weights, found.error) == ([], [], None)
        assert found.state == before


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("pair", [("false", "true"), ("False", "True"), ("NO", "YES")])
def test_the_sign_of_an_answer_does_not_depend_on_the_first_row(pair, first):
    target = BinaryTarget()
    rows = f"1,{pair[first]}\n2,{pair[1 - first]}\n".encode()
    assert read(b"a,y\n" + rows, table_schema(target)).y == [2 * first - 1, 1 - 2 * first]
    assert target.values == [*pair]
    assert np.isnan(target.encode_text("maybe"))


def test_the_first_yes_stays_positive_whatever_the_other_label_is():
    target = BinaryTarget()
    assert target.encode_text("yes") == 1
    target = target_from_json(json.loads(json.dumps(target.state())))
    assert [target.encode_text(label) for label in ("yes", "maybe", "yes")] == [1, -1, 1]
    assert target.state() == {"kind": "binary", "positive": None, "values": ["maybe", "yes"]}
    assert np.isnan(target.encode_text("no"))


def test_a_target_of_an_earlier_version_keeps_its_order():
    target = target_from_json({"kind": "binary", "positive": None, "values": ["True"]})
    assert [target.encode_text(label) for label in ("False", "True")] == [1, -1]


def test_targets():
    data = b"a,y\n1,no\n2,yes\n3,no\n"
    assert read(data, table_schema(BinaryTarget())).y == [-1, 1, -1]
    assert read(data, table_schema(BinaryTarget("no"))).y == [1, -1, 1]
    assert read(data, table_schema(ClassTarget(2))).y == [0, 1, 0]
    assert read(b"a,y\n1,3\n2,1.0\n3,3.0\n", table_schema(ClassTarget(2))).y == [0, 1, 0]
    assert read(b"a,y\n1,0\n2,1\n2,+1\n", table_schema(BinaryTarget())).y == [-1, 1, 1]
    assert read(data, table_schema(ClassTarget(1))).error.startswith(
        "x.csv:3: column 'y': the label 'yes' is not one of the 1 classes 'no'"
    )
    assert read(b"a,y\n1,3\n", table_schema(NumberTarget((0, 2)))).error.endswith(
        "label range 0 to 2; to leave out such rows, use --on-error skip"
    )


def test_options():
    data = b"id,a,zip,y,z\n7,1,0123,5,1\n8,2,9,6,2\n"
    found = read(data, table_schema(label="y", ignore=("id",), categorical=("zip",)))
    assert found.numbers == [[1, 1], [2, 2]]
    assert found.state["columns"][1]["codes"] == ["0123", "9"]
    assert found.y == [5, 6]
    hashed = read(data, table_schema(label="y", categorical=("zip",), bits=4))
    assert max(max(row) for row in hashed.codes) < 16
    assert hashed.state["columns"][2]["codes"] == []
    wrong = read(data, table_schema(label="zipp")).error
    assert wrong == "x.csv: column 'zipp' not found; did you mean 'zip'?"


@pytest.mark.parametrize("size", [10, 1000, 1 << 20])
def test_the_majority_of_the_first_thousand_rows_determines_the_column_types(size):
    """Rows after them never matter, however many they are."""
    for texts, category in ((499, False), (500, False), (501, True)):
        rows = ["1,1"] * (1000 - texts) + ["x,1"] * texts + ["x,1"] * 1000
        found = read(("a,y\n" + "\n".join(rows) + "\n").encode(), skip=True, size=size)
        assert found.state["columns"][0]["category"] == category
        assert found.bad[0] == (0 if category else texts + 1000)


@given(row=st.integers(0, 1200), stray=st.sampled_from(["-", "NA", "?", "null", "x", "1,5", "--"]))
def test_a_stray_value_never_changes_the_kind_of_a_column(row, stray):
    """In any row, it is missing, or an error that names its column and line."""
    rows = [f"{k},{k}" for k in range(1200)]
    rows.insert(row, f'"{stray}",1')
    found = read(("a,y\n" + "\n".join(rows) + "\n").encode())
    assert not found.state["columns"][0]["category"]
    if stray in ("x", "1,5"):
        assert found.error.startswith(f"x.csv:{row + 2}: column 'a': {stray!r} is not a number")
        assert len(found.lines) == row
    else:
        assert found.error is None
        assert found.numbers[row] == [None]


@given(
    fields=st.lists(st.sampled_from(["1", "2.5", "", "NA", "x", "y", "2026-01-31"]), max_size=9),
    order=st.randoms(use_true_random=False),
)
def test_the_order_of_rows_does_not_change_the_kind_of_a_column(fields, order):
    shuffled = [*fields]
    order.shuffle(shuffled)
    assert column_kind(fields) == column_kind(shuffled)


@given(
    good=st.lists(st.sampled_from(["1", "-2", "3.5", "1e3"]), min_size=2, max_size=9),
    stray=st.sampled_from(["x", "2026-01-31", "-", "?"]),
    row=st.integers(0, 9),
)
def test_one_value_among_several_numbers_never_makes_categories(good, stray, row):
    assert column_kind([*good[:row], stray, *good[row:]]) == "number"


def test_times():
    data = b'when,x,y\n2020-01-02,1,1\n"2020-01-03 06:00",2,2\nNA,3,3\n2020-01-01T01:00+01:00,4,4\n'
    found = read(data, table_schema(time_parts=FIRST_PARTS))
    assert found.numbers == [
        [1, 1, 0, 3, 2],
        [2, 2.25, 6, 4, 3],
        [3, None, None, None, None],
        [4, 0, 0, 2, 1],
    ]
    assert found.state["columns"][0] == {
        "name": "when", "category": False, "codes": [], "time": True,
    }  # fmt: skip
    asked = read(data, table_schema(categorical=("when",)))
    assert asked.codes == [[0], [1], [2], [3]]


PLAIN_TIMES = st.builds(
    lambda moment, spec, separator: moment.isoformat(separator, spec),
    st.datetimes(dt.datetime(900, 1, 1), dt.datetime(3100, 1, 1)),
    st.sampled_from(["minutes", "seconds", "milliseconds", "microseconds"]),
    st.sampled_from("T "),
)
OTHER_TIMES = ["2020-02-30", "2020-01-01T00:00Z", "2020-06-30 23:59:60", "2020-01-01 24:00", "x"]
OTHER_TIMES += [
    "0000-01-01",
    "2020-01-01 00:00:00.1234567",
    " 2020-01-01",
    "2020-01-01 10",
    "",
    "?",
]


@given(st.lists(st.one_of(PLAIN_TIMES, PLAIN_TIMES, st.sampled_from(OTHER_TIMES)), max_size=6))
def test_times_are_parsed_alike_by_arrow_and_one_by_one(texts):
    column = TimeColumn("t", pa.array(texts, pa.string()))
    for row, text in enumerate(texts):
        expected = parse_time(text.strip())
        assert (row in column.invalid) == (expected is None and text.strip() not in MISSING)
        moment = column.moments[row]
        assert np.isnat(moment) if expected is None else moment == expected


@given(row=st.integers(0, 20), size=st.integers(1, 200))
def test_a_stray_value_in_a_column_of_times_is_an_error(row, size):
    rows = [f"2020-01-{k + 1:02},{k}" for k in range(20)]
    rows.insert(row, "soon,1")
    data = ("t,y\n" + "\n".join(rows) + "\n").encode()
    found = read(data, size=size)
    assert found.error.startswith(f"x.csv:{row + 2}: column 't': 'soon' is not a date or time")
    assert [day for day, *_ in found.numbers] == [*range(row)]
    skipped = read(data, skip=True, size=size)
    assert (skipped.bad[0], [day for day, *_ in skipped.numbers]) == (1, [*range(20)])


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["", "NA", "?", "nan", "NAN", "-nan", "+1", " 2 ", "1e5", ".5", "5.", "-0"]),
)
ODD = st.sampled_from(["abc", "inf", "-Infinity", "1e39", "1e999", "nan(x)", "1_0", "0x1", "1,5"])
TEXTS = st.lists(st.sampled_from([*'ab ,"\n\té(1', "\r\n"]), max_size=4).map("".join)


@st.composite
def tables(draw):
    """Generate CSV with good and bad rows, in different styles of quoting."""
    width = draw(st.integers(2, 4))
    kinds = draw(st.lists(st.booleans(), min_size=width - 1, max_size=width - 1))
    good = st.tuples(*[TEXTS if text else NUMBERS for text in kinds], NUMBERS)
    odd = st.lists(st.one_of(NUMBERS, ODD, TEXTS), min_size=1, max_size=width + 1)
    rows = draw(st.lists(st.one_of(good, good, good, odd), max_size=12))
    out = io.StringIO()
    styles = [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]
    ending = draw(st.sampled_from(["\n", "\r\n"]))
    writer = csv.writer(out, quoting=draw(st.sampled_from(styles)), lineterminator=ending)
    writer.writerow([f"c{k}" for k in range(width)])
    for row in rows:
        if draw(st.integers(0, 9)) == 0:
            out.write(ending)
        writer.writerow(row)
    return out.getvalue()


@given(text=tables(), size=st.integers(1, 40))
def test_rows_are_those_of_the_oracle(text, size):
    rows, bad = csv_oracle(text)
    data = text.encode()
    for found in (read(data, skip=True), read(data, skip=True, size=size)):
        assert found.error is None
        assert found.bad[0] == len(bad)
        assert [int(what.split(":")[1]) for what in found.bad[1:]] == bad[:5]
        assert [*zip(found.numbers, found.codes, found.y, found.lines, strict=True)] == rows
    stopped = read(data, size=size)
    if bad:
        assert stopped.error.startswith(f"x.csv:{bad[0]}: ")
        assert stopped.lines == [line for *_, line in rows if line < bad[0]]
    else:
        assert stopped.error is None


@given(text=tables(), sizes=st.tuples(st.integers(1, 60), st.integers(1, 60)), data=st.data())
def test_the_size_of_pieces_does_not_change_the_result(text, sizes, data):
    raw = bytearray(text.encode())
    for _ in range(data.draw(st.integers(0, 5))):
        place = data.draw(st.integers(0, len(raw)))
        raw[place : place + data.draw(st.integers(0, 3))] = data.draw(
            st.one_of(
                st.sampled_from([b'"', b"\n", b"\r", b",", b"\x00", b"\xff"]), st.binary(max_size=3)
            )
        )
    skip = data.draw(st.booleans())
    target = data.draw(st.sampled_from([NumberTarget, BinaryTarget, lambda: ClassTarget(2)]))
    first, second, third = (
        read(bytes(raw), table_schema(target()), skip=skip, size=size) for size in (*sizes, 1 << 20)
    )
    assert first == second == third


@given(st.binary(max_size=60))
def test_random_bytes(data):
    assert read(data) == read(data, size=3)
    assert read(data, skip=True, header=False) == read(data, skip=True, header=False, size=3)


@given(
    st.lists(st.sampled_from(["5", "-7", "0x1", "3000000000", "2.5", "", "x", " 6"]), max_size=9)
)
def test_parsing_integers_gives_the_same_rows(fields):
    data = "".join(["a,y\n", *(f"{field},1\n" for field in ["3"] * 1000 + fields)])
    rows, bad = csv_oracle(data)
    found = read(data.encode(), skip=True, size=2000)
    assert [*zip(found.numbers, found.codes, found.y, found.lines, strict=True)] == rows
    assert found.bad[0] == len(bad)


def test_a_thread_that_stops_parsing_integers_does_not_affect_others(monkeypatch):
    data = b"word,x,label\nword,2,3\n"
    chunk = Chunk(data[data.index(b"\n") + 1 :], 2)
    schema = table_schema()
    schema.label = "label"
    schema.set_columns(["word", "x"], ["category", "number"])
    names = ["word", "x", "label"]
    parser = Parser(schema, names, schema.positions("x", names, True), ",", chunk)

    def meanwhile(data):
        assert parser.integer_options is not None
        parser.integer_options = None
        return False

    monkeypatch.setattr(csv_records, "_may_be_hexadecimal", meanwhile)
    part = parser.parse(chunk)
    assert [column.to_pylist() for column in part.numbers + part.categories] == [[2], ["word"]]


def test_a_truncated_compressed_file_fails_after_its_rows(tmp_path):
    import gzip

    from spanboost.data.source import find_sources

    text = "a,y\n" + "".join(f"{k},{k * k}\n" for k in range(50_000))
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(text.encode())[:-2000])
    reader = CsvReader(table_schema(), Problems(), labelled=True, size=1 << 14)
    found = read_all(reader, *find_sources([str(path)]))
    assert str(path) in found.error
    assert len(found.lines) > 10_000


def test_closing_early_stops_the_threads():
    text = "a,y\n" + "1,2\n" * 100_000
    batches = CsvReader(table_schema(), Problems(), labelled=True, size=1 << 12).batches(
        source_of(text.encode())
    )
    assert len(next(batches)) > 0
    batches.close()


def test_a_long_field():
    data = b'a,c,y\n1,"' + b"x" * 200_000 + b'",2\n1,"y"z,2\n'
    found = read(data, skip=True)
    assert found.codes == [[0]]
    assert found.bad[0] == 1
    assert np.isfinite(found.y).all()
    assert issubclass(StreamError, ValueError)
