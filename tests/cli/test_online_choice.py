"""`-n auto` and `--step auto` on the command line and in the estimators."""

import json

import numpy as np
import pytest
from streams import put

from spanboost import load

AUTO = ("--learner", "linear", "-n", "auto", "--step", "auto")


@pytest.fixture
def houses(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 2))
    rows = np.column_stack([X, 100 + 20 * X[:, 0]])
    lines = "".join(f"{a},{b},{y}\n" for a, b, y in rows)
    return put(tmp_path, "houses.csv", f"a,b,y\n{lines}".encode())


def test_train_inspect_predict_and_continue(shell, houses, tmp_path):
    output = tmp_path / "m.sb"
    shell("train", houses, "-o", output, *AUTO)
    model = load(output)
    assert (model.n, model.eta) == ("auto", "auto")
    text = shell("inspect", output).out
    assert "SpanBoost, up to 32 copies of LinearSGD, squared loss\n" in text
    assert "\nweights of the candidates\n" in text
    assert "n=1, eta=1" in text
    found = json.loads(shell("inspect", output, "--json").out)
    assert sum(found["weights"].values()) == pytest.approx(1)
    assert found["parameters"]["n"] == found["parameters"]["eta"] == "auto"
    assert len(shell("predict", houses, "-m", output).out.split()) == 61
    shell("train", houses, "-i", output, "-o", tmp_path / "again.sb")
    assert load(tmp_path / "again.sb").labels.rows == 120


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--certificate",), "a measured bound needs a booster with a fixed n and eta"),
        (("--plot-stages", "x.png"), "--plot-stages needs a booster with a fixed n and eta"),
        (("--plot-sigma", "x.png"), "--plot-sigma needs a booster with a fixed n and eta"),
        (("--booster", "hull"), "--step is for Algorithm 1 only"),
        (("-n", "some"), "invalid integer value: 'some'"),
        (("--loss", "absolute", "--feedback", "linear"), "-n must be a number for a loss with a"),
    ],
)
def test_what_is_refused(shell, houses, options, problem):
    assert problem in shell("evaluate", houses, *AUTO, *options, status=2).err


def test_scikit_learn_and_river_take_auto():
    from spanboost.river import BoostingRegressor as RiverRegressor
    from spanboost.sklearn import BoostingRegressor

    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 2))
    y = 3 * X[:, 0]
    model = BoostingRegressor("linear", n_estimators="auto", learning_rate="auto", n_epochs=1)
    assert model.fit(X, y).score(X, y) > 0.9
    online = RiverRegressor("linear", n_models="auto", learning_rate="auto")
    for a, b in zip(X, y, strict=True):
        online.learn_one({"a": a[0], "b": a[1]}, b)
    assert online.predict_one({"a": 0.5, "b": 0.0}) == pytest.approx(1.5, abs=0.3)


def test_the_error_for_losses_with_a_kink_uses_the_words_of_the_command_line(data, shell):
    words = ("--learner", "linear", "-n", "auto", "--loss", "absolute", "--feedback", "linear")
    printed = shell("evaluate", data, *words, status=2)
    assert "-n must be a number for a loss with a kink" in printed.err
    assert "use greedy feedback" in printed.err
    assert "feedback='" not in printed.err
