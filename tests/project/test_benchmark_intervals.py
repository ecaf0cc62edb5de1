"""The benchmark of prediction intervals: its methods, results file and tables."""

import numpy as np
import pytest

from benchmarks import interval_cost
from benchmarks.accuracy.datasets import Column, Data
from benchmarks.intervals import __main__ as command
from benchmarks.intervals import methods, results, tables
from benchmarks.intervals.methods import COVERAGES
from benchmarks.intervals.results import Key
from spanboost import AutoBoost


@pytest.mark.slow
def test_the_cost_is_measured_for_every_model(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(
        interval_cost, "MODELS", {"linear": interval_cost.MODELS["HullBoost(LinearSGD(), n=16)"]}
    )
    monkeypatch.setattr(
        "sys.argv", ["interval_cost", "--quick", "--json", str(tmp_path / "a.json")]
    )
    interval_cost.main()
    assert "| `linear` |" in capsys.readouterr().out


def small_data(name, order, folder, most):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (most, 2))
    columns = [Column(f"x{j}", x[:, j], None) for j in range(2)]
    return Data(columns, 3 * x[:, 0] + rng.normal(size=most))


@pytest.mark.parametrize("method", ["spanboost", "river"])
def test_methods_cover_the_labels(monkeypatch, method):
    monkeypatch.setattr(results.datasets, "load", small_data)
    monkeypatch.setattr(methods, "AutoBoost", lambda: AutoBoost(budget="fast"))
    row = results.run(Key("casp", "file", method), None, 600)
    for coverage in COVERAGES:
        assert abs(row[str(coverage)]["coverage"] - coverage) < 0.08
    assert row["0.8"]["width"] < row["0.95"]["width"]
    assert row["seed"] == 0
    assert method in row["versions"]


@pytest.mark.slow
def test_one_run_of_mve_has_the_intervals_of_all_coverages():
    pytest.importorskip("capymoa")
    data = small_data("casp", "file", None, 200)
    (expected,) = methods.capymoa_intervals("MVE", data, COVERAGES[2:])
    np.testing.assert_allclose(methods.mve_intervals(data)[:, 2], expected, rtol=1e-4, atol=1e-4)


def test_windows_that_are_close_are_counted():
    y = np.zeros(3000)
    ends = np.tile([-1.0, 1.0], (3000, 1))
    ends[:150] = ends[1000:1100] = ends[2000:2200] = 1, 2
    found = results.measure(0.9, y, ends)
    assert found["coverage"] == pytest.approx(2550 / 3000)
    assert found["close"] == pytest.approx(2 / 3)
    assert found["farthest"] == pytest.approx(0.8)


def test_widths_are_compared_at_equal_coverage():
    y = np.random.default_rng(0).normal(size=100_000)
    right = 2 * 1.6449
    for half in (0.1, 1.0, 9.0):  # too narrow or too wide: the same after scaling
        ends = np.tile([-half, half], (len(y), 1))
        assert results.equal_width(0.9, y, ends) == pytest.approx(right, rel=0.02)
    ends = np.column_stack([y - 1, y + 1])
    assert results.equal_width(0.9, y, ends) == pytest.approx(0, abs=1e-12)
    ends[0] = -np.inf, np.inf
    assert results.equal_width(0.9, y, ends) == pytest.approx(0, abs=1e-12)


def figures(loss, coverage=0.0):
    one = {"width": 2.0, "pinball_loss": loss, "infinite": 0.0, "close": 1.0, "equal_width": loss}
    each = {str(c): one | {"coverage": c + coverage} for c in COVERAGES}
    return {"rows": 9, "spread": 0.5, "cpu_seconds": 1.0, **each}


def test_a_run_is_stored_and_not_repeated(monkeypatch, tmp_path, capsys):
    calls = []
    monkeypatch.setattr(results, "run", lambda *key: calls.append(key) or figures(1.0))
    options = ["--results", str(tmp_path / "results.jsonl"), "--sets", "casp"]
    options += ["--methods", "spanboost"]
    for again in ([], [], ["--again"]):
        monkeypatch.setattr("sys.argv", ["intervals", *options, *again])
        command.main()
    assert len(calls) == 4
    line = "| casp | file order | 9 | 80.00% | 100% | 90.00% | 100% | 95.00% | 100% |"
    assert line in capsys.readouterr().out


def test_the_tables_compare_widths_and_losses():
    keys = [Key(data, "file", "spanboost") for data in ("casp", "fried")]
    runs = dict(zip(keys, (figures(0.5), figures(2.0, 0.02)), strict=True))
    runs |= {key._replace(method="lightgbm"): figures(1.0) for key in keys}
    assert "| LightGBM | 80% | 1 of 2 | +0.0 % | 1 of 2 | +0.0 % |" in tables.counts(runs)
    assert "| casp | file order | **1.000** | 2.000 | - | - | - | **1.000** |" in tables.widths(
        runs
    )
    found = {name: rest for name, *rest in tables.targets(runs)}
    assert found["coverage of 90% within 1 point"] == ["1 of 2 runs", ">= 100%", "NO"]
    narrower = "narrower than {} at an equal coverage of 95%"
    assert found[narrower.format("LightGBM")] == ["1 of 2 runs", ">= 80%", "NO"]
    assert found[narrower.format("River")] == ["0 of 0 runs", ">= 80%", "-"]
