"""The benchmark of wild streams: its streams, results file and table."""

import math

import numpy as np
import pytest

from benchmarks.results_files import read
from benchmarks.wild import __main__ as command
from benchmarks.wild import cases, runs, streams, tables
from benchmarks.wild.cases import BEST, CLEAN, UNITS, Case, Group, Measure
from benchmarks.wild.results import Key

CLEAN_CASE = Case("clean", lambda seed: streams.smooth(100, seed))


def group(*names, measure=CLEAN, **options):
    made = [Case(f"bad: {name}", CLEAN_CASE.stream, CLEAN_CASE) for name in names]
    return Group("outliers", "bad", made, (measure,), models=("fast",), many=1, **options)


def found(**errors):
    """Return results of one seed with these errors; underscores stand for ": "."""
    return {
        Key("now", name.replace("_", ": "), "fast", "squared", 0): {"mse": {"second half": error}}
        for name, error in errors.items()
    }


def only_line(there, one):
    (line,) = tables.Reader(there, "now", "before").lines([one], ["trees", "fast"])
    return line


def test_a_line_shows_the_worst_case():
    line = only_line(found(clean=1.0, bad_a=1.21, bad_b=1.04), group("a", "b"))
    assert line.now == pytest.approx(1.1)
    assert line.cells[4:] == ("not measured", "1.100", "a", "<= 1.05", "NO")


def test_a_line_without_all_of_its_runs_is_not_measured():
    for there in (found(clean=1.0, bad_a=1.0), found(bad_a=1.0, bad_b=1.0)):
        line = only_line(there, group("a", "b"))
        assert line.now is line.met is None


def test_a_failed_run_misses_its_target():
    there = found(clean=1.0, bad_a=1.0)
    there[Key("now", "bad: a", "fast", "squared", 0)] = {"error": "ArithmeticError"}
    line = only_line(there, group("a"))
    assert line.cells[5] == "failed"
    assert line.met is False


def test_figures_are_averages_over_seeds():
    one = group("a")._replace(many=2)
    there = found(clean=1.0, bad_a=1.0)
    assert only_line(there, one).now is None
    there |= {key._replace(seed=1): {"mse": {"second half": 4.0}} for key in found(bad_a=0)}
    there |= {key._replace(seed=1): {"mse": {"second half": 1.0}} for key in found(clean=0)}
    assert only_line(there, one).now == 1.5


def test_units_count_in_both_directions():
    assert only_line(found(clean=1.0, bad_a=0.9), group("a", measure=UNITS)).now == (
        pytest.approx(0.1)
    )


def test_experts_before_and_lightgbm_are_the_comparisons():
    there = found(bad_a=3.0)
    (key,) = there
    there[key]["experts"] = {"a": {"second half": 2.0}, "b": {"second half": 6.0}}
    assert only_line(there, group("a", measure=BEST)).now == 1.5
    old = Measure("MSE / before", "before", "<= 1")
    assert only_line(there, group("a", measure=old)).now is None
    there[key._replace(label="before")] = {"mse": {"second half": 12.0}}
    assert only_line(there, group("a", measure=old)).now == 0.25
    assert only_line(there, group("a", measure=old)).before is None
    peer = Measure("MSE / LightGBM", "lightgbm", "<= 1", score="second half")
    there[Key(runs.PEER, "bad: a", runs.PEER, "squared", 0)] = {"mse": {"second half": 1.5}}
    assert only_line(there, group("a", measure=peer)).now == 2
    assert only_line(there, group("a", measure=peer)).before == 8
    assert only_line(there, group("a", measure=cases.PLAIN)).met is None


def test_nothing_learned_exactly_twice_is_no_change():
    assert only_line(found(clean=0.0, bad_a=0.0), group("a")).now == 1
    assert math.isinf(only_line(found(clean=0.0, bad_a=1e-9), group("a")).now)


def test_names_of_streams_are_unique():
    named = {}
    for one in cases.groups(quick=True, full=True):
        assert one.part in command.PARTS
        for case in command._with_references(one.cases):
            assert named.setdefault(case.name, case.stream) is case.stream


def test_wild_rows_do_not_count_and_nothing_else_changes():
    clean = streams.smooth(4_000, 3)
    for signs in cases.PATTERNS.values():
        for pattern in signs.values():
            stream = streams.wild_labels(4_000, 3, 1_000, pattern, 300.0)
            changed = stream.y != clean.y
            assert 1 <= changed.sum() <= streams.BURST
            assert not stream.scores["second half"].rows[changed].any()
            np.testing.assert_array_equal(np.abs(stream.y[changed]), 300.0)
            np.testing.assert_array_equal(stream.X, clean.X)


def test_lagged_features_are_the_last_labels():
    for stream in (streams.counter(50, 0), streams.walk(50, 0), streams.growth(50, 0)):
        for lag in range(1, stream.X.shape[1] + 1):
            np.testing.assert_array_equal(stream.X[lag:, lag - 1], stream.y[:-lag])


def test_a_stream_from_a_change_on_is_scored_on_the_same_rows():
    stream = streams.rescaled(10_000, 0, 1e3)
    late = stream.since(5_000)
    answers = np.zeros(10_000)
    assert late.mse(answers[5_000:]) == stream.mse(answers)
    assert [score.rows.sum() for score in stream.scores.values()] == [2_000, 3_000]


def test_finished_runs_are_skipped(tmp_path, monkeypatch, capsys):
    file = tmp_path / "wild.jsonl"
    case = Case("short", lambda seed: streams.smooth(200, seed))
    one = Group("units", "short", [case], (cases.PLAIN,), models=("fast",), many=1)
    monkeypatch.setattr(command, "groups", lambda quick, full: [one])

    def run(*words):
        words = ["wild", "--budgets", "fast", "--results", str(file), *words]
        monkeypatch.setattr("sys.argv", words)
        command.main()

    for label in ("a", "a", "b"):
        run("--label", label)
    there = read(file, Key)
    assert [key.label for key in there] == ["a", "b"]
    assert len(file.read_text().splitlines()) == 2
    run("--label", "a", "--again")
    assert [key.label for key in read(file, Key)] == ["b", "a"]
    first, second = (row["mse"] for row in there.values())
    assert first == second
    assert "| short | MSE | fast | squared |" in capsys.readouterr().out


def test_runs_that_predict_no_numbers_have_failed(monkeypatch):
    class Broken:
        def learn_many(self, X, y):
            return np.full(len(y), np.nan)

    monkeypatch.setattr(runs, "model", lambda name, loss: Broken())
    row = runs.measure(CLEAN_CASE, Key("now", "clean", "fast", "squared", 0))
    assert row == {"error": "ArithmeticError: some predictions are not finite"}
