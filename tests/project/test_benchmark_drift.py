"""The benchmark of streams that drift: its streams, its runs and its table."""

import numpy as np
import pytest

from benchmarks.drift import __main__ as command
from benchmarks.drift import streams

pytest.importorskip("river")


@pytest.mark.parametrize("name", streams.DRIFTING)
def test_streams_are_those_of_their_seed(name):
    first, again, other = (streams.load(name, 80, seed) for seed in (1, 1, 2))
    assert first.X.shape[0] == len(first.y) == 80
    assert set(first.y) <= set(range(first.classes))
    np.testing.assert_array_equal(first.X, again.X)
    assert (first.X != other.X).any()


def test_bundled_streams_have_numbers_for_classes():
    phishing, weights = (streams.load(name, 0, 0) for name in ("phishing", "chick weights"))
    assert set(phishing.y) == {0, 1}
    assert weights.classes == 0
    assert weights.y.max() > 100


def test_the_first_seed_of_every_stream_comes_first():
    keys = command.wanted(["bananas", "sea abrupt"], ["fast", "default"], 100, 2)
    assert [key.seed for key in keys] == [0, 0, 0, 0, 1, 1]
    assert keys[0] == command.Key("bananas", 0, 0, "fast")


def test_the_table_has_the_mean_of_all_seeds():
    found = {
        command.Key("sea abrupt", 100, 0, "default"): {"score": 80.0},
        command.Key("sea abrupt", 100, 1, "default"): {"score": 81.0},
        command.Key("bananas", 0, 0, "default"): {"score": 89.123},
    }
    assert command.table(found, ["default", "fast"]) == [
        ["sea abrupt", "80.5 (2)", "-", "-"],
        ["bananas", "89.12 (1)", "-", "88.94"],
    ]
