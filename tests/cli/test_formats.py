"""The commands on the same rows in every format, and on bad rows."""

import json
import os
import subprocess
import sys

import pytest
from pyarrow import parquet
from streams import (
    arrow,
    as_arrow_file,
    as_arrow_stream,
    as_csv,
    as_feather,
    as_jsonl,
    as_parquet,
    as_svmlight,
    as_vw,
    flats,
    houses,
    put,
)

from spanboost import LinearSGD, SpanBoost, save
from spanboost.data import columns
from spanboost.data.formats.arrow import TableReader
from spanboost.data.formats.csv import CsvReader
from spanboost.data.formats.jsonl import JsonReader
from spanboost.data.formats.svmlight import SvmlightReader
from spanboost.data.formats.vw import VwReader

pytestmark = pytest.mark.slow  # the file as a whole

HOUSES, FLATS = list(houses(200)), list(flats(200))
TABLES = {
    "x.csv": as_csv(FLATS),
    "x.tsv": as_csv(FLATS, delimiter="\t"),
    "x.tab": as_csv(FLATS, delimiter="\t", newline="\r\n"),
    "x.parquet": as_parquet(FLATS),
    "x.pq": as_parquet(FLATS, row_group_size=33, compression="zstd"),
    "x.arrow": as_arrow_file(FLATS),
    "x.ipc": as_arrow_stream(FLATS),
    "x.feather": as_feather(FLATS),
    "x.csv.gz": as_csv(FLATS),
    "x.csv.zst": as_csv(FLATS, newline="\r\n"),
    "bom.csv": b"\xef\xbb\xbf" + as_csv(FLATS),
    "cut.csv": as_csv(FLATS).removesuffix(b"\n"),
    "blank.csv": as_csv(FLATS).replace(b"\n", b"\n\n"),
}
LINES = {"x.vw": as_vw(HOUSES), "x.svm": as_svmlight(HOUSES), "x.jsonl": as_jsonl(HOUSES)}
EVERY = ("--learner", "linear", "-n", "4", "--quiet")


def train(shell, folder, *data, name="model.sb"):
    """Train a model and return the bytes of its file."""
    shell("train", *data, "-o", folder / name, *EVERY)
    return (folder / name).read_bytes()


def without_times(text):
    """Parse a result and remove its times."""
    return json.loads(text) | dict.fromkeys(
        ("seconds", "compile_seconds", "examples_per_second"), 0
    )


def test_tables_give_the_same_model_in_every_format(shell, tmp_path):
    first = put(tmp_path, "x.csv", TABLES["x.csv"])
    model = train(shell, tmp_path, first)
    result = without_times(shell("evaluate", first, "--json", *EVERY).out)
    assert result["examples"] == len(FLATS)
    for name, data in TABLES.items():
        path = put(tmp_path, name, data)
        assert train(shell, tmp_path, path) == model, name
        assert without_times(shell("evaluate", path, "--json", *EVERY).out) == result, name


@pytest.mark.parametrize("name", LINES)
def test_compressed_lines_give_the_same_model(name, shell, tmp_path):
    data = LINES[name]
    model = train(shell, tmp_path, put(tmp_path, name, data))
    for other in (f"p.{name}.{ending}" for ending in ("gz", "zst", "bz2", "xz")):
        assert train(shell, tmp_path, put(tmp_path, other, data)) == model
    for same in (data.removesuffix(b"\n"), data.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + data):
        assert train(shell, tmp_path, put(tmp_path, name, same)) == model


def test_the_same_numbers_give_the_same_losses_in_every_format(shell, tmp_path):
    losses = []
    for name, data in {"x.csv": as_csv(HOUSES), **LINES}.items():
        path = put(tmp_path, name, data)
        evaluated = without_times(shell("evaluate", path, "--json", *EVERY).out)
        printed = shell("train", path, "-o", tmp_path / "m.sb", "--json", *EVERY)
        assert without_times(printed.out) == evaluated
        losses.append([evaluated[key] for key in ("loss", "loss_first_half", "best_constant_loss")])
    for other in losses[1:]:
        assert other == pytest.approx(losses[0], rel=1e-3)


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.parquet", "x.vw", "x.jsonl"])
def test_standard_input(name, shell, standard_input, tmp_path):
    path = put(tmp_path, name, (TABLES | LINES)[name])
    model = train(shell, tmp_path, path)
    standard_input(path.read_bytes())
    form = name.split(".")[1]
    assert train(shell, tmp_path, "-", "--format", form) == model


@pytest.mark.process
def test_a_pipe(shell, tmp_path):
    path = put(tmp_path, "x.csv", TABLES["x.csv"])
    command = [sys.executable, "-m", "spanboost", "train", "-", "--format", "csv", *EVERY]
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
        done = subprocess.run(
            [*command, "-f", tmp_path / "piped.sb"],
            stdin=cat.stdout,
            capture_output=True,
            check=False,
        )
    assert (done.returncode, done.stdout) == (0, b"")
    assert (tmp_path / "piped.sb").read_bytes() == train(shell, tmp_path, path)


def test_a_glob_is_read_in_order_like_one_file(shell, tmp_path):
    model = train(shell, tmp_path, put(tmp_path, "x.csv", TABLES["x.csv"]))
    parts = tmp_path / "parts"
    parts.mkdir()
    put(parts, "p-1.csv", as_csv(FLATS[:50]))
    put(parts, "p-2.parquet", as_parquet(FLATS[50:120]))
    turned = [dict(reversed(row.items())) for row in FLATS[120:]]  # columns are matched by name
    put(parts, "p-3.csv.gz", as_csv(turned))
    assert train(shell, tmp_path, parts / "p-*") == model
    assert train(shell, tmp_path, parts / "p-1.csv", "-d", parts / "p-[23]*") == model
    named = [parts / name for name in ("p-1.csv", "p-2.parquet", "p-3.csv.gz")]
    assert train(shell, tmp_path, *named) == model
    assert train(shell, tmp_path, *named[::-1]) != model


def test_urls(shell, memory, web, tmp_path):
    for name in ("x.csv", "x.csv.gz", "x.parquet"):
        path = put(tmp_path, name, TABLES[name])
        model = train(shell, tmp_path, path)
        memory.pipe(f"/{name}", path.read_bytes())
        assert train(shell, tmp_path, f"memory://{name}") == model
        assert train(shell, tmp_path, f"{web}/{name}") == model
    printed = shell("train", f"{web}/none.csv", "-o", tmp_path / "m.sb", status=2)
    assert "none.csv" in printed.err


@pytest.mark.parametrize("size", [1, 60, 1000])
def test_the_size_of_blocks_does_not_matter(size, shell, tmp_path, monkeypatch):
    inputs = {name: (TABLES | LINES)[name] for name in ("x.csv", "x.parquet", "x.arrow", *LINES)}
    paths = [put(tmp_path, name, data) for name, data in inputs.items()]

    def everything():
        printed = [
            shell("evaluate", path, "--json", "--learner", "linear", "-n", "4") for path in paths
        ]
        # without the last line, which has the time
        tables = ["\n".join(one.err.splitlines()[:-1]) for one in printed]
        return [train(shell, tmp_path, path) for path in paths], tables

    large = everything()
    for reader in (CsvReader, JsonReader, SvmlightReader, TableReader, VwReader):
        monkeypatch.setitem(reader.__init__.__kwdefaults__, "size", size)
    monkeypatch.setattr(columns, "BLOCK", size)
    small = everything()
    assert small[0] == large[0]
    assert small[1] == large[1]


BAD = {
    # format: a file with a place for one bad line, and the number of that line
    "csv": ("a,b,label\n1,2,3\n{}\n4,5,6\n", 3),
    "tsv": ("a\tb\tlabel\n1\t2\t3\n{}\n4\t5\t6\n", 3),
    "vw": ("1 | a:1 b:2\n{}\n2 | a:2\n", 2),
    "svmlight": ("1 1:1 2:2\n{}\n2 1:2\n", 2),
    "jsonl": ('{{"a": 1, "label": 1}}\n{}\n{{"a": 2, "label": 2}}\n', 2),
}
ROWS = [
    ("csv", "4,5", "expected 3 fields, got 2"),
    ("csv", "4,5,6,7", "expected 3 fields, got 4"),
    ("csv", "4,inf,6", "column 'b': the value is infinite, or too large for a 64-bit float"),
    ("csv", "4,1e99,6", "column 'b': '1e+99' is too large for a 32-bit float"),
    ("csv", "4,5,", "the label is missing"),
    ("csv", "4,5,inf", "the label is infinite, or too large for a 64-bit float"),
    ("csv", "4,5,six", "the label 'six' is not a number"),
    ("csv", '4,"5"x,6', "unexpected double quote"),
    ("csv", "4,\udcff,6", "is not UTF-8"),
    ("tsv", "4\t5", "expected 3 fields, got 2"),
    ("tsv", "4,5,6", "expected 3 fields, got 1"),
    ("vw", "1 a:1", "the line has no '|'"),
    ("vw", "| a:1", "the label is missing"),
    ("vw", "one | a:1", "'one' is not a number"),
    ("vw", "1 -1 | a:1", "the weight must be between 0 and 1e19"),
    ("vw", "1 | a:x", "'x' is not a number"),
    ("vw", "1 | a:1e99", "infinite or too large"),
    ("vw", "nan | a:1", "the label is missing"),
    ("vw", "1 | \udcff:1", "is not UTF-8"),
    ("svmlight", "1:1 2:3", "the label is missing"),
    ("svmlight", "x 1:1", "'x' is not a number"),
    ("svmlight", "1 1:x", "'x' is not a number"),
    ("svmlight", "1 x:1", "expected INDEX:VALUE, got 'x:1'"),
    ("svmlight", "1 2:1 1:1", "the indices must increase"),
    ("svmlight", "1 99999999:1", "use -b BITS"),
    ("svmlight", "1 1:inf", "infinite"),
    ("svmlight", "1 1:\udcff", "is not UTF-8"),
    ("jsonl", '{"a": 1}', "the label is missing"),
    ("jsonl", '{"a": 1, "label": null}', "the label is missing"),
    ("jsonl", '{"a": [1], "label": 1}', "(got a list)"),
    ("jsonl", '{"a": 1, "label": 1', "column 20"),
    ("jsonl", '{"a": 1, "a": 1, "label": 1}', "duplicate key 'a'"),
    ("jsonl", '{"a": 1e999, "label": 1}', "'a' is too large for a 32-bit float"),
    ("jsonl", '{"a": NaN, "label": 1}', "NaN is not valid JSON"),
    ("jsonl", '{"a": 1, "label": "x"}', "--loss logistic"),
    ("jsonl", "[1]", "expected a JSON object, got a list"),
    ("jsonl", '{"a": "\udcff", "label": 1}', "is not UTF-8"),
]


@pytest.mark.parametrize(("form", "row", "what"), ROWS, ids=[f"{f}-{w}" for f, _, w in ROWS])
def test_a_bad_row_ends_a_run_or_is_left_out(form, row, what, shell, tmp_path):
    text, line = BAD[form]
    path, output = tmp_path / f"x.{form}", tmp_path / "m.sb"
    path.write_bytes(text.format(row).encode("utf-8", "surrogateescape"))
    save(SpanBoost(LinearSGD(), n=1), output)
    old = output.read_bytes()
    for command in (("train", path, "-o", output), ("evaluate", path)):
        printed = shell(*command, *EVERY, status=2)
        assert printed.err.startswith(f"spanboost: {path}:{line}: ")
        assert what in printed.err
        assert printed.err.count("\n") == 1
    assert output.read_bytes() == old
    assert sorted(os.listdir(tmp_path)) == ["m.sb", path.name]

    printed = shell(
        "train",
        path,
        "-o",
        output,
        "--learner",
        "linear",
        "-n",
        "4",
        "--on-error",
        "skip",
        "--json",
    )
    assert f"left out: {path}:{line}: " in printed.err
    assert "bad rows left out = 1" in printed.err
    result = json.loads(printed.out)
    assert (result["examples"], result["skipped"]) == (2, 1)
    model = output.read_bytes()
    path.write_text(text.replace("{}\n", "").format())
    assert train(shell, tmp_path, path) == model


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow"])
def test_bad_rows_of_tables_are_named_by_number(name, shell, tmp_path):
    rows = [dict(row) for row in HOUSES[:20]]
    rows[4]["label"] = None
    rows[7]["size"] = float("inf")
    rows[9]["age"] = 1e300
    make = as_parquet if name == "x.parquet" else as_arrow_file
    for row in rows:
        row["size"] = float(row["size"])
    path = put(tmp_path, name, make(rows))
    printed = shell("train", path, "-o", tmp_path / "m.sb", *EVERY, status=2)
    missing = f"{path}:5: column 'label': the label is missing"
    skip = "to leave out such rows, use --on-error skip"
    assert printed.err == f"spanboost: {missing}; {skip}\n"
    assert not (tmp_path / "m.sb").exists()
    printed = shell(
        "evaluate", path, "--on-error", "skip", "--json", "--learner", "linear", "-n", "4"
    )
    assert json.loads(printed.out)["skipped"] == 3
    left_out = [line.split(":")[2] for line in printed.err.splitlines() if "left out: " in line]
    assert left_out == ["5", "8", "10"]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "tsv"])
@pytest.mark.parametrize("size", [10, 1 << 20])
def test_column_types_are_decided_once(form, size, shell, tmp_path, monkeypatch):
    monkeypatch.setitem(CsvReader.__init__.__kwdefaults__, "size", size)
    rows = [dict(row) for row in houses(1100)]
    for row in rows[:1000:2]:
        row["rooms"] = f"r{row['rooms']}"
    rows[999]["rooms"] = "many"  # now more than half of the first rows are text: a category
    rows[1000]["age"] = "old"
    path = put(tmp_path, f"x.{form}", as_csv(rows, delimiter={"csv": ",", "tsv": "\t"}[form]))
    printed = shell("train", path, "-o", tmp_path / "m.sb", *EVERY, status=2)
    assert printed.err.startswith(f"spanboost: {path}:1002: column 'age': 'old' is not a number")
    assert not (tmp_path / "m.sb").exists()
    printed = shell(
        "train",
        path,
        "-o",
        tmp_path / "m.sb",
        "--learner",
        "linear",
        "-n",
        "4",
        "--on-error",
        "skip",
    )
    assert "2 numeric features, 1 categorical feature" in printed.err
    assert f"left out: {path}:1002: column 'age': 'old' is not a number" in printed.err


@pytest.mark.parametrize(
    "name", ["x.parquet", "x.pq", "x.arrow", "x.ipc", "x.feather", "x.csv.gz", "x.csv.zst"]
)
def test_a_truncated_file(name, shell, tmp_path):
    path = put(tmp_path, name, TABLES[name])
    path.write_bytes(path.read_bytes()[:-200])
    printed = shell("evaluate", path, *EVERY, status=2)
    assert printed.err.startswith(f"spanboost: {path}: ")
    assert any(
        words in printed.err for words in ("damaged or not supported", "cannot read the file")
    )
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("x.csv", b"40,3"),
        ("x.csv", b'40,3,0.5,100,"Bo'),
        ("x.tsv", b"40"),
        ("x.vw", b"40"),
        ("x.vw", b"40 | size:"),
        ("x.svm", b"40 0:"),
        ("x.svm", b"40 0"),
        ("x.jsonl", b'{"size": 40, "la'),
    ],
)
def test_a_truncated_last_line(name, end, shell, tmp_path):
    path = put(tmp_path, name, (TABLES | LINES)[name] + end)
    printed = shell("evaluate", path, *EVERY, status=2)
    line = len(path.read_bytes().split(b"\n"))
    assert printed.err.startswith(f"spanboost: {path}:{line}: ")
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize("form", ["csv", "tsv", "vw", "svmlight", "jsonl", "parquet", "arrow"])
@pytest.mark.parametrize("data", [b"", b"\n", b"\n\n\n", b"\0" * 100, b"\xff" * 100, b"PAR1"])
def test_files_without_rows(form, data, shell, tmp_path):
    path = tmp_path / f"x.{form}"
    path.write_bytes(data)
    printed = shell("train", path, "-o", tmp_path / "m.sb", *EVERY, status=2)
    assert printed.err.startswith(f"spanboost: {path}")
    assert printed.err.count("\n") == 1
    assert not (tmp_path / "m.sb").exists()


def test_a_header_without_rows(shell, tmp_path):
    path = put(tmp_path, "x.csv", b"a,b,label\n")
    printed = shell("train", path, "-o", tmp_path / "m.sb", status=2)
    assert printed.err == f"spanboost: {path}: there are no rows\n"
    parquet.write_table(arrow(FLATS).slice(0, 0), tmp_path / "x.parquet")
    printed = shell("train", tmp_path / "x.parquet", "-o", tmp_path / "m.sb", status=2)
    assert printed.err == f"spanboost: {tmp_path}/x.parquet: there are no rows\n"


def test_a_long_line(shell, tmp_path):
    path = put(tmp_path, "x.csv", b"a,label\n1,2\n" + b"1" * 20_000_000 + b"\n3,4\n")
    printed = shell("evaluate", path, *EVERY, status=2)
    assert printed.err == f"spanboost: {path}:3: the line is longer than 16 MiB\n"
    printed = shell("evaluate", path, "--on-error", "skip", "--json", *EVERY)
    assert json.loads(printed.out)["examples"] == 2


def test_missing_and_mismatched_files(shell, tmp_path):
    output = ("-o", tmp_path / "m.sb")
    for path in (tmp_path / "none.csv", tmp_path, tmp_path / "none-*.csv"):
        printed = shell("train", path, *output, status=2)
        assert str(path) in printed.err
        assert printed.err.count("\n") == 1
    path = put(tmp_path, "x.csv", TABLES["x.csv"])
    assert "no data" in shell("train", *output, status=2).err
    assert "--format" in shell("train", put(tmp_path, "x.data", b"1"), *output, status=2).err
    svm = put(tmp_path, "x.svm", LINES["x.svm"])
    assert (
        "cannot read svmlight and csv files together"
        in shell("train", path, svm, *output, status=2).err
    )
    if os.getuid():
        path.chmod(0)
        assert str(path) in shell("train", path, *output, status=2).err
    assert not output[1].exists()
