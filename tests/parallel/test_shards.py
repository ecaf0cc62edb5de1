"""Workers that read their own files, against a plain transcription in one process."""

import json
from contextlib import closing, nullcontext
from copy import deepcopy

import numpy as np
import pytest

from spanboost import LinearSGD, SpanBoost, load, save
from spanboost.cli.checkpoints import Checkpoints
from spanboost.data.batch import concatenate
from spanboost.data.problems import StreamError
from spanboost.data.schema import Schema
from spanboost.data.stream import Stream
from spanboost.data.target import BinaryTarget, ClassTarget, NumberTarget
from spanboost.losses import Softmax
from spanboost.parallel.averaging import average
from spanboost.parallel.executor import LocalExecutor, pickle_model, unpickle_model
from spanboost.parallel.shard_team import ShardTeam
from spanboost.parallel.shards import ShardFile, complete_schema

pytestmark = pytest.mark.slow
CITIES = ("Bonn", "Cork", "Lyon", "Oslo", "Turin", "Vigo", "Wels")


def write_files(folder, sizes, label="number", weights=False):
    """Write CSV files; later ones have new cities, and labels in another order."""
    rng, paths = np.random.default_rng(0), []
    for number, size in enumerate(sizes):
        lines = ["size,city,price" + (",weight" if weights else "")]
        for t in range(size):
            x, city = rng.random(), rng.choice(CITIES[: 2 + 2 * number] if number < 3 else CITIES)
            y = 3 * x + (city == "Bonn")
            shown = {
                "number": y,
                "text": "high" if y > 1.7 else "low",
                "answer": "yes" if y > 1.7 else "no",
                "class": f"k{int(y) % 3}",
            }
            weight = f",{0 if number == 0 and t < 2 else rng.integers(0, 3)}" if weights else ""
            lines.append(f"{x:.4f},{city},{shown[label]}{weight}")
        paths.append(folder / f"part-{number}.csv")
        paths[-1].write_text("\n".join(lines) + "\n")
    return paths


def shard_files(paths):
    return [ShardFile(str(path), path.name, "csv", {"skip_bad": False}) for path in paths]


def saved_bytes(model, path):
    save(model, path)
    return path.read_bytes()


def plain_result(model, schema, paths, workers, every):
    """Learn the files by the rules, one row after the other, with categories known from the start.

    model: a new model; schema: with all categories.
    """
    queues = [[] for _ in range(workers)]
    for number, path in enumerate(paths):
        stream = Stream([str(path)], "csv")
        with closing(stream.batches(deepcopy(schema), labelled=True)) as batches:
            read = list(batches)
        if read:
            rows = concatenate(read)
            queues[number % workers] += [rows.part(t, t + 1) for t in range(rows.rows)]
    total = sum(map(len, queues))

    def learn(one, rows):
        for row in rows:
            one.learn_many(row.X, row.y, row.weights)

    while queues[0]:  # all workers share the first row that is learned
        row = queues[0].pop(0)
        learn(model, [row])
        if row.weights is None or row.weights[0] > 0:
            break
    while any(queues):
        states = []
        for w, queue in enumerate(queues):
            if queue:
                states.append(unpickle_model(pickle_model(model)))
                learn(states[-1], queue[:every])
                queues[w] = queue[every:]
        model = average(model, states) if len(states) > 1 else states[0]
        model.labels.rows = total - sum(map(len, queues))
    model.schema = schema
    return model


@pytest.mark.parametrize("label", ["number", "text", "answer", "class"])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(("workers", "every"), [(2, 7), (3, 1000)])
def test_a_team_of_shards_equals_the_rules(label, weights, workers, every, tmp_path):
    paths = write_files(tmp_path, [23, 40, 1, 0, 31, 12], label, weights)
    target = {"number": NumberTarget(None), "class": ClassTarget(3)}.get(label, BinaryTarget())
    loss = {"number": "squared", "class": Softmax(3)}.get(label, "logistic")
    schema = Schema("table", target, "price", "weight" if weights else None)

    def fresh():
        given = {"label_range": "auto"} if label == "number" else {}
        return SpanBoost(LinearSGD(), n=3, loss=loss, **given)

    files, model = shard_files(paths), fresh()
    complete_schema(files[0], schema)
    assert [column.codes for column in schema.categories] == [{}]
    model.schema = schema
    team = ShardTeam(model, workers, files, every)
    results = list(team.rounds())
    assert sum(one.rows for one in results) == team.rows == 107
    assert list(schema.categories[0].codes) != sorted(schema.categories[0].codes)
    expected = plain_result(fresh(), schema, paths, workers, every)
    assert saved_bytes(team.model(), tmp_path / "a") == saved_bytes(expected, tmp_path / "b")


def test_workers_read_the_signs_of_the_first_file(tmp_path):
    """The second file has a number that would be a hundred times too large."""
    for number, size in enumerate(["12%", "12"]):
        (tmp_path / f"part-{number}.csv").write_text(f"size,price\n{size},1\n")
    files = shard_files(sorted(tmp_path.glob("part-*.csv")))
    model = SpanBoost(LinearSGD(), n=2, label_range="auto")
    model.schema = Schema("table", NumberTarget(None), "price")
    complete_schema(files[0], model.schema)
    with pytest.raises(StreamError, match=r"part-1\.csv:2: column 'size': '12' has no %"):
        list(ShardTeam(model, 1, files).rounds())


def test_more_workers_than_files_are_refused(tmp_path):
    files = shard_files(write_files(tmp_path, [3, 3]))
    with pytest.raises(ValueError, match="must be at most the number of files, 2"):
        ShardTeam(SpanBoost(LinearSGD(), n=2), 3, files)


def test_bad_rows_and_labels_name_their_file(tmp_path):
    paths = write_files(tmp_path, [20, 20])
    text = paths[1].read_text().splitlines()
    text[5] = "0.5,Bonn,cheap"
    paths[1].write_text("\n".join(text) + "\n")
    files, schema = shard_files(paths), Schema("table", NumberTarget(None), "price")
    complete_schema(files[0], schema)
    model = SpanBoost(LinearSGD(), n=2, label_range="auto")
    model.schema = schema
    with pytest.raises(StreamError, match=r"^part-1\.csv:6: .*'cheap'"):
        list(ShardTeam(model, 2, files).rounds())
    paths = write_files(tmp_path, [20, 20], "text")
    text = paths[1].read_text().splitlines()
    text[5] = "0.5,Bonn,middle"
    paths[1].write_text("\n".join([text[0], *text[5:6], *text[1:2]]) + "\n")
    schema = Schema("table", BinaryTarget(), "price")
    complete_schema(files[0], schema)
    model = SpanBoost(LinearSGD(), n=2, loss="logistic")
    model.schema = schema
    with pytest.raises(
        StreamError, match=r"^part-1\.csv: column 'price': the label 'middle' cannot"
    ):
        list(ShardTeam(model, 2, files).rounds())


class LocalCluster(LocalExecutor):
    """The interface of a cluster, in this process."""

    processors = 3


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setattr(
        "spanboost.cli.commands.train.cluster_of",
        lambda args: nullcontext(None if args.ray is None else LocalCluster()),
    )


WORDS = ("--label", "price", "-n", "3", "--ray", "--sharded")


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("learner", ["linear", "trees"])
def test_one_worker_equals_ordinary_training(learner, shell, tmp_path):
    paths = write_files(tmp_path, [23, 40, 0, 31])
    words = ("--label", "price", "-n", "3", "--learner", learner)
    shell("train", *paths, *words, "-o", tmp_path / "a.sb")
    more = ("--ray", "--sharded", "--workers", "1", "--json", "--quiet")
    result = json.loads(shell("train", *paths, *words, *more, "-o", tmp_path / "b.sb").out)
    assert result["examples"] == 94
    assert (tmp_path / "a.sb").read_bytes() == (tmp_path / "b.sb").read_bytes()
    evaluated = json.loads(shell("evaluate", *paths, *words, "--json", "--quiet").out)
    assert result["loss"] == pytest.approx(evaluated["loss"], rel=1e-12)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("learner", ["linear", "trees"])
def test_a_sharded_run_resumes(learner, shell, tmp_path, monkeypatch):
    monkeypatch.setattr("spanboost.parallel.team.SNAPSHOT_EVERY", 8)
    paths = write_files(tmp_path, [23, 40, 31, 12, 50])
    words = (*WORDS, "--learner", learner, "--workers", "2", "--json")
    words += ("--average-every", "8") if learner == "linear" else ()
    expected = json.loads(shell("train", *paths, *words, "-o", tmp_path / "a.sb").out)
    saved, saving = [], Checkpoints.save_shards

    def interrupt(self, model, rows, *rest):
        saving(self, model, rows, *rest)
        saved.append(rows)
        if len(saved) == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save_shards", interrupt)
        command = ("train", *paths, *words, "-o", tmp_path / "b.sb", "--checkpoint-every", "20")
        shell(*command, status=130)
    assert len(saved) == 3
    resumed = shell(*command, "--resume")
    assert f"resuming after {saved[-1]:,} rows" in resumed.err
    result = json.loads(resumed.out)
    for name in ("examples", "weight"):
        assert result[name] == expected[name]
    assert result["loss"] == pytest.approx(expected["loss"], rel=1e-12)
    assert (tmp_path / "a.sb").read_bytes() == (tmp_path / "b.sb").read_bytes()
    assert "is complete; nothing to do" in shell(*command, "--resume").err
    assert load(tmp_path / "b.sb").schema.label == "price"


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--learner", "linear", "--sharded"), "--sharded requires --ray"),
        (("--ray", "--sharded"), "--sharded cannot be combined with --learner auto"),
        (("--learner", "linear", "--ray", "--sharded", "--plot", "x.png"), "combined with --plot"),
        (("--learner", "linear", "--ray", "--sharded", "--rows", "5"), "combined with --rows"),
        (("--learner", "linear", "--ray", "--sharded", "--mlflow"), "combined with --mlflow"),
        (
            ("--learner", "linear", "--ray", "--sharded", "--workers", "3"),
            "--workers must be at most the number of files, 2",
        ),
    ],
)
def test_bad_options_are_refused(words, message, shell, tmp_path):
    paths = write_files(tmp_path, [5, 5])
    assert message in shell("train", *paths, *words, "-o", tmp_path / "m.sb", status=2).err


@pytest.mark.usefixtures("cluster")
def test_an_error_in_the_first_file_shows_its_name(shell, tmp_path, monkeypatch):
    (tmp_path / "empty.csv").touch()
    monkeypatch.chdir(tmp_path)
    words = ("--learner", "linear", "--ray", "--sharded", "-o", "m.sb")
    assert shell("train", "empty.csv", *words, status=2).err == (
        "spanboost: empty.csv: the file is empty\n"
    )


@pytest.mark.usefixtures("cluster")
def test_a_sharded_run_does_not_resume_with_other_files(shell, tmp_path, monkeypatch):
    paths = write_files(tmp_path, [23, 40, 31])
    words = (*WORDS, "--learner", "linear", "--workers", "2", "--average-every", "8")
    command = (*words, "-o", tmp_path / "m.sb", "--checkpoint-every", "20")

    def interrupt(*given, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("spanboost.cli.sharded_training.save", interrupt)
        shell("train", *paths, *command, status=130)
    paths[1].write_text(paths[1].read_text() + "0.5,Bonn,2.5\n")
    message = "belongs to a run over different data"
    assert message in shell("train", *paths, *command, "--resume", status=2).err
