"""Ray clusters: the same bits as in one process, and clear errors when something fails.

Ray is an optional dependency, and its clusters take seconds to start. CONTRIBUTING.md has the
command that runs these tests.
"""

import json
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from simulated_machines import run_program
from streams import FLATS, as_csv, put
from test_averaging import rows

from spanboost import LinearSGD, Network, SpanBoost, Stumps, Trees, save, tune
from spanboost.errors import ClusterError, DataError
from spanboost.parallel.team import Team

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.process,
    pytest.mark.filterwarnings("default"),  # Ray itself issues warnings
]
LEARNERS = [LinearSGD(), Stumps(), Network(hidden=3), Trees(grace=4, candidates=8)]


@pytest.fixture(scope="module")
def cluster():
    from spanboost.parallel.cluster import Cluster

    with Cluster(processors=2) as one:
        yield one


def booster(learner):
    return SpanBoost(learner, n=4, label_range="auto")


def saved_bytes(model, path):
    save(model, path)
    return path.read_bytes()


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_a_team_on_the_cluster_equals_a_local_team(learner, cluster, tmp_path):
    X, y = rows(400, 0)
    teams = [Team(booster(learner), 3, 40, executor) for executor in (None, cluster)]
    answers = [
        [team.learn_many(X[k : k + 90], y[k : k + 90]) for k in range(0, 400, 90)] for team in teams
    ]
    for here, there in zip(*answers, strict=True):
        np.testing.assert_array_equal(here, there)
    here, there = (saved_bytes(team.model(), tmp_path / "m.sb") for team in teams)
    assert here == there


def test_tuning_on_the_cluster_equals_local_tuning(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("spanboost.tuning.search.ROWS", 100)
    monkeypatch.setattr("spanboost.tuning.search.BANK_COPIES", 8)
    X, y = rows(600, 0)
    grid = {"rate": [0.2, 1.0], "eta": [0.25, 1.0]}
    given = {"learner": LinearSGD(), "grid": grid, "n": 4, "label_range": "auto"}
    here, there = (tune(X, y, executor=executor, **given) for executor in (None, cluster))
    np.testing.assert_array_equal(here.loss_first, there.loss_first)
    np.testing.assert_array_equal(here.loss_rest, there.loss_rest)
    files = [saved_bytes(one.model(), tmp_path / "m.sb") for one in (here, there)]
    assert files[0] == files[1]


def test_a_bad_row_is_reported(cluster):
    X, y = rows(100, 0)
    X[[60, 31], 0] = np.inf
    with pytest.raises(DataError, match=r"row 31: column \d is infinite"):
        Team(booster(LinearSGD()), 2, 10, cluster).learn_many(X, y)
    with pytest.raises(DataError, match=r"row 31: column \d is infinite"):
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
    """Return the processes that run our tasks now."""
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


def kill_workers(times, stop):
    """Kill busy workers, `times` times; return how many are left to kill."""
    while times and not stop.is_set():
        for pid in workers()[:1]:
            os.kill(pid, signal.SIGKILL)
            times -= 1
            time.sleep(0.5)
        time.sleep(0.002)
    return times


def test_the_task_of_a_killed_worker_is_repeated(cluster, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 20))
    y = X[:, 0] - X[:, 1]
    alone, disturbed = (
        Team(SpanBoost(Network(), n=16, label_range="auto"), 2, 5000, executor)
        for executor in (None, cluster)
    )
    alone.learn_many(X, y)
    stop, left = threading.Event(), []
    thread = threading.Thread(target=lambda: left.append(kill_workers(2, stop)))
    thread.start()
    disturbed.learn_many(X, y)
    stop.set()
    thread.join()
    assert left == [0]
    assert saved_bytes(alone.model(), tmp_path / "a") == saved_bytes(
        disturbed.model(), tmp_path / "b"
    )


def test_a_task_that_always_fails_raises_an_error(cluster, monkeypatch):
    monkeypatch.setattr("spanboost.parallel.cluster.RETRIES", 1)

    def dies(given):  # a local function, so that its code is sent along
        os.kill(os.getpid(), signal.SIGKILL)

    def fails(given):
        raise RuntimeError("no luck")

    def full(given):
        raise OSError(28, "No space left on device")

    with pytest.raises(
        ClusterError,
        match="a worker was killed or crashed, and its task failed after 1 retries",
    ):
        cluster.results([cluster.call(dies, 1)])
    with pytest.raises(ClusterError, match="a task failed on the cluster: RuntimeError: no luck"):
        cluster.results([cluster.call(fails, 1)])
    with pytest.raises(OSError, match="No space left on device"):
        cluster.results([cluster.call(full, 1)])
    assert cluster.results([cluster.call(lambda given: 2 * given, 3)]) == [
        6
    ]  # the cluster still works


def test_a_full_disk_raises_an_error():
    """The threshold makes Ray treat the disk as full when it has to spill objects to it."""
    program = """
import numpy as np, ray
from spanboost.parallel.cluster import Cluster
from spanboost.errors import ClusterError
ray.init("local", num_cpus=1, object_store_memory=80_000_000, include_dashboard=False,
         _system_config={"local_fs_capacity_threshold": 0.0001})
executor, kept = Cluster(), []
try:
    for k in range(10):
        kept.append(executor.put(np.full(3_000_000, float(k))))
except ClusterError as error:
    print(error)
"""
    out, err = run_program(program)
    assert out == "a disk of the cluster is full; free some space for Ray", err


def test_too_little_memory_raises_an_error():
    """The threshold makes Ray kill every task; by default it would repeat them without end."""
    program = """
import time
from spanboost.parallel.cluster import Cluster
from spanboost.errors import ClusterError
with Cluster(processors=1) as executor:
    try:
        executor.results([executor.call(lambda: time.sleep(60))])
    except ClusterError as error:
        print(error)
"""
    short = {"RAY_memory_usage_threshold": "0.001", "RAY_memory_monitor_refresh_ms": "50"}
    out, err = run_program(program, **short)
    assert out == "a machine of the cluster has too little memory for a task", err


def listening_addresses():
    """Return the addresses on which Ray's processes of this test listen, with their ports."""
    from ipaddress import ip_address

    sockets = {}
    for process in descendants(os.getpid()):
        for file in Path(f"/proc/{process}/fd").glob("*"):
            try:
                sockets[os.readlink(file)] = process
            except OSError:
                continue
    found = []
    for kind in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == "0A" and f"socket:[{rest[5]}]" in sockets:
                words = bytes.fromhex(local.partition(":")[0])
                groups = [words[k : k + 4][::-1] for k in range(0, len(words), 4)]
                address = ip_address(b"".join(groups))
                found.append(getattr(address, "ipv4_mapped", None) or address)
    return found


def descendants(root):
    """Return the processes that a process started, directly or not."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text()
            except OSError:
                continue
            parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
    found, more = set(), {root}
    while more:
        found |= more
        more = {one for one, parent in parents.items() if parent in found} - found
    return found


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux")
def test_a_local_cluster_listens_on_the_loopback_address_only(cluster):
    assert cluster.results([cluster.call(lambda: 1)]) == [1]
    addresses = listening_addresses()
    assert len(addresses) >= 3
    assert [address for address in addresses if not address.is_loopback] == []


STRANGER = """
import ray
from pathlib import Path
from ray._private import ray_constants
ray_constants.ENABLE_RAY_CLUSTER = False  # keep the loopback address
try:
    ray.init(ADDRESS, log_to_driver=False)
    ray.get(ray.remote(lambda: Path(MARK).touch()).remote(), timeout=60)
    print("ran")
except Exception as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize("token", ["own", "other", "none"])
def test_a_local_cluster_refuses_clients_without_its_token(cluster, tmp_path, token):
    assert cluster.results([cluster.call(lambda: 1)]) == [1]
    address, mark = ray.get_runtime_context().gcs_address, tmp_path / "mark"
    program = STRANGER.replace("ADDRESS", repr(address)).replace("MARK", repr(str(mark)))
    variables = {
        "own": {},
        "other": {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64},
        "none": {"RAY_AUTH_MODE": "disabled", "RAY_AUTH_TOKEN": "", "HOME": str(tmp_path)},
    }[token]
    out, err = run_program(program, **variables)
    assert ("ran" in out) == mark.exists() == (token == "own"), err


def test_no_cluster_at_the_address():
    program = """
from spanboost.parallel.cluster import Cluster
from spanboost.errors import ClusterError
try:
    Cluster("127.0.0.1:1")
except ClusterError as error:
    print(error)
"""
    out, err = run_program(program)
    assert out == "cannot connect to a Ray cluster at 127.0.0.1:1: Connection refused", err


@pytest.mark.usefixtures("cluster")
def test_commands_run_on_a_cluster(shell, tmp_path):
    file = put(tmp_path, "flats.csv", as_csv(FLATS))
    few = ("--learner", "linear", "--rate", "0.2,0.5", "--step", "0.25,1", "-n", "4")
    said = [
        shell("tune", file, *few, "-o", tmp_path / f"{k}.sb", *words)
        for k, words in enumerate(((), ("--ray",)))
    ]
    assert said[0].out == said[1].out
    assert (tmp_path / "0.sb").read_bytes() == (tmp_path / "1.sb").read_bytes()
    made = ("--learner", "linear", "-n", "4", "--ray", "--average-every", "20", "--json", "--quiet")
    result = shell("train", file, "-o", tmp_path / "team.sb", *made)
    assert json.loads(result.out)["examples"] == 200


def test_a_local_cluster_prints_nothing_and_stops(tmp_path):
    file = put(tmp_path, "flats.csv", as_csv(FLATS))
    words = ["tune", str(file), "--learner", "linear", "-n", "4", "--ray", "--quiet"]
    program = f"from spanboost.cli.main import main\nprint(main({words!r}))"
    out, err = run_program(program)
    assert out.endswith("0")
    assert [line for line in err.splitlines() if "compiling" not in line] == []


def test_the_reproduction_on_it_is_the_one_here(cluster, tmp_path):
    from dataclasses import replace

    import pyarrow as pa
    from pyarrow import parquet

    from spanboost.paper.cells import CellStore
    from spanboost.paper.protocol import Grid
    from spanboost.paper.reproduce import Selection, Watcher, reproduce, survey

    X, y = rows(200, 0)
    columns = {f"x{j}": X[:, j] for j in range(4)} | {"label": np.clip(y.round(), 0, 29)}
    parquet.write_table(pa.table(columns), tmp_path / "abalone.parquet")
    selection = Selection(["abalone"], ["linear", "network"])
    facts = survey(selection.sets, tmp_path)
    grid = Grid(rates=(0.25, 2.0), etas=(0.25, 0.5), copies=6)
    reported = []
    watcher = Watcher(reported.append, lambda amount: None, lambda cell, before: None)
    here, there = (
        reproduce(selection, facts, tmp_path, CellStore(tmp_path / name), watcher, grid, place)
        for name, place in (("here", None), ("there", cluster))
    )
    assert len(reported) == 2 * (1 + 4)
    assert [replace(cell, seconds=0) for cell in here] == [
        replace(cell, seconds=0) for cell in there
    ]
