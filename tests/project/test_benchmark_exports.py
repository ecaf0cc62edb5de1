"""The benchmark of exports: one small run, its results file and its table."""

import numpy as np
import pytest
from compiled_c import needs_compiler

from benchmarks import exports, results_files
from benchmarks.accuracy.datasets import Column, Data
from benchmarks.exports import Key


def small_data(name, order, folder, most):
    rng = np.random.default_rng(0)
    x, codes = rng.uniform(-1, 1, (most, 2)), rng.integers(0, 3, most)
    columns = [Column(f"x{j}", x[:, j], None) for j in range(2)]
    return Data([*columns, Column("kind", codes, ("a", "?", "c"))], 3 * x[:, 0] + codes)


@needs_compiler
@pytest.mark.slow
def test_a_run_compares_all_forms(monkeypatch, tmp_path):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    monkeypatch.setattr(exports.datasets, "load", small_data)
    key = Key("casp", "fast")
    row = exports.run(key, None, 300)
    assert row["rows"] == 300
    assert row["small_same_bits"]
    assert row["c_same_bits"]
    assert row["onnx_difference"] < 1e-5
    assert row["bytes"].keys() == {"full", "small", "c", "compiled", "onnx"}
    assert row["bytes"]["small"] < row["bytes"]["full"]
    results_files.record(tmp_path / "exports.jsonl", key, row)
    lines = [*exports.table(results_files.read(tmp_path / "exports.jsonl", Key))]
    assert "| casp | fast | squared | 300 |" in lines[0]
    assert "ONNX: within 1e-5 in 1 of 1" in lines


def test_losses():
    scores, y = np.array([0.0, 2.0]), np.array([-1.0, 1.0])
    expected = np.mean([np.log(2), np.log1p(np.exp(-2))])
    assert exports.mean_loss("logistic", scores, y) == pytest.approx(expected)
    both = np.column_stack([np.zeros(2), scores])
    assert exports.mean_loss("softmax", both, np.array([0, 1])) == pytest.approx(expected)
    assert exports.mean_loss("squared", scores, y) == 1.0


def test_differences_are_relative():
    assert exports.difference(np.array([1.0, 100.1]), np.array([1.0, 100.0])) == pytest.approx(1e-3)
