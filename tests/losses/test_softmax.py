"""The gradients of softmax loss, and the exponential function they use."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanboost.losses import Softmax
from spanboost.losses.vector import exp_below


@given(st.floats(-1000, 0))
def test_the_branch_free_exponential_is_accurate(x):
    exact = math.exp(max(x, -100))
    assert exp_below(x) == pytest.approx(exact, rel=1e-12 if x >= -40 else 1e-6, abs=0)


def test_the_exponential_of_0_is_1():
    assert exp_below(0.0) == 1


@given(
    st.integers(2, 5).flatmap(
        lambda d: st.lists(
            st.lists(st.floats(-1e4, 1e4), min_size=d, max_size=d), min_size=1, max_size=4
        )
    ),
    st.integers(0, 1),
)
def test_gradients_are_probabilities_minus_the_label(columns, place):
    """Scores far apart neither overflow nor lose the class that leads."""
    Y = np.array(columns).T
    label, out = np.eye(len(Y))[place], np.empty_like(Y)
    Softmax(len(Y)).gradients(label, Y, out)
    e = np.exp(Y - Y.max(axis=0))
    np.testing.assert_allclose(out, e / e.sum(axis=0) - label[:, None], atol=1e-11)
