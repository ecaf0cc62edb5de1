"""`spanboost warmup` compiles what models of a kind need, and nothing twice."""

import os
import subprocess
import sys

import pytest

from spanboost.cli.commands.warmup import needed_jobs
from spanboost.cli.main import main
from spanboost.models.model_spec import ModelSpec

DATA = "a,b,y\n" + "".join(f"{t % 7},{t % 5},{t % 7 - t % 5}\n" for t in range(100))


def names(**parameters):
    return [job.name for job in needed_jobs(ModelSpec(**parameters))]


@pytest.mark.parametrize("loss", ["squared", "logistic", "softmax", "quantile:0.9", "poisson"])
def test_it_knows_the_functions_of_a_single_booster(loss):
    found = names(learner="linear", loss=loss)
    assert {"learn", "predict", "write_values", "_add_up"} <= set(found)
    assert len(found) <= 5


def test_it_knows_the_functions_of_autoboost():
    found = names(learner="auto", budget="fast")
    for task in ("learn", "predict"):
        assert sum(name.startswith(task) for name in found) == 4  # one for each learner
    assert {"follow_labels", "mix_rows", "mix_and_learn_rows", "mix_one"} <= set(found)


def test_all_budgets_share_most_code():
    fast, default = (
        set(needed_jobs(ModelSpec(learner="auto", budget=name))) for name in ("fast", "default")
    )
    assert len(default - fast) <= 2  # trees that replay


@pytest.mark.parametrize("option", ["--loss", "--learner", "--budget"])
def test_unknown_kinds_are_refused(option, capsys):
    with pytest.raises(SystemExit):
        main(["warmup", option, "none"])
    assert "none" in capsys.readouterr().err


def run(folder, *words):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "code")}
    return subprocess.run(
        [sys.executable, "-m", "spanboost", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )


@pytest.mark.process
@pytest.mark.slow
def test_models_need_no_compiling_afterwards(tmp_path):
    (tmp_path / "data.csv").write_text(DATA)
    kind = ("--learner", "linear", "--loss", "squared")
    first = run(tmp_path, "warmup", *kind)
    assert first.stdout.startswith("compiled 5 functions in ")
    assert first.stdout.endswith(f"the code is in {tmp_path / 'code'}\n")
    assert run(tmp_path, "warmup", *kind).stdout.startswith("everything is compiled")
    train = run(tmp_path, "train", "data.csv", "--label", "y", "-o", "model.sb", *kind)
    predict = run(tmp_path, "predict", "data.csv", "-m", "model.sb")
    assert "compiling" not in train.stderr + predict.stderr
