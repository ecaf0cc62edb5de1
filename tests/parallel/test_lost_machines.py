"""Machines of a Ray cluster that are lost: the same bits as on one machine."""

import pytest
from simulated_machines import SIMULATED, run_program

pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")
pytestmark = [pytest.mark.cluster, pytest.mark.process]


def test_a_lost_machine_does_not_change_the_result():
    program = """
alone, disturbed = team(None), team(executor)
expected = alone.learn_many(X, y)
disturbed.learn_many(X[:1000], y[:1000])
thread = threading.Thread(target=lose, args=(nodes[:1], 0.5)); thread.start()
found = disturbed.learn_many(X[1000:], y[1000:]); thread.join()
alive = sum(node["Alive"] for node in ray.nodes())
print(len(ray.nodes()), alive, (found == expected[1000:]).all())
"""
    out, err = run_program(SIMULATED + program)
    assert out == "3 2 True", err


def test_a_cluster_without_machines_raises_an_error():
    program = """
cluster.PATIENCE = 5.0
threading.Thread(target=lose, args=(nodes, 0.5)).start()
try:
    team(executor).learn_many(X, y)
except ClusterError as error:
    print(error)
"""
    out, err = run_program(SIMULATED + program)
    assert (
        "the cluster has had no processors for 5 seconds; check that its machines are running"
        in out
    ), err


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_machine_with_experts_is_lost(workers):
    program = f"""
from spanboost.parallel import expert_team
expert_team.SNAPSHOT_EVERY = 1500
X, y = X[:8000, :5], y[:8000]
parts = [slice(k, k + 1000) for k in range(0, 8000, 1000)]
alone = AutoBoost()
disturbed = ExpertTeam(AutoBoost(), {workers}, executor)
expected = [alone.learn_many(X[part], y[part]) for part in parts]
found = []
for k, part in enumerate(parts):
    if k == 3:
        actors = ray._private.state.actors().values()
        homes = {{one["Address"]["NodeID"] for one in actors if one["State"] == "ALIVE"}}
        lost = next(node for node in nodes if node.node_id in homes)
        thread = threading.Thread(target=lose, args=([lost], 0.2)); thread.start()
    found.append(disturbed.learn_many(X[part], y[part]))
thread.join()
alive = sum(node["Alive"] for node in ray.nodes())
same = all((a == b).all() for a, b in zip(found, expected))
import tempfile, pathlib
folder = pathlib.Path(tempfile.mkdtemp())
save(alone, folder / "a"); save(disturbed.model(), folder / "b")
print(len(homes), alive, same, (folder / "a").read_bytes() == (folder / "b").read_bytes())
"""
    out, err = run_program(SIMULATED + program)
    assert out == f"{min(workers, 2)} 2 True True", err


def test_a_machine_is_lost_during_tuning():
    program = """
given = {"learner": Trees(), "grid": {"eta": [0.1, 0.2, 0.5, 1.0]}, "n": 10, "label_range": "auto"}
X, y = X[:20_000], y[:20_000]
reported, threads = [], []
def report(rows):
    if not reported:
        threads.append(threading.Thread(target=lose, args=(nodes[:1], 0.1))); threads[0].start()
    reported.append(rows)
here = tune(X, y, **given)
there = tune(X, y, executor=executor, progress=report, **given)
threads[0].join()
alive = sum(node["Alive"] for node in ray.nodes())
pairs = ((here.loss_first, there.loss_first), (here.loss_rest, there.loss_rest))
same = [np.array_equal(a, b, equal_nan=True) for a, b in pairs]
print(alive, len(reported) > 3, *same)
"""
    out, err = run_program(SIMULATED + program)
    assert out == "2 True True True", err


def test_a_machine_is_lost_during_the_reproduction():
    program = """
import itertools, tempfile, pathlib
from dataclasses import replace
import pyarrow as pa
from pyarrow import parquet
from spanboost.paper.cells import CellStore
from spanboost.paper.protocol import Grid
from spanboost.paper.reproduce import Selection, Watcher, reproduce, survey
folder = pathlib.Path(tempfile.mkdtemp())
columns = {f"x{j}": X[:4000, j] for j in range(4)}
columns["label"] = np.clip(10 + 4 * y[:4000].round(), 0, 29)
parquet.write_table(pa.table(columns), folder / "abalone.parquet")
selection = Selection(["abalone"], ["linear", "network"])
facts = survey(selection.sets, folder)
grid = Grid(rates=(0.25, 2.0), etas=(0.25, 0.5), copies=6)
amounts, calls = [], itertools.count()
def advance(amount):
    if next(calls) == 1: lose(nodes[:1], 0.0)  # once, whatever the number of threads
    amounts.append(amount)
watch = Watcher(lambda line: None, lambda amount: None, lambda cell, before: None)
lossy = Watcher(lambda line: None, advance, lambda cell, before: None)
here = reproduce(selection, facts, folder, CellStore(folder / "here"), watch, grid, None)
there = reproduce(selection, facts, folder, CellStore(folder / "there"), lossy, grid, executor)
alive = sum(node["Alive"] for node in ray.nodes())
same = [replace(a, seconds=0) == replace(b, seconds=0) for a, b in zip(here, there, strict=True)]
print(alive, len(amounts) > 3, len(same), all(same))
"""
    out, err = run_program(SIMULATED + program)
    assert out == "2 True 4 True", err


@pytest.mark.parametrize("learner", ["LinearSGD()", "Trees()"])
def test_a_machine_that_reads_shards_is_lost(learner):
    program = f"""
import tempfile, pathlib
import pyarrow as pa
from pyarrow import parquet
from spanboost.data.schema import Schema
from spanboost.data.target import NumberTarget
from spanboost.parallel import team
from spanboost.parallel.shard_team import ShardTeam
from spanboost.parallel.shards import ShardFile, complete_schema
team.SNAPSHOT_EVERY = 1000
folder, files = pathlib.Path(tempfile.mkdtemp()), []
for number in range(8):
    rows = slice(5000 * number, 5000 * (number + 1))
    columns = {{f"x{{j}}": X[rows, j] for j in range(4)}} | {{"label": y[rows]}}
    columns["kind"] = [f"{{number}} {{t % 5}}" for t in range(5000)]
    path = folder / f"{{number}}.parquet"
    parquet.write_table(pa.table(columns), path)
    files.append(ShardFile(str(path), path.name, "parquet", {{}}))
def shards(executor):
    model = SpanBoost({learner}, n=8, label_range="auto")
    model.schema = Schema("table", NumberTarget(None), "label")
    complete_schema(files[0], model.schema)
    return ShardTeam(model, 2, files, 1000, executor)
alone, disturbed = shards(None), shards(executor)
expected = list(alone.rounds())
found, threads = [], []
for one in disturbed.rounds():
    found.append(one)
    if len(found) == 3:
        threads.append(threading.Thread(target=lose, args=(nodes[:1], 0.1))); threads[0].start()
threads[0].join()
alive = sum(node["Alive"] for node in ray.nodes())
save(alone.model(), folder / "a"); save(disturbed.model(), folder / "b")
same = (folder / "a").read_bytes() == (folder / "b").read_bytes()
print(alive, disturbed.rows, found == expected, same)
"""
    out, err = run_program(SIMULATED + program)
    assert out == "2 40000 True True", err
