"""On a Ray cluster: the same bits as here, and a clear end of whatever goes wrong.

Ray is an extra, and its clusters take seconds to start: CONTRIBUTING.md has the command for these.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from streams import FLATS, as_csv, put
from test_averaging import rows

from spanboost import LinearSGD, Network, SpanBoost, Stumps, Trees, save, tune
from spanboost.errors import ClusterError, DataError
from spanboost.parallel.team import Team

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'spanboost[ray]'")
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.process,
    pytest.mark.filterwarnings("default"),  # Ray has warnings of its own
]
LEARNERS = [LinearSGD(), Stumps(), Network(hidden=3), Trees(grace=4, candidates=8)]


@pytest.fixture(scope="module")
def cluster():
    from spanboost.parallel.cluster import Cluster

    with Cluster(processors=2) as one:
        yield one


def booster(learner):
    return SpanBoost(learner, n=4, label_range="auto")


def written(model, path):
    save(model, path)
    return path.read_bytes()


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_a_team_on_the_cluster_is_the_team_here(learner, cluster, tmp_path):
    X, y = rows(400, 0)
    teams = [Team(booster(learner), 3, 40, executor) for executor in (None, cluster)]
    answers = [
        [team.learn_many(X[k : k + 90], y[k : k + 90]) for k in range(0, 400, 90)] for team in teams
    ]
    for here, there in zip(*answers, strict=True):
        np.testing.assert_array_equal(here, there)
    here, there = (written(team.model(), tmp_path / "m.sb") for team in teams)
    assert here == there


def test_a_sweep_on_the_cluster_is_the_sweep_here(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("spanboost.tuning.search.ROWS", 100)
    monkeypatch.setattr("spanboost.tuning.search.LANES", 8)
    X, y = rows(600, 0)
    grid = {"rate": [0.2, 1.0], "eta": [0.25, 1.0]}
    given = {"learner": LinearSGD(), "grid": grid, "n": 4, "label_range": "auto"}
    here, there = (tune(X, y, executor=executor, **given) for executor in (None, cluster))
    np.testing.assert_array_equal(here.loss_first, there.loss_first)
    np.testing.assert_array_equal(here.loss_rest, there.loss_rest)
    files = [written(one.model(), tmp_path / "m.sb") for one in (here, there)]
    assert files[0] == files[1]


def test_a_bad_row_is_named(cluster):
    X, y = rows(100, 0)
    X[[60, 31], 0] = np.inf
    with pytest.raises(DataError, match="row 31: a feature is infinite"):
        Team(booster(LinearSGD()), 2, 10, cluster).learn_many(X, y)
    with pytest.raises(DataError, match="row 31: a feature is infinite"):
        tune(
            X,
            y,
            learner=LinearSGD(),
            n=4,
            grid={"eta": [1.0]},
            label_range="auto",
            executor=cluster,
        )


def workers():
    """Processes that do tasks of ours right now."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                name = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if name.startswith(b"ray::learn_"):
                found.append(int(folder.name))
    return found


def killing(times, stop):
    """Kills workers at work, so many times."""
    while times and not stop.is_set():
        for pid in workers()[:1]:
            os.kill(pid, signal.SIGKILL)
            times -= 1
            time.sleep(0.5)
        time.sleep(0.002)
    return times


def test_a_worker_that_is_killed_does_its_task_again(cluster, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 20))
    y = X[:, 0] - X[:, 1]
    alone, disturbed = (
        Team(SpanBoost(Network(), n=16, label_range="auto"), 2, 5000, executor)
        for executor in (None, cluster)
    )
    alone.learn_many(X, y)
    stop, left = threading.Event(), []
    thread = threading.Thread(target=lambda: left.append(killing(2, stop)))
    thread.start()
    disturbed.learn_many(X, y)
    stop.set()
    thread.join()
    assert left == [0]
    assert written(alone.model(), tmp_path / "a") == written(disturbed.model(), tmp_path / "b")


def test_a_task_that_always_fails_ends_with_a_sentence(cluster, monkeypatch):
    monkeypatch.setattr("spanboost.parallel.cluster.RETRIES", 1)

    def dies(given):  # inside, so that its text is sent along
        os.kill(os.getpid(), signal.SIGKILL)

    def fails(given):
        raise RuntimeError("no luck")

    def full(given):
        raise OSError(28, "No space left on device")

    with pytest.raises(ClusterError, match="a worker was killed or crashed, and again when"):
        cluster.results([cluster.call(dies, 1)])
    with pytest.raises(ClusterError, match="a task failed on the cluster: RuntimeError: no luck"):
        cluster.results([cluster.call(fails, 1)])
    with pytest.raises(OSError, match="No space left on device"):
        cluster.results([cluster.call(full, 1)])
    assert cluster.results([cluster.call(lambda given: 2 * given, 3)]) == [6]  # it goes on


def in_a_process(program, limit=200, **variables):
    """A program of its own, with a cluster of its own; what it said."""
    root = Path(__file__).parents[2]
    paths = [str(root / "tests" / "support"), str(root / "src"), *sys.path]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | variables
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=limit,
        env=environment,
        check=False,
    )
    return done.stdout.strip(), done.stderr


SIMULATED = """
import numpy as np, ray, sys, threading, time
from ray.cluster_utils import Cluster as Machines
from spanboost import *
from spanboost.parallel import cluster
from spanboost.errors import ClusterError
from spanboost.parallel.team import Team
machines = Machines(initialize_head=True, head_node_args={"num_cpus": 0})
nodes = [machines.add_node(num_cpus=1) for _ in range(2)]
place = cluster.Cluster(machines.address)
machines.wait_for_nodes()
rng = np.random.default_rng(0)
X = rng.normal(size=(60_000, 20)); y = X[:, 0] - X[:, 1]
def team(place): return Team(SpanBoost(Network(), n=16, label_range="auto"), 2, 10_000, place)
def lose(lost, after):
    time.sleep(after)
    for node in lost: machines.remove_node(node)
"""


def test_a_machine_that_is_lost_changes_nothing():
    program = """
alone, disturbed = team(None), team(place)
expected = alone.learn_many(X, y)
disturbed.learn_many(X[:1000], y[:1000])
thread = threading.Thread(target=lose, args=(nodes[:1], 0.5)); thread.start()
found = disturbed.learn_many(X[1000:], y[1000:]); thread.join()
alive = sum(node["Alive"] for node in ray.nodes())
print(len(ray.nodes()), alive, (found == expected[1000:]).all())
"""
    out, err = in_a_process(SIMULATED + program)
    assert out == "3 2 True", err


def test_without_machines_there_is_an_end():
    program = """
cluster.PATIENCE = 5.0
threading.Thread(target=lose, args=(nodes, 0.5)).start()
try:
    team(place).learn_many(X, y)
except ClusterError as error:
    print(error)
"""
    out, err = in_a_process(SIMULATED + program)
    assert "the cluster has had no processor for 5 seconds: its machines are lost" in out, err


def test_a_full_disk_has_an_end():
    """Ray refuses to keep what memory has no room for on a disk that is as full as this one."""
    program = """
import numpy as np, ray
from spanboost.parallel.cluster import Cluster
from spanboost.errors import ClusterError
ray.init("local", num_cpus=1, object_store_memory=80_000_000, include_dashboard=False,
         _system_config={"local_fs_capacity_threshold": 0.0001})
place, kept = Cluster(), []
try:
    for k in range(10):
        kept.append(place.put(np.full(3_000_000, float(k))))
except ClusterError as error:
    print(error)
"""
    out, err = in_a_process(program)
    assert out == "a disk of the cluster is full: Ray has no room for what it works on", err


def test_too_little_memory_has_an_end():
    """Ray ends tasks where memory is short, here always, and would try again for ever."""
    program = """
import time
from spanboost.parallel.cluster import Cluster
from spanboost.errors import ClusterError
with Cluster(processors=1) as place:
    try:
        place.results([place.call(lambda: time.sleep(60))])
    except ClusterError as error:
        print(error)
"""
    short = {"RAY_memory_usage_threshold": "0.001", "RAY_memory_monitor_refresh_ms": "50"}
    out, err = in_a_process(program, **short)
    assert out == "a machine of the cluster has too little memory for a task", err


def test_no_cluster_at_the_address():
    program = """
from spanboost.parallel.cluster import Cluster
from spanboost.errors import ClusterError
try:
    Cluster("127.0.0.1:1")
except ClusterError as error:
    print(error)
"""
    out, err = in_a_process(program)
    assert out == "no Ray cluster at 127.0.0.1:1: Connection refused", err


@pytest.mark.usefixtures("cluster")
def test_the_commands_work_on_it(shell, tmp_path):
    file = put(tmp_path, "flats.csv", as_csv(FLATS))
    few = ("--rate", "0.2,0.5", "--step", "0.25,1", "-n", "4")
    said = [
        shell("tune", file, *few, "-o", tmp_path / f"{k}.sb", *words)
        for k, words in enumerate(((), ("--ray",)))
    ]
    assert said[0].out == said[1].out
    assert (tmp_path / "0.sb").read_bytes() == (tmp_path / "1.sb").read_bytes()
    made = ("--learner", "linear", "-n", "4", "--ray", "--average-every", "20", "--json", "--quiet")
    result = shell("train", file, "-o", tmp_path / "team.sb", *made)
    assert json.loads(result.out)["examples"] == 200


def test_a_local_cluster_is_quiet_and_ends(tmp_path):
    file = put(tmp_path, "flats.csv", as_csv(FLATS))
    words = ["tune", str(file), "-n", "4", "--ray", "--quiet"]
    program = f"from spanboost.cli.main import main\nprint(main({words!r}))"
    out, err = in_a_process(program)
    assert out.endswith("0")
    assert [line for line in err.splitlines() if "compiling" not in line] == []


def test_the_reproduction_on_it_is_the_one_here(cluster, tmp_path):
    from dataclasses import replace

    import pyarrow as pa
    from pyarrow import parquet

    from spanboost.paper.cells import CellStore
    from spanboost.paper.protocol import Grid
    from spanboost.paper.reproduce import Asked, Watcher, reproduce

    X, y = rows(200, 0)
    columns = {f"x{j}": X[:, j] for j in range(4)} | {"label": np.clip(y.round(), 0, 29)}
    parquet.write_table(pa.table(columns), tmp_path / "abalone.parquet")
    asked = Asked(["abalone"], ["linear", "network"], ["file"], ["greedy", "linear"])
    grid = Grid(rates=(0.25, 2.0), etas=(0.25, 0.5), copies=6)
    told = []
    watcher = Watcher(told.append, lambda amount: None, lambda cell, before: None)
    here, there = (
        reproduce(asked, tmp_path, CellStore(tmp_path / name), watcher, grid, place)[0]
        for name, place in (("here", None), ("there", cluster))
    )
    assert len(told) == 2 * (1 + 4)
    assert [replace(cell, seconds=0) for cell in here] == [
        replace(cell, seconds=0) for cell in there
    ]
