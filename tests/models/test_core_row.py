"""Single rows of boosters that replay rows: the same bits as blocks."""

import copy

import numpy as np
import pytest

from spanboost import AutoBoost, LinearSGD, Trees, save
from spanboost.models.budgets import EXPERTS, Expert

SMALL = {"depth": 3, "candidates": 8, "evidence": 1.0, "grace": 8, "delay": 2}


def saved(model, path):
    save(model, path)
    return path.read_bytes()


@pytest.mark.parametrize("kind", ["lists", "names"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_single_rows_replay_what_blocks_replay(kind, loss, tmp_path, monkeypatch):
    experts = (
        Expert("trees", Trees, SMALL, 4, 0.5, replay=2),
        Expert("linear", LinearSGD, {}, replay=1),
    )
    monkeypatch.setitem(EXPERTS, "fast", experts)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (160, 3))
    y = np.sign(X[:, 0]) if loss == "logistic" else 5 * X[:, 0] + rng.normal(size=160)
    rows = X.tolist()
    if kind == "names":
        rows = [{f"x{j}": v for j, v in enumerate(x)} for x in rows]
    whole, model = (AutoBoost(loss, budget="fast") for _ in range(2))
    expected = whole.learn_many(rows, y)
    answers = [model.learn_one(x, label) for x, label in zip(rows[:60], y[:60], strict=True)]
    model = copy.deepcopy(model)
    answers += model.learn_many(rows[60:90], y[60:90]).tolist()
    model.learn_many(rows[:5], y[:5], np.zeros(5))
    whole.learn_many(rows[:5], y[:5], np.zeros(5))
    answers += [model.learn_one(x, label) for x, label in zip(rows[90:], y[90:], strict=True)]
    np.testing.assert_array_equal(answers, expected)
    assert saved(model, tmp_path / "one.sb") == saved(whole, tmp_path / "whole.sb")
