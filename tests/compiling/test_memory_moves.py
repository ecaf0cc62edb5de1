"""Compiled code moves the entries of a vector as plain Python does."""

import numpy as np
import pytest

from spanboost.compiling.kernels import jit, plain
from spanboost.compiling.memory_moves import move_values


@jit
def move(values, to, first, number):
    move_values(values, to, first, number)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize(("to", "first"), [(0, 1), (1, 0), (3, 20), (20, 3), (5, 5)])
@pytest.mark.parametrize("number", [0, 1, 2, 17, 30])
def test_entries_move_also_if_they_overlap(dtype, to, first, number):
    expected = np.arange(50).astype(dtype)
    found, slow = expected.copy(), expected.copy()
    expected[to : to + number] = list(range(first, first + number))
    move(found, to, first, number)
    with plain():
        move(slow, to, first, number)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(slow, expected)
