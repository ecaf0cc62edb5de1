"""`spanboost warmup` compiles what models of a kind need, and nothing twice."""

import os
import subprocess
import sys

import numpy as np
import pytest

from spanboost import AutoBoost
from spanboost.cli.commands.warmup import needed_jobs
from spanboost.cli.main import main
from spanboost.compiling import kernels
from spanboost.compiling.jobs import new_job
from spanboost.models.model_spec import ModelSpec

RNG = np.random.default_rng(0)
ROWS = {
    "lists": RNG.normal(size=(230, 2)).tolist(),
    "dictionaries": [{"a": float(a), "b": 1} for a in RNG.normal(size=230)],
    "categories": [{"a": float(a), "b": f"c{a:.0f}"} for a in RNG.normal(size=230)],
}
LABELS = {
    "squared": RNG.normal(size=230).tolist(),
    "logistic": RNG.choice([-1, 1], size=230).tolist(),
    "softmax": RNG.integers(0, 3, size=230).tolist(),
}
MORE = """\
from spanboost import AutoBoost
rows = [{"a": t % 7 / 3, "b": f"c{t % 5}"} for t in range(2200)]
y = [t % 7 - t % 5 + t % 11 / 7 for t in range(2200)]
model = AutoBoost()
for t in (*range(150), *range(2100, 2200)):
    if t == 2100:
        model.learn_many(rows[150:2100], y[150:2100])
        model.predict_many(rows[:9])
    model.predict_one(rows[t])
    model.learn_one(rows[t], y[t])
"""
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


def test_all_budgets_share_the_code_of_experts():
    fast, default = (
        set(needed_jobs(ModelSpec(learner="auto", budget=name))) for name in ("fast", "default")
    )
    recent, past = {"correct_rows", "correct_and_learn_rows"}, {"read_past", "learn_past"}
    single = {"read_columns", "write_candidates", "replay_row"}
    assert {job.name for job in default - fast} == recent | past | {"add_corrections"} | single


@pytest.mark.parametrize("loss", LABELS)
@pytest.mark.parametrize("budget", ["fast", "default"])
def test_it_knows_what_blocks_and_single_rows_of_autoboost_call(loss, budget, monkeypatch):
    known, asked = set(needed_jobs(ModelSpec(loss=loss, budget=budget))), set()

    def watch(*given):
        asked.add(new_job(*given))
        return new_job(*given)

    monkeypatch.setattr(kernels, "new_job", watch)
    for rows in ROWS.values():
        model, y = AutoBoost(loss, budget=budget), LABELS[loss]
        for x, label in zip(rows[:100], y[:100], strict=True):
            model.predict_one(x)
            model.learn_one(x, label)
        model.learn_many(rows[100:], y[100:])
        model.predict_many(rows)
    assert asked <= known
    assert len(asked) > 8


@pytest.mark.parametrize("option", ["--loss", "--learner", "--budget"])
def test_unknown_kinds_are_refused(option, capsys):
    with pytest.raises(SystemExit):
        main(["warmup", option, "none"])
    assert "none" in capsys.readouterr().err


def run(folder, *words):
    return run_python(folder, "-m", "spanboost", *words)


def run_python(folder, *words):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "code")}
    return subprocess.run(
        [sys.executable, *words],
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


@pytest.mark.process
@pytest.mark.slow
def test_autoboost_needs_no_compiling_afterwards(tmp_path):
    text = "a,b,c,y\n" + "".join(f"{t % 7},{t % 5},{'xyz'[t % 3]},{t % 11}\n" for t in range(300))
    (tmp_path / "data.csv").write_text(text)
    run(tmp_path, "warmup", "--loss", "squared", "--budget", "default")
    code = sorted((tmp_path / "code").rglob("*.nbc"))
    run(tmp_path, "train", "data.csv", "--label", "y", "-o", "model.sb")
    run(tmp_path, "evaluate", "data.csv", "--label", "y")
    run(tmp_path, "predict", "data.csv", "-m", "model.sb")
    run_python(tmp_path, "-c", MORE)
    assert sorted((tmp_path / "code").rglob("*.nbc")) == code
