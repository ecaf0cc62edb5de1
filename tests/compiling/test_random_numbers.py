"""Random numbers are the same in compiled code and in plain Python, one by one and in runs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanboost.compiling.kernels import jit, plain
from spanboost.compiling.random_numbers import fill_uniform, streams, uniform


@jit
def draw_run(state, out, number):
    fill_uniform(state, out, number)


@jit
def draw_each(state, out, number):
    for k in range(number):
        out[k] = uniform(state)


def drawn(draw, state, number):
    """Return the numbers, and the state after them."""
    state, out = state.copy(), np.full(10, -1.0)
    draw(state, out, number)
    return np.concatenate([out, state])


@given(seed=st.integers(0, 2**32), number=st.integers(0, 10))
def test_a_run_of_numbers_is_that_of_single_calls(seed, number):
    state = streams(seed, 1)[0]
    expected = drawn(draw_each, state, number)
    np.testing.assert_array_equal(drawn(draw_run, state, number), expected)
    with plain():
        np.testing.assert_array_equal(drawn(draw_run, state, number), expected)


@pytest.mark.parametrize("seed", range(3))
def test_numbers_are_spread_evenly(seed):
    out = np.empty(10000)
    draw_run(streams(seed, 1)[0], out, len(out))
    assert 0 < out.min() < 0.01
    assert 0.99 < out.max() < 1
    assert abs(out.mean() - 0.5) < 0.02
