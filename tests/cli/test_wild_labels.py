"""One absurd label in a stream: every loss and metric of the rows after it stays exact."""

import json
import random

import numpy as np
import pytest
from streams import EVERY, LINEAR

from spanboost.analysis.row_file import RowFile
from spanboost.cli.checkpoints import Checkpoints

pytestmark = pytest.mark.filterwarnings("ignore::spanboost.errors.LabelWarning")
ROWS, WILD = 2000, 700


@pytest.fixture(params=["1e18", "1e300"])
def data(request, tmp_path):
    """Return a file with an absurd label."""
    rng, lines = random.Random(0), ["a,b,label"]
    for row in range(ROWS):
        a, b = rng.random(), rng.random()
        usual = f"{2 * a - b + rng.gauss(0, 0.1):.4f}"
        lines.append(f"{a:.4f},{b:.4f},{request.param if row == WILD else usual}")
    path = tmp_path / "wild.csv"
    path.write_text("\n".join([*lines, ""]))
    return path


def losses_of_rows(path, shell, tmp_path):
    """Return the squared loss of each row from the predictions of a run."""
    answers = tmp_path / "answers.csv"
    shell("evaluate", path, *EVERY, *LINEAR, "--predictions", answers)
    predictions = np.loadtxt(answers, skiprows=1, delimiter=",", ndmin=2)[:, 0]
    labels = np.loadtxt(path, skiprows=1, delimiter=",")[:, 2]
    with np.errstate(over="ignore"):
        return (predictions - labels) ** 2


def test_the_losses_of_later_rows_are_exact(data, shell, tmp_path):
    each = losses_of_rows(data, shell, tmp_path)
    printed = shell("evaluate", data, *EVERY, *LINEAR, "--json")
    result = json.loads(printed.out)
    half = ROWS // 2
    assert result["loss_second_half"] == pytest.approx(each[half:].mean(), rel=1e-9)
    metrics = result["metrics"]
    assert metrics["second_half"]["rmse"] == pytest.approx(each[half:].mean() ** 0.5, rel=1e-9)
    assert metrics["last_window"]["rmse"] == pytest.approx(each[-100:].mean() ** 0.5, rel=1e-9)
    windows = zip(
        result["windows"]["rows"], result["windows"]["loss"][result["model"]], strict=True
    )
    for end, loss in windows:
        if not end - 100 <= WILD < end:
            assert loss == pytest.approx(each[end - 100 : end].mean(), rel=1e-9)


def test_the_row_that_has_most_of_the_loss_is_named(data, shell, tmp_path):
    each = losses_of_rows(data, shell, tmp_path)
    others = np.delete(each, WILD).mean()
    printed = shell("evaluate", data, *LINEAR).out
    assert (
        f"row {WILD + 1} has at least 90% of the total loss: check its label; average loss of the "
        f"other rows = {others:.6g}\n"
    ) in printed
    result = json.loads(shell("evaluate", data, *EVERY, *LINEAR, "--json").out)
    assert result["dominant_row"]["row"] == WILD + 1
    assert result["dominant_row"]["loss_of_others"] == pytest.approx(others, rel=1e-9)


def test_no_row_of_a_usual_stream_is_named(data, shell):
    lines = data.read_text().splitlines()
    lines[WILD + 1] = "0.5,0.5,0.5"
    lines[1] = "0.5,0.5,1000"  # nothing is known yet when the first row is predicted
    data.write_text("\n".join([*lines, ""]))
    assert "total loss" not in shell("evaluate", data, *LINEAR).out


def test_the_progress_table_stays_narrow_and_exact(data, shell, tmp_path):
    each = losses_of_rows(data, shell, tmp_path)
    err = shell("evaluate", data, *LINEAR).err
    lines = err.partition("predict features\n")[2].partition("\n\n")[0].splitlines()
    assert max(map(len, lines)) < 90
    since = {int(line.split()[2]): line.split()[1] for line in lines}
    assert since[512] == f"{each[256:512].mean():.6f}"
    assert since[1024] in ("inf", f"{each[512:1024].mean():.2e}")


@pytest.mark.parametrize(
    "words",
    [
        ["evaluate", "--certificate", "--plot-certificate", "regret.svg", *LINEAR],
        ["evaluate", "--compare", "linear,stumps", "--plot-compare", "pairs.svg", "-n", "4"],
        ["evaluate", "--interval", "0.9", "--plot-intervals", "band.svg", *LINEAR],
        ["evaluate", "--drift", "page-hinkley", "--plot-predictions", "p.svg", *LINEAR],
        ["evaluate", "--loss", "absolute", "--plot-stages", "s.svg", *LINEAR],
        ["evaluate"],
    ],
    ids=["certificate", "compare", "intervals", "drift", "stages", "auto"],
)
def test_all_outputs_are_written_without_a_warning(words, data, shell, tmp_path):
    files = [str(tmp_path / word) if word.endswith(".svg") else word for word in words]
    outputs = ["--plot", tmp_path / "c.svg", "--report", tmp_path / "r.html"]
    printed = shell(*files[:1], data, *files[1:], *outputs)
    assert "Warning" not in printed.err
    assert max(map(len, printed.out.splitlines())) < 160


class KilledError(Exception):
    """Ends a run as if it were killed."""


@pytest.fixture
def killed(data, shell, tmp_path, monkeypatch):
    """Return the words of a run that was killed after its checkpoint at row 1,000."""
    words = ("train", data, *LINEAR, "--json")
    save = Checkpoints.save

    def save_and_stop(self, model, tape, *more):
        save(self, model, tape, *more)
        if tape.rows == 1000:
            raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", save_and_stop)
        with pytest.raises(KilledError):
            shell(*words, "-o", tmp_path / "m.sb", "--checkpoint-every", "500")
    return words


def results(text):
    """Return a printed result without its times."""
    found = json.loads(text)
    return {key: value for key, value in found.items() if "second" not in key.split("_")[-1]}


def test_a_resumed_run_prints_the_same_table_and_result(killed, shell, tmp_path):
    straight = shell(*killed, "-o", tmp_path / "straight.sb")
    resumed = shell(*killed, "-o", tmp_path / "m.sb", "--resume")
    assert results(resumed.out) == results(straight.out)
    [line] = [one for one in resumed.err.splitlines() if " 1024 " in one]
    assert line in straight.err


def test_a_checkpoint_of_an_earlier_version_resumes(killed, shell, tmp_path):
    rows, totals = tmp_path / "m.sb.row-losses", tmp_path / "m.sb.losses"
    losses = RowFile(2, rows, 1000)
    gains = losses.read(0, 1000)
    losses.close()
    rows.unlink()
    totals.write_bytes(gains.cumsum(axis=0).tobytes())  # what earlier versions wrote
    straight = json.loads(shell(*killed, "-o", tmp_path / "straight.sb").out)
    resumed = json.loads(shell(*killed, "-o", tmp_path / "m.sb", "--resume").out)
    assert resumed["loss"] == straight["loss"]
    assert resumed["loss_second_half"] == straight["loss_second_half"]
    assert sorted(path.name for path in tmp_path.glob("m.sb*")) == ["m.sb"]
