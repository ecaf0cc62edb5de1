"""The benchmark of scikit-learn's `fit`: its figures, results file and table."""

import numpy as np
import pandas as pd
import pytest

from benchmarks import batch


def small_data(name, folder):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.uniform(-1, 1, 80), "b": rng.choice(["x", "y"], 80)})
    return X.astype({"b": "category"}), 2 * X["a"].to_numpy() + (X["b"] == "x")


def test_splits_with_a_line_are_skipped_and_scores_are_of_held_out_rows(
    monkeypatch, tmp_path, capsys
):
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.model_selection import train_test_split

    monkeypatch.setattr(batch, "load", small_data)
    monkeypatch.setattr(batch, "splits", lambda rows: 2)
    calls, run = [], batch.run

    def once(key, X, y):
        calls.append(key)
        return run(key, X, y)

    monkeypatch.setattr(batch, "run", once)
    file = tmp_path / "results.jsonl"
    monkeypatch.setattr("sys.argv", ["batch", "--results", str(file), "--sets", "diabetes"])
    batch.main()
    batch.main()
    assert calls == [batch.Key("diabetes", 0), batch.Key("diabetes", 1)]
    text = capsys.readouterr().out.splitlines()
    assert "| diabetes | 80 | R^2 |" in text[2]
    rows = batch.results_files.read(file, batch.Key)
    X, y = small_data("", None)
    a, b, c, d = train_test_split(X, y, test_size=0.25, random_state=1)
    model = HistGradientBoostingRegressor(random_state=0, categorical_features="from_dtype")
    assert rows[calls[1]]["scores"]["hist"] == model.fit(a, c).score(b, d)


def test_the_summary_counts_sets_within_two_percent():
    def row(hist, auto):
        scores = {"hist": hist, "once": 0.1, "auto": auto}
        return {"rows": 9, "scores": scores, "seconds": dict.fromkeys(scores, 1.0), "passes": 2}

    runs = {
        batch.Key("wine", 0): row(1.0, 0.97),
        batch.Key("wine", 1): row(0.9, 0.93),
        batch.Key("digits", 0): row(1.0, 0.97),
    }
    lines = list(batch.table(runs))
    assert "| 0.950 | 0.100 | 0.950 | +0.0 % | 2 |" in lines[0]
    assert lines[-1] == "1 of 2 sets within 2 % or better; smallest difference -3.0 %"


def test_a_table_without_results_says_which_command_makes_them(monkeypatch, tmp_path, capsys):
    options = ["--results", str(tmp_path / "results.jsonl"), "--table"]
    monkeypatch.setattr("sys.argv", ["batch", *options])
    with pytest.raises(SystemExit):
        batch.main()
    shown = capsys.readouterr()
    assert "results.jsonl does not exist" in shown.err
    assert "`python -m benchmarks.batch --data DIR` makes them" in shown.err
    assert not shown.out
