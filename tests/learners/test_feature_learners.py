"""Tests of all feature learners: bounded functions, and robustness to extreme input."""

import numpy as np
import pytest
from banks import KINDS, LEARNERS, WITH_TREES, arrays_of, learner_of, stream
from scipy_free import Csr

from spanboost import DataError, HullBoost, SpanBoost
from spanboost.compiling.kernels import plain
from spanboost.losses import SquaredEuclidean
from spanboost.rows.block import as_rows

D = 0.4


def raw_predictions(bank, rows, d, n, dtype):
    """Return the values of the functions before the projection, [T, d, n]."""
    h, predictions = np.zeros((d, n), dtype), []
    for t in range(len(rows.X)):
        bank.predict(as_rows(rows).row(t), h)
        predictions.append(h.copy())
    return np.array(predictions)


def extreme_rows(X, T=400):
    """Return rows whose features lie anywhere in their ranges, mostly at the ends."""
    rng = np.random.default_rng(5)
    size = np.abs(np.nan_to_num(X)).max(axis=0)
    rows = rng.uniform(-1, 1, (T, len(size)))
    rows[: T // 2] = np.sign(rows[: T // 2])
    rows[rng.random(rows.shape) < 0.2] = 0
    return rows * size


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", ["squared", SquaredEuclidean(3)], ids=["scalar", "vector"])
@pytest.mark.parametrize("name", LEARNERS)
def test_under_linear_feedback_the_functions_are_bounded(name, loss, dtype):
    X, y = stream(200)
    y = np.sign(y)  # labels far beyond the bound of the functions
    if loss != "squared":
        y = np.stack([y, -y, y * y], axis=1) / 2
    d = 1 if loss == "squared" else 3
    learner = learner_of(name, rate=2.0, dtype=dtype)

    def lengths(feedback, bound):
        with plain():
            model = SpanBoost(learner, 3, loss=loss, feedback=feedback, D=bound)
            model.learn_many(X, y)
            rows = learner.encode(extreme_rows(X), bound)
            raw = raw_predictions(model.core.state.bank, rows, d, 3, dtype)
        return np.sqrt((raw.astype(float) ** 2).sum(axis=1))

    bounded = lengths("linear", D)
    assert bounded.max() <= D * (1 + 1e-4)
    assert bounded.max(axis=0).min() > D / 2  # the bound is the reason, not small weights
    assert lengths("linear", 1e6).max() > D
    assert lengths("greedy", D).max() > D  # there only the predictions are bounded


@pytest.mark.parametrize("name", LEARNERS)
def test_an_extreme_value_counts_as_the_largest_so_far(name):
    X, y = stream(100, missing=False)
    X = X[:, :3]
    for make in (lambda: SpanBoost(learner_of(name), 3), lambda: HullBoost(learner_of(name), 1)):
        booster, twin = make(), make()
        with plain():
            for one in (booster, twin):
                one.learn_many(X, y)
            calm, wild = X[-1].copy(), X[-1].copy()
            calm[0], wild[0] = np.abs(X[:, 0]).max(), 1e30
            assert booster.predict_one(wild) == booster.predict_one(calm)
            before = booster.predict_many(X)
            booster.learn_one(wild, 0.0)
            twin.learn_one(calm, 0.0)
            after = booster.predict_many(X)
            assert not np.array_equal(before, after)
            np.testing.assert_array_equal(after, twin.predict_many(X))


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("name", WITH_TREES)
def test_numbers_of_any_size_are_learned_or_rejected(name, kind):
    rows = KINDS[kind]
    model = SpanBoost(learner_of(name), 3)
    sizes = np.array([[1e30], [1e-30], [1e-44], [3e38], [-3e38]])
    assert np.isfinite(model.learn_many(rows(sizes), np.full(5, 0.5))).all()
    assert np.isfinite(model.predict_many(rows(sizes))).all()
    before = arrays_of(model.core.state)
    with pytest.raises(DataError, match="too large") as raised:
        model.learn_many(rows(np.array([[1.0], [1e39]])), [0.5, 0.5])
    assert raised.value.row == 1
    with pytest.raises(DataError, match=r"the weight must be between 0 and .* \(got 1e\+39\)"):
        model.learn_many(rows(sizes[:1]), [0.5], [1e39])
    assert all(map(np.array_equal, before, arrays_of(model.core.state)))


def with_error(what, X, y):
    """Return a block with one error, in its last row unless the width is wrong."""
    X, y, weights = X.copy(), y.copy(), np.ones(len(y))
    if what == "label":
        y[-1] = np.nan
    elif what == "feature":
        X[-1, 1] = np.inf
    elif what == "width":
        X = X[:, :3]
    elif what == "weight":
        weights[-1] = -1.0
    return X, y, weights


@pytest.mark.parametrize("what", ["label", "feature", "width", "weight"])
@pytest.mark.parametrize("name", WITH_TREES)
def test_invalid_input_does_not_change_the_model(name, what):
    X, y = stream(40)
    model = SpanBoost(learner_of(name), 3)
    model.learn_many(X[:20], y[:20])
    before = arrays_of(model.core.state)
    with pytest.raises(DataError) as raised:
        model.learn_many(*with_error(what, X[20:], y[20:]))
    assert raised.value.row == (0 if what == "width" else 19)
    assert all(map(np.array_equal, before, arrays_of(model.core.state)))


@pytest.mark.parametrize("name", WITH_TREES)
def test_an_invalid_sparse_row_does_not_change_the_table(name):
    X, y = stream(40, missing=False)
    model = SpanBoost(learner_of(name), 3)
    model.learn_many(Csr(X[:20, :2]), y[:20])
    before = arrays_of(model.core.state)
    for what in ("label", "feature", "weight"):
        bad, labels, weights = with_error(what, X[20:], y[20:])
        with pytest.raises(DataError):
            model.learn_many(Csr(bad), labels, weights)  # with new features
    assert [array.shape for array in arrays_of(model.core.state)] == [
        array.shape for array in before
    ]
    assert all(map(np.array_equal, before, arrays_of(model.core.state)))


@pytest.mark.parametrize(
    ("wrong", "parameter"),
    [
        ({"rate": 0.0}, "rate"),
        ({"rate": float("nan")}, "rate"),
        ({"decay": 2.0}, "decay"),
        ({"decay": -0.1}, "decay"),
        ({"bits": 0}, "bits"),
        ({"bits": 31}, "bits"),
        ({"dtype": np.float16}, "dtype"),
    ],
    ids=["rate0", "ratenan", "decay2", "decaynegative", "bits0", "bits31", "float16"],
)
@pytest.mark.parametrize("name", LEARNERS)
def test_parameters_out_of_range_are_rejected(name, wrong, parameter):
    with pytest.raises(ValueError, match=rf"^{parameter} must be .* \(got "):
        SpanBoost(learner_of(name, **wrong), 3)
