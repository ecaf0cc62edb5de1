"""Counts and positive labels on the command line."""

import csv
import json

import numpy as np
import pytest
from sklearn.metrics import mean_poisson_deviance
from streams import EVERY, LINEAR


@pytest.fixture
def sales(tmp_path):
    """Return a CSV file with counts, and the counts."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 2)).round(3)
    y = rng.poisson(3 * np.exp(X[:, 0]))
    path = tmp_path / "sales.csv"
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["a", "b", "sold"])
        out.writerows(zip(*X.T.tolist(), y.tolist(), strict=True))
    return path, y


def test_evaluate_reports_the_deviance(shell, sales):
    path, y = sales
    output = path.with_suffix(".predictions")
    printed = shell("evaluate", path, "--loss", "poisson", "--json", "-p", output, *EVERY)
    with output.open() as file:
        predictions = np.array([float(row["prediction"]) for row in csv.DictReader(file)])
    assert (predictions > 0).all()
    found = json.loads(printed.out)["metrics"]["whole"]
    assert found["deviance"] == pytest.approx(mean_poisson_deviance(y, predictions))
    assert {"rmse", "mae", "r2"} <= set(found)


@pytest.mark.parametrize("loss", ["poisson", "tweedie:1.5"])
def test_train_predict_and_inspect(shell, sales, loss):
    path, _ = sales
    model = path.with_suffix(".model")
    shell("train", path, "--loss", loss, "-o", model, *LINEAR)
    lines = shell("predict", path, "-m", model).out.splitlines()
    assert all(float(line) > 0 for line in lines[1:])
    printed = shell("inspect", model, "--all").out
    assert ", from 0 to " in printed
    assert "level of the labels in the model: " in printed
    explained = shell("explain", path, "-m", model).out.splitlines()
    first = float(explained[0].rpartition(" ")[2])
    assert first == pytest.approx(float(lines[1]), rel=1e-5)
    logarithm, what = explained[-1].split(maxsplit=1)
    assert what == "logarithm of the prediction"
    assert np.exp(float(logarithm)) == pytest.approx(first, rel=1e-4)
    assert "mean deviance" in shell("evaluate", path, "--loss", loss, *LINEAR).out


SKIP = "to leave out such rows, use --on-error skip"


def test_a_label_outside_the_domain_is_one_clear_sentence(shell, sales):
    path, y = sales
    row = 2 + int(np.flatnonzero(y == 0)[0])
    printed = shell("evaluate", path, "--loss", "gamma", *LINEAR, status=2)
    problem = "column 'sold': the label '0' is not positive; the loss needs labels above 0"
    assert f"sales.csv:{row}: {problem}; {SKIP}\n" in printed.err
    path.write_text(path.read_text().replace(",0\n", ",-3\n"))
    for loss, least in (("gamma", "above 0"), ("poisson", "of at least 0")):
        printed = shell("evaluate", path, "--loss", loss, *LINEAR, status=2)
        problem = f"column 'sold': the label '-3' is negative; the loss needs labels {least}"
        assert f"sales.csv:{row}: {problem}; {SKIP}\n" in printed.err


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("tweedie", "tweedie:POWER with POWER between 1 and 2, such as tweedie:1.5"),
        ("tweedie:2", "tweedie:POWER with POWER between 1 and 2, such as tweedie:1.5"),
        ("tweedie:POWER", "tweedie:POWER with POWER between 1 and 2, such as tweedie:1.5"),
        ("quantile", "quantile:TAU with TAU between 0 and 1, such as quantile:0.9"),
        ("quantile:90", "quantile:TAU with TAU between 0 and 1, such as quantile:0.9"),
    ],
)
def test_a_loss_without_its_number_is_refused(given, expected, shell, sales):
    printed = shell("evaluate", sales[0], "--loss", given, status=2)
    assert f"expected {expected} (got {given!r})" in printed.err
    assert "did you mean" not in printed.err
