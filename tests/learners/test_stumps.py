"""Compares stumps, bit for bit, with naive copies; small cases are computed by hand."""

import math

import naive
import naive_learners
import numpy as np
import pytest
from banks import KINDS, LOSSES, Oracles, active_rows, run_listing, stream, weights_for
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy_free import Csr

from spanboost import HullBoost, SpanBoost, Stumps
from spanboost.compiling.kernels import plain
from spanboost.core.feedback import LinearFeedback
from spanboost.errors import ParameterError
from spanboost.learners.protocol import Task

F32, F64 = np.float32, np.float64
BOOSTERS = {"span": SpanBoost, "hull": HullBoost}


pytestmark = pytest.mark.slow  # the file as a whole


def oracles(learner):
    """Return the same learner as naive copies of the same precision."""

    def make(task, i):
        curvature = task.smoothness[i] if math.isfinite(task.smoothness[i]) else 0.0
        return naive_learners.Stumps(
            task.d,
            learner.rate[i] if isinstance(learner.rate, tuple) else learner.rate,
            cut=task.D,
            D=task.D if task.linear else math.inf,
            curvature=curvature,
            decay=learner.decay,
            intercept=learner.intercept,
            ranking=learner.ranking,
            number=learner.dtype,
        )

    return Oracles(make, learner.dtype, learner.bits)


def assert_exact(learner, booster, X, y, weights, **options):
    model = BOOSTERS[booster](learner, **options)
    oracle = BOOSTERS[booster](oracles(learner), **options)
    with plain():
        got = model.learn_many(X, y, weights), model.predict_many(X)
        want = oracle.learn_many(X, y, weights), oracle.predict_many(X)
    np.testing.assert_array_equal(got, want)
    return model, oracle


def winners(oracle, x):
    """Return the feature that predicts a row, for each copy."""
    row = active_rows(x[None])[0]
    return [
        max(row, key=lambda item: copy.score.get(item[0], 0.0))[0]
        for copy in oracle.core.state.bank.copies
    ]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("feedback", ["greedy", "linear"])
@pytest.mark.parametrize("booster", BOOSTERS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("ranking", ["advantage", "loss"])
def test_stumps_equal_the_naive_stumps_bit_for_bit(ranking, intercept, booster, feedback, loss):
    X, y = stream(80, loss=loss, centre=0.0)
    D = 1.0 if feedback == "greedy" else 0.6
    for dtype in (F32, F64):
        for decay in (None, 0.4):
            learner = Stumps(0.3, decay, intercept=intercept, ranking=ranking, dtype=dtype)
            options = {"n": 4, "loss": LOSSES[loss], "feedback": feedback, "D": D}
            _, oracle = assert_exact(learner, booster, X, y, weights_for(80), **options)
        assert (
            len({f for x in X for f in winners(oracle, x)}) > 1
        )  # not always the same feature predicts


@settings(max_examples=25)
@given(
    booster=st.sampled_from(sorted(BOOSTERS)),
    feedback=st.sampled_from(["greedy", "linear"]),
    loss=st.sampled_from(sorted(LOSSES)),
    kind=st.sampled_from(["dense", "codes"]),
    bits=st.sampled_from([None, 8]),
    intercept=st.booleans(),
    decay=st.sampled_from([None, 0.0, 0.5, 1.0]),
    dtype=st.sampled_from([F32, F64]),
    rate=st.sampled_from([0.02, 0.5, 3.0]),
    D=st.sampled_from([0.2, 1.0, 3.0]),
    seed=st.integers(0, 10**6),
)
def test_any_options_agree_with_the_naive_stumps_bit_for_bit(
    booster, feedback, loss, kind, bits, intercept, decay, dtype, rate, D, seed
):
    X, y = stream(30, seed, loss=loss)
    learner = Stumps(rate, decay, intercept=intercept, bits=bits, dtype=dtype)
    options = {"n": 3, "loss": LOSSES[loss], "feedback": feedback, "D": D}
    assert_exact(learner, booster, KINDS[kind](X), y, weights_for(30, seed), **options)


@pytest.mark.parametrize("bits", [1, 2])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", ["dense", "codes"])
def test_colliding_features_of_a_hashed_table_are_learned_one_by_one(kind, intercept, bits):
    X, y = stream(40)
    learner = Stumps(0.5, intercept=intercept, bits=bits)
    assert_exact(learner, "span", KINDS[kind](X), y, weights_for(40), n=3)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("booster", BOOSTERS)
def test_stumps_agree_with_the_listing_over_naive_copies(booster, intercept):
    X, y = stream(60)
    model = BOOSTERS[booster](Stumps(0.3, intercept=intercept, dtype=F64), 4)
    with plain():
        got = model.learn_many(X, y)

    def copy(c, bound, i):
        return naive_learners.Stumps(1, 0.3, cut=1.0, curvature=c, D=bound, intercept=intercept)

    want = run_listing(model, copy, "squared", X, y, np.ones(60))[:, 0]
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


# --------------------------------------------------------------------------------------------
# The oracle itself


@settings(max_examples=20)
@given(
    intercept=st.booleans(),
    decay=st.sampled_from([None, 0.3]),
    bound=st.sampled_from([math.inf, 0.2]),
    curvature=st.sampled_from([0.0, 1.7]),
    seed=st.integers(0, 1000),
)
def test_a_naive_stump_is_a_linear_function_of_its_feature(
    intercept, decay, bound, curvature, seed
):
    rng = np.random.default_rng(seed)
    options = {"decay": decay, "D": bound, "curvature": curvature}
    stumps = naive_learners.Stumps(1, 0.4, cut=1.0, intercept=intercept, **options)
    lines = {f: naive_learners.Linear(1, 0.4, **options) for f in (0, 1, 3)}

    def line(f, x):  # with an intercept, the constant has two weights, as if it occurred twice
        return [(0, 1.0), (99 if f == 0 else f, x)] if intercept else [(f, x)]

    for _ in range(15):
        row = [(0, 1.0), *((f, rng.normal()) for f in (1, 3) if rng.random() < 0.7)]
        loss = naive.GreedyLoss(naive.Squared(), rng.uniform(-1, 1), [0.1], 0.8, rng.choice([1, 3]))
        for f, x in row:
            assert stumps.function(f, x) == pytest.approx(lines[f].predict(line(f, x)), rel=1e-9)
            lines[f].update(line(f, x), loss)
        stumps.update(row, loss)


@pytest.mark.parametrize("ranking", ["advantage", "loss"])
def test_naive_scores_follow_the_ranking_and_the_best_predicts(ranking):
    stumps = naive_learners.Stumps(1, 0.4, cut=0.5, ranking=ranking)
    rng, score = np.random.default_rng(0), {0: 0.0, 1: 0.0, 2: 0.0}
    zero = 0.9**2 if ranking == "advantage" else 0.0  # the loss of predicting 0
    for _ in range(30):
        row = [(0, 1.0), *((f, rng.choice([-1.0, 1.0])) for f in (1, 2))]
        loss = naive.GreedyLoss(naive.Squared(), 0.9 * row[2][1], [0.0], 1.0, 1.0)
        for f, x in row:
            p = min(max(stumps.function(f, x)[0], -0.5), 0.5)
            score[f] += zero - (p - 0.9 * row[2][1]) ** 2
        stumps.update(row, loss)
    assert stumps.score == pytest.approx(score)
    assert max(score, key=score.get) == 2
    assert stumps.predict([(0, 1.0), (1, 1.0), (2, -0.5)]) == stumps.function(2, -0.5)
    assert stumps.predict([(0, 1.0), (7, 1.0)]) == (
        [0.0] if score[0] < 0 else stumps.function(0, 1.0)
    )


# --------------------------------------------------------------------------------------------
# By hand


def test_the_ranking_decides_between_a_rare_feature_and_a_good_one():
    X = np.tile([0.0, 1.0], (200, 1))
    X[::20, 0] = 1.0  # rare, and no better than the other
    y = np.where(X[:, 0] > 0, -0.5, 0.5)
    rows = {ranking: HullBoost(Stumps(ranking=ranking), 1) for ranking in ("advantage", "loss")}
    with plain():
        for model in rows.values():
            model.learn_many(X, y)
    assert rows["advantage"].predict_one([1.0, 1.0]) > 0
    assert rows["loss"].predict_one([1.0, 1.0]) < 0


def test_an_unknown_ranking_is_refused():
    with pytest.raises(ParameterError, match="ranking must be 'advantage' or 'loss'"):
        SpanBoost(Stumps(ranking="best"), 2)


def single_copy(**options):
    """Return a booster of one copy, whose loss is the squared loss itself."""
    return HullBoost(Stumps(**{"rate": 0.5, "dtype": F64} | options), 1)


def remaining_gap(gap, v):
    """Return the distance to the label after a step along the gradient flow."""
    return gap * math.exp(-v)


def test_an_empty_row_is_predicted_by_the_constant():
    """Curvature 2, rate 1/2, every pace 1 and no decay: a step closes 1 - 1/e of the gap."""
    with plain():
        model = single_copy(decay=0.0)
        for row in (np.zeros(2), np.full(2, np.nan)):
            assert model.predict_one(row) == 0
        model.learn_one([0.0, np.nan], 0.8)
        assert model.predict_one([0.0, 0.0]) == pytest.approx(
            0.8 - remaining_gap(0.8, 1.0), rel=1e-5
        )
        model.learn_one([np.nan, 0.0], 0.8)
        assert model.predict_one([0.0, 0.0]) == pytest.approx(
            0.8 - remaining_gap(0.8, 2.0), rel=1e-5
        )


def test_the_first_step_by_hand():
    """Adaptive: G = s^2 z^2 with s = -1.6 at label 0.8; reach = 1/1.6; exponent = 2 * 1/2 / 1.6."""
    with plain():
        model = single_copy()
        model.learn_one([3.0], 0.8)
        moved = 0.8 - remaining_gap(0.8, 2 * 0.5 / 1.6)
        bank = model.core.state.bank
        for row in ([0.0], [3.0], [300.0], [1e30]):
            assert model.predict_one(row) == pytest.approx(moved, rel=1e-5)  # the constant, tied
    assert bank.S.tolist() == [1.0, 3.0]


def test_ties_go_to_the_first_in_the_row():
    """The constant before any feature, an earlier feature before a later one."""
    with plain():
        model = single_copy(decay=0.0)
        # column 0 is always 1, like the constant, so their scores are always equal
        for x in (1.0, 1.0, 1.0):
            model.learn_one([x], 0.5)
        # the constant still predicts, so half of column 0 makes no difference
        constant = model.predict_one([0.0])
        assert constant > 0.2
        assert model.predict_one([1.0]) == constant
        assert model.predict_one([0.5]) == constant


def test_a_better_feature_wins_and_only_where_it_is_active():
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (200, 3))
    y = 0.6 * X[:, 1]
    with plain():
        model = single_copy()
        model.learn_many(X, y)
        assert model.predict_one([1.0, 1.0, 1.0]) == pytest.approx(0.6, abs=0.05)
        assert model.predict_one([1.0, -1.0, 1.0]) == pytest.approx(-0.6, abs=0.05)
        assert model.predict_one([1.0, -0.5, 1.0]) == pytest.approx(-0.3, abs=0.03)
        without = model.predict_one([1.0, 0.0, 1.0])
    assert abs(without) < 0.2


def test_a_feature_never_seen_has_score_0_and_predicts_0():
    """It beats features, and the constant, with a negative score, and loses ties."""
    with plain():
        model = single_copy(rate=3.0, decay=0.0, dtype=F64)
        # labels alternate, so what one row teaches does harm in the next
        for t in range(6):
            model.learn_many(Csr(np.array([[1.0]])), [(-1.0) ** t])
        harmful = model.predict_many(Csr(np.array([[1.0, 0.0]])))[0]
        assert abs(harmful) > 0.5
        fresh = model.predict_many(Csr(np.array([[1.0, 2.0]])))[0]
    assert fresh == 0


def test_intercepts_help_where_lines_through_the_origin_fail():
    """The column is never 0, and its best line has an intercept."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 1, (2000, 1))
    y = 2.6 * X[:, 0] - 2.0
    late = slice(1000, None)
    with plain():
        line = single_copy(intercept=True, rate=1.0).learn_many(X, y)
        through_origin = single_copy(rate=1.0).learn_many(X, y)
    assert ((line - y)[late] ** 2).mean() < 0.3 * ((through_origin - y)[late] ** 2).mean()


@settings(max_examples=20)
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=12), st.sampled_from([0.0, 0.3, None]))
def test_scores_are_summed_advantages(labels, decay):
    """Under linear feedback, a score is the sum of -slope . p, with p projected to norm D."""
    learner = Stumps(0.7, decay, dtype=F64)
    rows = learner.encode(np.tile([[2.0, -1.0]], (len(labels), 1)), 1.0)
    task = Task(
        n=1, d=1, rows=rows, D=0.3, linear=True, lipschitz=np.ones(1), smoothness=np.zeros(1),
        seed=0, copy=np.zeros(1, np.int64),
    )  # fmt: skip
    bank, h, advantage = learner.bank(task).grown(3, 3), np.zeros((1, 1)), 0.0
    for t, slope in enumerate(labels):
        x = rows.row(t)
        bank.predict(x, h)
        assert abs(h[0, 0]) <= 0.3 * (1 + 1e-12)
        advantage -= slope * h[0, 0]  # all features are equally good, so the constant predicts
        bank.update(x, h, LinearFeedback(np.array([[slope]]), 1.0))
    assert bank.score[0, 0] == pytest.approx(advantage, abs=1e-9)
