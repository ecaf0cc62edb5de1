"""The benchmark of the online choice: its figures, results file and table."""

import numpy as np
import pytest

from benchmarks import online_choice
from benchmarks.accuracy.datasets import Column, Data
from spanboost import LinearSGD, SpanBoost


def small_data(name, order, folder, most):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (most, 2))
    columns = [Column(f"x{j}", x[:, j], None) for j in range(2)]
    return Data(columns, 3 * x[:, 0] - x[:, 1])


@pytest.fixture
def figures(monkeypatch):
    monkeypatch.setattr(online_choice.datasets, "load", small_data)
    return online_choice.run(online_choice.Key("casp", "linear"), None, 120)


def test_the_best_in_hindsight_is_that_of_single_runs(figures):
    data = small_data("casp", "file", None, 120)
    limits = float(data.y.min()), float(data.y.max())
    losses = []
    for eta in (0.3, 0.5, 1.0):  # the others allow no fewer than 5 copies
        for n in range(int(np.ceil(1 / eta)), 5):
            model = SpanBoost(LinearSGD(), n=n, eta=eta, label_range=limits)
            errors = (model.learn_many(data.rows(), data.y) - data.y) ** 2
            losses.append((errors.mean(), errors[60:].mean()))
    least = np.min(losses, axis=0)
    assert figures["losses"]["best"]["whole"] <= least[0] * 1.001
    assert figures["losses"]["best"]["second"] <= least[1] * 1.001
    alone = SpanBoost(LinearSGD(), n=1, eta=1.0, label_range=limits)
    errors = (alone.learn_many(data.rows(), data.y) - data.y) ** 2
    assert figures["losses"]["alone"]["whole"] == pytest.approx(errors.mean(), rel=1e-4)


def test_runs_with_a_line_are_skipped(monkeypatch, tmp_path, capsys, figures):
    file, calls = tmp_path / "results.jsonl", []
    monkeypatch.setattr(online_choice, "run", lambda *key: calls.append(key) or figures)
    options = ["--results", str(file), "--sets", "casp", "--learner", "linear", "stumps"]
    monkeypatch.setattr("sys.argv", ["online_choice", *options])
    online_choice.main()
    online_choice.main()
    assert len(calls) == 2
    lines = capsys.readouterr().out.splitlines()
    assert "| linear | casp | 120 |" in lines[2]
    assert lines[-1].startswith("stumps: ")


def test_ratios_and_the_summary():
    def row(auto, best):
        pair = {"whole": auto[0], "second": auto[1]}, {"whole": best[0], "second": best[1]}
        same = dict.fromkeys(("default", "alone"), pair[1])
        return {"rows": 9, "losses": {"auto": pair[0], "best": pair[1]} | same}

    runs = {
        online_choice.Key("casp", "linear"): row((1.02, 2.0), (1.0, 2.0)),
        online_choice.Key("bank", "linear"): row((1.0, 2.06), (1.0, 2.0)),
    }
    text = list(online_choice.table(runs))
    assert text[-1] == (
        "linear: 1 of 2 sets within 2 %; largest difference +3.0 %, "
        "median on the second half +1.5 %"
    )
