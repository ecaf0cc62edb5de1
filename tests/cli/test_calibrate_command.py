"""`spanboost train --calibrate` and `spanboost evaluate --calibrate`."""

import csv
import io
import json

import numpy as np
import pytest
from streams import put

from spanboost import Calibrated, load
from spanboost.models.sample_loss import sample_loss

ROWS = 1500
LINEAR = ("--learner", "linear", "-n", "2", "--quiet")


@pytest.fixture
def flowers(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, ROWS)
    places = np.digitize(x + rng.normal(0, 0.1, ROWS), [-0.3, 0.3])
    kinds = np.array(["rose", "lily", "iris"])[places]
    lines = [f"{a:.4f},{kind}\n" for a, kind in zip(x, kinds, strict=True)]
    return put(tmp_path, "flowers.csv", "".join(["x,label\n", *lines]).encode())


def log_loss(text):
    rows = [*csv.DictReader(io.StringIO(text))]
    return -np.mean([np.log(float(row[f"p_{row['label']}"])) for row in rows])


def test_predicted_probabilities_are_calibrated(shell, flowers, tmp_path):
    losses = []
    for options in ((), ("--calibrate",)):
        model = tmp_path / f"model{len(options)}.sb"
        shell("train", flowers, "-o", model, "--loss", "softmax", *LINEAR, *options)
        losses.append(log_loss(shell("predict", flowers, "-m", model, "--keep", "label").out))
    assert losses[1] < 0.8 * losses[0]
    assert isinstance(load(model), Calibrated)
    shown = shell("inspect", model).out
    assert "Calibrated, 2 copies of LinearSGD" in shown
    assert "`evaluate` measures it on unseen rows; before calibration\n" in shown
    found = json.loads(shell("inspect", model, "--json").out)
    assert found["kept_loss"] == sample_loss(load(model).model).loss
    assert ", probability before calibration 0." in shell("explain", flowers, "-m", model).out
    plain = shell("explain", flowers, "-m", tmp_path / "model0.sb").out
    assert ", probability 0." in plain


def test_a_resumed_run_writes_the_same_model(shell, flowers, tmp_path):
    whole, parts = tmp_path / "whole.sb", tmp_path / "parts.sb"
    words = ("train", flowers, "--loss", "softmax", *LINEAR, "--calibrate")
    shell(*words, "-o", whole)
    shell(*words, "-o", parts, "--checkpoint-every", "400")
    assert whole.read_bytes() == parts.read_bytes()


def test_evaluate_measures_calibrated_probabilities(shell, flowers):
    words = ("evaluate", flowers, "--loss", "softmax", *LINEAR, "--json")
    alone, both = (
        json.loads(shell(*words, *options).out)["metrics"]["second_half"]
        for options in ((), ("--calibrate",))
    )
    assert both["calibration_error"] < 0.5 * alone["calibration_error"]
    assert both["log_loss"] < 0.8 * alone["log_loss"]


def test_what_cannot_be_calibrated_is_refused(shell, flowers, tmp_path):
    model = tmp_path / "model.sb"
    words = ("train", flowers, "-o", model, *LINEAR, "--calibrate")
    assert "--calibrate requires --loss logistic or softmax" in shell(*words, status=2).err
    both = shell(*words, "--loss", "softmax", "--sets", status=2).err
    assert "--calibrate cannot be combined with --sets" in both
    shell(*words[:-1], "--loss", "softmax")
    again = shell("train", flowers, "-i", model, "-o", model, "--calibrate", status=2).err
    assert "--calibrate cannot be combined with -i, which loads a complete model" in again
