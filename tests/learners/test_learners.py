"""Tests of weak learners: objects, targets, regret bounds, and the random draws of Hedge."""

import math

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from spanboost import (
    DataError,
    FiniteClass,
    FromTargets,
    HullBoost,
    LinearBall,
    LinearSGD,
    SpanBoost,
    Symmetrised,
    losses,
)
from spanboost.compiling import kernels
from spanboost.core.feedback import LinearFeedback
from spanboost.learners.feature_weights import shrink_to_bound
from spanboost.learners.finite import symmetric
from spanboost.learners.objects import ObjectLearner
from spanboost.learners.protocol import Learner, Provable, Task

BOTH = pytest.mark.parametrize("booster", [SpanBoost, HullBoost])
thorough = settings(max_examples=60, deadline=None, derandomize=True)


@pytest.fixture(autouse=True)
def plain_python():
    with kernels.plain():
        yield


# --------------------------------------------------------------------------------------------
# Objects that learn from loss functions


class Constant:
    """Predicts a constant and records its losses."""

    def __init__(self, answer=0.5):
        self.answer, self.losses = answer, []

    def predict(self, x):
        return self.answer

    def update(self, x, loss):
        self.losses.append(loss)


def copies_of(booster):
    return booster.core.state.bank.copies


@BOTH
def test_copies_are_deep_and_the_prototype_is_never_touched(booster):
    prototype = Constant()
    model = booster(prototype, 3)
    model.learn_one([0.0], 0.5)
    model.learn_one([0.0], 0.5)
    assert prototype.losses == []
    assert [len(learner.losses) for learner in copies_of(model)] == [2, 2, 2]
    assert len({id(learner.losses) for learner in copies_of(model)}) == 3


@pytest.mark.parametrize("feedback", ["linear", "greedy"])
def test_the_loss_of_an_object_can_be_evaluated_anywhere(feedback):
    booster = SpanBoost(Constant(0.4), 2, 0.5, feedback=feedback)
    booster.learn_one([0.0], -1.0, 3.0)
    loss = copies_of(booster)[1].losses[0]
    before = 0.5 * 0.4  # y^1
    for h in (-1.0, 0.0, 0.3, 1.0):
        if feedback == "linear":
            assert loss.slope(h) == pytest.approx(3 * 2 * (before + 1) / 4, rel=1e-15)
            assert loss.value(h) == pytest.approx(loss.slope(0.0) * h, rel=1e-15)
        else:
            at = before + 0.5 * h
            assert loss.value(h) == pytest.approx(3 * (at + 1) ** 2, rel=1e-14)
            assert loss.slope(h) == pytest.approx(3 * 0.5 * 2 * (at + 1), rel=1e-14)
    assert loss.h == 0.4
    assert loss.D == 1
    assert loss.linear == (feedback == "linear")
    assert loss.lipschitz == (1 if feedback == "linear" else 0.5 * 2 * (1 + 0.5 + 1))
    assert loss.smoothness == (0 if feedback == "linear" else 0.5**2 * 2)


@pytest.mark.parametrize("feedback", ["linear", "greedy"])
def test_a_loss_contains_the_weight_of_the_row(feedback):
    booster = SpanBoost(Constant(0.4), 2, 0.5, feedback=feedback)
    booster.learn_one([0.0], -1.0, 3.0)
    assert [learner.losses[0].weight for learner in copies_of(booster)] == [3.0, 3.0]


def test_slopes_of_vector_losses_are_vectors():
    booster = SpanBoost(Constant([0.1, 0.2, 0.3]), 1, loss=losses.SquaredEuclidean(3))
    booster.learn_one([0.0], [0.0, 0.5, 0.0])
    loss = copies_of(booster)[0].losses[0]
    np.testing.assert_allclose(loss.slope(loss.h), [0.2, -0.6, 0.6], rtol=1e-14)
    assert loss.value([0.0, 0.5, 0.0]) == 0


@BOTH
def test_rows_of_any_type_reach_the_copies_unchanged(booster):
    class Reader:
        def __init__(self):
            self.rows = []

        def predict(self, x):
            return 0.1 * len(x)

        def update(self, x, loss):
            self.rows.append(x)

    rows = [{"a": 1.0}, {"a": 2.0, "b": math.nan}, "text"]
    model = booster(Reader(), 2)
    model.learn_many(rows, [0.0, 0.1, 0.2])
    assert model.predict_one({"c": 1}) > 0
    model.learn_one({"c": 1}, 0.2)
    for learner in copies_of(model):
        assert learner.rows == [*rows, {"c": 1}]
        assert [*map(type, learner.rows)] == [dict, dict, str, dict]


@BOTH
@pytest.mark.parametrize("row", [{"a": -math.inf}, [1.0, math.inf], math.inf, np.array([math.inf])])
def test_infinite_numbers_in_rows_of_any_type_are_rejected(booster, row):
    model = booster(Constant(), 2)
    with pytest.raises(DataError, match="infinite") as raised:
        model.learn_many([{"a": 1.0}, row], [0.0, 0.0])
    assert raised.value.row == 1
    assert not model.started


@BOTH
def test_single_rows_and_blocks_pass_the_same_rows(booster):
    class Reader(Constant):
        def update(self, x, loss):
            self.losses.append(x)

    model = booster(Reader(), 1)
    model.learn_one(["a", "b"], 0.5)
    model.learn_many([["a", "b"]], [0.5])
    assert copies_of(model)[0].losses == [["a", "b"]] * 2


def test_an_object_that_can_learn_from_losses_is_not_given_targets():
    class Both(Constant):
        def predict_one(self, x):
            raise AssertionError

        def learn_one(self, x, y):
            raise AssertionError

    assert HullBoost(Both(), 2).learn_one([1.0], 0.5) == 0.5


@BOTH
def test_objects_that_cannot_learn_are_rejected(booster):
    class Predicts:
        def predict(self, x):
            return 0.0

    class Updates:
        def update(self, x, loss):
            pass

    class LearnsOne:
        def learn_one(self, x, y):
            pass

    for thing in (Predicts(), Updates(), LearnsOne(), object(), None, 3, "LinearBall"):
        message = "must be an object" if thing == "LinearBall" else r"it needs predict\(x\)"
        with pytest.raises(TypeError, match=message):
            booster(thing, 4)


@BOTH
@pytest.mark.parametrize("answer", [math.nan, math.inf, -math.inf, [0.0, 0.0], None])
def test_an_invalid_prediction_is_an_error(booster, answer):
    model = booster(Constant(answer), 3)
    with pytest.raises(ValueError, match=r"weak learner 0, \w+, predicted .* one finite number"):
        model.predict_one([0.0])
    with pytest.raises(ValueError, match=r"weak learner 0, \w+, predicted .* one finite number"):
        model.learn_one([0.0], 0.5)
    assert all(learner.losses == [] for learner in copies_of(model))


# --------------------------------------------------------------------------------------------
# Objects that learn from targets


class Target:
    """Predicts a constant and records its targets and weights."""

    def __init__(self, answer=0.25):
        self.answer, self.seen = answer, []

    def predict_one(self, x):
        return self.answer

    def learn_one(self, x, y, w=1.0):
        self.seen.append((y, w))


class Unweighted(Target):
    def learn_one(self, x, y):
        self.seen.append((y, None))


class ConstantCopy:
    """A copy for naive.py that predicts a constant."""

    def __init__(self, answer):
        self.answer = np.atleast_1d(answer).tolist()

    def predict(self, x):
        return self.answer

    def update(self, x, loss):
        pass


def seen_by(booster):
    """Return (target, weight) as [copy][round]."""
    return [wrapped.learner.seen for wrapped in copies_of(booster)]


NAIVE = {
    "squared": ("squared", naive.Squared()),
    "pnorm": (losses.PNorm(3.0), naive.PNorm(3)),
    "logistic": ("logistic", naive.Logistic()),
    "euclidean": (losses.SquaredEuclidean(2), naive.SquaredEuclidean()),
}


def offsets(algorithm, loss, answer, stream, *, n, D, scale, eta, offset, alpha):
    """Return the offsets of naive.py as [round][copy], and alpha lambda of every copy."""
    common = {"d": len(answer), "D": D, "scale": scale, "feedback": "greedy", "offset": offset}
    copies = [ConstantCopy(answer) for _ in range(n)]
    if algorithm is SpanBoost:
        _, sigmas, sums = naive.span(copies, stream, loss, eta=eta, alpha=alpha, **common)
        sigmas = [[0.0] * n, *sigmas]
        kept = [[1 - s * eta for s in row] for row in sigmas]
        steps = [eta] * n
    else:
        _, sums = naive.hull(copies, stream, loss, alpha=alpha, **common)
        steps = [2 / (i + 2) for i in range(n)]
        kept = [[1 - step for step in steps]] * len(stream)
    factor = kept if offset == "shrunk" else [[1.0] * n] * len(stream)
    places = [[np.multiply(factor[t][i], sums[t][i]) for i in range(n)] for t in range(len(stream))]
    return places, [scale * (step if alpha is None else alpha) for step in steps]


@thorough
@given(
    algorithm=st.sampled_from([SpanBoost, HullBoost]),
    answer=st.floats(-3, 3),
    labels=st.lists(st.floats(-1, 1), min_size=1, max_size=4),
    scale=st.sampled_from([0.5, 1.0, 2.0]),
    D=st.sampled_from([0.6, 1.0]),
    offset=st.sampled_from(["printed", "shrunk"]),
    alpha=st.sampled_from([None, 0.2, 0.9]),
    weight=st.sampled_from([0.5, 1.0, 4.0]),
)
def test_for_squared_loss_the_target_is_the_residual(
    algorithm, answer, labels, scale, D, offset, alpha, weight
):
    n, eta = 3, 0.5
    options = {"D": D, "scale": scale, "offset": offset, "alpha": alpha}
    stream = [([0.0], y, weight) for y in labels]
    places, steps = offsets(algorithm, naive.Squared(), [answer], stream, n=n, eta=eta, **options)
    step = {"eta": eta} if algorithm is SpanBoost else {}
    booster = algorithm(Target(answer), n, **step, **options)
    for x, y, w in stream:
        booster.learn_one(x, y, w)
    for i, seen in enumerate(seen_by(booster)):
        assert [w for _, w in seen] == [weight] * len(labels)
        expected = [(y - places[t][i][0]) / steps[i] for t, y in enumerate(labels)]
        np.testing.assert_allclose([y for y, _ in seen], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("loss", ["pnorm", "logistic", "euclidean"])
@pytest.mark.parametrize("algorithm", [SpanBoost, HullBoost])
def test_the_target_minimises_the_quadratic_bound_at_the_prediction(algorithm, loss):
    n, eta, scale = 3, 0.5, 1.5
    given_loss, naive_loss = NAIVE[loss]
    answer = [0.3, -0.2] if loss == "euclidean" else [0.3]
    ys = [1.0, -1.0, 1.0] if loss != "euclidean" else [[0.6, 0.1], [-0.2, 0.9], [0.0, 0.0]]
    stream = [([0.0], y, w) for y, w in zip(ys, (1.0, 3.0, 0.5), strict=True)]
    places, steps = offsets(
        algorithm, naive_loss, answer, stream,
        n=n, eta=eta, D=1.0, scale=scale, offset="printed", alpha=None,
    )  # fmt: skip
    step = {"eta": eta} if algorithm is SpanBoost else {}
    prototype = Target(answer if loss == "euclidean" else answer[0])
    booster = algorithm(prototype, n, **step, loss=given_loss, scale=scale, offset="printed")
    reach = naive.radius(naive_loss, eta, n, scale) if algorithm is SpanBoost else scale
    for x, y, w in stream:
        booster.learn_one(x, y, w)
    for i, seen in enumerate(seen_by(booster)):
        for t, (_, y, w) in enumerate(stream):
            a = steps[i]
            gradient = naive_loss.gradient(y, (places[t][i] + a * np.array(answer)).tolist())
            slope = a * np.array(gradient)
            target = np.array(answer) - slope / (a * a * naive_loss.beta(reach))
            np.testing.assert_allclose(np.atleast_1d(seen[t][0]), target, rtol=1e-12)
            assert seen[t][1] == w


@BOTH
@pytest.mark.parametrize("label", [1.0, -1.0, 0.4])
def test_linear_feedback_has_targets_at_the_bound_with_the_slope_as_weight(booster, label):
    model = booster(Target(0.25), 3, feedback="linear", D=0.5)
    model.learn_one([0.0], label, 2.0)
    steps = [model.eta_] * 3 if booster is SpanBoost else [2 / (i + 2) for i in range(3)]
    bound = model.L_B_ if booster is SpanBoost else model.L_D_
    y = 0.0
    for step, seen in zip(steps, seen_by(model), strict=True):
        slope = 2.0 * 2 * (y - label) / bound
        [(target, weight)] = seen
        assert target == pytest.approx(-0.5 * math.copysign(1, slope), rel=1e-15)
        assert weight == pytest.approx(abs(slope), rel=1e-14)
        y = (y if booster is SpanBoost else (1 - step) * y) + step * 0.25


def test_linear_feedback_has_targets_on_the_sphere():
    loss = losses.SquaredEuclidean(3)
    booster = SpanBoost(Target([0.1, 0.0, 0.0]), 1, loss=loss, feedback="linear", D=2.0)
    booster.learn_one([0.0], [0.6, 0.0, -0.8])
    [[(target, weight)]] = seen_by(booster)
    np.testing.assert_allclose(target, [1.2, 0.0, -1.6], rtol=1e-14)
    assert weight == pytest.approx(2 / booster.L_B_, rel=1e-14)


def test_a_slope_of_0_gives_no_target():
    booster = SpanBoost(Target(0.25), 2, feedback="linear")
    booster.learn_one([0.0], 0.0)
    first, second = seen_by(booster)
    assert first == []
    assert len(second) == 1


@pytest.mark.parametrize("name", ["w", "weight", "sample_weight"])
def test_the_weight_parameter_has_several_names(name):
    class Named(Target):
        pass

    source = f"def learn_one(self, x, y, {name}=1.0): self.seen.append((y, {name}))"
    space: dict = {}
    exec(source, space)
    Named.learn_one = space["learn_one"]
    booster = SpanBoost(Named(), 1)
    booster.learn_one([0.0], 0.5, 3.0)
    assert FromTargets(Named()).weighted
    assert seen_by(booster) == [[(pytest.approx(0.5), 3.0)]]


@BOTH
def test_without_a_weight_greedy_feedback_works(booster):
    model = booster(Unweighted(0.25), 2)
    model.learn_many(np.zeros((3, 1)), [0.5, 0.1, -0.5], [1, 0, 1])
    assert [len(seen) for seen in seen_by(model)] == [2, 2]
    assert seen_by(model)[0][0][1] is None


@BOTH
def test_without_a_weight_linear_feedback_is_rejected(booster):
    with pytest.raises(ValueError, match=r"Unweighted.learn_one takes no weight.*greedy"):
        booster(Unweighted(), 2, feedback="linear").learn_one([0.0], 0.5)


@BOTH
def test_without_a_weight_weighted_rows_are_rejected(booster):
    model = booster(Unweighted(), 2)
    model.learn_one([0.0], 0.5)
    with pytest.raises(DataError, match="does not support weights") as raised:
        model.learn_many(np.zeros((3, 1)), [0.5, 0.1, -0.5], [1, 0, 2])
    assert raised.value.row == 2
    assert [len(seen) for seen in seen_by(model)] == [1, 1]


@BOTH
def test_a_loss_with_a_kink_has_no_target(booster):
    with pytest.raises(ValueError, match=r"kink.*Target.*linear"):
        booster(Target(), 2, loss="absolute").learn_one([0.0], 0.5)
    model = booster(Target(), 2, loss="absolute", feedback="linear")
    model.learn_one([0.0], 0.5)
    assert seen_by(model) == [[(1.0, 1.0)], [(1.0, 1.0)]]


@BOTH
def test_dictionaries_reach_a_learner_of_targets(booster):
    class Reader(Target):
        def learn_one(self, x, y):
            self.seen.append(x)

    model = booster(Reader(), 2)
    model.learn_one({"a": 1.0}, 0.5)
    model.learn_many([{"b": 2.0}, {}], [0.5, 0.1])
    assert seen_by(model) == [[{"a": 1.0}, {"b": 2.0}, {}]] * 2


def test_a_booster_of_targets_learns():
    class Mean:
        def __init__(self):
            self.total = self.rows = 0.0

        def predict_one(self, x):
            return self.total / max(self.rows, 1.0)

        def learn_one(self, x, y, w=1.0):
            self.total += w * y
            self.rows += w

    booster = SpanBoost(Mean(), 8)
    booster.learn_many(np.zeros((400, 1)), np.full(400, 0.6))
    assert booster.predict_one([0.0]) == pytest.approx(0.6, abs=0.1)


def test_a_rate_does_not_depend_on_the_units_of_the_labels():
    """Vowpal Wabbit's -l does; docs/from-vowpal-wabbit.md says how to convert it."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (60, 2))
    y = np.clip(X @ [0.4, -0.3], -1, 1)
    answers = [
        HullBoost(LinearSGD(rate=0.5), n=2, label_range=limits).learn_many(X, labels)
        for limits, labels in (((-1, 1), y), ((0, 29), 14.5 + 14.5 * y))
    ]
    assert answers[1] == pytest.approx(14.5 + 14.5 * answers[0], abs=1e-3)


@thorough
@given(
    shape=st.sampled_from([(1, 1, 5), (2, 1, 5), (3, 2, 5)]),
    seed=st.integers(0, 99),
    D=st.sampled_from([0.5, 1.0, 3.0]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_shrinking_to_a_bound_has_the_bits_of_the_plain_formula(shape, seed, D, dtype):
    """The loop for stumps skips the root of the square."""
    W = np.random.default_rng(seed).normal(0, 1.5, shape).astype(dtype)
    W[..., 0] = 0
    expected = W.copy()
    for i in range(shape[2]):
        size = sum(np.sqrt((W[j, :, i].astype(np.float64) ** 2).sum()) for j in range(shape[0]))
        if size > D:
            expected[..., i] *= dtype(D / size)
    shrink_to_bound(W, dtype(D))
    assert np.array_equal(W, expected)
    assert np.abs(W).sum(axis=0).min() == 0  # zeros stay zeros


# --------------------------------------------------------------------------------------------
# Linear functions in a ball


def test_rows_above_the_norm_are_rejected():
    ball = LinearBall(x_norm=2.0)
    X = np.array([[0.0, 2.0], [1.2, 1.6], [1.3, 1.6], [5.0, 0.0]])
    with pytest.raises(DataError, match=r"row 2: .*above x_norm=2") as raised:
        ball.encode(X)
    assert raised.value.row == 2
    assert np.array_equal(ball.encode(X[:2]), X[:2])
    with pytest.raises(DataError, match="row 1: ") as raised:
        SpanBoost(ball, 2).learn_many(X[1:3], [0, 0])
    assert raised.value.row == 1


@given(hnp.arrays(np.float64, (4, 3), elements=st.floats(-1e6, 1e6)))
def test_the_longest_row_is_not_too_long_after_rounding_to_float32(X):
    """Files store numbers as float32, but users compute the largest norm from the exact ones."""
    X[np.abs(X) < 1e-30] = 1  # float32 has fewer digits for the smallest numbers
    x_norm = float(np.linalg.norm(X, axis=1).max())
    ball = LinearBall(x_norm=x_norm)
    rows = ball.encode(X.astype(np.float32))
    assert not ball.complaints(X.astype(np.float32).astype(np.float64))
    assert (np.linalg.norm(rows, axis=1) <= x_norm * (1 + 1e-15)).all()  # functions stay bounded
    assert rows == pytest.approx(X, rel=2e-7, abs=1e-37)


def test_the_message_for_a_long_row_shows_the_difference():
    with pytest.raises(DataError, match=r"norm is 2\.0000005, above x_norm=2$"):
        LinearBall(x_norm=2.0).encode([[2.0000005]])


@BOTH
def test_missing_features_count_as_zero(booster):
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (40, 3))
    y = np.clip(X.sum(axis=1), -1, 1)
    gone = rng.random((40, 3)) < 0.4
    absent, zero = np.where(gone, math.nan, X), np.where(gone, 0.0, X)
    expected = booster(LinearBall(), 4).learn_many(zero, y)
    assert np.array_equal(booster(LinearBall(), 4).learn_many(absent, y), expected)
    model = booster(LinearBall(), 4)
    model.learn_many(np.where([True, True, False], X, math.nan), y)
    assert model.predict_one([math.nan] * 3) == 0
    assert model.predict_one([math.nan, math.nan, 0.5]) == 0
    assert model.predict_one([0.5, 0.5, math.nan]) != 0
    assert (model.core.state.bank.W[2] == 0).all()


# --------------------------------------------------------------------------------------------
# Regret


def task_for(learner, X, n, d, D, seed=0):
    rows = learner.encode(X)
    return rows, learner.bank(
        Task(n, d, rows, D, True, np.ones(n), np.zeros(n), seed, np.arange(n))
    )


def unit(vector):
    return vector / max(np.linalg.norm(vector), 1e-300)


ADVERSARIES = {
    "random signs": lambda t, T, h, rng: unit(rng.choice([-1.0, 1.0], h.shape)),
    "random sizes": lambda t, T, h, rng: unit(rng.normal(size=h.shape)) * rng.random(),
    "constant": lambda t, T, h, rng: unit(np.ones(h.shape)),
    "against the prediction": lambda t, T, h, rng: unit(h) if h.any() else unit(np.ones(h.shape)),
    "alternating": lambda t, T, h, rng: unit(np.ones(h.shape)) * (-1.0) ** t,
    "alternating from a half": lambda t, T, h, rng: (
        unit(np.ones(h.shape)) * (0.5 if t == 0 else (-1.0) ** t)
    ),
    "turning in the middle": lambda t, T, h, rng: unit(np.ones(h.shape)) * (1 if 2 * t < T else -1),
}


def drive(learner, X, d, D, seed):
    """Run one copy against each adversary; return losses [T, n] and slopes [T, d, n]."""
    T, n = len(X), len(ADVERSARIES)
    rng = np.random.default_rng(seed)
    rows, bank = task_for(learner, X, n, d, D)
    h = np.empty((d, n))
    suffered, slopes = np.empty((T, n)), np.empty((T, d, n))
    for t in range(T):
        bank.predict(rows[t], h)
        assert (np.linalg.norm(h, axis=0) <= D * (1 + 1e-12)).all()
        for i, adversary in enumerate(ADVERSARIES.values()):
            slopes[t, :, i] = adversary(t, T, h[:, i], rng)
        assert (np.linalg.norm(slopes[t], axis=0) <= 1 + 1e-12).all()
        suffered[t] = (slopes[t] * h).sum(axis=0)
        bank.update(rows[t], h, LinearFeedback(slopes[t].copy()))
    return suffered, slopes


def assert_regret_kept(learner, suffered, best, D):
    """Check the regret bound after every prefix of the stream, for every adversary."""
    allowed = np.array([learner.regret(t, D) for t in range(1, len(suffered) + 1)])
    regret = np.cumsum(suffered, axis=0) - best
    assert (regret <= allowed[:, None] + 1e-9).all()
    assert regret.max() > 0  # some adversary caused a regret


def linear_best(X, slopes, G):
    """Return the loss of the best matrix in the ball of radius G, after every prefix."""
    outer = np.cumsum(slopes[:, :, None, :] * X[:, None, :, None], axis=0)
    return -G * np.sqrt((outer**2).sum(axis=(1, 2)))


@pytest.mark.parametrize(("d", "D", "x_norm"), [(1, 1.0, 1.0), (1, 0.5, 3.0), (3, 2.0, 0.7)])
@pytest.mark.parametrize(
    "wrap", [lambda learner: learner, Symmetrised], ids=["plain", "symmetrised"]
)
def test_the_ball_keeps_its_regret_bound(wrap, d, D, x_norm):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2))
    X *= x_norm * rng.choice([1.0, 1.0, 0.3], (300, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    X[150:] = [x_norm, 0.0]  # the same row 150 times: the hard case
    learner = wrap(LinearBall(x_norm))
    suffered, slopes = drive(learner, X, d, D, seed=2)
    assert_regret_kept(learner, suffered, linear_best(X, slopes, D / x_norm), D)


def function_values(d, D):
    """Return the values of five functions of norm at most D on 300 rows, [T, M, d]."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=(300, 5, d))
    values *= D / np.linalg.norm(values, axis=2, keepdims=True)
    values[:, 3] = np.full(d, D / math.sqrt(d))
    values[:, 4] = -values[:, 3]
    return values


class TableOfValues:
    """A table of function values, as functions of a row that holds its own number."""

    def __init__(self, values):
        self.values = values
        self.functions = [lambda x, m=m: values[int(x[0]), m] for m in range(values.shape[1])]
        self.X = np.arange(len(values), dtype=float)[:, None]


@pytest.mark.parametrize(("d", "D"), [(1, 1.0), (1, 0.4), (3, 2.0)])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_finite_class_keeps_its_regret_bound(d, D, count):
    table = TableOfValues(function_values(d, D)[:, -count:])
    learner = FiniteClass(table.functions)
    suffered, slopes = drive(learner, table.X, d, D, seed=4)
    each = np.cumsum(np.einsum("tdn,tmd->tmn", slopes, table.values), axis=0)
    if count == 1:
        np.testing.assert_allclose(np.cumsum(suffered, axis=0), each[:, 0], atol=1e-10)
    else:
        assert_regret_kept(learner, suffered, each.min(axis=1), D)


@pytest.mark.parametrize(("d", "D"), [(1, 1.0), (1, 0.4), (3, 2.0)])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_symmetrised_class_keeps_its_regret_bound_against_negations_and_zero(d, D, count):
    table = TableOfValues(function_values(d, D)[:, :count])
    learner = Symmetrised(FiniteClass(table.functions))
    suffered, slopes = drive(learner, table.X, d, D, seed=5)
    each = np.cumsum(np.einsum("tdn,tmd->tmn", slopes, table.values), axis=0)
    assert_regret_kept(learner, suffered, -np.abs(each).max(axis=1), D)


def test_the_randomised_class_keeps_its_expected_regret_bound():
    table = TableOfValues(function_values(1, 1.0))
    learner = FiniteClass(table.functions, randomised=True)
    rng = np.random.default_rng(6)
    slopes = rng.choice([-1.0, 1.0], 300)  # chosen without seeing the draws
    copies = 200
    rows, bank = task_for(learner, table.X, copies, 1, 1.0)
    h = np.empty((1, copies))
    suffered = np.zeros(copies)
    for row, slope in zip(rows, slopes, strict=True):
        bank.predict(row, h)
        suffered += slope * h[0]
        bank.update(row, h, LinearFeedback(np.full((1, copies), slope)))
    best = (slopes @ table.values[:, :, 0]).min()
    assert suffered.mean() - best <= learner.regret(300, 1.0)
    margin = 2 * math.sqrt(
        300 / 2 * math.log(copies / 0.01)
    )  # holds for all copies with probability 99 %
    assert suffered.max() - best <= learner.regret(300, 1.0) + margin


def test_the_symmetriser_finds_the_negation():
    T = 200
    one = FiniteClass([lambda x: 1.0])
    X = np.zeros((T, 1))
    suffered = {}
    for name, learner in (("alone", one), ("symmetrised", Symmetrised(one))):
        rows, bank = task_for(learner, X, 1, 1, 1.0)
        h = np.empty((1, 1))
        total = 0.0
        for row in rows:
            bank.predict(row, h)
            total += h[0, 0]
            bank.update(row, h, LinearFeedback(np.ones((1, 1))))  # the loss is h: -1 is best
        suffered[name], last = total, h[0, 0]
    assert suffered["alone"] == T
    assert suffered["symmetrised"] <= -T + Symmetrised(one).regret(T, 1.0)
    assert last < -0.95


def test_the_symmetriser_starts_at_zero():
    rows, bank = task_for(Symmetrised(FiniteClass([lambda x: 0.8])), np.zeros((1, 1)), 2, 1, 1.0)
    h = np.ones((1, 2))
    bank.predict(rows[0], h)
    assert h.tolist() == [[0.0, 0.0]]


@BOTH
def test_the_symmetriser_rejects_greedy_feedback(booster):
    with pytest.raises(ValueError, match=r"Symmetrised needs feedback='linear'"):
        booster(Symmetrised(LinearBall()), 2, feedback="greedy").learn_one([0.1], 0.5)
    assert booster(Symmetrised(LinearBall()), 2, feedback="linear").learn_one([0.1], 0.5) == 0


def test_a_booster_of_a_symmetrised_class_fits_its_span():
    booster = SpanBoost(
        Symmetrised(FiniteClass([lambda x: 0.5 + 0.5 * x[0]])), 16, feedback="linear"
    )
    X = np.random.default_rng(7).uniform(-1, 1, (1500, 1))
    y = -0.6 * (0.5 + 0.5 * X[:, 0])
    errors = (booster.learn_many(X, y) - y) ** 2
    assert errors[-300:].mean() < 0.1 * (y[-300:] ** 2).mean()


# --------------------------------------------------------------------------------------------
# Hedge's draws


def chi_square(counts, expected):
    return float((((counts - expected) ** 2) / expected).sum())


LIMIT = 20.5  # chi-square with 5 degrees of freedom exceeds it once in a thousand


def test_draws_over_copies_follow_the_weights_of_hedge():
    n, values = 6000, np.array([0.9, 0.5, 0.1, -0.2, -0.5, -0.8])
    learner = FiniteClass(randomised=True)
    rows, bank = task_for(learner, values[None], n, 1, 1.0, seed=12)
    twin = naive.Hedge([lambda x, v=v: [v] for v in values.tolist()], 1.0)
    h = np.empty((1, n))
    for slope in (0.8, -0.3, 1.0, 0.5):
        bank.predict(rows[0], h)
        counts = np.array([(h[0] == v).sum() for v in values])
        assert counts.sum() == n
        assert chi_square(counts, n * np.array(twin.weights())) < LIMIT
        bank.update(rows[0], h, LinearFeedback(np.full((1, n), slope)))
        twin.update(None, naive.LinearLoss([slope]))
    assert max(twin.weights()) > 1.5 / 6  # so uniform draws would fail


def test_draws_over_time_follow_the_weights_of_hedge():
    T, values = 6000, np.array([0.9, 0.5, 0.1, -0.2, -0.5, -0.8])
    rows, bank = task_for(FiniteClass(randomised=True), values[None], 1, 1, 1.0, seed=13)
    twin = naive.Hedge([lambda x, v=v: [v] for v in values.tolist()], 1.0)
    h = np.empty((1, 1))
    counts, expected = np.zeros(6), np.zeros(6)
    for t in range(T):
        bank.predict(rows[0], h)
        counts[np.flatnonzero(values == h[0, 0])[0]] += 1
        expected += twin.weights()
        slope = 1.0 if t % 40 == 0 else 0.0
        bank.update(rows[0], h, LinearFeedback(np.full((1, 1), slope)))
        twin.update(None, naive.LinearLoss([slope]))
    assert chi_square(counts, expected) < LIMIT
    assert chi_square(counts, np.full(6, T / 6)) > 5 * LIMIT


def test_copies_draw_independently():
    n, values = 3000, np.array([-1.0, 1.0])
    rows, bank = task_for(FiniteClass(randomised=True), values[None], n, 1, 1.0, seed=14)
    h = np.empty((1, n))
    draws = []
    for _ in range(3):
        bank.predict(rows[0], h)
        draws.append(h[0].copy())
        bank.update(rows[0], h, LinearFeedback(np.zeros((1, n))))
    for first, second in (
        (draws[0][:-1], draws[0][1:]),
        (draws[0], draws[1]),
        (draws[1], draws[2]),
    ):
        assert abs((first * second).mean()) < 3.3 / math.sqrt(len(first))


def test_predictions_repeat_until_the_round_is_learned():
    values = np.linspace(-1, 1, 50)
    rows, bank = task_for(FiniteClass(randomised=True), values[None], 20, 1, 1.0)
    first, again, later = np.empty((3, 1, 20))
    bank.predict(rows[0], first)
    bank.predict(rows[0], again)
    assert np.array_equal(first, again)
    bank.update(rows[0], again, LinearFeedback(np.zeros((1, 20))))
    bank.predict(rows[0], later)
    assert not np.array_equal(first, later)


# --------------------------------------------------------------------------------------------
# Finite classes in a booster


@BOTH
@pytest.mark.parametrize("d", [1, 3])
def test_rows_may_hold_the_values_of_the_functions(booster, d):
    table = TableOfValues(function_values(d, 1.0)[:20])
    y = np.random.default_rng(8).uniform(-0.5, 0.5, (20, d))
    loss = losses.SquaredEuclidean(d)
    expected = booster(FiniteClass(table.functions), 4, loss=loss).learn_many(table.X, y)
    values = table.values if d > 1 else table.values[:, :, 0]
    model = booster(FiniteClass(), 4, loss=loss)
    got = np.array([model.learn_one(v, label) for v, label in zip(values, y, strict=True)])
    assert np.array_equal(got.reshape(expected.shape), expected)
    again = booster(FiniteClass(), 4, loss=loss).learn_many(values, y)
    assert np.array_equal(again, expected)


def test_symmetric_adds_negations_and_zero():
    functions = symmetric([lambda x: x[0], lambda x: 2.0])
    values = [float(f([0.5])) for f in functions]
    assert sorted(values) == [-2.0, -0.5, 0.0, 0.5, 2.0]
    vector = symmetric([lambda x: [x[0], 1.0]])
    assert [np.asarray(f([0.5])).tolist() for f in vector] == [[0.5, 1.0], [-0.5, -1.0], [0.0, 0.0]]


def test_a_regret_needs_the_number_of_functions():
    with pytest.raises(ValueError, match="number of functions"):
        FiniteClass().regret(10, 1.0)
    with pytest.raises(ValueError, match="has no regret bound"):
        Symmetrised(ObjectLearner(Constant())).regret(10, 1.0)


def test_protocols_distinguish_learners():
    for learner in (LinearBall(), FiniteClass(), Symmetrised(LinearBall())):
        assert isinstance(learner, Learner)
        assert isinstance(learner, Provable)
    assert not isinstance(Constant(), Learner)
    assert not isinstance(ObjectLearner(Constant()), Provable)


def test_regret_bounds_by_hand():
    """Compare R(T) with numbers computed by hand."""
    eight = FiniteClass([lambda x: 0.0] * 8)
    # 2 D = 3; ln 8 = 2.0794415; T/2 ln 8 = 207.94415, root 14.420269; root of ln 8 / 8 = 0.509834
    assert eight.regret(200, D=1.5) == pytest.approx(3 * (2 * 14.420269 + 0.509834), rel=1e-6)
    assert LinearBall().regret(50, D=3.0) == pytest.approx(60)  # 2 * root of 100 * 3
    # 2 D = 6; 25 ln 2 = 17.328680, root 4.162773; root of ln 2 / 8 = 0.294353
    both = Symmetrised(LinearBall()).regret(50, D=3.0)
    assert both == pytest.approx(60 + 6 * (2 * 4.162773 + 0.294353), rel=1e-6)


def test_the_negated_copy_learns_which_function_to_negate():
    """f_2 is always 1 and the loss is h, so -f_2 is best; only the negated copy can find it."""
    T = 400
    rows = np.array([[[1.0 if t % 2 else -1.0], [1.0]] for t in range(T)])
    learner = Symmetrised(FiniteClass([lambda x: 0.0] * 2))
    task = Task(1, 1, rows, 1.0, True, np.ones(1), np.zeros(1), 0, np.arange(1))
    bank, h, total = learner.bank(task), np.zeros((1, 1)), 0.0
    for x in rows:
        bank.predict(x, h)
        total += h[0, 0]
        bank.update(x, h, LinearFeedback(np.ones((1, 1))))
    assert -T <= total <= -T + learner.regret(T, 1.0)
