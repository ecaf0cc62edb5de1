"""Compares Ridge with exact arithmetic and with lstsq, and its regret with the bound."""

import dataclasses

import numpy as np
import pytest
from banks import KINDS, Separate, arrays_of, assert_same_state, stream, weights_for
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_ridge import NaiveRidge
from scipy_free import Csr

from spanboost import DataError, HullBoost, Ridge, Rows, SpanBoost, explain, load, save
from spanboost.compiling.kernels import plain
from spanboost.learners.least_squares import regret_bound
from spanboost.losses import Quantile, SquaredEuclidean
from spanboost.models.sample_loss import sampled_rows

LOSSES = {"squared": "squared", "absolute": "absolute", "euclidean2": SquaredEuclidean(2)}
AUTO = {"label_range": "auto"}


def second_half(model, X, y):
    """Return the mean squared error on the second half of a stream."""
    error = model.learn_many(X, y) - y
    return np.mean(error[len(y) // 2 :] ** 2)


def alone(learner=None, **options):
    return HullBoost(learner or Ridge(), 1, **AUTO | options)


def bank_of(model):
    return model.core.state.bank


def precise(T=10_000, seed=0, draw="normal"):
    """Return rows and labels of a precise linear rule, with noise of variance 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, 4)) if draw == "normal" else rng.uniform(-1, 1, (T, 4))
    noise = rng.normal(size=T)
    return X, X @ [1000, 50, -30, 10] + noise, noise


# --------------------------------------------------------------------------------------------
# Other implementations


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ridge", [0.01, 3.0])
def test_it_agrees_with_exact_arithmetic(ridge, weighted):
    X, y = stream(50)
    weights = weights_for(50) if weighted else np.ones(50)
    naive, expected = NaiveRidge(ridge), []
    for x, label, weight in zip(X, y, weights, strict=True):
        row = [(0, 1.0), *((1 + j, float(v)) for j, v in enumerate(x) if v != 0)]
        expected.append(np.clip(naive.forecast(row), -1, 1))
        if weight > 0:
            naive.learn(row, float(label), float(weight), float(expected[-1]))
    with plain():
        got = HullBoost(Ridge(ridge), 1).learn_many(X, y, weights)
    assert np.ptp(expected) > 0.1
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES)
def test_compiled_and_plain_agree(loss, kind):
    X, y = stream(60, loss=loss)
    weights = weights_for(60)
    for dtype in (np.float32, np.float64):
        models = [SpanBoost(Ridge(dtype=dtype), 3, loss=LOSSES[loss]) for _ in range(2)]
        got = models[0].learn_many(KINDS[kind](X), y, weights)
        with plain():
            expected = models[1].learn_many(KINDS[kind](X), y, weights)
        np.testing.assert_array_equal(got, expected)
        assert np.ptp(got) > 0.1
        assert_same_state(*(model.core.state for model in models))


@pytest.mark.parametrize("loss", LOSSES)
def test_a_bank_of_n_equals_n_banks_of_one(loss):
    X, y = stream(40, loss=loss)
    with plain():
        together = SpanBoost(Ridge(), 3, loss=LOSSES[loss])
        expected = together.learn_many(X, y, weights_for(40))
    assert len(bank_of(together).fits.R) == (3 if loss == "absolute" else 1)
    apart = SpanBoost(Separate(Ridge()), 3, loss=LOSSES[loss])
    np.testing.assert_array_equal(apart.learn_many(X, y, weights_for(40)), expected)


@settings(max_examples=15)
@given(cuts=st.lists(st.integers(1, 39), max_size=6), kind=st.sampled_from(sorted(KINDS)))
def test_blocks_files_and_peeks_do_not_matter(tmp_path_factory, cuts, kind):
    X, y = stream(40)
    rows, path = KINDS[kind], tmp_path_factory.mktemp("ridge") / "model.sb"
    whole, parts = (SpanBoost(Ridge(columns=6), 2, **AUTO) for _ in range(2))
    expected, got, first = whole.learn_many(rows(X), y), [], 0
    for last in [*sorted(set(cuts)), 40]:
        got.extend(parts.learn_many(rows(X[first:last]), y[first:last]))
        parts.predict_many(rows(X))
        save(parts, path)
        parts, first = load(path), last
    np.testing.assert_array_equal(got, expected)
    assert_same_state(parts.core.state, whole.core.state)


@pytest.mark.parametrize("T", [300, 100_000])
def test_the_coefficients_are_those_of_lstsq(T):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(T, 6)) * 10.0 ** rng.uniform(-9, 9, 6) + rng.normal(size=6)
    y = X @ (rng.normal(size=6) / np.abs(X).max(axis=0)) / 10 + rng.normal(size=T) / 50
    model = HullBoost(Ridge(1e-12), 1, label_range=(-2, 2))
    model.learn_many(X, y)
    A = np.column_stack([np.ones(T), X])
    scale = np.abs(A).max(axis=0)
    expected = A / scale @ np.linalg.lstsq(A / scale, y / 2, rcond=None)[0]
    np.testing.assert_allclose(A @ bank_of(model).weights()[:, 0, 0], expected, atol=1e-8)


@pytest.mark.slow
def test_a_million_rows_leave_no_trace_of_rounding():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_000_000, 2))
    X = np.column_stack([X, X[:, 0] + 1e-6 * X[:, 1], X[:, 0]])  # nearly and exactly collinear
    noise = rng.normal(size=len(X))
    error = second_half(alone(Ridge(1e-6)), X, X @ [1.0, -2.0, 0.5, 0.5] + noise)
    assert error == pytest.approx(np.mean(noise[500_000:] ** 2), rel=1e-4)


# --------------------------------------------------------------------------------------------
# Accuracy


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("draw", ["normal", "uniform"])
def test_a_precise_rule_is_found(draw, loss):
    X, y, noise = precise(draw=draw)
    error = second_half(alone(loss=loss), X, y)
    assert error <= 1.005 * np.mean(noise[5000:] ** 2)


def test_the_last_value_of_a_counter_predicts_the_next():
    steps = np.random.default_rng(0).uniform(0.5, 1.5, 10_000)
    counter = np.cumsum(steps)
    assert second_half(alone(), counter[:-1, None], counter[1:]) < 1.02 / 12


def test_geometric_growth_is_extrapolated():
    prices = 1.01 ** np.arange(2001)
    error = alone().learn_many(prices[:-1, None], prices[1:]) / prices[1:] - 1
    assert np.median(np.abs(error[1000:])) < 0.001  # a row in 70 widens the range
    assert np.abs(error[1000:]).max() < 0.01


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("units", [1e-9, 1e9])
def test_units_do_not_matter(units, loss):
    X, y, _ = precise(2000)
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    expected = alone(loss=loss).learn_many(X, y)
    got = alone(loss=loss).learn_many(X * [units, 1 / units, 1, -units], 50 * units + units * y)
    got = (got - 50 * units) / units
    got[0] = expected[0]  # before the first label the prediction is 0 in any units
    np.testing.assert_allclose(got, expected, atol=1e-6 * np.ptp(y))


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_a_range_that_grows_gives_the_predictions_of_a_wide_one(loss):
    X, y, _ = precise(500)
    y *= np.geomspace(1e-3, 1, 500)
    got = HullBoost(Ridge(), 1, loss=loss, label_range="auto-zero").learn_many(X, y)
    wide = HullBoost(Ridge(), 1, loss=loss, label_range=(-1e5, 1e5)).learn_many(X, y)
    assert np.abs(got).max() > 100
    kept = np.abs(wide) <= np.maximum.accumulate(np.abs([0.0, *y[:-1]]))  # inside the range so far
    assert kept.mean() > 0.9
    np.testing.assert_allclose(got[kept], wide[kept], rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore::spanboost.WeightWarning")
@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_unit_of_weights_does_not_matter(factor):
    X, y = stream(200)
    weights = np.random.default_rng(0).uniform(0.5, 2, 200)
    for loss in ("squared", "absolute"):
        expected = HullBoost(Ridge(), 1, loss=loss).learn_many(X, y, weights)
        got = HullBoost(Ridge(), 1, loss=loss).learn_many(X, y, factor * weights)
        np.testing.assert_allclose(got, expected, atol=1e-6)


@pytest.mark.parametrize(
    "column",
    [
        lambda X: X[:, 0],
        lambda X: np.full(len(X), 7.0),
        lambda X: np.full(len(X), np.nan),
        lambda X: 1e15 + np.arange(len(X)),
        lambda X: np.arange(len(X)) % 97 + 1e15,
        lambda X: np.where(np.arange(len(X)) % 3, 1e9, np.nan),
    ],
    ids=["duplicate", "constant", "missing", "ids", "repeated ids", "large or missing"],
)
def test_a_useless_column_does_no_harm(column):
    X, y, noise = precise()
    error = second_half(alone(), np.column_stack([column(X), X]), y)
    assert error <= 1.01 * np.mean(noise[5000:] ** 2)


@pytest.mark.parametrize("T", [2000, 100_000])
@pytest.mark.parametrize("constant", [1.0, 1e9, -1e-6])
def test_numbers_that_a_constant_column_never_had_change_no_forecast(constant, T):
    rng = np.random.default_rng(0)
    x = rng.uniform(20, 200, T)
    X = np.column_stack([x, np.full(T, constant)])
    model = alone()
    model.learn_many(X, 3 * x + rng.normal(0, 10, T))
    for other in (0.0, 0.9 * constant, 2 * constant, np.nan):
        assert model.predict_one([100.0, other]) == model.predict_one([100.0, constant])
    assert bank_of(model).weights()[2, 0, 0] == 0
    found = explain(model, [100.0, 0.0])
    typical = model.predict_many(sampled_rows(model, 64))
    assert found.base == pytest.approx(typical.mean(), rel=1e-4)
    assert found.base == pytest.approx(330, abs=3 * 156 / 8)  # three standard errors of 64 rows
    assert set(found.contributions) == {0}
    assert found.base + found.contributions[0] == pytest.approx(model.predict_one([100.0, 0.0]))


def test_a_constant_column_that_changes_is_learned():
    rng = np.random.default_rng(0)
    x, flag = rng.normal(size=4000), np.where(np.arange(4000) < 2000, 5.0, 8.0)
    flag[2500:] = rng.choice([5.0, 8.0], 1500)
    X, y = np.column_stack([x, flag]), x + 10 * (flag > 6) + rng.normal(0, 0.1, 4000)
    model = alone(label_range=(-20, 30))
    assert np.mean((model.learn_many(X, y) - y)[2600:] ** 2) < 0.011
    assert model.predict_one([0.0, 8.0]) - model.predict_one([0.0, 5.0]) == pytest.approx(
        10, abs=0.1
    )


def test_missing_numbers_count_as_the_mean():
    rng = np.random.default_rng(0)
    X = rng.normal(50, 1, (4000, 2))
    y = X @ [1.0, -1.0]
    X[rng.random(X.shape) < 0.2] = np.nan
    assert second_half(alone(), X, y) < 0.42  # 0.4 is the variance of what is missing


def test_categories_and_late_features():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 30, (6000, 2))
    codes[:2000] %= 10
    effects = rng.normal(size=(30, 2))
    y = effects[codes[:, 0], 0] + effects[codes[:, 1], 1]
    assert second_half(alone(), Rows(None, codes), y) < 1e-3
    assert second_half(alone(), [{"a": f"a{a}", "b": f"b{b}"} for a, b in codes.tolist()], y) < 1e-3


def test_the_median_is_not_the_mean():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 1))
    noise = rng.exponential(1, 20_000)
    y = 3 * X[:, 0] + noise
    for loss, level in (("absolute", np.log(2)), (Quantile(0.9), np.log(10)), ("squared", 1.0)):
        model = alone(loss=loss)
        model.learn_many(X, y)
        assert model.predict_one([0.0]) == pytest.approx(level, abs=0.1)
        assert model.predict_one([0.5]) == pytest.approx(level + 1.5, abs=0.15)


def test_more_features_than_columns_share_some():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((4000, 300)) < 0.03, rng.normal(size=(4000, 300)), 0)
    y = 5 * X[:, 3] + X @ rng.normal(size=300) / 5
    model = alone(Ridge(columns=40))
    error = second_half(model, Csr(X), y)
    assert bank_of(model).columns.used[0] == 40
    assert error < 0.8 * np.var(y)
    assert second_half(alone(Ridge(columns=301)), Csr(X), y) < 0.01 * np.var(y)


@given(st.lists(st.sets(st.integers(0, 30), max_size=12), min_size=2, max_size=6))
def test_numbers_that_cancel_in_a_new_shared_column_leave_the_state_finite(words):
    """A word counts as 1, and one that shares its column as 1 or -1: their sum can be 0."""
    rows = [{f"w{word}": 1.0 for word in row} for row in words]
    with plain():
        model = alone(Ridge(columns=8))
        model.learn_many(rows, np.arange(len(rows)) % 3)
        assert np.isfinite(model.predict_many(rows)).all()
        assert bank_of(model).sound


def test_a_column_that_restarts_leaves_what_is_known_of_the_others():
    X, y = stream(60, missing=False)
    with plain():
        model = HullBoost(Ridge(), 1)
        model.learn_many(X, y)
        bank = bank_of(model)
        R, c = bank.fits.R[0, :5, :5].copy(), bank.fits.c[0, :5].copy()
        bank.fits.restart_column(0, 2, np.zeros(5), np.zeros(1))
    A, b = R.T @ R, R.T @ c
    A, b = A - np.outer(A[0], A[0]) / A[0, 0], b - A[:, :1] * b[0] / A[0, 0]
    A[2], A[:, 2], b[2] = 0, 0, 0
    R, c = bank.fits.R[0, :5, :5], bank.fits.c[0, :5]
    np.testing.assert_array_equal(R, np.triu(R))
    np.testing.assert_allclose(R.T @ R, A, rtol=1e-9, atol=1e-9 * np.abs(A).max())
    np.testing.assert_allclose(R.T @ c, b, rtol=1e-9, atol=1e-9 * np.abs(b).max())


def test_contributions_add_up():
    X, y = stream(60)
    model = HullBoost(Ridge(columns=4), 2)
    model.learn_many(X, y)
    for x in X[:5]:
        found = explain(model, x)
        assert found.base + sum(found.contributions.values()) == pytest.approx(
            float(model.predict_one(x)), abs=1e-9
        )


# --------------------------------------------------------------------------------------------
# Regret


def regret_of(X, label_of, ridge):
    """Return the regret of one copy against the best function, and its bound.

    `label_of(t, forecast)` is the label of row t.
    """
    model, raises, first, losses, y = HullBoost(Ridge(ridge), 1), 0, None, [], []
    for t, x in enumerate(X):
        forecast = float(model.predict_one(x))
        y.append(label_of(t, forecast))
        before = bank_of(model).columns.prior[: X.shape[1] + 1].copy() if t else 0
        model.learn_one(x, y[-1])
        losses.append((forecast - y[-1]) ** 2)
        after = bank_of(model).columns.prior[: X.shape[1] + 1].copy()
        raises += bool((after != before).any())
        first = after if t == 1 else first
    T, features = X.shape
    A = np.column_stack([np.ones(T), X])
    scale = np.sqrt(ridge) * after
    u = np.linalg.lstsq(np.vstack([A, np.diag(scale)]), [*y, *[0.0] * (features + 1)], rcond=None)[
        0
    ]
    best = np.sum((A @ u - y) ** 2)
    growth = float((after[1:] / first[1:]).max()) if features else 1.0
    norm = float(np.linalg.norm(after * u))
    return sum(losses) - best, regret_bound(features, T, ridge, 1.0, norm, raises, growth)


ADVERSARIES = {
    "opposite": lambda t, forecast: -1.0 if forecast > 0 else 1.0,
    "alternating": lambda t, forecast: (-1.0) ** t,
    "doubling": lambda t, forecast: (-1.0) ** np.floor(np.log2(t + 1)),
    "calm, then opposite": lambda t, forecast: 1.0 if t < 50 or forecast < 0 else -1.0,
}


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("ridge", [0.01, 1.0])
@pytest.mark.parametrize("features", [1, 4])
def test_regret_against_adversaries(features, ridge, adversary):
    for seed in range(3):
        X = np.random.default_rng(seed).uniform(-1, 1, (150, features))
        if seed == 2:
            X = np.sign(X)
        X[:2] = [[-1.0], [1.0]]
        regret, bound = regret_of(X, ADVERSARIES[adversary], ridge)
        assert 0 < regret <= bound


def test_the_bound_is_tight_for_a_strong_prior():
    X = np.resize([[-1.0], [1.0]], (1600, 1))
    regret, bound = regret_of(X, ADVERSARIES["alternating"], ridge=100.0)
    assert 0.8 * bound < regret <= bound


# --------------------------------------------------------------------------------------------
# Parameters


@pytest.mark.parametrize(
    ("wrong", "name"),
    [({"ridge": 0.0}, "ridge"), ({"ridge": "a"}, "ridge"), ({"columns": 1}, "columns"),
     ({"columns": 5000}, "columns"), ({"bits": 0}, "bits"), ({"dtype": np.float16}, "dtype")],
    ids=str,
)  # fmt: skip
def test_parameters_out_of_range_are_rejected(wrong, name):
    with pytest.raises(ValueError, match=rf"^{name} must be .* \(got "):
        HullBoost(dataclasses.replace(Ridge(), **wrong), 1)


def test_linear_feedback_is_rejected():
    with pytest.raises(ValueError, match=r"^feedback must be 'greedy'"):
        HullBoost(Ridge(), 1, feedback="linear")


ODD = st.sampled_from([0.0, np.nan, 1.0, -1.0, 7.5, 1e15, 1e-300, 5e-324, 1e30, -1e300, 1e308])


@given(
    st.lists(
        st.tuples(
            st.lists(ODD, min_size=3, max_size=3),
            st.integers(-1, 5),
            st.floats(-1, 1),
            st.sampled_from([0.0, 1e-19, 0.5, 1.0, 1e19]),
        ),
        min_size=1,
        max_size=60,
    )
)
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_odd_numbers_leave_the_state_finite(loss, rows):
    numbers, codes, labels, weights = map(np.array, zip(*rows, strict=True))
    model = HullBoost(Ridge(columns=6), 2, loss=loss)
    block = Rows(numbers, codes[:, None])
    assert np.isfinite(model.learn_many(block, labels, weights)).all()
    assert np.isfinite(model.predict_many(block)).all()
    assert all(np.isfinite(part).all() for part in arrays_of(model.core.state))


def test_numbers_of_any_size_are_learned_or_rejected():
    model = HullBoost(Ridge(), 1)
    sizes = np.array([[1e30], [1e-30], [1e300], [-1e308], [5e-324], [1.0]])
    assert np.isfinite(model.learn_many(sizes, np.linspace(-1, 1, 6), np.full(6, 1e19))).all()
    assert all(np.isfinite(part).all() for part in bank_of(model).fits)
    with pytest.raises(DataError, match=r"column \d is too large for float32"):
        HullBoost(Ridge(dtype=np.float32), 1).learn_many([[1e300]], [0.5])


def test_effects_leave_out_features_that_were_always_missing():
    X, y = np.column_stack([np.arange(20.0), np.full(20, np.nan)]), np.arange(20.0)
    with plain():
        model = HullBoost(Ridge(), 1, label_range="auto")
        model.learn_many(X, y)
    features, sizes = model.core.state.bank.effects()
    assert features.tolist() == [0, 1]
    assert np.isfinite(sizes).all()
