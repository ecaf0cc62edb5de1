import re
import subprocess
import sys

import numpy as np
import pytest

from spanboost import __version__
from spanboost.cli import arguments
from spanboost.cli.main import main
from spanboost.data import stream
from spanboost.data.generated import make_drifting_stream
from spanboost.models.budgets import EXPERTS
from spanboost.models.model_spec import ModelSpec
from spanboost.models.spec import BUDGETS


def test_demo_prints_a_table_and_ends_in_the_headline(capsys):
    assert main(["demo", "--rows", "3000", "-n", "16"]) == 0
    lines = capsys.readouterr().out.splitlines()
    table = [line.split() for line in lines if re.match(r" *[\d,]+ +\d\.\d{4}", line)]
    assert [int(row[0].replace(",", "")) for row in table] == [*(2**k for k in range(12)), 3000]
    assert all(len(row) == 7 for row in table)
    summary = lines[-10:-3]
    losses = {line[:24].strip(): [float(cell) for cell in line[24:].split()] for line in summary}
    assert losses["AutoBoost"][1] == min(after for _, after in losses.values())
    for word, column in (("before", 0), ("after", 1)):
        alone = min(losses[f"{name} alone"][column] for name in ("linear", "stumps", "network"))
        (line,) = (line for line in lines if line.startswith(f"AutoBoost's error {word}"))
        shown = [int(share) for share in re.findall(r"([+-]\d+)%", line)]
        rivals = (alone, losses["batch trees, refitted"][column])
        for share, other in zip(shown, rivals, strict=True):
            ours = losses["AutoBoost"][column]
            rounding = 0.5 + 100 * ours / other * (0.00005 / ours + 0.00005 / other)
            assert share == pytest.approx(100 * (ours / other - 1), abs=1.01 * rounding)
    assert lines[-1].startswith("AutoBoost's error after")


def test_the_same_seed_prints_the_same(capsys):
    main(["demo", "--rows", "100", "-n", "4", "--seed", "3"])
    first = capsys.readouterr().out
    main(["demo", "--rows", "100", "-n", "4", "--seed", "3"])
    assert capsys.readouterr().out == first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--rows", "9"], "argument --rows: must be at least 10 (got 9)"),
        (["demo", "-n", "many"], "argument -n/--n-estimators: invalid integer value: 'many'"),
        (["learn"], "invalid choice"),
    ],
)
def test_bad_usage_is_one_line_and_status_2(arguments, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_version_and_help(capsys):
    for words, text in (
        (["--version"], __version__),
        (["demo", "--help"], "changes halfway"),
        (["help", "demo"], "changes halfway"),
        (["help"], "Start with `spanboost demo`"),
        ([], "Start with `spanboost demo`"),
        (["train", "--help"], "usage: spanboost train DATA... -o MODEL [options] Learn from DATA"),
        (["tune", "--help"], "usage: spanboost tune DATA... [-o MODEL] [options] Run every"),
        (["train", "--help"], "--decimal MARK Decimal mark of the numbers in CSV files: a point"),
    ):
        with pytest.raises(SystemExit) as stop:
            main(words)
        assert stop.value.code == 0
        assert text in " ".join(capsys.readouterr().out.split())


def test_examples_and_frequent_options_come_first(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    text = capsys.readouterr().out
    order = ["examples:", "--output M", "--label NAME", "--format {", "--loss LOSS", "--booster {"]
    places = [text.index(word) for word in order]
    assert places == sorted(places)


@pytest.mark.process
def test_a_reader_that_closes_the_pipe_is_not_an_error():
    command = f"{sys.executable} -m spanboost demo --rows 3000 -n 4 | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    assert done.stdout.startswith("A generated stream")


def test_the_generated_stream_drifts_and_stays_in_range():
    X, y = make_drifting_stream(4000, seed=1)
    assert np.abs(X).max() <= 1
    assert np.abs(y).max() <= 1
    first, second = (
        np.linalg.lstsq(X[half], y[half])[0] for half in (slice(2000), slice(2000, None))
    )
    assert first[0] * second[0] < 0
    assert first[1] == pytest.approx(second[1], abs=0.05)
    np.testing.assert_array_equal(
        make_drifting_stream(10, seed=1)[0], make_drifting_stream(10, seed=1)[0]
    )


def test_the_choices_of_the_command_line_are_those_of_the_library():
    """arguments.py repeats the names, so that --help imports nothing heavy."""
    assert set(arguments.FORMATS) == set(stream.FORMS)
    for loss in arguments.LOSSES:
        named = loss.replace("TAU", "0.3").replace("POWER", "1.5")
        given = {"loss": named, "classes": 3}
        assert ModelSpec(learner="stumps", n=1, **given).build().loss_ is not None
    assert set(BUDGETS) == set(EXPERTS)
