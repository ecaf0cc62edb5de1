"""Tests with numbers at the limits of machine types, and with arrays of every layout.

Compiled code must stay within its tables, and a failed call must not change the model.
"""

import numpy as np
import pytest
from scipy_free import Csr

from spanboost import DataError, HullBoost, LinearSGD, Network, Rows, SpanBoost, Stumps, Symmetrised
from spanboost.losses import SquaredEuclidean


def stream(T=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, 3))
    return X, np.tanh(X[:, 0]) / 2


@pytest.mark.parametrize("learner", [LinearSGD(), Stumps(), Network(hidden=2)], ids=repr)
@pytest.mark.parametrize("code", [2**62 + 2**40, 2**63 - 1, 2**63, 2**40], ids=str)
def test_codes_that_are_too_large_are_rejected(learner, code):
    codes = np.array([[1], [code]], dtype=np.uint64)
    model = HullBoost(learner, 2)
    for call in (lambda: model.predict_many(Rows(np.ones((2, 1)), codes)),
                 lambda: model.learn_many(Rows(np.ones((2, 1)), codes), [0.1, 0.2])):  # fmt: skip
        with pytest.raises(DataError, match="a code is too large") as raised:
            call()
        assert raised.value.row == 1


def test_column_numbers_that_are_too_large_are_rejected():
    sparse = Csr(np.ones((3, 2)))
    sparse.indices = sparse.indices.astype(np.int64)
    sparse.indices[3] = 2**61
    with pytest.raises(DataError, match="a column number is too large") as raised:
        SpanBoost(LinearSGD(), 2).learn_many(sparse, [0.1, 0.2, 0.3])
    assert raised.value.row == 1


def test_running_out_of_memory_does_not_change_the_model():
    X, y = stream()
    codes = np.zeros((30, 1), dtype=np.int64)
    model = SpanBoost(LinearSGD(), 2, label_range="auto")
    model.learn_many(Rows(X, codes), y)
    before, state = model.predict_many(Rows(X, codes)), dict(vars(model.labels))
    with pytest.raises(MemoryError):
        model.learn_many(Rows(X, codes + 2**39), y)
    assert dict(vars(model.labels)) == state
    np.testing.assert_array_equal(model.predict_many(Rows(X, codes)), before)
    model.learn_many(Rows(X, codes + 1), y)


@pytest.mark.parametrize("first", ["C", "F"])
def test_the_layout_of_labels_does_not_matter(first):
    X, y = stream()
    Y = np.stack([y, -y], axis=1)
    want = HullBoost(LinearSGD(), 2, loss=SquaredEuclidean(2)).learn_many(X, Y)
    model = HullBoost(LinearSGD(), 2, loss=SquaredEuclidean(2))
    orders = [first, "F" if first == "C" else "C"]
    got = [
        model.learn_many(X[a:b], np.array(Y[a:b], order=order))
        for (a, b), order in zip([(0, 15), (15, 30)], orders, strict=True)
    ]
    np.testing.assert_array_equal(np.concatenate(got), want)


def test_the_layout_of_rows_does_not_matter():
    X, y = stream()
    want = SpanBoost(LinearSGD(), 2).learn_many(X, y)
    read_only = X.copy()
    read_only.flags.writeable = False
    bytes_before = np.zeros(X.nbytes + 1, np.uint8)
    unaligned = bytes_before[1:].view(X.dtype).reshape(X.shape)
    unaligned[...] = X
    model = SpanBoost(LinearSGD(), 2)
    blocks = [np.asfortranarray(X), read_only, unaligned, np.repeat(X, 2, axis=0)[::2]]
    cuts = [(0, 8), (8, 16), (16, 24), (24, 30)]
    got = [model.learn_many(B[a:b], y[a:b]) for B, (a, b) in zip(blocks, cuts, strict=True)]
    np.testing.assert_array_equal(np.concatenate(got), want)


def test_masked_values_are_missing():
    X, y = stream()
    masked = np.ma.masked_array(X, mask=np.arange(X.size).reshape(X.shape) % 4 == 0)
    gaps = np.where(masked.mask, np.nan, X)
    got = SpanBoost(LinearSGD(), 2).learn_many(masked, y)
    np.testing.assert_array_equal(got, SpanBoost(LinearSGD(), 2).learn_many(gaps, y))


def test_a_csc_matrix_is_rejected():
    class Csc(Csr):
        format = "csc"

    with pytest.raises(ValueError, match="csc format"):
        SpanBoost(LinearSGD(), 2).learn_many(Csc(np.eye(3)), [0.1, 0.2, 0.3])


def test_numbers_too_large_for_a_float_are_rejected():
    model = SpanBoost(LinearSGD(), 2)
    with pytest.raises(ValueError, match="rows must be numbers"):
        model.learn_many([[10**400]], [0.1])
    model.learn_many([[1.0]], [0.1])
    with pytest.raises(ValueError, match="labels must be numbers"):
        model.learn_one([1.0], 10**400)
    with pytest.raises(ValueError, match="expected several rows"):
        model.predict_many(np.array(3.0))


@pytest.mark.parametrize("learner", [LinearSGD(), Stumps(), Network(hidden=2)], ids=repr)
def test_tiny_weights_count_as_0(learner):
    X, y = stream()
    light, none = SpanBoost(learner, 2), SpanBoost(learner, 2)
    light.learn_many(X, y, np.full(30, 1e-31))
    none.learn_many(X, y, np.zeros(30))
    np.testing.assert_array_equal(light.learn_many(X, y), none.learn_many(X, y))
    heavy = SpanBoost(learner, 2)
    assert np.isfinite(heavy.learn_many(X, y, np.geomspace(1e-37, 1e19, 30))).all()
    assert np.isfinite(heavy.learn_many(X, y)).all()


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"D": 1e-50}, "D = 1e-50"),
        ({"D": 1e39}, "D = 1e[+]39"),
        ({"scale": 1e-60}, "scale = 1e-60"),
    ],
    ids=str,
)
def test_parameters_that_do_not_fit_the_precision_are_rejected(options, name):
    with pytest.raises(ValueError, match=f"{name} does not fit into a float32"):
        HullBoost(LinearSGD(), 2, **options)
    HullBoost(LinearSGD(dtype=np.float64), 2, **options)


def test_hedge_over_two_copies_cannot_overflow():
    X, y = stream()
    model = SpanBoost(Symmetrised(LinearSGD()), 2, feedback="linear")
    assert np.isfinite(model.learn_many(X, y, np.full(30, 1e19))).all()


def test_rows_may_consist_of_codes_only():
    codes = np.random.default_rng(0).integers(0, 4, (40, 2))
    y = np.where(codes[:, 0] == 1, 0.5, -0.2)
    alone, beside = SpanBoost(LinearSGD(), 2), SpanBoost(LinearSGD(), 2)
    got = alone.learn_many(Rows(None, codes), y)
    np.testing.assert_array_equal(got, beside.learn_many(Rows(Csr(np.zeros((40, 1))), codes), y))


@pytest.mark.parametrize("seed", [np.int64(3), np.uint8(3), 2**64 + 3], ids=repr)
def test_seeds_of_any_integer_type(seed):
    X, y = stream()
    want = SpanBoost(Network(), 2, seed=3).learn_many(X, y)
    np.testing.assert_array_equal(SpanBoost(Network(), 2, seed=seed).learn_many(X, y), want)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [({"bits": True}, "bits"), ({"bits": 1.5}, "bits"), ({"bits": "8"}, "bits"),
     ({"decay": "a"}, "decay"), ({"decay": True}, "decay"), ({"dtype": "abc"}, "dtype"),
     ({"dtype": None}, "dtype"), ({"rate": 1e39}, "rate"), ({"rate": 1e-50}, "rate"),
     ({"rate": "fast"}, "rate"), ({"rate": (0.1, 0.2, 0.3)}, "rate")],
    ids=str,
)  # fmt: skip
def test_parameters_of_the_wrong_type_are_rejected(wrong, name):
    with pytest.raises(ValueError, match=rf"^{name} must be .* \(got "):
        SpanBoost(LinearSGD(**wrong), 2)


def test_long_steps_without_curvature_stay_finite():
    X, y = stream()
    for learner, loss, weight in (
        (Network(decay=0), "absolute", 1e12),
        (Network(), "absolute", 1e18),
        (Network(decay=0, rate=1e12), "absolute", 1.0),
    ):
        model = SpanBoost(learner, 4, loss=loss)
        assert np.isfinite(model.learn_many(X, y, np.full(30, weight))).all()


@pytest.mark.parametrize("D", [1e-20, 1e-16, 1.0, 1e16])
def test_vectors_of_any_size_stay_finite(D):
    X, y = stream()
    Y = np.stack([y, -y], axis=1)
    for feedback in ("linear", "greedy"):
        model = HullBoost(Stumps(), 2, loss=SquaredEuclidean(2), feedback=feedback, D=D)
        assert np.isfinite(model.learn_many(X, Y)).all()


@pytest.mark.parametrize(
    "options", [{"alpha": 1e25}, {"scale": 1e20, "D": 1e-20}, {"D": 10**400}], ids=str
)
def test_parameters_whose_products_do_not_fit_are_rejected(options):
    with pytest.raises(ValueError, match=r"does not fit|^D must be .* \(got "):
        SpanBoost(LinearSGD(), 2, **options)


@pytest.mark.parametrize("value", [np.timedelta64(1, "ns"), np.datetime64("2020-01-01")], ids=repr)
def test_time_spans_are_not_numbers(value):
    model = SpanBoost(LinearSGD(), 2)
    model.learn_one([1.0, 2.0], 0.1)
    for row in ([value, 1.0], np.array([value, value])):
        with pytest.raises(ValueError, match="number"):
            model.learn_one(row, 0.2)
    named = SpanBoost(LinearSGD(), 2)
    if isinstance(value, np.datetime64):  # in named rows, it stands for time features
        named.learn_one({"a": value}, 0.2)
        return
    with pytest.raises(DataError, match="neither a number nor a string"):
        named.learn_one({"a": value}, 0.2)


def test_running_out_of_memory_in_the_first_block_leaves_the_model_new():
    X, y = stream()
    model = SpanBoost(LinearSGD(), 64)
    with pytest.raises(MemoryError):
        model.learn_many(Rows(None, np.array([[2**39]])), [0.1])
    want = SpanBoost(LinearSGD(), 64).learn_many(X, y)
    np.testing.assert_array_equal(model.learn_many(X, y), want)
