import sys
import types
from importlib import import_module

import numpy as np
import pytest
import tqdm

from spanboost import DataError, LinearSGD, SpanBoost, compare, evaluate, tune


@pytest.fixture
def rows():
    X = np.random.default_rng(0).uniform(-1, 1, (2500, 3))
    return X, X @ [0.3, -0.2, 0.1]


@pytest.mark.parametrize("learn", [True, False])
def test_the_bar_shows_all_rows_and_changes_nothing(rows, learn, capsys):
    plain, shown = (SpanBoost(LinearSGD(), n=2) for _ in range(2))
    if not learn:
        for model in (plain, shown):
            model.learn_many(*rows)
    weights = np.linspace(1, 2, 2500)
    expected = evaluate(plain, *rows, weights, learn=learn)
    assert "rows" not in capsys.readouterr().err
    found = evaluate(shown, *rows, weights, learn=learn, progress=True)
    assert "2.50k/2.50k" in capsys.readouterr().err
    np.testing.assert_array_equal(found.predictions, expected.predictions)
    assert found.metrics == expected.metrics
    assert shown.predict_one(rows[0][0]) == plain.predict_one(rows[0][0])


def test_classes_that_appear_later_do_not_stop_the_bar(rows, monkeypatch):
    X, _ = rows
    y = np.where(np.arange(2500) < 1500, 0, np.arange(2500) % 3)
    plain, shown = (SpanBoost(LinearSGD(), n=2, loss="softmax") for _ in range(2))
    expected = evaluate(plain, X, y)
    learn, sizes = shown.learn_many, []
    monkeypatch.setattr(shown, "learn_many", lambda X, *y: sizes.append(len(X)) or learn(X, *y))
    found = evaluate(shown, X, y, progress=True)
    assert sizes == [1000, 1000, 500]
    np.testing.assert_array_equal(found.predictions, expected.predictions)
    assert found.predictions.dtype == expected.predictions.dtype
    assert found.metrics == expected.metrics


def test_a_notebook_without_widgets_shows_text_and_no_warning(rows, monkeypatch, capsys):
    kernel = types.SimpleNamespace(config={"IPKernelApp": {}})
    fake = types.SimpleNamespace(get_ipython=lambda: kernel)
    monkeypatch.setitem(sys.modules, "IPython", fake)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    for name in ("tqdm.auto", "tqdm.autonotebook", "tqdm.notebook"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    evaluate(SpanBoost(LinearSGD(), n=2), *rows, progress=True)  # warnings are errors in tests
    printed = capsys.readouterr().err
    assert "2.50k/2.50k" in printed
    assert printed.count("\n") == 1  # one line, which is overwritten


def test_an_invalid_row_is_found_before_anything_is_learned(rows):
    X, y = rows
    y[2400] = np.nan
    model = SpanBoost(LinearSGD(), n=2)
    with pytest.raises(DataError) as error:
        evaluate(model, X, y, progress=True)
    assert error.value.row == 2400
    assert not model.started


def pair():
    return SpanBoost(LinearSGD(), n=2), SpanBoost(LinearSGD(rate=0.1), n=2)


@pytest.mark.parametrize("weights", [None, np.linspace(1, 2, 2500)])
def test_compare_with_a_bar(rows, weights, capsys):
    expected = compare(*pair(), *rows, weights)
    assert "rows" not in capsys.readouterr().err
    models = pair()
    found = compare(*models, *rows, weights, progress=True)
    assert "2.50k/2.50k" in capsys.readouterr().err
    assert found.state() == expected.state()
    assert compare(*models, *rows, learn=False, progress=True).rows == 2500
    rows[1][2400] = np.nan
    models = pair()
    with pytest.raises(DataError):
        compare(*models, *rows, progress=True)
    assert not any(model.started for model in models)


def test_tune_with_a_bar(rows, capsys):
    grid = {"rate": [0.1, 0.5]}
    expected = tune(*rows, learner=LinearSGD(), grid=grid, n=2)
    assert "rows" not in capsys.readouterr().err
    found = tune(*rows, learner=LinearSGD(), grid=grid, n=2, progress=True)
    assert "2.50k/2.50k" in capsys.readouterr().err
    assert found.best() == expected.best()
    counts = []
    tune(*rows, learner=LinearSGD(), grid=grid, n=2, progress=counts.append)
    assert sum(counts) == 2500


@pytest.mark.parametrize("call", [evaluate, compare])
def test_an_interrupt_closes_the_bar(rows, call, monkeypatch):
    model, other = pair()

    def interrupt(*_):
        raise KeyboardInterrupt

    bars = []

    class Recorded(tqdm.tqdm):
        def close(self):
            bars.append(self)
            super().close()

    monkeypatch.setattr(import_module("tqdm.auto"), "tqdm", Recorded)
    monkeypatch.setattr(model, "check", interrupt)
    monkeypatch.setattr(model, "predict_many", interrupt)
    models = [model] if call is evaluate else [model, other]
    with pytest.raises(KeyboardInterrupt) as caught:
        call(*models, *rows, progress=True, learn=False)
    assert len(bars) == 1  # while the traceback, as in notebooks, still keeps its frames
    assert caught.tb
