"""The benchmark of learners of other libraries: its figures, results file and table."""

import numpy as np
import pytest

from benchmarks import foreign
from benchmarks.accuracy.datasets import Column, Data


def small_data(name, order, folder, most):
    x = np.random.default_rng(0).uniform(-1, 1, (most, 2))
    columns = [Column(f"x{j}", x[:, j], None) for j in range(2)]
    return Data(columns, 30 * x[:, 0] - x[:, 1])


def test_a_run_and_the_results_file(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(foreign.datasets, "load", small_data)
    X, y = foreign.load("casp", None, 60)
    assert X.mean(axis=0) == pytest.approx([0, 0], abs=1e-6)
    assert (y.min(), y.max()) == pytest.approx((-1, 1))
    row = foreign.run(foreign.Key("casp", "river-linear"), None, 60)
    assert set(row["losses"]) == {"alone", "n=10", "default"}
    assert 0 < row["losses"]["default"]["second"] < row["losses"]["default"]["whole"]
    calls = []
    monkeypatch.setattr(foreign, "run", lambda *key: calls.append(key) or row)
    options = ["--results", str(tmp_path / "results.jsonl"), "--sets", "casp"]
    monkeypatch.setattr("sys.argv", ["foreign", *options, "--learners", "sgd", "mlp"])
    foreign.main()
    foreign.main()
    assert len(calls) == 2
    lines = capsys.readouterr().out.splitlines()
    assert "| scikit-learn SGDRegressor | casp | 60 |" in lines[2]
    assert lines[-1].startswith("mlp: ")


def test_the_summary_counts_sets_within_one_per_cent():
    def row(default):
        losses = {"alone": 1.0, "n=10": 1.2, "default": default}
        both = {name: {"whole": one, "second": one} for name, one in losses.items()}
        return {"rows": 9, "losses": both}

    runs = {foreign.Key("casp", "sgd"): row(0.8), foreign.Key("abalone", "sgd"): row(1.02)}
    assert list(foreign.table(runs))[-1] == "sgd: 1 of 2 sets within 1 %; mean change -9.7 %"
