"""A run that is killed at any moment resumes from its checkpoint and writes the same file."""

import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time

import pytest

from spanboost.cli.main import main
from spanboost.cli.output.progress import ProgressTable

pytestmark = pytest.mark.process
ROWS = 30_000
KILLS = int(os.environ.get("SPANBOOST_KILLS", "5"))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "stream.jsonl"
    rng = random.Random(0)
    with path.open("w") as file:
        for _ in range(ROWS):
            row = {"size": rng.random(), "city": rng.choice("abcdefgh"), "year": rng.randrange(90)}
            row["label"] = 3 * row["size"] + (row["city"] == "a") + rng.gauss(0, 0.1)
            file.write(json.dumps(row) + "\n")
    return path


@pytest.fixture(scope="module")
def uninterrupted(data, tmp_path_factory):
    """The model file and the losses of an uninterrupted run."""
    output = tmp_path_factory.mktemp("uninterrupted") / "model.sb"
    done = subprocess.run(command(data, output), check=True, capture_output=True)
    return output.read_bytes(), losses(done.stdout)


def command(data, output, *more):
    options = ["--quiet", "--json", "--learner", "linear", "-n", "8", *more]
    return [sys.executable, "-m", "spanboost", "train", str(data), "-o", str(output), *options]


def losses(printed):
    result = json.loads(printed)
    return {name: value for name, value in result.items() if "second" not in name.split("_")[-1]}


def files_beside(output):
    return sorted(path.name for path in output.parent.iterdir())


def test_kills_at_random_moments_change_nothing(data, uninterrupted, tmp_path):
    output = tmp_path / "model.sb"
    run = command(data, output, "--checkpoint-every", "1000", "--resume")
    began = time.perf_counter()
    subprocess.run(run, check=True, capture_output=True)
    longest = time.perf_counter() - began
    output.unlink()
    rng = random.Random(1)
    killed = 0
    while killed < KILLS:
        process = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(rng.uniform(0.1, longest))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if process.returncode != -signal.SIGKILL:  # it ended before the signal
            assert output.read_bytes() == uninterrupted[0]
            output.unlink()
        killed += 1
    done = subprocess.run(run, check=True, capture_output=True)
    assert output.read_bytes() == uninterrupted[0]
    if done.stdout and "finished" not in json.loads(done.stdout):
        assert losses(done.stdout) == uninterrupted[1]
    assert files_beside(output) == ["model.sb"]


class KilledError(Exception):
    """Ends a run as if it were killed."""


def run_and_kill(data, output, monkeypatch, *more, checkpoints=3):
    """Start a run and end it after some checkpoints, as if it were killed."""
    from spanboost.cli.checkpoints import Checkpoints

    save, count = Checkpoints.save, 0

    def counted(self, *args):
        nonlocal count
        save(self, *args)
        count += 1
        if count == checkpoints:
            raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", counted)
        with pytest.raises(KilledError):
            main(command(data, output, "--checkpoint-every", "1000", *more)[3:])


def test_a_checkpoint_is_a_model_that_records_its_rows(data, tmp_path, monkeypatch, capsys):
    output = tmp_path / "model.sb"
    run_and_kill(data, output, monkeypatch)
    files = ["model.sb.checkpoint", "model.sb.outcomes", "model.sb.row-losses"]
    assert files_beside(output) == files
    assert main(["inspect", f"{output}.checkpoint", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["examples"] == 2000


def test_a_resumed_run_prints_the_same_result(data, uninterrupted, tmp_path, monkeypatch, capsys):
    output = tmp_path / "model.sb"
    run_and_kill(data, output, monkeypatch)
    capsys.readouterr()
    assert main(command(data, output, "--resume")[3:]) == 0
    assert output.read_bytes() == uninterrupted[0]
    assert losses(capsys.readouterr().out) == uninterrupted[1]
    assert files_beside(output) == ["model.sb"]


def test_without_resume_an_old_checkpoint_is_ignored(data, uninterrupted, tmp_path, monkeypatch):
    output = tmp_path / "model.sb"
    run_and_kill(data, output, monkeypatch, "--rate", "0.1")
    assert main(command(data, output)[3:]) == 0
    assert output.read_bytes() == uninterrupted[0]
    assert files_beside(output) == ["model.sb"]


def test_resume_starts_without_a_checkpoint_and_does_nothing_when_complete(
    data, uninterrupted, tmp_path, capsys
):
    output = tmp_path / "model.sb"
    talking = [word for word in command(data, output, "--resume")[3:] if word != "--quiet"]
    assert main(talking) == 0
    assert "starting from the beginning" in capsys.readouterr().err
    assert output.read_bytes() == uninterrupted[0]
    before = output.stat().st_mtime_ns
    assert main(talking) == 0
    assert "nothing to do" in capsys.readouterr().err
    assert output.stat().st_mtime_ns == before


@pytest.mark.parametrize("other", ["parameters", "input", "reading", "finished"])
def test_a_checkpoint_of_a_different_run_is_refused(data, tmp_path, monkeypatch, capsys, other):
    output = tmp_path / "model.sb"
    if other == "finished":
        assert main(command(data, output)[3:]) == 0
    else:
        run_and_kill(data, output, monkeypatch)
    kept = {name: (tmp_path / name).read_bytes() for name in files_beside(output)}
    arguments = {
        "parameters": ["--rate", "0.1"],
        "finished": ["--rate", "0.1"],
        "reading": ["--ignore", "year"],
        "input": [],
    }[other]
    if other == "input":
        text = data.read_text()
        data = tmp_path.parent / f"other-{os.getpid()}.jsonl"
        data.write_text(text[:-1] + " \n")
    assert main(command(data, output, "--resume", *arguments)[3:]) == 2
    assert "leave out --resume" in capsys.readouterr().err
    assert {name: (tmp_path / name).read_bytes() for name in files_beside(output)} == kept


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (["--checkpoint-every", "1000"], "run the same command with --resume to continue"),
        ([], "no model was written; use --checkpoint-every ROWS"),
    ],
)
def test_an_interrupted_run_prints_a_hint_even_if_it_is_quiet(
    options, hint, data, tmp_path, monkeypatch, capsys
):
    def interrupt(self, step):
        raise KeyboardInterrupt

    monkeypatch.setattr(ProgressTable, "show", interrupt)
    assert main(command(data, tmp_path / "model.sb", *options)[3:]) == 130
    assert hint in capsys.readouterr().err


def limit_files():
    """Refuse writes beyond 4 KiB of a file, with an error like those of a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--checkpoint-every", "1000"], r"model\.sb\.[\w-]+: .*; make space, .* with --resume\n"),
        ([], r"model\.sb: .*; no model was written; use --checkpoint-every ROWS .*\n"),
    ],
)
def test_a_full_disk_names_the_file_and_how_to_resume(
    options, message, data, uninterrupted, tmp_path
):
    output = tmp_path / "model.sb"
    run = subprocess.run(
        command(data, output, *options),
        check=False,
        capture_output=True,
        text=True,
        preexec_fn=limit_files,
    )
    assert run.returncode == 1
    assert re.fullmatch(f"spanboost: {re.escape(str(tmp_path))}/{message}", run.stderr)
    if options:
        assert main(command(data, output, "--resume")[3:]) == 0
        assert output.read_bytes() == uninterrupted[0]


def test_ctrl_c_keeps_the_last_checkpoint_and_prints_how_to_resume(data, uninterrupted, tmp_path):
    output = tmp_path / "model.sb"
    run = [word for word in command(data, output, "--checkpoint-every", "500") if word != "--quiet"]
    process = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "model.sb.checkpoint").exists():
        time.sleep(0.01)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    printed = process.communicate()[1]
    if process.returncode == 0:
        pytest.skip("the run ended before it could be interrupted")
    assert process.returncode == 130
    assert "--resume" in printed
    assert "Traceback" not in printed
    assert main(command(data, output, "--resume")[3:]) == 0
    assert output.read_bytes() == uninterrupted[0]
