"""AutoBoost with refitted experts: which ones it has, and that its results stay the same bits."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from spanboost import (
    AutoBoost,
    ExpertTeam,
    Refitted,
    SpanBoost,
    Trees,
    explain,
    export,
    feature_importances,
    load,
    save,
)
from spanboost.losses import SquaredEuclidean
from spanboost.models import refit_experts
from spanboost.models.refitting import libraries

pytest.importorskip("lightgbm")
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (1200, 3))
Y = 100 + 50 * np.sign(X[:, 0] * X[:, 1]) + RNG.normal(0, 5, 1200)


def quick(**given):
    """Return a model whose refitted expert is fitted to few rows."""
    return AutoBoost(budget="fast", experts=[Refitted(first=200)], **given)


def in_blocks(model, size):
    return np.concatenate(
        [model.learn_many(X[a : a + size], Y[a : a + size]) for a in range(0, len(Y), size)]
    )


def test_thorough_has_a_refitted_expert_if_lightgbm_is_installed(monkeypatch):
    assert "lightgbm" in AutoBoost(budget="thorough").experts
    assert "lightgbm" in AutoBoost(budget="exhaustive").experts
    assert "lightgbm" in AutoBoost(budget="thorough", loss="logistic").experts
    assert "lightgbm" in AutoBoost(refit=True).experts
    for given in ({}, {"budget": "fast"}, {"budget": "thorough", "refit": False}):
        assert "lightgbm" not in AutoBoost(**given).experts
    for loss in ("hinge", SquaredEuclidean(2)):
        assert "lightgbm" not in AutoBoost(budget="thorough", loss=loss).experts
    with pytest.raises(ValueError, match="loss must be one that estimators have"):
        AutoBoost(refit=True, loss="hinge")
    for module in (libraries, refit_experts):
        monkeypatch.setattr(module, "is_installed", lambda library: False)
    assert "lightgbm" not in AutoBoost(budget="thorough").experts
    with pytest.raises(ValueError, match="LightGBM, which is not installed"):
        AutoBoost(refit=True)


def test_the_other_experts_are_the_same_with_and_without_it():
    plain, refitted = AutoBoost(budget="thorough", refit=False), AutoBoost(budget="thorough")
    added = ["lightgbm", "lightgbm shallow"] + ["catboost"] * libraries.is_installed("catboost")
    assert [*refitted.experts][1 : 1 + len(added)] == added
    names = [name for name in refitted.experts if name not in added]
    assert names == list(plain.experts)
    for name in names:
        assert refitted.experts[name].parameters() == plain.experts[name].parameters()


def test_catboost_is_an_expert_if_it_is_installed_and_quick(monkeypatch):
    pytest.importorskip("catboost")
    assert "catboost" in AutoBoost(refit=True, loss="logistic").experts
    assert "catboost" not in AutoBoost(refit=True, loss="softmax").experts
    monkeypatch.setattr(refit_experts, "is_installed", lambda library: library != "catboost")
    assert [*AutoBoost(refit=True).experts][1:3] == ["lightgbm", "lightgbm shallow"]
    assert "catboost" not in AutoBoost(refit=True).experts


def test_experts_are_added_by_hand():
    own = Refitted(DecisionTreeRegressor(max_depth=3, random_state=0), first=50, memory=70)
    model = AutoBoost(budget="fast", experts=[own, own, Refitted(first=200)])
    assert [*model.experts][1:4] == [
        "DecisionTreeRegressor",
        "DecisionTreeRegressor'",
        "lightgbm",
    ]
    model.learn_many(X, Y)
    assert sum(model.weights_.values()) == pytest.approx(1)
    assert not own.started
    assert model.experts["DecisionTreeRegressor"].memory == 70
    with pytest.raises(ValueError, match="experts must be Refitted models"):
        AutoBoost(experts=[SpanBoost(Trees())])


def test_blocks_threads_files_and_clusters_give_the_same_bits(tmp_path):
    expected = quick().learn_many(X, Y)
    single = quick()
    single.threads = 1
    np.testing.assert_array_equal(in_blocks(single, 70), expected)
    team = ExpertTeam(quick(), workers=3)
    np.testing.assert_array_equal(in_blocks(team, 500), expected)
    model, found = quick(), []
    for a in range(0, 1200, 210):
        found.append(model.learn_many(X[a : a + 210], Y[a : a + 210]))
        save(model, tmp_path / "model.sb")
        model = load(tmp_path / "model.sb")
    np.testing.assert_array_equal(np.concatenate(found), expected)
    np.testing.assert_array_equal(team.model().predict_many(X), model.predict_many(X))
    rows = zip(X[:30], Y[:30], strict=True)
    again = load(tmp_path / "model.sb")
    singles = [again.learn_one(x, y) for x, y in rows]
    np.testing.assert_array_equal(singles, model.learn_many(X[:30], Y[:30]))


def test_it_lowers_the_error():
    plain, refitted = AutoBoost(budget="fast", past=False), quick(past=False)
    errors = [np.mean((one.learn_many(X, Y) - Y)[600:] ** 2) for one in (plain, refitted)]
    assert errors[1] < 0.8 * errors[0]


def test_a_file_says_which_experts_a_model_has(tmp_path, monkeypatch):
    with_it, without = AutoBoost(budget="thorough"), AutoBoost(budget="thorough", refit=False)
    save(with_it, tmp_path / "with.sb")
    save(without, tmp_path / "without.sb")
    assert "lightgbm" in load(tmp_path / "with.sb").experts
    assert "lightgbm" not in load(tmp_path / "without.sb").experts
    for module in (libraries, refit_experts):
        monkeypatch.setattr(module, "is_installed", lambda library: False)
    bare = AutoBoost(budget="thorough")
    save(bare, tmp_path / "bare.sb")
    with pytest.raises(ValueError, match="LightGBM, which is not installed"):
        load(tmp_path / "with.sb")
    monkeypatch.undo()
    assert [*load(tmp_path / "bare.sb").experts] == [*bare.experts]


def test_it_takes_part_in_reports(tmp_path):
    model = quick()
    model.learn_many(X, Y)
    found = explain(model, X[0])
    total = found.base + sum(found.contributions.values()) + found.rest
    assert total == pytest.approx(model.predict_one(X[0]))
    assert max(feature_importances(model), key=feature_importances(model).get) in (0, 1)
    assert model.health.good
    assert "lightgbm" in model._repr_html_()
    with pytest.raises(ValueError, match="train AutoBoost with refit=False"):
        export(model, tmp_path / "model.c")
    with pytest.raises(ValueError, match="cannot explain"):
        explain(model.experts["lightgbm"], X[0])
