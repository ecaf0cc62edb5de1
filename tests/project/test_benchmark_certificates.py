"""The benchmark of certificates: its figures, results file and table."""

import json

import numpy as np
import pytest

from benchmarks import certificates
from spanboost.theory.regret import best_linear


def small_stream():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (2500, 3)).astype(np.float32)
    y = 10 + 4 * X @ [1.5, -0.8, 0.3]
    return certificates.Stream(X, X.astype(np.float64), y, 5.0, 15.0)


@pytest.mark.parametrize("model", ["span", "hull"])
def test_figures_are_in_units_of_half_the_label_range(model):
    stream = small_stream()
    run = certificates.certify(model, stream)
    y = (stream.y - 10) / 5
    radius = np.inf if model == "span" else 1.0
    W = best_linear(stream.unit, y, radius=radius)[0]
    assert run["comparator"] == pytest.approx(((y - stream.unit @ W) ** 2).sum(), abs=1e-6)
    assert run["constant"] == pytest.approx(((y - y.mean()) ** 2).sum())
    assert run["loss"] == pytest.approx(run["comparator"] + run["regret"])
    assert sum(run["terms"].values()) == pytest.approx(run["measured"])
    assert run["regret"] <= run["measured"] < run["constant"] < run["theorem"]


def test_runs_with_a_line_are_skipped(tmp_path, monkeypatch, capsys):
    file = tmp_path / "results.jsonl"
    monkeypatch.setattr(certificates, "read", lambda *_: small_stream())
    arguments = ["certificates", "--results", str(file), "--sets", "casp", "--model", "span"]
    monkeypatch.setattr("sys.argv", arguments)
    certificates.main()
    first = capsys.readouterr().out
    assert "| span | casp | 2,500 |" in first
    monkeypatch.setattr(certificates, "certify", None)
    certificates.main()
    assert capsys.readouterr().out == first
    (line,) = map(json.loads, file.read_text().splitlines())
    assert line["model"] == "span"


def test_runs_of_some_rows_are_kept_apart(tmp_path, monkeypatch, capsys):
    file = tmp_path / "results.jsonl"
    monkeypatch.setattr(certificates, "read", lambda *_: small_stream())
    run = {"rows": 5, "constant": 9.0, "comparator": 1.0, "regret": 2.0, "theorem": None}
    monkeypatch.setattr(certificates, "certify", lambda *_: run | {"measured": 3.0})
    arguments = ["certificates", "--results", str(file), "--sets", "casp", "--model", "auto"]
    monkeypatch.setattr("sys.argv", [*arguments, "--rows", "5"])
    certificates.main()
    monkeypatch.setattr("sys.argv", arguments)
    monkeypatch.setattr(certificates, "certify", lambda *_: run | {"rows": 7, "measured": 3.0})
    capsys.readouterr()
    certificates.main()
    shown = capsys.readouterr().out
    assert "| auto | casp | 7 |" in shown
    assert "| auto | casp | 5 |" not in shown
    assert len(file.read_text().splitlines()) == 2


def test_a_bound_below_the_regret_or_above_the_constant_is_marked():
    run = {"data": "casp", "model": "auto", "rows": 5, "constant": 9.0, "comparator": 1.0}
    run |= {"regret": 2.0, "theorem": None}
    marks = [certificates.cells(run | {"measured": bound})[-1] for bound in (1.9, 2.0, 8.9, 9.0)]
    assert marks == ["NO", "yes", "yes", "NO"]
    assert certificates.cells(run | {"measured": 3.0})[-3] == "1.50"
    assert certificates.cells(run | {"measured": 3.0, "regret": -1.0})[-3] == "-"
