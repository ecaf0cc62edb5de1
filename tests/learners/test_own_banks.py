"""Errors about compiled learners of users."""

from typing import NamedTuple

import numpy as np
import pytest

from spanboost import FromBank, HullBoost, SpanBoost
from spanboost.compiling.kernels import plain

X, Y = np.zeros((50, 2)), np.zeros(50)


class Failing(NamedTuple):
    """A bank that predicts NaN after 30 rows."""

    seen: np.ndarray

    def predict(self, x, h):
        for i in range(h.shape[1]):
            h[:, i] = np.nan if self.seen[0] >= 30 else 0.1

    def update(self, x, h, feedback):
        self.seen[0] += 1


@pytest.mark.parametrize("booster", [SpanBoost, HullBoost])
def test_a_prediction_of_nan_is_an_error(booster):
    model = booster(FromBank(lambda _: Failing(np.zeros(1))), n=3)
    with plain():
        model.learn_many(X[:20], Y[:20])
        with pytest.raises(ValueError, match="predicted NaN in row 10 of the block"):
            model.learn_many(X, Y)
        assert model.labels.rows == 30  # the rows before it
        with pytest.raises(ValueError, match="predicted NaN in row 0"):
            model.learn_one(X[0], 0.0)


@pytest.mark.parametrize("bank", [None, 0])
def test_a_function_that_returns_no_bank(bank):
    def steps(_):
        return bank

    model = SpanBoost(FromBank(steps), n=3)
    with pytest.raises(TypeError, match=r"steps\(task\) must return a NamedTuple with predict"):
        model.learn_many(X, Y)


def test_a_label_range_that_changes_names_scalable():
    with pytest.raises(ValueError, match="scalable=True"):
        SpanBoost(FromBank(lambda _: None), n=3, label_range="auto")
