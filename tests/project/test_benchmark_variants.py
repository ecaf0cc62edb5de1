"""The benchmark of variants of boosted stumps: every variant runs, next to the paper's losses."""

import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from benchmarks import paper_variants


@pytest.mark.slow
def test_it_prints_a_table_for_each_algorithm(tmp_path, capsys, monkeypatch):
    X = np.random.default_rng(0).uniform(0, 1, (80, 2))
    columns = {"a": X[:, 0], "b": X[:, 1], "label": (10 + 9 * X[:, 0]).round()}
    parquet.write_table(pa.table(columns), tmp_path / "abalone.parquet")
    monkeypatch.setattr(paper_variants, "COPIES", 12)
    arguments = ["paper_variants", "--data", str(tmp_path), "--sets", "abalone"]
    monkeypatch.setattr(sys, "argv", arguments)
    paper_variants.main()
    out = capsys.readouterr().out
    for words, paper in (("Algorithm 1: losses of stumps", "3.8273"), ("Algorithm 2", "4.2270")):
        assert words in out
        assert paper in out
    rows = [line.split("|")[2:-1] for line in out.splitlines() if line.startswith("| abalone")]
    assert [len(row) for row in rows] == [1 + len(paper_variants.VARIANTS)] * 2
    assert all(float(value) > 0 for row in rows for value in row)
