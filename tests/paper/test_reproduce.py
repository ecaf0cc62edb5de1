"""`spanboost reproduce`: the protocol against a plain one, resuming, tables, JSON, the report."""

import json
from dataclasses import replace
from statistics import mean, median

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from spanboost import HullBoost, SpanBoost
from spanboost.cli.main import main
from spanboost.errors import UserError
from spanboost.paper import protocol, summary
from spanboost.paper.cells import CellStore, cell_from_json
from spanboost.paper.dataset_folder import read
from spanboost.paper.datasets import SETS
from spanboost.paper.protocol import LEARNERS, Grid
from spanboost.paper.published import TABLE_2, Losses
from spanboost.paper.reproduce import Selection, Watcher, find_datasets, reproduce, total_work
from spanboost.paper.table_content import examples_of, shuffle_rows
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
    write("activity", np.where(sums > 0, "sitting", "walking"))
    return folder


def watcher(cells=None, interrupt_after=None):
    """A watcher that records finished cells, and may interrupt the run."""
    finished = [] if cells is None else cells

    def on_finish(cell, was_known):
        finished.append((cell, was_known))
        if len(finished) == interrupt_after:
            raise KeyboardInterrupt

    return Watcher(lambda what: None, lambda amount: None, on_finish)


def plain(name, examples, learner, feedback):
    """Run the protocol with one booster at a time; return {way: (parameters, losses)}."""
    y, limits = examples.y, (-SETS[name].largest, SETS[name].largest)
    half = len(y) // 2

    def losses(model):
        squares = (model.learn_many(examples.X, y) - y) ** 2
        return squares[:half].mean(), squares[half:].mean()

    base = {rate: type(LEARNERS[learner])(rate=rate) for rate in SMALL.rates}
    common = {"feedback": feedback, "label_range": limits}
    alone = {(r, 1, None): losses(HullBoost(base[r], 1, label_range=limits)) for r in base}
    sizes = range(1, SMALL.copies + 1)
    span = {
        (r, n, eta): losses(SpanBoost(base[r], n, eta, **common))
        for r in base
        for eta in SMALL.etas
        for n in sizes
        if n * eta >= 1
    }
    scale = protocol.SCALES[learner]
    hull = {
        (r, n, None): losses(HullBoost(base[r], n, scale=scale, **common))
        for r in base
        for n in sizes
    }
    best = {}
    for way, own in (("baseline", {}), ("span", span), ("hull", hull)):
        found = [*alone.items(), *own.items()]
        best[way] = min(found, key=lambda one: one[1][0])
    return best


@pytest.mark.parametrize(
    ("name", "learner", "feedback"),
    [("abalone", "stumps", "greedy"), ("bank", "linear", "linear"), ("bank", "linear", "greedy")],
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
    assert (
        min(filter(None, cell.models["hull"].against_n)) >= cell.models["hull"].first_half - 1e-12
    )


def test_a_shuffle_is_the_same_every_time(data):
    examples = examples_of(SETS["bank"], read(SETS["bank"], data))
    one, two = shuffle_rows(examples), shuffle_rows(examples)
    assert (one.y == two.y).all()
    assert (one.y != examples.y).any()
    assert sorted(one.X.numbers[:, 0]) == sorted(examples.X.numbers[:, 0])
    assert (examples.X.codes == -1).any()  # "?" is missing


def test_an_interrupted_run_resumes(data, tmp_path):
    selection = Selection(
        ["abalone", "bank"], ["linear"], ["file", "shuffled"], ["greedy", "linear"]
    )
    store, first = CellStore(tmp_path / "work"), []
    with pytest.raises(KeyboardInterrupt):
        reproduce(selection, data, store, watcher(first, interrupt_after=3), SMALL)
    second = []
    cells, found = reproduce(selection, data, store, watcher(second), SMALL)
    assert [was_known for _, was_known in second] == [True] * 3 + [False] * 5
    assert [cell for cell, _ in first] == cells[:3]
    uninterrupted, _ = reproduce(selection, data, CellStore(tmp_path / "other"), watcher(), SMALL)
    for cell, other in zip(cells, uninterrupted, strict=True):
        assert cell.models == other.models
    assert found["bank"].features == 5  # three numbers, and two categories that are not "?"
    assert not found["bank"].published


def test_an_executor_gives_the_same_cells(data, tmp_path):
    """Cells run in several threads and keep their order."""
    selection = Selection(
        ["abalone", "bank"], ["linear", "stumps"], ["file", "shuffled"], ["greedy"]
    )
    here, _ = reproduce(selection, data, CellStore(tmp_path / "here"), watcher(), SMALL)
    finished = []
    there, _ = reproduce(
        selection, data, CellStore(tmp_path / "there"), watcher(finished), SMALL, LocalExecutor()
    )
    assert len(finished) == len(there) == 8
    for cell, other in zip(here, there, strict=True):
        assert replace(cell, seconds=0) == replace(other, seconds=0)
    store, stopped = CellStore(tmp_path / "stopped"), watcher([], interrupt_after=1)
    with pytest.raises(KeyboardInterrupt):
        reproduce(selection, data, store, stopped, SMALL, LocalExecutor())


def test_different_data_or_grids_are_computed_again(data, tmp_path):
    selection = Selection(["abalone"], ["linear"], ["file"], ["greedy"])
    store, finished = CellStore(tmp_path / "work"), []
    reproduce(selection, data, store, watcher(finished), SMALL)
    reproduce(selection, data, store, watcher(finished), SMALL._replace(copies=5))
    file = data / "abalone.parquet"
    parquet.write_table(parquet.read_table(file).slice(1), file)
    reproduce(selection, data, store, watcher(finished), SMALL)
    (tmp_path / "work" / "abalone-file-linear-greedy.json").write_text("torn")
    reproduce(selection, data, store, watcher(finished), SMALL)
    reproduce(selection, data, store, watcher(finished), SMALL)
    assert [was_known for _, was_known in finished] == [False] * 4 + [True]


def test_a_cell_is_the_same_after_json(data, tmp_path):
    selection = Selection(["abalone"], ["linear"], ["file"], ["greedy"])
    (cell,), _ = reproduce(selection, data, CellStore(tmp_path), watcher(), SMALL)
    assert cell_from_json(json.loads(json.dumps(cell.as_json()))) == cell


def test_a_folder_that_cannot_be_created_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot create the folder"):
        CellStore(tmp_path / "file" / "work")


def test_the_progress_adds_up_to_all_work(data, tmp_path):
    selection = Selection(["abalone", "bank"], ["linear"], ["file"], ["greedy"])
    for _ in range(2):  # known cells count as work too
        works = []
        progress = Watcher(lambda what: None, works.append, lambda cell, was_known: None)
        reproduce(selection, data, CellStore(tmp_path), progress, SMALL)
        assert sum(works) == pytest.approx(total_work(selection))


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
    assert run(data, tmp_path, "--learners", "linear", *files) == 0
    out, err = capsys.readouterr()
    assert "slice is left out" in err
    assert "bank file linear greedy: baseline" in err
    assert "Table 2, greedy feedback, file order, activity and covtype shuffled" in out
    assert "Table 1, linear feedback, one fixed shuffle" in out
    assert "Table 2, linear feedback, activity and covtype in file order" in out
    assert "(3.7263)" in out  # the paper's loss of SGD on abalone
    found = json.loads((tmp_path / "a.json").read_text())
    cells = [cell_from_json(state) for state in found["cells"]]
    assert len(cells) == 3 * 2 * 2
    for feedback, tables in (("greedy", found), ("linear", found["linear_feedback"])):
        for algorithm in ("span", "hull"):
            gains = [
                1 - cell.models[algorithm].second_half / cell.models["baseline"].second_half
                for cell in cells
                if cell.feedback == feedback
                and cell.order == ("shuffled" if cell.set == "activity" else "file")
            ]
            assert len(gains) == 3
            for take, name in ((mean, "average"), (median, "median")):
                table = tables[f"{name}_relative_improvement"]
                assert list(table) == ["linear"]
                assert table["linear"][algorithm] == pytest.approx(take(gains))
    paper = found["paper_on_the_same_sets"]["average_relative_improvement"]["linear"]["span"]
    sets = ("abalone", "activity", "bank")
    assert paper == pytest.approx(
        mean(TABLE_2[name]["linear"].improvement("span") for name in sets)
    )
    assert sorted(found["absent"]) == sorted(set(SETS) - set(sets))
    page = (tmp_path / "a.html").read_text()
    assert page.count("<svg") == 3  # improvements, losses against n, learning curves
    assert "Ugulino" in page
    assert "3.7263" in page
    assert run(data, tmp_path, "--learners", "linear", "--quiet") == 0
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
    some = ["--learners", "linear", "--orders", "file", "--sets", "abalone", "slice"]
    assert run(data, tmp_path, *some, "--download") == 0
    err = capsys.readouterr().err
    assert "slice.zip is not available" in err
    assert "slice is left out" in err


def test_a_loss_of_zero_has_no_improvement():
    assert Losses(0.0, 0.0, 0.1).improvement("hull") == 0
    assert Losses(0.4, 0.3, 0.5).improvement("span") == pytest.approx(0.25)


def test_lines_have_the_order_of_the_data_sets(data, tmp_path):
    selection = Selection(["bank", "abalone"], ["linear"], ["file"], ["greedy"])
    cells, _ = reproduce(selection, data, CellStore(tmp_path), watcher(), SMALL)
    table = summary.lines(cells, "greedy", "headline")
    assert [line.cell.set for line in table] == ["abalone", "bank"]
