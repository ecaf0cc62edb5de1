"""A misspelt name gets a suggestion, wherever names are refused."""

import pytest

import spanboost
from spanboost import AutoBoost, Drift, LinearSGD, SpanBoost, Trees, tune
from spanboost.errors import did_you_mean
from spanboost.models.estimators import named_loss
from spanboost.models.model_spec import ModelSpec

RULES = ([[0.0], [1.0]], [0.0, 1.0])


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: SpanBoost(LinearSGD(), loss="sqared"), "squared"),
        (lambda: AutoBoost("Poison"), "poisson"),
        (lambda: AutoBoost("quantil:0.9"), "quantile"),
        (lambda: AutoBoost("twedie:1.5"), "tweedie"),
        (lambda: AutoBoost("MSE"), "squared"),
        (lambda: AutoBoost("binary"), "logistic"),
        (lambda: AutoBoost(budget="thorogh"), "thorough"),
        (lambda: AutoBoost(label_range="growng"), "growing"),
        (lambda: SpanBoost(LinearSGD(), feedback="gredy"), "greedy"),
        (lambda: SpanBoost(LinearSGD(), n="auot"), "auto"),
        (lambda: ModelSpec(learner="tres").build(), "trees"),
        (lambda: ModelSpec(booster="spam"), "span"),
        (lambda: named_loss("squared_eror", {"squared_error": 1}), "squared_error"),
        (lambda: named_loss("mse", {"squared_error": 1}), "squared_error"),
        (lambda: tune(*RULES, learner=LinearSGD(), booster="bth"), "both"),
        (lambda: tune(*RULES, learner=LinearSGD(), grid={"rat": [1.0]}), "rate"),
        (lambda: Drift("adwn", SpanBoost(LinearSGD()).loss_), "adwin"),
    ],
)
def test_python(make, name):
    with pytest.raises(ValueError, match="did you mean") as caught:
        make()
    assert f"did you mean {name!r}" in str(caught.value)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("--loss", "sqared"), "squared"),
        (("--loss", "quantil:0.9"), "quantile"),
        (("--loss", "mse"), "squared"),
        (("--loss", "mae"), "absolute"),
        (("--loss", "log_loss"), "logistic"),
        (("--loss", "cross_entropy"), "softmax"),
        (("--learner", "tres"), "trees"),
        (("--budget", "fsat"), "fast"),
        (("--booster", "hul"), "hull"),
        (("--feedback", "lienar"), "linear"),
        (("--format", "parqet"), "parquet"),
        (("--label-range", "growin"), "growing"),
        (("--drift", "adwn"), "adwin"),
        (("--compare", "linear,tres"), "trees"),
        (("--compare", "linear,trees:hul"), "hull"),
        (("--compare", "linear,auto:budget=fst"), "fast"),
        (("--compare", "linear,auto:fast"), "auto:budget=fast"),
        (("--compare", "linear,auto:thorough"), "auto:budget=thorough"),
    ],
)
def test_the_command_line(words, name, shell, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,y\n1,2\n")
    err = shell("evaluate", path, *words, status=2).err
    assert f"did you mean {name!r}" in err
    assert err.count("\n") == 1


def test_commands(shell):
    assert "did you mean 'train'" in shell("trian", "x.csv", status=2).err


def test_a_value_that_is_not_a_name_has_no_suggestion():
    assert did_you_mean(3, ["a"]) == did_you_mean(None, ["a"]) == ""
    with pytest.raises(ValueError, match=r"\(got 3\)$"):
        AutoBoost(budget=3)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("AutoBost", "; did you mean 'AutoBoost'?"),
        ("nonsense", ""),
    ],
)
def test_a_name_that_the_package_does_not_have(name, hint):
    with pytest.raises(AttributeError) as caught:
        getattr(spanboost, name)
    assert str(caught.value) == f"module 'spanboost' has no attribute {name!r}{hint}"


@pytest.mark.parametrize("name", ["BoostingRegressor", "BoostingClassifier"])
def test_an_import_of_an_estimator_names_the_modules_that_have_it(name):
    with pytest.raises(ImportError, match=r"from spanboost\.sklearn or spanboost\.river$"):
        exec(f"from spanboost import {name}")


@pytest.mark.parametrize("model", [AutoBoost(), SpanBoost(Trees(), n=2)], ids=["auto", "span"])
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("fit", "; use learn_many(X, y), or the estimators of spanboost.sklearn"),
        ("predict", "; use predict_many(X), or the estimators of spanboost.sklearn"),
        ("predict_proba", "; use BoostingClassifier of spanboost.sklearn or spanboost.river"),
        ("_nothing", ""),
        ("xyz", ""),
    ],
)
def test_a_method_of_another_library_gets_the_name_that_it_has_here(model, name, hint):
    assert not hasattr(model, name)
    with pytest.raises(AttributeError) as caught:
        getattr(model, name)
    assert str(caught.value) == f"{type(model).__name__!r} object has no attribute {name!r}{hint}"
