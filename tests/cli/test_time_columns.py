"""Dates and times give the same model from every format, from a pipe, and after an interruption."""

import csv
import io
import json
import os
import threading
from datetime import datetime, timedelta

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from streams import put

from spanboost import load
from spanboost.cli.checkpoints import Checkpoints
from spanboost.rows.times import PARTS

START = datetime(2024, 2, 27, 5)
MOMENTS = [None if k % 9 == 4 else START + timedelta(minutes=47 * k) for k in range(240)]
SIZES = [k % 7 for k in range(240)]
LABELS = [3.0 * k + (0 if m is None else m.hour) for k, m in zip(SIZES, MOMENTS, strict=True)]
LINEAR = ("--learner", "linear", "-n", "2")


def as_text(delimiter, missing, separator):
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(["when", "size", "y"])
    for moment, size, y in zip(MOMENTS, SIZES, LABELS, strict=True):
        writer.writerow([moment.isoformat(separator) if moment else missing, size, y])
    return out.getvalue().encode()


def as_parquet(type):
    out = io.BytesIO()
    table = pa.table({"when": pa.array(MOMENTS, type), "size": SIZES, "y": LABELS})
    parquet.write_table(table, out)
    return out.getvalue()


FILES = {
    "x.csv": as_text(",", "NA", "T"),
    "x.txt": as_text(";", "-", " "),
    "x.tsv": as_text("\t", "", "T"),
    "x.parquet": as_parquet(pa.timestamp("ns")),
    "zone.parquet": as_parquet(pa.timestamp("ms", "America/Lima")),
}


def train(shell, path, *options):
    output = path.parent / "m.sb"
    err = shell("train", path, "-o", output, *LINEAR, *options).err
    assert "column 'when' contains times; features: days, hour, weekday" in err
    return output.read_bytes()


@pytest.fixture
def expected(shell, tmp_path):
    return train(shell, put(tmp_path, "x.csv", FILES["x.csv"]))


@pytest.mark.parametrize("name", [*FILES][1:])
def test_every_format_gives_the_same_model(name, shell, tmp_path, expected):
    assert train(shell, put(tmp_path, name, FILES[name])) == expected


def test_a_pipe_gives_the_same_model(shell, tmp_path, expected):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(FILES["x.txt"],))
    writer.start()
    assert train(shell, path) == expected
    writer.join()


class KilledError(BaseException):
    """The end of a process."""


def test_a_resumed_run_gives_the_same_model(shell, tmp_path, expected, monkeypatch):
    save, rows = Checkpoints.save, []

    def save_and_die(self, model, tape, *others):
        save(self, model, tape, *others)
        rows.append(tape.rows)
        if tape.rows == 100:
            raise KilledError

    command = ("train", tmp_path / "x.csv", "-o", tmp_path / "m.sb", *LINEAR)
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", save_and_die)
        with pytest.raises(KilledError):
            shell(*command, "--checkpoint-every", "50")
    assert rows == [0, 50, 100]
    assert "resuming after 100 rows" in shell(*command, "--resume").err
    assert (tmp_path / "m.sb").read_bytes() == expected


def test_predictions_use_times_and_explain_them(shell, tmp_path, expected):
    model, path = tmp_path / "m.sb", tmp_path / "x.csv"
    assert [column.name for column in load(model).schema.times] == ["when"]
    plain = shell("predict", path, "-m", model).out
    without = put(tmp_path, "new.csv", b"\n".join(FILES["x.csv"].split(b"\n")[:2]))
    assert shell("predict", without, "-m", model).out == "".join(plain.splitlines(True)[:2])
    explained = json.loads(shell("explain", path, "-m", model, "--json").out)
    assert "when.hour" in explained["contributions"]
    found = json.loads(shell("inspect", model, "--json").out)["schema"]
    assert (found["numbers"], found["times"]) == (["size"], ["when"])
    wrong = put(tmp_path, "wrong.csv", b"when,size\nsoon,1\n")
    err = shell("predict", wrong, "-m", model, status=2).err
    assert f"{wrong}:2: column 'when': 'soon' is not a date or time, such as 2026-01-31 or" in err


def test_json_lines_have_the_same_features(shell, tmp_path):
    rows = [
        {"when": moment and moment.isoformat(), "size": size, "label": y}
        for moment, size, y in zip(MOMENTS, SIZES, LABELS, strict=True)
    ]
    path = put(tmp_path, "x.jsonl", "\n".join(map(json.dumps, rows)).encode())
    output = tmp_path / "m.sb"
    shell("train", path, "-o", output, *LINEAR)
    names = load(output).encoder.names.columns
    assert {*names} == {"size", "when", *(f"when.{part}" for part in PARTS)}


@pytest.mark.parametrize(
    ("form", "order"),
    [("%m/%d/%Y %I:%M %p", "month"), ("%d/%m/%Y %H:%M", "day"), ("%m-%d-%Y %H:%M:%S", "month")],
)
@pytest.mark.parametrize("header", [True, False])
def test_dates_of_which_the_values_exclude_one_order(form, order, header, shell, tmp_path):
    """Later rows whose dates have no clear order are read like those of the first file."""
    local = [None if moment is None else moment.strftime(form) for moment in MOMENTS]
    iso = [None if moment is None else moment.isoformat() for moment in MOMENTS]
    found = []
    for name, texts in (("local", local), ("iso", iso)):
        frame = pd.DataFrame({"when": texts, "size": SIZES, "y": LABELS})
        path, model = tmp_path / f"{name}.csv", tmp_path / f"{name}.sb"
        frame.to_csv(path, index=False, header=header)
        err = shell("train", path, "-o", model, *LINEAR).err
        assert (f"the {order} first, as in" in err) == (name == "local")
        later = frame[[m is not None and m.day <= 12 for m in MOMENTS]]
        if not header:
            later.to_csv(tmp_path / "later.csv", index=False, header=False)
            found.append(shell("predict", tmp_path / "later.csv", "-m", model).out)
            continue
        answers = []
        for kind, write in [("csv", later.to_csv), ("parquet", later.to_parquet)]:
            write(tmp_path / f"later.{kind}", index=False)
            answers.append(shell("predict", tmp_path / f"later.{kind}", "-m", model).out)
        rows = tmp_path / "later.jsonl"
        rows.write_text(later.to_json(orient="records", lines=True))
        answers.append(shell("predict", rows, "-m", model).out)
        assert len({*answers}) == 1
        numbers = load(model).predict_many(later.drop(columns="y").to_dict("records"))
        assert numbers == pytest.approx([float(line) for line in answers[0].split()[1:]])
        found.append(answers[0])
    assert found[0] == found[1]


def test_dates_of_both_orders_are_categories(shell, tmp_path):
    path = put(tmp_path, "x.csv", b"when,y\n" + b"01/13/2025,1\n13/01/2025,2\n" * 20)
    err = shell("train", path, "-o", tmp_path / "m.sb", *LINEAR).err
    assert "is read as categories, because dates like '01/13/2025'" in err


def test_a_date_of_the_other_order_is_a_bad_row(shell, tmp_path):
    path = put(
        tmp_path, "x.csv", b"when,y\n" + b"01/13/2025,1\n02/01/2025,2\n" * 600 + b"13/01/2025,2\n"
    )
    err = shell("train", path, "-o", tmp_path / "m.sb", *LINEAR, status=2).err
    assert ":1202: column 'when': '13/01/2025' is not a date or time" in err


def test_times_that_pandas_writes_as_numbers_get_a_note(shell, tmp_path):
    frame = pd.DataFrame({"x": pd.to_datetime(MOMENTS), "size": SIZES, "y": LABELS}).dropna()
    frame["x"] = frame["x"].astype("datetime64[ms]").astype("int64")
    frame.to_json(tmp_path / "x.jsonl", orient="records", lines=True)
    frame.to_csv(tmp_path / "x.csv", index=False)
    for name in ("x.jsonl", "x.csv"):
        err = shell("evaluate", tmp_path / name, "--label", "y", *LINEAR).err
        assert "column 'x' is read as numbers; if 1709010000000 is a time, in milliseconds" in err
        assert err.count("since 1970") == 1
