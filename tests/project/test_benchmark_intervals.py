"""The benchmark of prediction intervals: its methods, results file and table."""

import numpy as np
import pytest

from benchmarks import intervals
from benchmarks.accuracy.datasets import Column, Data
from spanboost import AutoBoost


def small_data(name, order, folder, most):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (most, 2))
    columns = [Column(f"x{j}", x[:, j], None) for j in range(2)]
    return Data(columns, 3 * x[:, 0] + rng.normal(size=most))


@pytest.mark.parametrize("method", ["spanboost", "river"])
def test_methods_cover_the_labels(monkeypatch, method):
    monkeypatch.setattr(intervals.datasets, "load", small_data)
    monkeypatch.setattr(intervals, "AutoBoost", lambda: AutoBoost(budget="fast"))
    row = intervals.run(intervals.Key("casp", "file", method), None, 600)
    for coverage in intervals.COVERAGES:
        assert abs(row[str(coverage)]["coverage"] - coverage) < 0.08
    assert row["0.8"]["width"] < row["0.95"]["width"]


def test_windows_that_are_close_are_counted():
    y = np.zeros(3000)
    ends = np.tile([-1.0, 1.0], (3000, 1))
    ends[:150] = ends[1000:1100] = ends[2000:2200] = 1, 2
    found = intervals.measure(0.9, y, ends)
    assert found["coverage"] == pytest.approx(2550 / 3000)
    assert found["close"] == pytest.approx(2 / 3)


def figures(loss, coverage=0.0):
    one = {"width": 2.0, "pinball_loss": loss, "infinite": 0.0, "close": 1.0}
    each = {str(c): one | {"coverage": c + coverage} for c in intervals.COVERAGES}
    return {"rows": 9, "spread": 0.5, "seconds": 1.0, **each}


def test_a_run_is_stored_and_not_repeated(monkeypatch, tmp_path, capsys):
    calls = []
    monkeypatch.setattr(intervals, "run", lambda *key: calls.append(key) or figures(1.0))
    options = ["--results", str(tmp_path / "results.jsonl"), "--sets", "casp", "--methods", "river"]
    monkeypatch.setattr("sys.argv", ["intervals", *options])
    intervals.main()
    intervals.main()
    assert len(calls) == 2
    assert "| casp | file order | 9 | river | 0.900 | 100% | 4.000 | 2.000 |" in (
        capsys.readouterr().out
    )


def test_the_summary_compares_pinball_losses():
    keys = [intervals.Key(data, "file", "spanboost") for data in ("casp", "fried")]
    runs = dict(zip(keys, (figures(0.5), figures(2.0, 0.02)), strict=True))
    runs |= {key._replace(method="lightgbm"): figures(1.0) for key in keys}
    lines = list(intervals.table(runs))
    assert "spanboost, 0.9: coverage within 1 point in 1 of 2 runs" in "\n".join(lines)
    assert lines[-1] == (
        "spanboost against lightgbm, 0.95: lower pinball loss in 1 of 2 runs; mean difference "
        "+0.0 %"
    )
