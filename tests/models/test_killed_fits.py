"""A process that is killed during a fit leaves its last file, from which the run continues."""

import subprocess
import sys

import numpy as np
import pytest

from spanboost import Refitted, load

pytest.importorskip("lightgbm")
pytestmark = pytest.mark.process
PROGRAM = """
import os, sys
import numpy as np
from spanboost import Refitted, save

def killed(*given):
    os.kill(os.getpid(), 9)

X = np.random.default_rng(0).uniform(-1, 1, (1000, 3))
model = Refitted(first=200)
model.learn_many(X[:390], np.sign(X[:390, 0] * X[:390, 1]))
save(model, sys.argv[1])
from spanboost.models.refitting import fits
fits.fit_lightgbm = killed
model.learn_many(X[390:700], np.sign(X[390:700, 0] * X[390:700, 1]))
"""


def test_a_run_continues_after_a_kill_in_a_fit(tmp_path):
    path = tmp_path / "model.sb"
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(path)], check=False)
    assert done.returncode == -9
    X = np.random.default_rng(0).uniform(-1, 1, (1000, 3))
    y = np.sign(X[:, 0] * X[:, 1])
    expected = Refitted(first=200).learn_many(X, y)
    np.testing.assert_array_equal(load(path).learn_many(X[390:], y[390:]), expected[390:])
