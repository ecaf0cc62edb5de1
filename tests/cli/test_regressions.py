"""Regression tests of the commands."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from spanboost.analysis.label_sums import LabelSums
from spanboost.analysis.progressive import LossTape
from spanboost.cli.main import main
from spanboost.data.batch import Batch
from spanboost.data.problems import Problems
from spanboost.data.source import Source
from spanboost.data.stream import Stream
from spanboost.losses import Squared
from spanboost.models import files
from spanboost.rows.validation import Sparse

FEW = ("--learner", "linear", "-n", "3", "--quiet")


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.csv"
    rows = "".join(f"{t},{'abc'[t % 3]},{t % 7}\n" for t in range(50))
    path.write_text("size,city,label\n" + rows)
    return path


def test_a_checkpoint_is_a_snapshot(data, tmp_path, monkeypatch, shell):
    """The prefetching reader may add to the schema while a checkpoint is written."""
    shell("train", data, "-o", tmp_path / "m.sb", *FEW)
    model, checksum = files.load(tmp_path / "m.sb"), files._checksum

    def change_schema(header, tensors):
        model.schema.columns[1].codes["new"] = 3
        model.schema.target.values.append("new")
        return checksum(header, tensors)

    monkeypatch.setattr(files, "_checksum", change_schema)
    files.save(model, tmp_path / "again.sb")
    monkeypatch.undo()
    assert (tmp_path / "again.sb").read_bytes() == (tmp_path / "m.sb").read_bytes()
    files.load(tmp_path / "again.sb")


def test_predictions_cannot_be_combined_with_resume(data, tmp_path, shell):
    words = ("train", data, "-o", tmp_path / "m.sb", "-p", tmp_path / "p.csv", *FEW)
    assert "--resume" in shell(*words, "--resume", status=2).err
    assert "standard output" in shell("train", data, "-o", "-", *FEW, status=2).err


def test_evaluate_t_treats_new_categories_as_predict_does(data, tmp_path, shell):
    model, new, tested = tmp_path / "m.sb", tmp_path / "new.csv", tmp_path / "tested.csv"
    words = ("--learner", "trees", "-n", "3", "--quiet")
    shell("train", data, "-o", model, *words)
    new.write_text("size,city,label\n" + "".join(f"{t},z{t},1\n" for t in range(9)))
    shell("evaluate", new, "-t", "-i", model, "-p", tested, "--quiet")
    assert tested.read_text() == shell("predict", new, "-m", model).out


def test_rows_of_weight_0_do_not_change_the_best_constant():
    y, weights = np.array([1e9, 3.0, 5.0]), np.array([0.0, 1.0, 3.0])
    for cut in (0, 1, 2):
        sums = LabelSums(Squared())
        for part in (slice(cut), slice(cut, 3)):
            if len(y[part]):
                sums.add(y[part], weights[part])
        assert sums.best_constant() == (4.5, 0.75)


@pytest.mark.parametrize("change", [["--label", "size"], ["--ignore", "city"], ["--seed", "4"]])
def test_resume_refuses_the_model_of_a_different_run(change, data, tmp_path, shell):
    words = ("train", data, "-o", tmp_path / "m.sb", "--resume", *FEW)
    shell(*words)
    shell(*words)
    assert "is the model of a different run" in shell(*words, *change, status=2).err
    assert (
        "is the model of a different run"
        in shell(
            "train", data, "-i", tmp_path / "m.sb", "-o", tmp_path / "m.sb", "--resume", status=2
        ).err
    )


@pytest.mark.process
def test_a_live_csv_is_learned_row_by_row_and_can_be_interrupted():
    words = [sys.executable, "-m", "spanboost", "evaluate", "-", "--format", "csv", *FEW[:-1]]
    run = subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    rows = "".join(f"{t},{t % 7}\n" for t in range(1100))  # the first 1,000 decide the column types
    run.stdin.write(b"size,label\n" + rows.encode())
    run.stdin.flush()
    printed = b""
    while b"1024 " not in printed:
        line = run.stderr.readline()
        assert line, printed
        printed += line
    began = time.perf_counter()
    run.send_signal(signal.SIGINT)  # while it waits for more
    assert run.wait(20) == 130
    run.stdin.close()
    run.stderr.close()
    assert time.perf_counter() - began < 15


def test_the_bar_follows_a_parquet_file(tmp_path):
    path = tmp_path / "x.parquet"
    table = pa.table({"a": np.arange(300_000.0), "label": np.arange(300_000.0)})
    parquet.write_table(table, path, row_group_size=100_000)
    from spanboost.data.schema import Schema
    from spanboost.data.target import NumberTarget

    stream, seen = Stream([str(path)]), []
    with closing(stream.batches(Schema("table", NumberTarget()), labelled=True)) as batches:
        rows = 0
        for batch in batches:
            rows += batch.rows
            seen.append(stream.position_after(rows))
    assert seen == sorted(seen)
    assert seen[-1] == stream.size == os.path.getsize(path)


def test_since_last_continues_after_a_resume(data, tmp_path, monkeypatch, capsys):
    from spanboost.cli.checkpoints import Checkpoints

    words = ["train", str(data), "-o", str(tmp_path / "m.sb"), *FEW[:-1]]
    assert main(words) == 0
    whole = capsys.readouterr().err.splitlines()
    saves = []
    monkeypatch.setattr(Checkpoints, "clear", lambda self: None)
    monkeypatch.setattr(Checkpoints, "save", interrupt_after(Checkpoints.save, saves, 3))
    with pytest.raises(KeyboardInterrupt):
        main_raising([*words, "--checkpoint-every", "10"])
    monkeypatch.undo()
    capsys.readouterr()
    assert main([*words, "--resume"]) == 0
    resumed = capsys.readouterr().err.splitlines()
    line = next(line for line in whole if " 32 " in line)
    assert line in resumed


def interrupt_after(save, saves, count):
    """Return `save`, interrupted after `count` calls."""

    def counted(self, *args):
        save(self, *args)
        saves.append(1)
        if len(saves) == count:
            raise KeyboardInterrupt

    return counted


def main_raising(words):
    """Run a command; raise the interrupt that `main` turned into a status."""
    if main(words) == 130:
        raise KeyboardInterrupt


def test_running_out_of_memory_is_one_line(tmp_path, shell, monkeypatch):
    path = tmp_path / "x.vw"
    path.write_text("1 | a\n2 | b\n")
    assert (
        "from 1 to 28"
        in shell(
            "train", path, "-o", tmp_path / "m.sb", "--learner", "trees", "-b", "29", status=2
        ).err
    )
    monkeypatch.setattr("spanboost.models.booster.Booster.learn_many", out_of_memory)
    err = shell("evaluate", path, *FEW, status=1).err
    assert err.count("\n") == 1
    assert "memory" in err


def out_of_memory(*_):
    raise MemoryError


@pytest.mark.process
def test_a_bad_row_leaves_no_parquet_file_and_prints_one_line(data, tmp_path, shell):
    model, bad = tmp_path / "m.sb", tmp_path / "bad.csv"
    shell("train", data, "-o", model, *FEW)
    bad.write_text("size,city\n1,a\nx,b\n")
    command = [sys.executable, "-m", "spanboost", "predict", str(bad), "-m", str(model)]
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "p.parquet")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("p.parquet*"))


def test_compared_models_of_one_copy_keep_their_names(data, shell):
    words = ("evaluate", data, "--compare", "linear:span,linear:hull", "-n", "1", "--quiet")
    result = json.loads(shell(*words, "--json").out)
    assert result["model"] == "linear:span"
    assert result["baseline"]["loss"] == result["loss"]  # the baseline is "linear alone"


def test_losses_are_synced_before_the_checkpoint(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    for path, count in ((tmp_path / "losses", 1), (None, 0)):
        with closing(LossTape(2, path)) as tape:
            tape.extend(np.ones((3, 2)))
            tape.flush()
        assert len(synced) == count
        synced.clear()


def test_some_rows_of_a_batch():
    X = Sparse(np.array([0, 2, 2, 5]), np.arange(5), np.arange(5.0), (3,))
    batch = Batch(X, np.arange(3.0), None, "file", np.array([4, 5, 9]))
    for rows in (np.array([0, 2]), np.array([True, False, True])):
        part = batch.take(rows)
        assert part.X.indptr.tolist() == [0, 2, 5]
        assert part.X.indices.tolist() == [0, 1, 2, 3, 4]
        assert part.lines.tolist() == [4, 9]
        assert part.y.tolist() == [0, 2]
    assert batch.take(np.array([2])).X.data.tolist() == [2, 3, 4]


def test_a_pipe_without_a_file_number_does_not_wait():
    source = Source("some", None, lambda: io.BytesIO(b"1\n"), seekable=False, once=True)
    with source.open():
        assert not source.would_block()
    assert Problems().count == 0


def test_files_come_in_the_order_in_which_they_are_named(data, tmp_path, shell):
    other = tmp_path / "other.csv"
    other.write_text("size,city,label\n" + "".join(f"{t},d,{t}\n" for t in range(9)))
    made = []
    for k, words in enumerate([(data, other), ("-d", data, other), (data, "-d", other)]):
        shell("train", *words, "-o", tmp_path / f"{k}.sb", *FEW)
        made.append((tmp_path / f"{k}.sb").read_bytes())
    assert made[0] == made[1] == made[2]


@pytest.mark.process
def test_a_closed_standard_error_does_not_stop_a_run(data, tmp_path):
    command = f"{sys.executable} -m spanboost train {data} -o {tmp_path}/m.sb --learner linear -n 3"
    script = f"({command}; echo status $? > {tmp_path}/status) 2>&1 | true"
    subprocess.run(["bash", "-c", script], check=True)
    while not (tmp_path / "status").exists():
        time.sleep(0.05)
    assert (tmp_path / "status").read_text() == "status 0\n"
    assert (tmp_path / "m.sb").exists()


def test_an_interrupt_after_the_rename_keeps_the_file(tmp_path, monkeypatch):
    from spanboost import atomic_files

    replace = os.replace

    def interrupted(*args):
        replace(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt), atomic_files.atomic_write(tmp_path / "x") as file:
        file.write(b"all of it")
    assert (tmp_path / "x").read_bytes() == b"all of it"


def test_a_positive_label_that_never_comes_is_reported(data, tmp_path, shell):
    words = ("evaluate", data, "--label", "city", "--loss", "logistic", "--learner", "linear")
    assert "no label equals 'd'" in shell(*words, "-n", "3", "--positive", "d", status=2).err
    assert "no label equals" not in shell(*words, "-n", "3", "--positive", "a").err


@pytest.mark.parametrize("more", [["linear,linear"], ["linear,stumps", "-p", "x.csv"]])
def test_bad_comparisons_are_one_line(more, data, shell, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert shell("evaluate", data, "--compare", *more, "--quiet", status=2).err.count("\n") == 1


def test_probabilities_can_be_small(tmp_path, shell):
    path = tmp_path / "rare.csv"
    path.write_text("x,label\n" + "".join(f"{t % 7},{int(t % 100 == 0)}\n" for t in range(5000)))
    words = ("evaluate", path, "--loss", "logistic", "--learner", "linear", "-n", "8", "--quiet")
    result = json.loads(shell(*words, "--json").out)
    assert result["loss_second_half"] < 1.2 * result["best_constant_loss"]
