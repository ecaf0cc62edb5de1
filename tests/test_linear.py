"""Linear SGD: against a plain oracle in raw coordinates, and against itself in three ways."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy_free import Csr

from spanboost import DataError, HullBoost, LinearSGD, Rows, SpanBoost, Symmetrised
from spanboost._jit import plain
from spanboost.learners.descent import flow
from spanboost.learners.protocol import Task
from spanboost.losses import Absolute, SquaredEuclidean

F64 = np.float64


def exact_flow(v):
    return -math.expm1(-v) / v if v else 1.0


def library_flow(v):
    return flow(F64(v), np.zeros(1))


class RawLinear:
    """One copy as VW writes it: weights, squared gradients and scales of the raw features."""

    def __init__(self, rate, step, decay=None):
        self.rate, self.step, self.decay = rate, step, decay
        self.w, self.g2, self.scale = {}, {}, {}
        self.rows = self.norms = 0.0

    def active(self, x):
        return [(0, 1.0), *((1 + j, float(v)) for j, v in enumerate(x) if v == v and v != 0)]  # noqa: PLR0124

    def predict(self, x):
        total = 0.0
        for f, v in self.active(x):
            if f in self.w:
                total += self.w[f] * min(max(v, -self.scale[f]), self.scale[f])
        return total

    def update(self, x, loss):
        slope, active = loss.slope(self.predict(x)), self.active(x)
        for f, v in active:
            if f not in self.w:
                self.w[f], self.g2[f], self.scale[f] = 0.0, 0.0, abs(v)
            if abs(v) > self.scale[f]:
                self.w[f] *= self.scale[f] / abs(v)
                self.scale[f] = abs(v)
            self.g2[f] += slope**2 / loss.weight * v * v
        self.rows += loss.weight
        self.norms += loss.weight * sum((v / self.scale[f]) ** 2 for f, v in active)
        if slope == 0:
            return
        pace = self.rows / self.norms
        if self.decay is None:
            pace = math.sqrt(pace)
            rates = {f: 1 / (math.sqrt(self.g2[f]) * self.scale[f]) for f, _ in active}
        else:
            rates = {f: self.rows**-self.decay / self.scale[f] ** 2 for f, _ in active}
        per_update = sum(v * v * rates[f] for f, v in active) * pace * self.rate
        size = self.rate * pace * self.step(loss.smoothness * loss.weight * per_update)
        for f, v in active:
            self.w[f] -= slope * size * v * rates[f]


def stream(T=120, seed=0, missing=True):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((T, 4)) * [1, 10, 0.01, 1]
    X[rng.random((T, 4)) < 0.3] = 0
    if missing:
        X[rng.random((T, 4)) < 0.1] = np.nan
    X[T // 2 :, 3] *= 1e4  # a scale that suddenly grows
    y = np.clip(0.3 + 0.2 * np.nan_to_num(X[:, 0]) - 0.03 * np.nan_to_num(X[:, 1]), -1, 1)
    return X, y


@pytest.mark.parametrize("make", [SpanBoost, HullBoost])
@pytest.mark.parametrize("loss", ["squared", Absolute()], ids=["squared", "absolute"])
@pytest.mark.parametrize("decay", [None, 0.0, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_learner_of_the_paper_in_other_coordinates(make, loss, decay, weighted):
    X, y = stream()
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], len(y)) if weighted else None
    with plain():
        got = make(LinearSGD(0.3, decay, dtype=F64), n=4, loss=loss).learn_many(X, y, weights)
        if loss == Absolute():  # a kink: plain steps
            step = lambda v: 1.0  # noqa: E731
            tolerance = 1e-9
        else:
            step, tolerance = library_flow, 1e-9
        want = make(RawLinear(0.3, step, decay), n=4, loss=loss).learn_many(X, y, weights)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
        if loss == "squared":
            close = make(RawLinear(0.3, exact_flow, decay), n=4).learn_many(X, y, weights)
            np.testing.assert_allclose(got, close, rtol=1e-5, atol=1e-5)


@given(st.floats(0, 1e12))
def test_the_flow_is_that_of_the_exponential(v):
    assert flow(F64(v), np.zeros(1)) == pytest.approx(exact_flow(v), rel=2e-5)
    single = flow(np.float32(v), np.zeros(1, np.float32))
    assert single == pytest.approx(exact_flow(v), rel=2e-4)


def blocks_of_every_kind(X, y):
    codes = np.abs(np.nan_to_num(X[:, :2]) * 3).astype(int) % 5 - 1
    return {
        "dense": X,
        "sparse": Csr(X),
        "codes": Rows(X[:, 2:], codes),
        "both": Rows(Csr(X), codes),
    }


@pytest.mark.parametrize("kind", ["dense", "sparse", "codes", "both"])
@pytest.mark.parametrize("feedback", ["greedy", "linear"])
@pytest.mark.parametrize("make", [SpanBoost, HullBoost])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_plain_and_copies_of_one_agree_bit_for_bit(make, feedback, kind, dtype):
    X, y = stream(60)
    rows = blocks_of_every_kind(X, y)[kind]
    learner = LinearSGD(0.2, dtype=dtype)
    compiled = make(learner, n=5, feedback=feedback).learn_many(rows, y)
    with plain():
        oracle = make(learner, n=5, feedback=feedback)
        np.testing.assert_array_equal(compiled, oracle.learn_many(rows, y))
    assert np.isfinite(compiled).all()


class OneCopy:
    """A bank of a single copy, as an object of its own."""

    def __init__(self, learner):
        self.learner, self.bank = learner, None

    def row(self, x):
        return self.learner.encode(x[None]).row(0)

    def predict(self, x):
        h = np.zeros((1, 1))
        if self.bank is not None:
            self.bank.predict(self.row(x), h)
        return h[0, 0]

    def update(self, x, loss):
        if self.bank is None:
            sizes = np.array([loss.lipschitz]), np.array([loss.smoothness])
            task = Task(1, 1, None, loss.D, loss.linear, *sizes, 0, np.zeros(1, int))
            self.bank = self.learner.bank(task).grown(1 + len(x), 2 + len(x))
        row, h = self.row(x), np.zeros((1, 1))
        self.bank.predict(row, h)
        self.bank.update(row, h, loss._feedback)


@pytest.mark.parametrize("feedback", ["greedy", "linear"])
@pytest.mark.parametrize("make", [SpanBoost, HullBoost])
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_a_bank_of_n_is_n_banks_of_one(make, feedback, loss):
    X, y = stream(60)
    learner = LinearSGD(0.2, dtype=F64)
    together = make(learner, n=4, feedback=feedback, loss=loss).learn_many(X, y)
    apart = make(OneCopy(learner), n=4, feedback=feedback, loss=loss).learn_many(X, y)
    np.testing.assert_array_equal(together, apart)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_rows_and_blocks_give_the_same_model(kind):
    X, y = stream(50)
    whole = SpanBoost(LinearSGD(), n=4).learn_many(blocks_of_every_kind(X, y)[kind], y)
    model = SpanBoost(LinearSGD(), n=4)
    parts = [
        model.learn_many(blocks_of_every_kind(X[a:b], y[a:b])[kind], y[a:b])
        for a, b in ((0, 1), (1, 20), (20, 50))
    ]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_sparse_and_dense_rows_are_the_same_rows():
    X, y = stream(60)
    dense = SpanBoost(LinearSGD(), n=3)
    sparse = SpanBoost(LinearSGD(), n=3)
    np.testing.assert_array_equal(dense.learn_many(X, y), sparse.learn_many(Csr(X), y))
    np.testing.assert_array_equal(dense.predict_many(X), sparse.predict_many(Csr(X)))


def test_features_that_appear_late_find_room():
    X, y = stream(60, missing=False)
    X[:30, 3] = 0
    wide = SpanBoost(LinearSGD(), n=3)
    late = SpanBoost(LinearSGD(), n=3)
    first = late.learn_many(Csr(X[:30, :3]), y[:30])
    assert len(late._model.bank.S) == 4
    ahead = late.predict_many(Csr(X[30:]))  # features it has never seen are absent
    assert np.isfinite(ahead).all()
    second = late.learn_many(Csr(X[30:]), y[30:])
    np.testing.assert_array_equal(np.r_[first, second], wide.learn_many(Csr(X), y))


def test_the_symmetriser_passes_growth_and_precision_on():
    X, y = stream(60, missing=False)

    def run(model):
        parts = [(Csr(X[:30, :2]), y[:30]), (Csr(X[30:]), y[30:])]
        return np.concatenate([model.learn_many(*part) for part in parts])

    model = SpanBoost(Symmetrised(LinearSGD(0.05)), n=3, feedback="linear")
    compiled = run(model)
    assert len(model._model.bank.bank.S) >= 5
    assert model._model.algorithm.eta.dtype == np.float32
    with plain():
        oracle = SpanBoost(Symmetrised(LinearSGD(0.05)), n=3, feedback="linear")
        np.testing.assert_array_equal(compiled, run(oracle))


def test_a_hashed_table_stays_its_size():
    X, y = stream(60)
    model = SpanBoost(LinearSGD(bits=2), n=3)
    predictions = model.learn_many(Csr(X), y)
    assert len(model._model.bank.S) == 4
    with plain():
        oracle = SpanBoost(LinearSGD(bits=2), n=3).learn_many(Csr(X), y)
    np.testing.assert_array_equal(predictions, oracle)
    roomy = SpanBoost(LinearSGD(bits=10), n=3).learn_many(Csr(X), y)
    np.testing.assert_array_equal(roomy, SpanBoost(LinearSGD(), n=3).learn_many(Csr(X), y))


def test_codes_are_features_of_value_1():
    rng = np.random.default_rng(2)
    codes = rng.integers(-1, 3, (80, 2))
    y = np.where(codes[:, 0] == 1, 0.7, -0.2)
    one_hot = np.zeros((80, 6))
    for t, (a, b) in enumerate(codes):
        if a >= 0:
            one_hot[t, 2 * a] = 1
        if b >= 0:
            one_hot[t, 2 * b + 1] = 1
    coded = SpanBoost(LinearSGD(dtype=F64), n=3).learn_many(Rows(np.zeros((80, 1)), codes), y)
    spelled_out = SpanBoost(LinearSGD(dtype=F64), n=3).learn_many(one_hot, y)
    np.testing.assert_allclose(coded, spelled_out, rtol=1e-10)  # sums in another order


@settings(max_examples=20)
@given(st.lists(st.integers(-20, 20), min_size=4, max_size=4))
def test_the_scale_of_features_does_not_matter(powers):
    X, y = stream(40)
    with plain():
        plain_units = SpanBoost(LinearSGD(), n=2).learn_many(X, y)
        other_units = SpanBoost(LinearSGD(), n=2).learn_many(X * 2.0 ** np.array(powers), y)
    np.testing.assert_array_equal(plain_units, other_units)


def test_a_wild_value_cannot_move_the_prediction_far():
    X, y = stream(100, missing=False)
    model = HullBoost(LinearSGD(), n=1)
    model.learn_many(X[:, :3], y)
    calm, wild = X[-1, :3].copy(), X[-1, :3].copy()
    calm[0] = np.abs(X[:, 0]).max()
    wild[0] = 1e30
    assert model.predict_one(wild) == model.predict_one(calm)
    model.learn_one(wild, 0.0)
    assert np.isfinite(model.predict_many(X[:, :3])).all()


@pytest.mark.parametrize("sparse", [False, True])
def test_numbers_of_any_size_are_learned_or_refused(sparse):
    kind = Csr if sparse else np.asarray
    model = HullBoost(LinearSGD(), n=2)
    sizes = np.array([[1e30], [1e-30], [1e-44], [3e38], [-3e38]])
    assert np.isfinite(model.learn_many(kind(sizes), np.full(5, 0.5))).all()
    assert np.isfinite(model.predict_many(kind(sizes))).all()
    with pytest.raises(DataError, match="too large") as raised:
        model.learn_many(kind(np.array([[1.0], [1e39]])), [0.5, 0.5])
    assert raised.value.row == 1
    with pytest.raises(DataError, match="weight is 1e\\+39"):
        model.learn_many(kind(sizes[:1]), [0.5], [1e39])


def test_a_row_of_weight_2_is_two_rows():
    """With constant steps, and nothing but the constant feature, exactly so."""
    once = HullBoost(LinearSGD(0.1, decay=0.0, dtype=F64), n=1)
    twice = HullBoost(LinearSGD(0.1, decay=0.0, dtype=F64), n=1)
    once.learn_one([0.0], 0.8, weight=2.0)
    twice.learn_many(np.zeros((2, 1)), [0.8, 0.8])
    assert once.predict_one([0.0]) == pytest.approx(twice.predict_one([0.0]), rel=1e-6)
    assert 0 < once.predict_one([0.0]) < 0.8


@pytest.mark.parametrize("loss", ["squared", SquaredEuclidean(3)], ids=["scalar", "vector"])
def test_under_linear_feedback_the_functions_stay_bounded(loss):
    X, y = stream(300, missing=False)
    if loss != "squared":
        y = np.stack([y, -y, y * y], axis=1) / 2
    model = SpanBoost(LinearSGD(2.0), n=3, loss=loss, feedback="linear", D=0.5)
    model.learn_many(X, y)
    bank = model._model.bank
    mass = np.abs(bank.U).sum(axis=0).reshape(-1, 3).sum(axis=0) * bank.keep
    assert mass.max() <= 0.5 * (1 + 1e-4)
    assert mass.min() > 0.1  # the bound is at work, not the weights at rest


def test_vector_outputs_are_learned_one_by_one():
    X, y = stream(200, missing=False)
    Y = np.stack([y, -y], axis=1) / 2
    model = HullBoost(LinearSGD(), n=2, loss=SquaredEuclidean(2))
    out = model.learn_many(X, Y)
    assert ((out - Y)[100:] ** 2).mean() < (Y[100:] ** 2).mean() / 2
    np.testing.assert_allclose(out[:, 0], -out[:, 1], atol=1e-6)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_the_learner_alone_is_one_copy_of_either_booster(loss):
    X, y = stream(80)
    hull = HullBoost(LinearSGD(), n=1, loss=loss).learn_many(X, y)
    span = SpanBoost(LinearSGD(), n=1, eta=1.0, loss=loss).learn_many(X, y)
    np.testing.assert_array_equal(hull, span)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"rate": 0.0}, "rate"),
        ({"decay": 2.0}, "decay"),
        ({"bits": 0}, "bits"),
        ({"dtype": np.float16}, "dtype"),
    ],
)
def test_parameters_out_of_range_are_refused(wrong, name):
    with pytest.raises(ValueError, match=f"{name}=.* is not allowed"):
        SpanBoost(LinearSGD(**wrong))


def test_sparse_rows_are_checked():
    X, y = stream(5, missing=False)
    model = SpanBoost(LinearSGD(), n=2)
    broken = Csr(X)
    broken.indptr = broken.indptr[::-1]
    with pytest.raises(ValueError, match="CSR"):
        model.learn_many(broken, y)
    wild = Csr(np.where(np.arange(5)[:, None] == 3, np.inf, X))
    with pytest.raises(DataError, match="infinite") as raised:
        model.learn_many(wild, y)
    assert raised.value.row == 3
    with pytest.raises(ValueError, match="codes are whole numbers"):
        model.learn_many(Rows(X, np.zeros((5, 2))), y)
    assert not model.started
    model.learn_many(X, y)
    with pytest.raises(DataError, match="the row has 3 features, the model 4"):
        model.learn_many(X[:, :3], y)


DATA = Path(os.environ.get("SPANBOOST_DATA", "no such folder"))


@pytest.mark.skipif(not DATA.is_dir(), reason="SPANBOOST_DATA names no folder with the data sets")
def test_abalone_as_in_the_paper():
    """The paper reports 3.7263 alone, 3.7154 under Algorithm 2, after tuning."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="reads Parquet")
    table = parquet.read_table(DATA / "abalone.parquet").to_pydict()
    sex = np.array([[s == c for c in "FIM"] for s in table.pop("sex")], dtype=np.float32)
    y = np.array(table.pop("label"), dtype=float)
    X = np.column_stack([sex, *table.values()]).astype(np.float32)
    for n, paper in ((1, 3.7263), (2, 3.7154)):
        booster = HullBoost(LinearSGD(0.125), n=n, label_range=(-29, 29))
        loss = (booster.learn_many(X, y) - y) ** 2
        assert loss[len(y) // 2 :].mean() == pytest.approx(paper, rel=0.01)
