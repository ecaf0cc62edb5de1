"""AutoBoost on a Ray cluster: commands give the same bytes, also if workers are killed."""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from streams import FLATS, as_csv, put

from spanboost import AutoBoost, ExpertTeam, save

pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.process,
    pytest.mark.filterwarnings("default"),  # Ray itself issues warnings
]


@pytest.fixture(scope="module")
def cluster():
    from spanboost.parallel.cluster import Cluster

    with Cluster(processors=2) as one:
        yield one


@pytest.fixture
def flats(tmp_path):
    return put(tmp_path, "flats.csv", as_csv(FLATS))


def learning_workers():
    """Return the processes of experts that are learning now."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            name = (folder / "cmdline").read_bytes() if folder.name.isdigit() else b""
        except OSError:
            continue
        if name.startswith(b"ray::ExpertGroup.learn"):
            found.append(int(folder.name))
    return found


def kill_workers(times, stop):
    """Kill workers that are learning, `times` times; return how many are left to kill."""
    while times and not stop.is_set():
        for pid in learning_workers()[:1]:
            os.kill(pid, signal.SIGKILL)
            times -= 1
            time.sleep(0.5)
        time.sleep(0.002)
    return times


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_killed_workers_do_not_change_the_result(workers, cluster, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 5))
    y = X[:, 0] - X[:, 1] * (X[:, 2] > 0)
    alone, team = AutoBoost(), ExpertTeam(AutoBoost(), workers, cluster)
    stop, left = threading.Event(), []
    thread = threading.Thread(target=lambda: left.append(kill_workers(3, stop)))
    thread.start()
    for first in range(0, 12_000, 4000):
        rows = slice(first, first + 4000)
        np.testing.assert_array_equal(
            team.learn_many(X[rows], y[rows]), alone.learn_many(X[rows], y[rows])
        )
    stop.set()
    thread.join()
    assert left == [0]
    for model, name in ((alone, "alone"), (team.model(), "team")):
        save(model, tmp_path / name)
    assert (tmp_path / "alone").read_bytes() == (tmp_path / "team").read_bytes()
    team.close()


@pytest.mark.usefixtures("cluster")
def test_training_evaluation_and_tuning_equal_those_on_one_machine(flats, shell, tmp_path):
    for words in (
        ("train", flats, "-o", "MODEL", "--json", "--quiet", "--checkpoint-every", "70"),
        ("evaluate", flats, "--compare", "auto,linear", "--quiet"),
        ("evaluate", flats, "-i", "MODEL", "-t", "--quiet"),
        ("tune", flats, "-n", "4", "--step", "0.25,1", "-o", "MODEL"),
    ):
        outputs = []
        for name, more in (("here.sb", ()), ("there.sb", ("--ray", "--workers", "3"))):
            given = [tmp_path / name if word == "MODEL" else word for word in words]
            outputs.append(shell(*given, *more).out)
        here, there = (
            [line for line in out.splitlines() if "second" not in line] for out in outputs
        )
        assert here == there
        assert len(here) > 1
        assert (tmp_path / "here.sb").read_bytes() == (tmp_path / "there.sb").read_bytes()


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("first", [(), ("--ray", "--workers", "2")])
def test_a_run_resumes_on_the_cluster_or_on_one_machine(first, flats, shell, tmp_path, monkeypatch):
    expected, output = tmp_path / "expected.sb", tmp_path / "m.sb"
    shell("train", flats, "-o", expected)
    command = ("train", flats, "-o", output, "--checkpoint-every", "50")
    from spanboost.cli.checkpoints import Checkpoints

    saved, saving = [], Checkpoints.save

    def interrupt(*args):
        saving(*args)
        saved.append(args[2].rows)
        if len(saved) == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", interrupt)
        shell(*command, *first, status=130)
    assert saved == [0, 50, 100]
    others = () if first else ("--ray", "--workers", "3")
    assert "resuming after 100 rows" in shell(*command, *others, "--resume").err
    assert output.read_bytes() == expected.read_bytes()
    assert "is complete" in shell(*command, "--ray", "--resume").err
