"""The parts of the comparison with other libraries that run without those libraries."""

import json

import numpy as np
import pytest

from benchmarks import headline
from benchmarks.accuracy import __main__ as command
from benchmarks.accuracy import results, speeds, tables, verdicts
from benchmarks.accuracy.datasets import TASKS, Column, Data, load, positions
from benchmarks.accuracy.methods import METHODS, named, runner
from benchmarks.accuracy.results import Key
from benchmarks.accuracy.stream import Run, one_by_one
from benchmarks.accuracy.verdicts import TARGETS, Target
from benchmarks.accuracy.worker import half, prefixes
from benchmarks.results_files import read, record

DATA = Data(
    [
        Column("size", np.array([1.5, 2.5, 3.5]), None),
        Column("hue", np.array([1, 0, 1]), ("a", "?")),
    ],
    np.array([0.0, 1.0, 2.0]),
)


def row(mse, rows=20_000, **more):
    found = {"mse": mse, "rows": rows, "variance": 2.0, "complete": True, "rows_per_s": 10.0}
    return {**found, "peak_mib": 1.0, "threads": 1, "versions": {}, "prefixes": {}, **more}


def everywhere(ours, theirs, order=("file", "shuffled")):
    """Return results in which all our methods have one loss and all peers another."""
    return {
        Key("accuracy", data, o, name): row(ours if method.group == "ours" else theirs)
        for data in TASKS
        for o in order
        for name, method in METHODS.items()
    }


def test_orders_are_the_same_every_time():
    assert positions(5, "file").tolist() == [0, 1, 2, 3, 4]
    assert positions(5, "shuffled").tolist() == np.random.default_rng(0).permutation(5).tolist()
    whole, start = (load("friedman", "shuffled", None, most) for most in (None, 7))
    assert (whole.matrix()[:7] == start.matrix()).all()
    assert (whole.y[:7] == start.y).all()
    assert whole.y.std() == pytest.approx(
        4.97, abs=0.05
    )  # the standard deviation of Friedman's function


def test_categories_as_the_libraries_take_them():
    assert DATA.categorical == [1]
    assert DATA.matrix().tolist() == [[1.5, 1], [2.5, 0], [3.5, 1]]
    assert DATA.rows().codes.tolist() == [[-1], [0], [-1]]  # "?" is missing
    names, values = DATA.one_hot()
    assert names == ["size", "hue=a", "hue=?"]
    assert values.tolist() == [[1.5, 0, 1], [2.5, 1, 0], [3.5, 0, 1]]


def test_losses_are_those_of_the_second_half_of_any_prefix():
    y = np.random.default_rng(0).normal(size=1234)
    run = Run(np.zeros(1234), 1.0, 1234)
    found = prefixes(run, y)
    assert list(found) == ["500", "1000", "1234"]
    for end, loss in found.items():
        rows = int(end)
        plain = [y[t] ** 2 for t in range(rows // 2, rows)]
        assert loss == pytest.approx(sum(plain) / len(plain), rel=1e-5)
        assert half(run.predictions, y, rows) == pytest.approx(loss, rel=1e-5)


def test_a_run_past_its_limit_ends_with_the_blocks_it_did():
    seen = []
    stepped = one_by_one(1700, lambda part: list(range(part.start, part.stop)), seen.append, 3600.0)
    assert seen == list(range(1700))
    assert stepped.predictions.tolist() == [0.0] * 1700  # every prediction is 0
    stopped = one_by_one(1700, lambda part: [1.0] * (part.stop - part.start), float, 0.0)
    assert stopped.rows == 500
    assert stopped.predictions.tolist() == [1.0] * 500


def test_results_are_resumed_and_replaced(tmp_path):
    file = tmp_path / "results" / "accuracy.jsonl"
    first, second = (Key("accuracy", "casp", "file", name) for name in ("trees", "river-arf"))
    assert results.missing([first, second], read(file, Key), []) == [first, second]
    record(file, first, {"mse": 1.0})
    record(file, second, {"error": "no such library"})
    there = read(file, Key)
    assert results.missing([first, second], there, []) == []
    assert results.missing([first, second], there, ["trees"]) == [first]
    record(file, first, {"mse": 0.5})
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["method"] for line in lines] == ["trees", "river-arf"]
    assert read(file, Key)[first] == {"mse": 0.5}


def test_the_command_runs_only_missing_results(tmp_path, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(command, "run", lambda key, folder: asked.append(key) or row(1.0))
    file, page = tmp_path / "a.jsonl", tmp_path / "a.md"
    given = ["--results", str(file), "--page", str(page), "--data", "casp", "--orders", "file"]

    def run(*more):
        monkeypatch.setattr("sys.argv", ["accuracy", *given, *more])
        asked.clear()
        command.main()
        return [key.method for key in asked]

    assert run("--methods", "ours") == named("ours")
    assert run() == [*command.CHOICES["baselines"], *command.CHOICES["peers"]]
    assert run() == []
    assert run("--again", "trees") == ["trees"]
    assert run("--table") == []
    assert "1/1 trees on casp, file order: 1 (0.5000 of the variance)" in capsys.readouterr().err
    assert page.read_text() == tables.page(read(file, Key))


def test_a_failed_run_is_recorded(tmp_path):
    found = command.run(Key("accuracy", "casp", "file", "trees"), tmp_path)
    assert found["error"].startswith("casp.parquet not found in")


@pytest.mark.parametrize(
    "target", TARGETS[:-1], ids=lambda target: f"{target.against}-{target.ours}"
)
def test_targets_are_met_by_less_error_and_not_by_more(target):
    assert verdicts.find(everywhere(1.0, 1.1), target, target.ours).met(target) is True
    assert verdicts.find(everywhere(1.1, 1.0), target, target.ours).met(target) is False
    assert verdicts.find({}, target, target.ours).met(target) is None
    equal = verdicts.find(everywhere(1.0, 1.0), target, target.ours)
    assert equal.met(target) is (target.margin > 1)  # an equal loss is within 3 %, but not better


def test_shares_are_counted_over_all_data_sets():
    target = Target("batch", ("shuffled",), "trees", 0.8, peers=tuple(named("batch")))
    there = everywhere(1.0, 2.0)
    for k, data in enumerate(TASKS):
        there[Key("accuracy", data, "shuffled", "xgboost-batch")] = row(0.5 if k < 4 else 2.0)
        found = verdicts.find(there, target, "trees")
        assert found.met(target) is (k < 3)  # 15 of 18 is four fifths, 14 is not
    assert [contest.ratio for contest in found.lost(1.0)] == [2.0] * 4  # the better peer counts
    del there[Key("accuracy", "abalone", "shuffled", "trees")]
    assert verdicts.find(there, target, "trees").missing == ["abalone (shuffled)"]


def test_peers_are_compared_on_the_rows_they_reached():
    ours, peer = (
        Key("accuracy", "casp", "file", "trees"),
        Key("accuracy", "casp", "file", "river-arf"),
    )

    def ratio(ours_row, peer_row):
        return verdicts.ratio(
            {ours: ours_row, peer: peer_row}, "casp", "file", "trees", "river-arf"
        )

    mine = row(1.0, rows=45_730, prefixes={"7500": 3.0})
    assert ratio(mine, row(6.0, rows=7_500, complete=False)) == 0.5
    assert ratio(mine, row(6.0, rows=8_000)) is None
    assert np.isnan(ratio(mine, {"error": "no such library"}))
    assert np.isnan(ratio(mine, row(0.0, rows=7_500, variance=0.0)))
    assert ratio({"error": "broken"}, row(6.0, rows=7_500)) is None


def test_the_paper_is_compared_where_its_labels_are_known():
    target = TARGETS[-1]
    found = verdicts.find(everywhere(0.01, 1.0), target, "trees")
    compared = {contest.data: contest.ratio for contest in found.contests}
    assert {"letter", "shuttle", "friedman"} & set(compared) == set()
    assert len(compared) == 9
    assert compared["casp"] == pytest.approx(0.01 / 0.063)


def test_speed_ratios_come_from_timed_runs_only():
    there = everywhere(1.0, 2.0)
    for name, speed in (("trees", 5000.0), ("river-arf", 40.0)):
        there[Key("speed", "casp", "shuffled", name)] = row(1.0, rows_per_s=speed)
    assert speeds.ratios(there, "trees", "river-arf") == {"casp": 125.0}
    assert speeds.ratios(there, "trees", "capymoa-sgbr") == {}


def test_the_page_shows_losses_failures_and_missing_runs():
    there = everywhere(1.0, 2.0)
    there[Key("accuracy", "bank", "shuffled", "lightgbm-batch")] = row(0.9)
    for name in named("streaming"):
        there[Key("accuracy", "activity", "file", name)]["variance"] = 0.0
    there[Key("accuracy", "bank", "file", "river-srp")] = {"error": "out of memory"}
    late = row(2.0, rows=7_500, complete=False)
    there[Key("accuracy", "census", "file", "river-srp")] = late
    for name in named("ours"):
        there[Key("accuracy", "census", "file", name)]["prefixes"] = {"7500": 0.5}
    del there[Key("accuracy", "casp", "file", "river-arf")]
    page = tables.page(there)
    assert "| AutoBoost | bank | shuffled | LightGBM | 1.111 |" in page
    assert "| bank | 20,000 | 2 | 1 | 0.5 | 0.5 | 0.5 | 0.5 | **0.45** | 1 |" in page
    assert "failed: river-srp on bank, file order: out of memory" in page
    assert "1 (first 7,500: AutoBoost 0.25)" in page
    assert "No comparison on activity (file order): River Hoeffding tree, CapyMOA ARF-Reg" in page
    assert "Missing runs: 1 of 792." in page
    assert "Not measured" not in page
    for data in TASKS:
        assert page.count(f"| {data} |") >= 4


@pytest.mark.parametrize("page", headline.PAGES)
def test_the_tables_of_the_pages_match_the_results(page):
    text = (headline.ROOT / page).read_text()
    assert headline.BLOCK.search(text)
    assert headline.filled(text) == text  # else: python -m benchmarks.headline


def test_the_table_of_errors_ends_in_the_times_relative_to_autoboost(monkeypatch):
    seconds = {"auto-default": 2.0, "lightgbm-batch": 1.0}
    there = {
        key: one | {"seconds": seconds[key.method]} if key.method in seconds else one
        for key, one in everywhere(1.0, 2.0).items()
    }
    slow = Key("accuracy", "bank", "file", "lightgbm-batch")  # the median leaves it out
    there[slow] = there[slow] | {"seconds": 1000.0}
    monkeypatch.setattr(headline, "read", lambda *_: there)
    last = headline.errors().splitlines()[-1]
    assert last == "| time, median (AutoBoost = 1) |  | 1 | - | 0.5 | - | 1 | 0.5 | - |"


def test_a_method_without_any_run_is_not_a_row_or_column():
    there = everywhere(1.0, 2.0)
    page = tables.page({key: one for key, one in there.items() if key.method != "river-srp"})
    assert page.count("River SRP") == 1
    assert "Missing runs: 0 of 756.\nNot measured: River SRP.\n" in page


def test_the_previous_label_is_the_prediction_of_the_baseline():
    run = runner("previous-label")(DATA, 1.0)
    assert run.predictions.tolist() == [0.0, 0.0, 1.0]
    assert half(run.predictions, DATA.y, 3) == 1.0


def test_targets_are_met_missed_or_open():
    there = everywhere(1.0, 2.0)
    there[Key("accuracy", "bank", "shuffled", "capymoa-arf")] = row(0.9)
    del there[Key("accuracy", "bank", "shuffled", "river-arf")]
    there[Key("speed", "casp", "shuffled", "trees")] = row(1.0, rows_per_s=5000.0)
    there[Key("speed", "casp", "shuffled", "river-arf")] = row(1.0, rows_per_s=40.0)
    there[Key("speed", "casp", "shuffled", "capymoa-sgbr")] = row(1.0, rows_per_s=200.0)
    found = {
        (who, against, target): rest for who, against, _, target, *rest in tables.targets(there)
    }
    lower = "error lower on all"
    assert found["AutoBoost", "River Hoeffding tree", lower] == ["36 of 36", "yes"]
    assert found["AutoBoost", "CapyMOA ARF-Reg", lower] == ["35 of 36", "NO"]
    assert found["AutoBoost", "River ARF", lower] == ["35 of 35 (1 not measured)", "open"]
    rows = "times the rows/s"
    assert found["trees alone", "River ARF", f"at least 100 {rows}"] == ["125 times", "yes"]
    assert found["trees alone", "CapyMOA SGBR", f"at least 50 {rows}"] == ["25 times", "NO"]
    assert found["AutoBoost", "CapyMOA SGBR", f"at least 10 {rows}"] == ["-", "open"]
    assert "must" not in tables.page(there)


def test_tables_are_filled_in_between_their_comments():
    text = "a\n<!-- table: memory, how -->\n\nold\n\n<!-- end of table -->\nb"
    found = headline.filled(text)
    assert found.startswith("a\n<!-- table: memory, how -->\n\n| learner |")
    assert found.endswith("|\n\n<!-- end of table -->\nb")
    assert headline.filled(found) == found
