"""Feature learners give the same result, bit for bit, in every way of running them.

The ways are: the compiled loop, the same loop as plain Python, and N separate copies run as
objects; rows one by one and in blocks; tables that grow and tables that are wide from the start.
"""

import itertools

import numpy as np
import pytest
from banks import (
    KINDS,
    LEARNERS,
    LOSSES,
    WITH_TREES,
    Separate,
    active_rows,
    arrays_of,
    assert_same_state,
    learner_of,
    stream,
    weights_for,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy_free import Csr

from spanboost import HullBoost, LinearBall, Rows, SpanBoost, Symmetrised
from spanboost.compiling.kernels import plain
from spanboost.core.feedback import GreedyFeedback, LinearFeedback
from spanboost.core.loop import learn_row
from spanboost.learners.protocol import Task
from spanboost.losses import Scalar, Squared
from spanboost.rows.block import features_of

F32, F64 = np.float32, np.float64
BOOSTERS = {"span": SpanBoost, "hull": HullBoost}
BOUND = 0.7  # small enough to take effect under linear feedback


pytestmark = pytest.mark.slow  # the file as a whole


def booster_of(booster, learner, loss="squared", feedback="greedy", n=3, **options):
    D = 1.0 if feedback == "greedy" else BOUND
    return BOOSTERS[booster](learner, n, loss=LOSSES[loss], feedback=feedback, D=D, **options)


def learn_and_predict(model, rows, y, weights=None):
    """Return the predictions made while learning, and those made afterwards."""
    predictions = model.learn_many(rows, y, weights)
    assert np.isfinite(predictions).all()
    assert np.ptp(predictions) > 0
    return np.stack([predictions, model.predict_many(rows)])


# --------------------------------------------------------------------------------------------
# Compiled loop = plain loop = separate copies

# Compiling a combination takes seconds. So each learner is tested with every booster, feedback,
# loss and precision, but not with every combination. All kinds of rows have the same type.
COMPILED = [
    ("span", "greedy", "squared", F32),  # as in the other tests
    ("span", "linear", "logistic", F32),
    ("hull", "greedy", "euclidean2", F64),
    ("hull", "linear", "absolute", F32),
]


@pytest.mark.parametrize(
    ("booster", "feedback", "loss", "dtype"),
    COMPILED,
    ids=[f"{b}-{f}-{loss}-{np.dtype(t).name}" for b, f, loss, t in COMPILED],
)
@pytest.mark.parametrize("name", WITH_TREES)
def test_compiled_and_plain_agree(name, booster, feedback, loss, dtype):
    X, y = stream(60, loss=loss)
    weights = weights_for(60)
    for kind, rows in KINDS.items():
        learner = learner_of(name, dtype=dtype)
        compiled = booster_of(booster, learner, loss, feedback)
        reference = booster_of(booster, learner, loss, feedback)
        predictions = compiled.learn_many(rows(X), y, weights)
        with plain():
            expected = reference.learn_many(rows(X), y, weights)
        np.testing.assert_array_equal(predictions, expected, err_msg=kind)
        assert np.isfinite(predictions).all()
        assert np.ptp(predictions) > 0
        assert_same_state(compiled.core.state, reference.core.state)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("feedback", ["greedy", "linear"])
@pytest.mark.parametrize("booster", BOOSTERS)
@pytest.mark.parametrize("name", WITH_TREES)
def test_a_bank_of_n_equals_n_banks_of_one(name, booster, feedback, loss):
    X, y = stream(40, loss=loss)
    weights = weights_for(40)
    for dtype, kind in ((F32, "dense"), (F64, "sparse"), (F32, "both")):
        learner, rows = learner_of(name, dtype=dtype), KINDS[kind](X)
        with plain():
            together = booster_of(booster, learner, loss, feedback)
            expected = learn_and_predict(together, rows, y, weights)
        apart = booster_of(booster, Separate(learner), loss, feedback)
        np.testing.assert_array_equal(
            learn_and_predict(apart, rows, y, weights), expected, err_msg=kind
        )


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("feedback", ["greedy", "linear"])
@pytest.mark.parametrize("booster", BOOSTERS)
def test_a_ball_of_n_equals_n_balls_of_one(booster, feedback, loss):
    X, y = stream(40, loss=loss)
    X /= 1 + np.sqrt((np.nan_to_num(X) ** 2).sum(axis=1, keepdims=True))
    with plain():
        together = learn_and_predict(booster_of(booster, LinearBall(), loss, feedback), X, y)
    apart = learn_and_predict(booster_of(booster, Separate(LinearBall()), loss, feedback), X, y)
    np.testing.assert_array_equal(apart, together)


@pytest.mark.parametrize("booster", BOOSTERS)
@pytest.mark.parametrize("name", WITH_TREES)
def test_a_symmetrised_bank_of_n_equals_n_banks_of_one(name, booster):
    X, y = stream(40)
    learner = Symmetrised(learner_of(name))
    with plain():
        together = learn_and_predict(booster_of(booster, learner, feedback="linear"), X, y)
    apart = learn_and_predict(booster_of(booster, Separate(learner), feedback="linear"), X, y)
    np.testing.assert_array_equal(apart, together)


@pytest.mark.parametrize("name", WITH_TREES)
def test_separate_copies_grow_their_own_tables(name):
    """The tables of separate copies have room for the features of the first block only."""
    X, y = stream(40)
    models = [SpanBoost(kind(learner_of(name)), 3) for kind in (lambda learner: learner, Separate)]
    with plain():
        for model in models:
            model.learn_many(Csr(X[:20, :2]), y[:20])
            model.learn_many(Csr(X[20:]), y[20:])
        expected, apart = (model.predict_many(Csr(X)) for model in models)
    np.testing.assert_array_equal(apart, expected)


# --------------------------------------------------------------------------------------------
# Blocks and rows


@settings(max_examples=15)
@given(
    cuts=st.lists(st.integers(1, 39), max_size=8),
    kind=st.sampled_from(sorted(KINDS)),
    peek=st.booleans(),
)
@pytest.mark.parametrize("name", WITH_TREES)
def test_blocks_of_any_size_give_the_same_model(name, cuts, kind, peek):
    X, y = stream(40)
    rows, weights = KINDS[kind], weights_for(40)
    whole, split = SpanBoost(learner_of(name), 3), SpanBoost(learner_of(name), 3)
    expected = whole.learn_many(rows(X), y, weights)
    predictions = []
    for a, b in itertools.pairwise([0, *sorted(set(cuts)), 40]):
        if peek and a:
            split.predict_many(rows(X))
        predictions.extend(split.learn_many(rows(X[a:b]), y[a:b], weights[a:b]))
    np.testing.assert_array_equal(predictions, expected)
    np.testing.assert_array_equal(split.predict_many(rows(X)), whole.predict_many(rows(X)))


@pytest.mark.parametrize("name", WITH_TREES)
def test_one_row_at_a_time_gives_the_same_model(name):
    X, y = stream(40)
    weights = weights_for(40)
    whole, single = SpanBoost(learner_of(name), 3), SpanBoost(learner_of(name), 3)
    expected = whole.learn_many(X, y, weights)
    predictions = [single.learn_one(x, label, w) for x, label, w in zip(X, y, weights, strict=True)]
    np.testing.assert_array_equal(predictions, expected)
    assert_same_state(single.core.state, whole.core.state)


# --------------------------------------------------------------------------------------------
# Seeds and prefixes


@pytest.mark.parametrize("name", WITH_TREES)
def test_results_depend_on_the_seed(name):
    X, y = stream(60)
    first, again, other = (
        learn_and_predict(SpanBoost(learner_of(name), 3, seed=seed), X, y) for seed in (4, 4, 5)
    )
    np.testing.assert_array_equal(first, again)
    assert np.array_equal(first, other) == (
        name not in ("network", "trees")
    )  # these two use random numbers


def partial_sums(model, X, y):
    """Learn each row as plain Python; return y^0 ... y^n of every round, [T, n + 1, d]."""
    block = model.encoder.read(X)
    state = model.core.prepare(block, block.features)
    sums = []
    for t, label in enumerate(y.reshape(len(y), -1)):
        learn_row(state, block.rows.row(t), label, model.core.dtype(1))
        sums.append(np.vstack([state.trace.before.T, state.trace.y]))
    return np.array(sums)


@pytest.mark.parametrize(
    ("booster", "loss", "options"),
    [
        ("span", "squared", {"eta": 0.5}),
        ("span", "euclidean2", {"eta": 0.5}),
        ("span", "logistic", {"eta": 0.5, "B": 1.2}),
        ("hull", "squared", {}),
        ("hull", "logistic", {}),
    ],
    ids=[
        "span-squared",
        "span-euclidean2",
        "span-logistic-same-B",
        "hull-squared",
        "hull-logistic",
    ],
)
@pytest.mark.parametrize("feedback", ["greedy", "linear"])
@pytest.mark.parametrize("name", WITH_TREES)
def test_a_prefix_of_the_copies_is_the_smaller_run(name, feedback, booster, loss, options):
    X, y = stream(40, loss=loss)
    y = y.astype(F32)
    with plain():
        whole = booster_of(booster, learner_of(name), loss, feedback, n=5, **options)
        sums = partial_sums(whole, X, y)
        assert np.ptp(sums[:, 5] - sums[:, 3]) > 0
        for m in (2, 3):
            own = booster_of(booster, learner_of(name), loss, feedback, n=m, **options)
            np.testing.assert_array_equal(own.learn_many(X, y).reshape(40, -1), sums[:, m])


@pytest.mark.parametrize("name", WITH_TREES)
def test_logistic_loss_a_prefix_needs_the_same_radius(name):
    X, y = stream(40, loss="logistic")
    with plain():
        whole = SpanBoost(learner_of(name), 8, 0.5, loss="logistic")
        own = SpanBoost(learner_of(name), 2, 0.5, loss="logistic")
        assert own.B_ < whole.B_
        assert not np.array_equal(partial_sums(whole, X, y)[:, 2, 0], own.learn_many(X, y))


def drive_bank(bank, rows, feedbacks, shape, dtype):
    """Run a bank without a booster; return its raw predictions, [T, d, n]."""
    bank, h, predictions = bank.grown(features_of(rows), len(rows.x)), np.zeros(shape, dtype), []
    for t, feedback in enumerate(feedbacks):
        x = rows.row(t)
        bank.predict(x, h)
        predictions.append(h.copy())
        if feedback.weight > 0:
            bank.update(x, np.clip(h, -1, 1), feedback)
    return np.array(predictions)


@pytest.mark.parametrize("loss", ["squared", "absolute", "logistic"])
@pytest.mark.parametrize("feedback", ["greedy", "linear"])
@pytest.mark.parametrize("name", WITH_TREES)
def test_a_booster_of_one_copy_equals_the_learner(name, feedback, loss):
    X, y = stream(60, loss=loss)
    learner, weights = learner_of(name, dtype=F64), weights_for(60)
    options = {"loss": loss, "feedback": feedback}
    with plain():
        model = HullBoost(learner, 1, **options)
        hull = learn_and_predict(model, X, y, weights)
        span = learn_and_predict(SpanBoost(learner, 1, 1.0, **options), X, y, weights)
    np.testing.assert_array_equal(hull, span)
    if feedback == "greedy":  # a single copy receives the loss itself
        rows, point = learner.encode(X, 1.0), np.zeros((1, 1))
        feedbacks = [
            GreedyFeedback(Scalar(LOSSES[loss]), label, w, np.zeros((1, 1)), np.ones(1), point)
            for label, w in zip(y[:, None], weights, strict=True)
        ]
        alone = drive_bank(
            learner.bank(model.core.task._replace(rows=rows)), rows, feedbacks, (1, 1), F64
        )
        np.testing.assert_array_equal(np.clip(alone, -1, 1)[:, 0, 0], hull[0])


# --------------------------------------------------------------------------------------------
# Tables: wide, growing, hashed; rows: dense, sparse, codes


def table_of(model):
    bank = model.core.state.bank
    return len(getattr(bank, "inputs", bank).S)


@pytest.mark.parametrize("name", LEARNERS)
def test_tables_grow_for_new_features(name):
    X, y = stream(60, missing=False)
    X[:30, 2:] = 0
    wide, late = SpanBoost(learner_of(name), 3), SpanBoost(learner_of(name), 3)
    first = late.learn_many(Csr(X[:30, :2]), y[:30])
    assert table_of(late) == 3
    padded = Csr(np.vstack([X[:30], X[-1:]]))  # room for all features, the last row unlearned
    expected = wide.learn_many(padded, y[:31], np.arange(31) < 30)[:30]
    np.testing.assert_array_equal(first, expected)
    assert table_of(wide) == 5
    rows = Csr(X[30:])
    np.testing.assert_array_equal(late.predict_many(rows), wide.predict_many(rows))
    np.testing.assert_array_equal(late.learn_many(rows, y[30:]), wide.learn_many(rows, y[30:]))
    np.testing.assert_array_equal(late.predict_many(rows), wide.predict_many(rows))
    assert table_of(late) >= 5


@pytest.mark.parametrize("name", LEARNERS)
def test_tables_grow_for_new_codes(name):
    rng = np.random.default_rng(0)
    numbers, codes = rng.standard_normal((60, 1)), rng.integers(-1, 3, (60, 2))
    codes[40:] += 50
    y = np.where(codes[:, 0] % 2, 0.5, -0.4)
    wide, late = SpanBoost(learner_of(name), 3), SpanBoost(learner_of(name), 3)
    expected = wide.learn_many(Rows(numbers, codes), y)
    first = late.learn_many(Rows(numbers[:40], codes[:40]), y[:40])
    assert table_of(late) < table_of(wide)
    second = late.learn_many(Rows(numbers[40:], codes[40:]), y[40:])
    np.testing.assert_array_equal(np.r_[first, second], expected)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_hashed_table_keeps_its_size(name):
    X, y = stream(60)
    model = SpanBoost(learner_of(name, bits=2), 3)
    predictions = model.learn_many(Csr(X), y)
    assert table_of(model) == 4
    with plain():
        oracle = SpanBoost(learner_of(name, bits=2), 3)
        np.testing.assert_array_equal(predictions, oracle.learn_many(Csr(X), y))
        assert_same_state(model.core.state, oracle.core.state)
        apart = SpanBoost(Separate(learner_of(name, bits=2)), 3)
        np.testing.assert_array_equal(predictions, apart.learn_many(Csr(X), y))
    free = SpanBoost(learner_of(name), 3).learn_many(Csr(X), y)
    assert not np.array_equal(predictions, free)  # some features collide
    roomy = SpanBoost(learner_of(name, bits=10), 3).learn_many(Csr(X), y)
    np.testing.assert_array_equal(roomy, free)


@pytest.mark.parametrize("name", LEARNERS)
def test_sparse_and_dense_rows_give_the_same_model(name):
    X, y = stream(60)
    dense = learn_and_predict(SpanBoost(learner_of(name), 3), X, y)
    sparse = learn_and_predict(SpanBoost(learner_of(name), 3), Csr(X), y)
    np.testing.assert_array_equal(dense, sparse)


@pytest.mark.parametrize("name", LEARNERS)
def test_missing_values_count_as_zeros(name):
    X, y = stream(60)
    assert np.isnan(X).any()
    missing = learn_and_predict(SpanBoost(learner_of(name), 3), X, y)
    zeros = learn_and_predict(SpanBoost(learner_of(name), 3), np.nan_to_num(X), y)
    np.testing.assert_array_equal(missing, zeros)


class Entries:
    """A CSR matrix with rows given as (column, value) pairs in any order."""

    def __init__(self, rows):
        flat = list(itertools.chain(*rows))
        self.shape = (len(rows), 1 + max(j for j, _ in flat))
        self.indptr = np.cumsum([0, *map(len, rows)])
        self.indices = np.array([j for j, _ in flat])
        self.data = np.array([v for _, v in flat], dtype=float)


@pytest.mark.parametrize("name", LEARNERS)
def test_codes_are_features_of_value_1(name):
    """Column j is feature 1 + j, so these columns have the feature numbers of the codes."""
    X, y = stream(60)
    rows = KINDS["codes"](X)
    one_hot = Entries([[(f - 1, v) for f, v in row[1:]] for row in active_rows(rows)])
    coded = learn_and_predict(SpanBoost(learner_of(name), 3), rows, y)
    np.testing.assert_array_equal(
        coded, learn_and_predict(SpanBoost(learner_of(name), 3), one_hot, y)
    )


# --------------------------------------------------------------------------------------------
# Units, weights, rates


@settings(max_examples=10)
@given(st.lists(st.integers(-20, 20), min_size=4, max_size=4))
@pytest.mark.parametrize("name", LEARNERS)
def test_the_scale_of_features_does_not_matter(name, powers):
    X, y = stream(40)
    ours = learn_and_predict(SpanBoost(learner_of(name), 3), X, y)
    theirs = learn_and_predict(SpanBoost(learner_of(name), 3), X * 2.0 ** np.array(powers), y)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", WITH_TREES)
def test_a_row_of_weight_0_is_predicted_and_changes_nothing(name):
    X, y = stream(60)
    model = SpanBoost(learner_of(name), 3)
    model.learn_many(X[:30], y[:30])
    before, expected = arrays_of(model.core.state), model.predict_many(X[30:])
    predictions = model.learn_many(X[30:], y[30:], np.zeros(30))
    np.testing.assert_array_equal(predictions, expected)
    for a, b in zip(before, arrays_of(model.core.state), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_row_of_weight_2_equals_two_rows(name):
    """With constant steps and only the constant feature; approximately for a network."""
    rate, close = (0.001, 1e-3) if name == "network" else (0.1, 1e-5)
    learner = learner_of(name, rate=rate, decay=0.0, dtype=F64)
    with plain():
        once, twice, single = (HullBoost(learner, 1) for _ in range(3))
        for model in (once, twice, single):
            assert model.learn_one([0.0], 0.0) == 0  # learns only that the constant exists
        once.learn_one([0.0], 0.8, weight=2.0)
        twice.learn_many(np.zeros((2, 1)), [0.8, 0.8])
        single.learn_one([0.0], 0.8)
        of_two, of_two_rows, of_one = (m.predict_one([0.0]) for m in (once, twice, single))
    assert of_two == pytest.approx(of_two_rows, rel=close)
    assert 0 < 1.5 * of_one < of_two < 0.8


def random_feedbacks(kind, d, n, T, dtype):
    """Return arbitrary feedback, to run a bank without a booster."""
    rng = np.random.default_rng(7)
    slopes = rng.standard_normal((T, d, n)).astype(dtype)
    weights = rng.choice([0.5, 1.0, 2.0], T).astype(dtype)
    if kind == "linear":
        return [LinearFeedback(*pair) for pair in zip(slopes, weights, strict=True)]
    alpha, labels = rng.uniform(0.2, 1, n).astype(dtype), rng.uniform(-1, 1, (T, d)).astype(dtype)
    loss = Scalar(Squared()) if d == 1 else LOSSES["euclidean2"]
    return [
        GreedyFeedback(loss, label, w, offset / 4, alpha, np.empty_like(offset))
        for label, w, offset in zip(labels, weights, slopes, strict=True)
    ]


def part_of(feedback, copies):
    if isinstance(feedback, LinearFeedback):
        return feedback._replace(slope=feedback.slope[:, copies].copy())
    offset = feedback.offset[:, copies].copy()
    return feedback._replace(
        offset=offset, alpha=feedback.alpha[copies].copy(), point=np.empty_like(offset)
    )


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("kind", ["greedy", "linear"])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_bank_with_two_rates_equals_two_banks(name, kind, d, dtype):
    X, _ = stream(30)
    n = 3
    feedbacks = random_feedbacks(kind, d, 2 * n, 30, dtype)
    rows = learner_of(name, dtype=dtype).encode(X, 1.0)
    index = np.tile(np.arange(n), 2)
    smoothness = np.linspace(0.1, 2, 2 * n) if kind == "greedy" else np.zeros(2 * n)
    task = Task(
        n=2 * n, d=d, rows=rows, D=BOUND, linear=kind == "linear", lipschitz=np.ones(2 * n),
        smoothness=smoothness, seed=3, copy=index,
    )  # fmt: skip
    both = learner_of(name, rate=(0.1,) * n + (0.7,) * n, dtype=dtype)
    together = drive_bank(both.bank(task), rows, feedbacks, (d, 2 * n), dtype)
    for rate, copies in ((0.1, slice(0, n)), (0.7, slice(n, 2 * n))):
        half = task._replace(
            n=n, lipschitz=np.ones(n), smoothness=smoothness[copies], copy=index[copies]
        )
        bank = learner_of(name, rate=rate, dtype=dtype).bank(half)
        own = drive_bank(bank, rows, [part_of(f, copies) for f in feedbacks], (d, n), dtype)
        np.testing.assert_array_equal(together[:, :, copies], own)
    assert np.abs(together[-1]).min() > 0


@pytest.mark.parametrize("feedback", ["greedy", "linear"])
@pytest.mark.parametrize("name", LEARNERS)
def test_each_copy_uses_its_own_rate(name, feedback):
    X, y = stream(40)
    several = learner_of(name, rate=(0.05, 0.8, 0.3))
    with plain():
        together = learn_and_predict(booster_of("span", several, feedback=feedback), X, y)
        equal = learner_of(name, rate=(0.3, 0.3, 0.3))
        as_one = learn_and_predict(booster_of("span", equal, feedback=feedback), X, y)
        plain_one = learn_and_predict(
            booster_of("span", learner_of(name, rate=0.3), feedback=feedback), X, y
        )
    apart = learn_and_predict(booster_of("span", Separate(several), feedback=feedback), X, y)
    np.testing.assert_array_equal(together, apart)
    np.testing.assert_array_equal(as_one, plain_one)
    assert not np.array_equal(together, as_one)


@pytest.mark.parametrize("rate", [(0.1, 0.2), (0.1, 0.0, 0.1), ()], ids=str)
@pytest.mark.parametrize("name", LEARNERS)
def test_rates_must_be_one_number_above_0_for_each_copy(name, rate):
    with pytest.raises(ValueError, match=r"^rate must be .* \(got "):
        SpanBoost(learner_of(name, rate=rate), 3)
