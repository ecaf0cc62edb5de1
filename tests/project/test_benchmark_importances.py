"""The benchmark of feature importances: its figures, results file and table."""

import numpy as np

from benchmarks import importances
from benchmarks.accuracy.datasets import Column, Data


def small_data(name, order, folder, most):
    rng = np.random.default_rng(0)
    x, codes = rng.uniform(-1, 1, (most, 2)), rng.integers(0, 3, most)
    columns = [Column(f"x{j}", x[:, j], None) for j in range(2)]
    columns.append(Column("kind", codes, ("a", "b", "c")))
    return Data(columns, 3 * np.sign(x[:, 1]) + (codes == 1))


def test_a_run_and_the_results_file(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(importances.datasets, "load", small_data)
    row = importances.run(importances.Key("casp", "trees"), None, 1000)
    assert row["first"] == "x1"
    assert row["features"] == 3
    assert row["correlation"]["kept rows"] >= 0.5
    assert abs(row["share"]["kept rows"] - row["exact"]) < 0.05
    calls = []
    monkeypatch.setattr(importances, "run", lambda *key: calls.append(key) or row)
    options = ["--results", str(tmp_path / "results.jsonl"), "--sets", "casp"]
    monkeypatch.setattr("sys.argv", ["importances", *options])
    importances.main()
    importances.main()
    assert len(calls) == 2
    lines = capsys.readouterr().out.splitlines()
    assert "| auto | casp | 1,000 | 3 |" in lines[2]
    assert lines[-1].startswith("trees: mean rank correlation ")


def test_the_correlation_is_one_for_equal_orders():
    exact = {"a": 0.7, "b": 0.2, "c": 0.1}
    assert importances.correlation({"a": 0.5, "b": 0.3, "c": 0.2}, exact, ["a", "b", "c"]) > 0.999
    assert importances.correlation({"c": 0.6, "b": 0.4}, exact, ["a", "b", "c"]) < -0.999
