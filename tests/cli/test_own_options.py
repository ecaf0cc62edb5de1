"""Options that repeat those of a loaded model are accepted; different ones name both values."""

import pytest
from streams import HOUSES, as_csv, put

from spanboost.cli.own_options import own_options
from spanboost.data.schema import Schema
from spanboost.data.target import NumberTarget
from spanboost.models.model_spec import LEARNERS, ModelSpec

LINEAR = ("--learner", "linear", "-n", "3", "--step", "0.5", "--rate", "0.2", "--seed", "7")
COLUMNS = ("--label", "label", "--ignore", "age,size", "--loss", "quantile:0.90")


@pytest.fixture
def path(tmp_path):
    return put(tmp_path, "houses.csv", as_csv(HOUSES))


@pytest.mark.parametrize(
    "options",
    [
        (*LINEAR, *COLUMNS),
        ("--learner", "stumps-intercept", "--booster", "hull", "--label-range", "0,1000"),
        ("--budget", "fast", "--seed", "2", "--label", "label"),
        ("--learner", "linear", "--loss", "logistic", "--positive", "1"),
        ("--learner", "linear", "--loss", "softmax", "-b", "10", "--replay", "2"),
    ],
    ids=lambda words: words[1],
)
def test_options_that_repeat_those_of_the_model(options, path, shell, tmp_path):
    rows = as_csv(HOUSES).decode().splitlines()
    if "--loss" in options and options[options.index("--loss") + 1] in ("logistic", "softmax"):
        rows = [rows[0], *(f"{line.rpartition(',')[0]},{k % 2}" for k, line in enumerate(rows[1:]))]
        put(tmp_path, "houses.csv", ("\n".join(rows) + "\n").encode())
    model, repeated, plain = (tmp_path / f"{name}.sb" for name in ("first", "repeated", "plain"))
    shell("train", path, "-o", model, "--quiet", *options)
    shell("train", path, "-i", model, "-o", repeated, "--quiet", *options)
    shell("train", path, "-i", model, "-o", plain, "--quiet")
    assert repeated.read_bytes() == plain.read_bytes()
    tested = [shell("evaluate", path, "-t", "-i", model, "--quiet", *w).out for w in (options, ())]
    assert tested[0].splitlines()[:3] == tested[1].splitlines()[:3]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rate", "0.5"], "--rate cannot be combined with -i, which loads a complete model: it"),
        (["--rate", "0.5"], "it has '0.2' (got '0.5')"),
        (["--learner", "auto"], "it has 'linear' (got 'auto')"),
        (["--ignore", "age"], "it has 'age,size' (got 'age')"),
        (["--loss", "squared"], "it has 'quantile:0.9' (got 'squared')"),
        (["--budget", "fast"], "--budget cannot be combined with -i, which loads a complete model"),
        (["--weight", "age"], "--weight cannot be combined with -i, which loads a complete model"),
    ],
)
def test_other_options_are_refused_with_both_values(words, message, path, shell, tmp_path):
    shell("train", path, "-o", tmp_path / "m.sb", "--quiet", *LINEAR, *COLUMNS)
    printed = shell("evaluate", path, "-t", "-i", tmp_path / "m.sb", "--quiet", *words, status=2)
    assert message in printed.err
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize("learner", ["auto", *LEARNERS])
def test_the_learner_of_a_model_is_known(learner):
    ball = {"x_norm": 1.0, "label_range": (0, 1)} if learner == "ball" else {}
    model = ModelSpec(learner=learner, **ball).build()
    model.schema = Schema("table", NumberTarget())
    assert own_options(model)["learner"] == learner
