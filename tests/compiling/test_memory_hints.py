"""Hints about memory change nothing but the time."""

import numpy as np
import pytest

from spanboost.compiling.kernels import jit, plain
from spanboost.compiling.memory_hints import prefetch


@jit
def sum_with_hints(table, order):
    """Return the sum of the entries in this order, each announced one step ahead."""
    total = 0.0
    for k in range(order.shape[0]):
        if k + 1 < order.shape[0]:
            prefetch(table, order[k + 1])
        total += table[order[k]].sum()
    return total


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("shape", [(50, 3, 64), (50, 32), (50, 1), (50, 0)])
def test_hints_do_not_change_results(dtype, shape):
    rng = np.random.default_rng(0)
    table, order = rng.integers(0, 100, shape).astype(dtype), rng.permutation(shape[0])
    before = table.copy()
    compiled = sum_with_hints(table, order)
    with plain():
        assert sum_with_hints(table, order) == compiled == table.sum()
    np.testing.assert_array_equal(table, before)


def test_every_second_entry_can_be_announced():
    table = np.arange(100.0).reshape(20, 5)[::2]
    assert sum_with_hints(table, np.arange(10)) == table.sum()
