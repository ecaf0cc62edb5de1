"""`spanboost predict --keep` copies columns of the data into the output."""

import csv
import io
import json

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyarrow.csv import WriteOptions, write_csv
from streams import put

from spanboost.cli.output.predictions import open_writer

ROWS = [
    {"id": f"00{k}", "size": 40 + 3 * k, "city": ["Ulm", "Bonn, am Rhein", 'the "Hague"'][k % 3]}
    for k in range(30)
]


def as_text(rows, **changes):
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


@pytest.fixture
def trained(shell, tmp_path):
    """A model of size and city."""
    rows = [{"size": row["size"], "city": row["city"], "rent": 7 * row["size"]} for row in ROWS]
    path, model = put(tmp_path, "rents.csv", as_text(rows)), tmp_path / "rents.sb"
    shell("train", path, "-o", model, "--learner", "linear", "-n", "2")
    return model


def predict(shell, path, model, *options):
    return [*csv.DictReader(io.StringIO(shell("predict", path, "-m", model, *options).out))]


def test_columns_of_csv_are_copied_as_they_are(shell, trained, tmp_path):
    path = put(tmp_path, "new.csv", as_text(ROWS))
    plain = predict(shell, path, trained)
    kept = predict(shell, path, trained, "--keep", "city,id", "--keep", "size", "--keep", "id")
    assert [*kept[0]] == ["city", "id", "size", "prediction"]
    for row, found, expected in zip(ROWS, kept, plain, strict=True):
        assert found == {name: str(value) for name, value in row.items()} | expected


def test_rows_that_are_left_out_leave_out_their_columns(shell, trained, tmp_path):
    rows = [dict(row) for row in ROWS]
    rows[4]["size"] = "large"
    rows[9]["size"] = "1e99"
    path = put(tmp_path, "new.csv", as_text(rows))
    kept = predict(shell, path, trained, "--keep", "id", "--on-error", "skip")
    good = [k for k in range(30) if k not in (4, 9)]
    assert [row["id"] for row in kept] == [f"00{k}" for k in good]
    assert [row["line"] for row in kept] == [str(k + 2) for k in good]


def test_columns_of_parquet_keep_their_types(shell, trained, tmp_path):
    table = pa.table({name: [row[name] for row in ROWS] for name in ROWS[0]})
    table = table.append_column("tags", pa.array([[k] for k in range(30)]))
    parquet.write_table(table, tmp_path / "new.parquet", row_group_size=7)
    output = tmp_path / "out.parquet"
    shell(
        *("predict", tmp_path / "new.parquet", "-m", trained),
        *("-o", output, "--keep", "tags,size,id"),
    )
    found = parquet.read_table(output)
    assert found.select(["tags", "size", "id"]) == table.select(["tags", "size", "id"])
    assert found.column_names[-1] == "prediction"


def test_values_of_json_lines_are_copied(shell, tmp_path):
    rows = [{"id": 2**70 + k, "ok": k > 1, "x": k, "label": k} for k in range(4)]
    rows[2].pop("id")
    path = put(tmp_path, "x.jsonl", "\n".join(map(json.dumps, rows)).encode())
    shell("train", path, "-o", tmp_path / "m.sb", "--ignore", "id", "--learner", "linear")
    kept = predict(shell, path, tmp_path / "m.sb", "--keep", "id,ok,label")
    assert [row["id"] for row in kept] == [str(2**70), str(2**70 + 1), "", str(2**70 + 3)]
    assert [row["ok"] for row in kept] == ["false", "false", "true", "true"]
    assert [row["label"] for row in kept] == ["0", "1", "2", "3"]


def test_a_file_without_rows_has_the_names(shell, trained, tmp_path):
    path = put(tmp_path, "new.csv", b"id,size,city\n")
    assert shell("predict", path, "-m", trained, "--keep", "id").out == "id,prediction\n"


def test_bad_names_are_errors(shell, trained, tmp_path):
    path = put(tmp_path, "new.csv", as_text([row | {"prediction": 1} for row in ROWS]))
    command = ("predict", path, "-m", trained, "--keep")
    assert "column 'idd' not found; did you mean 'id'?" in shell(*command, "idd", status=2).err
    assert "column of the same name" in shell(*command, "prediction", status=2).err
    text = put(tmp_path, "x.vw", b"1 |a b:2\n2 |a b:3\n")
    shell("train", text, "-o", tmp_path / "vw.sb", "--learner", "linear")
    wrong = shell("predict", text, "-m", tmp_path / "vw.sb", "--keep", "id", status=2).err
    assert "--keep requires named columns; vw files have none" in wrong


def test_text_is_quoted_only_if_it_must_be(shell, trained, tmp_path):
    path = put(tmp_path, "new.csv", as_text(ROWS))
    lines = shell("predict", path, "-m", trained, "--keep", "id,city").out.splitlines()
    assert lines[0] == "id,city,prediction"
    assert lines[1].startswith("000,Ulm,")
    assert lines[2].startswith('001,"Bonn, am Rhein",')
    assert lines[3].startswith('002,"the ""Hague""",')


def test_every_field_survives_the_csv_file(tmp_path):
    texts = ["", " a ", "a,b", '"', "line\nbreak", "c\r", "A00000", "007", "\u00fc", None]
    numbers = [0.1, 1e300, -0.0, float("nan"), 5.0, 1e-7, 3.5, 2.0, 1.0, None]
    whole = pa.table({"a,b": texts, "n": numbers, "k": pa.array(range(10), pa.int32())})
    for block in (1, 3, 10):
        with open_writer(str(tmp_path / "out.csv")) as output:
            output.write(whole.slice(0, 0))
            for start in range(0, 10, block):
                output.write(whole.slice(start, block))
        found = (tmp_path / "out.csv").read_bytes()
        expected = io.StringIO()
        writer = csv.writer(expected)  # which then quotes carriage returns, too
        writer.writerow(["a,b", "n", "k"])
        columns = [pa_csv(whole.column("n")), whole.column("k").to_pylist()]
        writer.writerows(zip(texts, *columns, strict=True))
        assert found.decode() == expected.getvalue().replace("\r\n", "\n")


def pa_csv(column):
    """Return numbers as pyarrow writes them in a CSV file."""
    out = io.BytesIO()
    write_csv(pa.table({"n": column}), out, WriteOptions(include_header=False))
    return out.getvalue().decode().splitlines()
