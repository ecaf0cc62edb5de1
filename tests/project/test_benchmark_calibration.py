"""The benchmark of calibrated probabilities: its figures and table."""

import numpy as np

from benchmarks import calibration
from benchmarks.accuracy.datasets import Column, Data
from benchmarks.calibration import Key


def small_data(name, order, folder, most, labels):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (most, 2))
    names = np.array(["a", "b"])[(x[:, 0] > 0).astype(int)]
    return Data([Column(f"x{j}", x[:, j], None) for j in range(2)], labels(names))


def test_a_run_measures_both_models(monkeypatch):
    monkeypatch.setattr(calibration.datasets, "load", small_data)
    key = Key("bank", "file", "SpanBoost(LinearSGD(), n=16)")
    row = calibration.run(key, None, 500)
    assert row["classes"] == 2
    assert row["calibrated"]["total"] < row["alone"]["total"]
    assert "| bank | file order | 2 |" in calibration.table({key: row})


def test_figures_are_those_of_the_second_half():
    chances = np.array([[0.1, 0.9]] * 4 + [[0.2, 0.8]] * 4)
    found = calibration.measure(chances, np.array([0, 0, 0, 0, 1, 1, 1, 0]))
    np.testing.assert_allclose(found["error"], 0.05)
    np.testing.assert_allclose(found["log_loss"], -(3 * np.log(0.8) + np.log(0.2)) / 4)
    assert found["accuracy"] == 0.75
    np.testing.assert_allclose(found["total"], 4 * found["log_loss"] - 4 * np.log(0.1))
