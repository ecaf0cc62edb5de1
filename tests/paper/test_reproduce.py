"""`spanboost reproduce`: the protocol against a plain one, resuming, tables, JSON, the report."""

import json
import threading
from dataclasses import replace
from statistics import mean, median

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from spanboost import HullBoost, SpanBoost
from spanboost.cli.main import main
from spanboost.errors import UserError
from spanboost.paper import protocol
from spanboost.paper.cells import FEEDBACKS, CellStore, cell_from_json, feedbacks_of
from spanboost.paper.dataset_folder import read
from spanboost.paper.datasets import SETS
from spanboost.paper.protocol import LEARNERS, Grid
from spanboost.paper.published import TABLE_2, Losses
from spanboost.paper.reproduce import (
    Selection,
    Watcher,
    find_datasets,
    reproduce,
    survey,
    total_work,
)
from spanboost.paper.table_content import examples_of
from spanboost.parallel.executor import LocalExecutor

SMALL = Grid(rates=(0.25, 2.0), etas=(0.25, 0.5), copies=6)
ROWS = 90


@pytest.fixture
def data(tmp_path):
    """Three of the data sets, with a few generated rows each."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (ROWS, 3))
    sums = X @ [1.0, -1.0, 0.5]
    folder = tmp_path / "data"
    folder.mkdir()

    def write(name, label, **more):
        columns = {f"x{j}": X[:, j] for j in range(3)} | more
        parquet.write_table(pa.table(columns | {"label": label}), folder / f"{name}.parquet")

    write("abalone", (15 + 4 * sums).round().astype(np.int64))
    write("bank", np.where(sums > 0.5, "yes", "no"), job=rng.choice(["a", "b", "?"], ROWS))
    write("activity", np.where(np.arange(ROWS) < ROWS // 2, "sitting", "walking"))
    return folder


def watcher(cells=None, interrupt_after=None):
    """A watcher that records finished cells, and may interrupt the run."""
    finished, lock = [] if cells is None else cells, threading.Lock()

    def on_finish(cell, was_known):
        with lock:
            finished.append((cell, was_known))
            if len(finished) == interrupt_after:
                raise KeyboardInterrupt

    return Watcher(lambda what: None, lambda amount: None, on_finish)


def run_cells(selection, data, work, watch=None, grid=SMALL, executor=None):
    """Run a selection; return its cells."""
    facts = survey(selection.sets, data)
    return reproduce(
        selection, facts, data, CellStore(work), watch or watcher(), grid, executor=executor
    )


def plain(name, examples, learner, feedback):
    """Run the protocol with one booster at a time; return {way: (parameters, losses)}."""
    y, limits = examples.y, (-SETS[name].largest, SETS[name].largest)
    half = len(y) // 2

    def losses(model):
        squares = (model.learn_many(examples.X, y) - y) ** 2
        return squares[:half].mean(), squares[half:].mean()

    base = {rate: replace(LEARNERS[learner], rate=rate) for rate in SMALL.rates}
    common = {"feedback": feedback.removesuffix("-advantage"), "label_range": limits}
    alone = {(r, 1, None): losses(HullBoost(base[r], 1, label_range=limits)) for r in base}
    sizes = range(1, SMALL.copies + 1)
    if feedback.endswith("-advantage"):
        base = {rate: replace(one, ranking="advantage") for rate, one in base.items()}
    span = {
        (r, n, eta): losses(SpanBoost(base[r], n, eta, **common))
        for r in base
        for eta in SMALL.etas
        for n in sizes
        if n * eta >= 1
    }
    hull = {
        (r, n, None): losses(HullBoost(base[r], n, **common)) for r in base for n in sizes if n > 1
    }
    every = {"baseline": alone, "span": span, "hull": hull}
    return {way: min(own.items(), key=lambda one: one[1][0]) for way, own in every.items()}


@pytest.mark.parametrize(
    ("name", "learner", "feedback"),
    [
        ("abalone", "stumps", "greedy-advantage"),
        ("bank", "linear", "linear"),
        ("bank", "linear", "greedy"),
    ],
)
def test_the_protocol_is_the_plain_one(data, name, learner, feedback):
    examples = examples_of(SETS[name], read(SETS[name], data))
    tuned = []
    cell = protocol.run(
        (name, "file", learner, feedback), examples, SETS[name].largest, SMALL, tuned.append
    )
    assert sum(tuned) == ROWS // 2
    expected = plain(name, examples, learner, feedback)
    for way, (parameters, (first, second)) in expected.items():
        one = cell.models[way]
        assert (one.rate, one.n, one.eta) == parameters, way
        assert one.first_half == pytest.approx(first, rel=1e-9)
        assert one.second_half == pytest.approx(second, rel=1e-12)
        assert np.mean(one.curve) == pytest.approx((first + second) / 2, rel=1e-9)
    assert len(cell.models["hull"].against_n) == SMALL.copies
    against_n = cell.models["hull"].against_n[1:]
    assert min(against_n) >= cell.models["hull"].first_half - 1e-12


def test_boosting_never_falls_back_to_the_learner_alone(data):
    """With one copy, greedy Algorithm 2 is the learner alone; labels of noise prefer that."""
    noise = np.random.default_rng(5).choice([-1.0, 1.0], ROWS)
    examples = examples_of(SETS["bank"], read(SETS["bank"], data))._replace(y=noise)
    for feedback in FEEDBACKS:
        named = ("bank", "file", "linear", feedback)
        models = protocol.run(named, examples, 1, SMALL, lambda rows: None).models
        assert models["hull"].n >= 2
        assert models["span"].n >= 2
    losses = np.array([[0.1, 0.5, 0.4], [0.2, 0.6, 0.3]])  # one copy is the best
    models = protocol.Grid((0.5, 1.0), (0.5,), 3).ways("linear", "greedy", 1)["hull"]
    choice = protocol.choose(models, losses, fewest=2)
    assert (choice.model, choice.n, choice.loss) == (models[1], 3, 0.3)


def test_cells_of_a_selection():
    selection = Selection(["bank"], ["linear"], 2)
    assert [cell.order for cell in selection.cells("file")][::2] == ["file", "shuffle0", "shuffle1"]
    assert [cell.order for cell in selection.cells("shuffle0")][::2] == ["shuffle0", "shuffle1"]
    assert [cell.feedback for cell in selection.cells("file")] == ["linear", "greedy"] * 3


def test_all_cells_are_there(data, tmp_path):
    """Every combination of data set, learner and feedback, in the order that the data ask for."""
    selection = Selection(["abalone", "activity"], list(LEARNERS), 1)
    cells = run_cells(selection, data, tmp_path)
    expected = {
        (name, order, learner, feedback)
        for name, order in (
            ("abalone", "file"),
            ("abalone", "shuffle0"),
            ("activity", "shuffle0"),  # its halves have different labels
        )
        for learner in LEARNERS
        for feedback in feedbacks_of(learner)
    }
    assert {(cell.set, cell.order, cell.learner, cell.feedback) for cell in cells} == expected
    assert len(cells) == len(expected)
    assert all(list(cell.models) == ["baseline", "span", "hull"] for cell in cells)


def test_an_interrupted_run_resumes(data, tmp_path):
    selection = Selection(["abalone", "bank"], ["linear"], 1)
    first, second = [], []
    with pytest.raises(KeyboardInterrupt):
        run_cells(selection, data, tmp_path / "work", watcher(first, interrupt_after=3))
    cells = run_cells(selection, data, tmp_path / "work", watcher(second))
    kept = [cell for cell, _ in first]
    assert {(cell.set, cell.order, cell.feedback) for cell, known in second if known} >= {
        (cell.set, cell.order, cell.feedback) for cell in kept
    }
    assert len(second) == len(cells) == 8
    assert sum(known for _, known in second) < 8
    assert all(cell in cells for cell in kept)
    uninterrupted = run_cells(selection, data, tmp_path / "other")
    for cell, other in zip(cells, uninterrupted, strict=True):
        assert cell.models == other.models


def test_a_failure_stops_the_other_cells(data, tmp_path):
    """Nothing else finishes once a cell has failed, and the caller sees the first error."""
    blocks = []

    def on_work(amount):
        blocks.append(amount)
        raise OSError("disk")

    broken = Watcher(lambda what: None, on_work, lambda cell, known: None)
    with pytest.raises(OSError, match="disk"):
        run_cells(Selection(["abalone"], ["linear"], 4), data, tmp_path, broken)
    assert len(blocks) < 10


def test_facts_of_a_data_set(data):
    facts = survey(["bank", "activity"], data)
    assert facts["bank"].features == 5  # three numbers, and two categories that are not "?"
    assert not facts["bank"].published
    assert (facts["bank"].order, facts["activity"].order) == ("file", "shuffle0")


def test_an_executor_gives_the_same_cells(data, tmp_path):
    """Cells run in several threads and keep their order."""
    selection = Selection(["abalone", "bank"], ["linear", "stumps"], 0)
    here = run_cells(selection, data, tmp_path / "here")
    finished = []
    there = run_cells(
        selection, data, tmp_path / "there", watcher(finished), executor=LocalExecutor()
    )
    assert len(finished) == len(there) == 2 * (2 + 3)
    for cell, other in zip(here, there, strict=True):
        assert replace(cell, seconds=0) == replace(other, seconds=0)
    stopped = watcher([], interrupt_after=1)
    with pytest.raises(KeyboardInterrupt):
        run_cells(selection, data, tmp_path / "stopped", stopped, executor=LocalExecutor())


def test_different_data_or_grids_are_computed_again(data, tmp_path, monkeypatch):
    selection, finished = Selection(["abalone"], ["linear"]), []
    watch = watcher(finished)
    run_cells(selection, data, tmp_path, watch)
    run_cells(selection, data, tmp_path, watch, SMALL._replace(copies=5))
    file = data / "abalone.parquet"
    parquet.write_table(parquet.read_table(file).slice(1), file)
    run_cells(selection, data, tmp_path, watch)
    for feedback in FEEDBACKS:
        (tmp_path / f"abalone-file-linear-{feedback}.json").write_text("torn")
    run_cells(selection, data, tmp_path, watch)
    run_cells(selection, data, tmp_path, watch)
    changed = replace(LEARNERS["linear"], decay=0.5)
    monkeypatch.setitem(protocol.LEARNERS, "linear", changed)
    run_cells(selection, data, tmp_path, watch)
    known = [was_known for _, was_known in finished]
    assert known == [False] * 8 + [True] * 2 + [False] * 2


def test_a_cell_is_the_same_after_json(data, tmp_path):
    cell, _ = run_cells(Selection(["abalone"], ["linear"]), data, tmp_path)
    assert cell_from_json(json.loads(json.dumps(cell.as_json()))) == cell


def test_a_folder_that_cannot_be_created_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot create the folder"):
        CellStore(tmp_path / "file" / "work")


def test_the_progress_adds_up_to_all_work(data, tmp_path):
    selection = Selection(["abalone", "bank"], ["linear"], 1)
    for _ in range(2):  # known cells count as work too
        works = []
        progress = Watcher(lambda what: None, works.append, lambda cell, was_known: None)
        run_cells(selection, data, tmp_path, progress)
        expected = total_work(selection, survey(selection.sets, data))
        assert sum(works) == pytest.approx(expected)


def test_missing_data_sets_are_named(data):
    available, absent = find_datasets(["abalone", "slice"], data)
    assert available == ["abalone"]
    assert "slice.parquet" in absent["slice"]


def run(data, tmp_path, *more):
    words = ["reproduce", "--data", data, "--work", tmp_path / "work", *more]
    return main(list(map(str, words)))


def test_the_command(data, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("spanboost.cli.commands.reproduce.Grid", lambda: SMALL)
    files = ["--json", tmp_path / "a.json", "--report", tmp_path / "a.html"]
    assert run(data, tmp_path, "--learners", "linear", "--shuffles", 2, *files) == 0
    out, err = capsys.readouterr()
    assert "slice is left out" in err
    assert "bank file linear greedy: baseline" in err
    assert "Choices that the paper leaves open" in out
    assert "Gains over SGD, all rows shuffled" in out
    assert "| 3.7263 |" in out  # the paper's loss of SGD on abalone
    found = json.loads((tmp_path / "a.json").read_text())
    more = ("--learners", "linear", "--shuffles", 2, "--json")
    assert run(data, tmp_path, *more) == 0
    again = json.loads(capsys.readouterr().out)  # without tables
    assert again["cells"] == found["cells"]
    cells = [cell_from_json(state) for state in found["cells"]]
    assert len(cells) == (3 + 3 + 2) * 2
    assert {name: one["order"] for name, one in found["data"].items()} == {
        "abalone": "file",
        "activity": "shuffle0",
        "bank": "file",
    }
    for feedback in FEEDBACKS:
        for algorithm in ("span", "hull"):
            gains = {
                cell.set: 1
                - cell.models[algorithm].second_half / cell.models["baseline"].second_half
                for cell in cells
                if cell.feedback == feedback and cell.order == found["data"][cell.set]["order"]
            }
            assert len(gains) == 3
            for take, name in ((mean, "average"), (median, "median")):
                table = found[f"{name}_relative_improvement"]["linear"]
                assert table[feedback][algorithm] == pytest.approx(take(gains.values()))
    paper = found["average_relative_improvement"]["linear"]["paper"]["span"]
    sets = ("abalone", "activity", "bank")
    assert paper == pytest.approx(
        mean(TABLE_2[name]["linear"].improvement("span") for name in sets)
    )
    assert sorted(found["absent"]) == sorted(set(SETS) - set(sets))
    page = (tmp_path / "a.html").read_text()
    assert page.count("<svg") == 2 * 3  # improvements, losses against n, learning curves
    assert "Ugulino" in page
    assert "3.7263" in page
    assert run(data, tmp_path, "--learners", "linear", "--shuffles", 2, "--quiet") == 0
    again, nothing = capsys.readouterr()
    assert again == out
    assert "bank" not in nothing


def test_a_folder_without_data_is_one_sentence(tmp_path, capsys):
    assert run(tmp_path, tmp_path, "--sets", "abalone") == 2
    assert "no data set found in" in capsys.readouterr().err


def test_an_unwritable_report_is_refused_at_once(data, tmp_path, capsys):
    assert run(data, tmp_path, "--report", tmp_path / "no" / "a.html") == 2
    assert run(data, tmp_path, "--report", tmp_path / "a.txt") == 2
    assert not (tmp_path / "work").exists()
    assert "a report must be a .html file" in capsys.readouterr().err


def test_a_data_set_that_cannot_be_downloaded_is_left_out(data, tmp_path, capsys, monkeypatch):
    one = SETS["slice"]
    address = ("http://127.0.0.1:9/slice.zip",)
    monkeypatch.setitem(SETS, "slice", one._replace(raw=one.raw._replace(addresses=address)))
    monkeypatch.setattr("spanboost.cli.commands.reproduce.Grid", lambda: SMALL)
    some = ["--learners", "linear", "--sets", "abalone", "slice"]
    assert run(data, tmp_path, *some, "--download") == 0
    err = capsys.readouterr().err
    assert "slice.zip is not available" in err
    assert "slice is left out" in err


def test_a_loss_of_zero_has_no_improvement():
    assert Losses(0.0, 0.0, 0.1).improvement("hull") == 0
    assert Losses(0.4, 0.3, 0.5).improvement("span") == pytest.approx(0.25)
