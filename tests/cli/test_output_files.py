"""Files that commands write: complete, or an error; a different kind of file is not replaced."""

import errno
import io
import json
import os
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from streams import put

from spanboost.cli.output.predictions import open_writer
from spanboost.models.files import is_model_file


class SmallDisk(io.RawIOBase):
    """An unbuffered file on a disk with room for a few bytes."""

    def __init__(self, room):
        self.room, self.content = room, b""

    def writable(self):
        return True

    def write(self, data):
        taken = bytes(data)[: self.room - len(self.content)]
        if not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.content += taken
        return len(taken)


def test_a_disk_that_is_full_in_the_last_block_is_an_error(monkeypatch):
    """With PYTHONUNBUFFERED, standard output takes a part of the bytes without an error."""
    table = pa.table({"prediction": [*range(1000)]})
    text = "\n".join(["prediction", *map(str, range(1000)), ""]).encode()
    for room in (len(text) - 1, len(text)):
        disk = SmallDisk(room)
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(disk))
        if room < len(text):
            with pytest.raises(OSError, match="No space") as error, open_writer("-") as output:
                output.write(table)
            assert error.value.filename == "standard output"
        else:
            with open_writer("-") as output:
                output.write(table)
        assert disk.content == text[:room]


@pytest.fixture
def files(shell, tmp_path):
    """The folder of two tables and a model."""
    put(tmp_path, "rents.csv", b"size,rent\n40,310\n80,520\n60,400\n")
    words = ("--learner", "linear", "-n", "2", "--quiet")
    shell("train", tmp_path / "rents.csv", "-o", tmp_path / "rents.sb", *words)
    put(tmp_path, "notes.csv", b"a,b\n1,2\n")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "option", "file", "kind"),
    [
        ("train rents.csv -o notes.csv -n 2", "-o", "notes.csv", "not a model"),
        ("tune rents.csv -o notes.csv --quiet", "-o", "notes.csv", "not a model"),
        ("export rents.sb --to compact -o notes.csv", "-o", "notes.csv", "not a model"),
        ("export rents.sb --to c -o other.sb", "-o", "other.sb", "a model"),
        ("predict rents.csv -m rents.sb -o other.sb", "-o", "other.sb", "a model"),
        ("evaluate rents.csv -n 2 -p other.sb", "--predictions", "other.sb", "a model"),
    ],
)
def test_a_file_of_another_kind_is_not_replaced(
    words, option, file, kind, files, shell, monkeypatch
):
    monkeypatch.chdir(files)
    put(files, "other.sb", (files / "rents.sb").read_bytes())
    before = (files / file).read_bytes()
    advice = "remove it first, or name another file"
    shown = shell(*words.split(), status=2).err
    assert shown == f"spanboost: {option}: {file} exists and is {kind}; {advice}\n"
    assert (files / file).read_bytes() == before


def test_files_of_the_same_kind_and_empty_files_are_replaced(files, shell, monkeypatch):
    monkeypatch.chdir(files)
    for name in ("rents.sb", "empty.sb"):
        put(files, "empty.sb", b"")
        shell("train", "rents.csv", "-o", name, "--quiet", "--learner", "linear", "-n", "2")
        assert is_model_file(name)
    for name in ("notes.csv", "empty.csv"):
        put(files, "empty.csv", b"")
        shell("predict", "rents.csv", "-m", "rents.sb", "-o", name)
        assert (files / name).read_text().startswith("prediction\n")


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_a_run_writes_the_columns_of_classes_that_predict_writes(name, shell, tmp_path):
    """The third class first occurs after the first block of rows."""
    labels = ["b", "a"] * 9000 + ["c"] * 40
    frame = pd.DataFrame({"x": np.arange(len(labels)) % 7, "label": labels})
    frame.to_csv(tmp_path / "x.csv", index=False)
    options = ("--loss", "softmax", "--learner", "linear", "-n", "2", "--quiet")
    path = tmp_path / name
    shell("train", tmp_path / "x.csv", "-o", tmp_path / "m.sb", "-p", path, *options)
    found = pd.read_csv(path) if name.endswith("csv") else pd.read_parquet(path)
    predicted = shell("predict", tmp_path / "x.csv", "-m", tmp_path / "m.sb").out
    assert predicted.splitlines()[0] == "prediction,p_b,p_a,p_c" == ",".join(found.columns)
    chances = found[["p_b", "p_a", "p_c"]].to_numpy()
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert (found["prediction"] == np.array(["b", "a", "c"])[chances.argmax(axis=1)]).all()
    assert (chances[:8000, 2] == 0).all()
    assert (chances[-20:, 2] > 0).all()
    expected = -np.log([chances[t, "bac".index(label)] for t, label in enumerate(labels)])
    run = shell("evaluate", tmp_path / "x.csv", "-p", tmp_path / "again.csv", "--json", *options)
    again = pd.read_csv(tmp_path / "again.csv")
    np.testing.assert_allclose(again[["p_b", "p_a", "p_c"]], chances, rtol=1e-12)
    assert json.loads(run.out)["loss"] == pytest.approx(expected.mean(), rel=0.05)
