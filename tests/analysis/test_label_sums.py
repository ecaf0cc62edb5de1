"""The best constant prediction and its loss, from sums over the labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanboost.analysis.label_sums import LabelSums
from spanboost.losses import Gamma, Poisson, Tweedie

LOSSES = [Poisson(), Gamma(), Tweedie(1.5), Tweedie(1.2)]
LABELS = st.lists(st.floats(0.01, 1e6), min_size=1, max_size=20)


def constant_loss(loss, y, weights, mean):
    """Return the average loss of a constant mean, row by row."""
    values = [loss.value(label, float(np.log(mean))) for label in y]
    return np.average(values, weights=weights)


@pytest.mark.parametrize("loss", LOSSES)
@given(labels=LABELS, zero=st.booleans(), cut=st.integers(0, 20))
def test_losses_with_a_log_link(loss, labels, zero, cut):
    y = np.array([0.0, *labels] if zero and loss.takes_zero else labels)
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
    sums = LabelSums(loss)
    for part in (slice(cut), slice(cut, None)):
        if len(y[part]):
            sums.add(y[part], weights[part])
            sums = LabelSums(loss, sums.state())
    mean, found = sums.best_constant()
    assert mean == pytest.approx(np.average(y, weights=weights))
    expected = constant_loss(loss, y, weights, mean)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-9 * max(y.max(), 1))
    for other in (0.9 * mean, 1.1 * mean):
        assert found <= constant_loss(loss, y, weights, other) + 1e-9 * max(y.max(), 1)


@pytest.mark.parametrize("loss", [Poisson(), Tweedie(1.5)])
def test_labels_that_are_all_0(loss):
    sums = LabelSums(loss)
    sums.add(np.zeros(3), np.ones(3))
    assert sums.best_constant() == (0.0, 0.0)


def test_a_checkpoint_of_an_earlier_version_has_no_loss_of_the_best_constant():
    old = {"centre": 2.0, "sums": [value.hex() for value in (2.0, 1.0, 1.0)]}
    sums = LabelSums(Poisson(), old)
    sums.add(np.array([5.0]), np.ones(1))
    assert sums.best_constant() == (pytest.approx(10 / 3), None)
