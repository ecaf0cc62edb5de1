"""Compares the boosters with `naive.py`, with other ways to run them, and with prefixes of a run.

Most comparisons run the library as plain Python; a fixed set runs the compiled loop.
"""

import contextlib
import copy
import itertools
import math

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanboost import FiniteClass, HullBoost, LinearBall, SpanBoost, Symmetrised, losses
from spanboost.compiling import kernels
from spanboost.core.loop import learn_row, predict_row
from spanboost.learners.protocol import Task

FEATURES = 3
X_NORM = 1.5
CLOSE = {"rtol": 1e-12, "atol": 1e-12}

thorough = settings(max_examples=80, deadline=None, derandomize=True)


# --------------------------------------------------------------------------------------------
# Pairs of the library's version and the one in naive.py


def softmax_constant(b):
    """Return the library's Lipschitz constant for three classes."""
    return math.sqrt(2) / (1 + math.exp(-(math.sqrt(2) * b + math.log(2))))


LOSSES = {
    "squared": ("squared", naive.Squared()),
    "pnorm2.5": (losses.PNorm(2.5), naive.PNorm(2.5)),
    "pnorm4": (losses.PNorm(4.0), naive.PNorm(4)),
    "linear": ("linear", naive.Linear()),
    "modified": ("modified_least_squares", naive.ModifiedLeastSquares()),
    "logistic": ("logistic", naive.Logistic()),
    "absolute": ("absolute", naive.Absolute()),
    "euclidean1": (losses.SquaredEuclidean(1), naive.SquaredEuclidean()),
    "euclidean3": (losses.SquaredEuclidean(3), naive.SquaredEuclidean()),
    "softmax3": (losses.Softmax(3), naive.Softmax(softmax_constant)),
}
OUTPUTS = {"euclidean3": 3, "softmax3": 3}
LEARNERS = ["ball", "finite", "symmetrised ball", "symmetrised finite", "object"]


def functions_of(d, D):
    """Return functions of a row with values of norm at most D."""
    if d == 1:
        return [
            lambda x: D * math.tanh(2 * x[0]),
            lambda x: D * math.copysign(0.6, x[1] - 0.1),
            lambda x: 0.0,
            lambda x: -D * math.cos(3 * x[2]),
        ]
    return [
        lambda x: [D * math.tanh(x[0]), 0.0, 0.0],
        lambda x: [0.5 * D * math.sin(x[1]), -0.6 * D * math.cos(x[2]), 0.1 * D],
        lambda x: [-0.5 * D, 0.5 * D * x[0] / X_NORM, 0.5 * D * x[1] / X_NORM],
    ]


def vectors(functions):
    """Return the same functions with lists as values."""
    return [lambda x, f=f: np.atleast_1d(f(x)).tolist() for f in functions]


class Unusual:
    """An object learner with d outputs and an arbitrary rule; it leaves the ball of radius D."""

    def __init__(self, d, rate=0.4):
        self.d, self.rate, self.seen = d, rate, 0
        self.W = [[0.0] * FEATURES for _ in range(d)]

    def predict(self, x):
        out = [3.0 * naive.dot(row, x) + 0.05 * self.seen for row in self.W]
        return out[0] if self.d == 1 else out

    def update(self, x, loss):
        self.seen += 1
        slope = np.atleast_1d(loss.slope(self.predict(x)))
        slope = (slope / (1.0 + np.linalg.norm(slope))).tolist()
        level = loss.value(0.0 if self.d == 1 else [0.0] * self.d)
        rate = self.rate / (1.0 + level * level)
        for k, row in enumerate(self.W):
            for j in range(FEATURES):
                row[j] -= rate * slope[k] * x[j]


class ToNaive:
    """Adapts an object learner of the library to naive.py: predictions and slopes are lists."""

    class Loss:
        def __init__(self, loss):
            self.loss = loss

        def value(self, h):
            return self.loss.value(h if len(h) > 1 else h[0])

        def slope(self, h):
            return np.atleast_1d(self.loss.slope(h if len(h) > 1 else h[0])).tolist()

    class Scalars:
        def __init__(self, loss):
            self.loss = loss

        def value(self, h):
            return self.loss.value(np.atleast_1d(h).tolist())

        def slope(self, h):
            slope = self.loss.slope(np.atleast_1d(h).tolist())
            return slope if len(slope) > 1 else slope[0]

    def __init__(self, learner):
        self.learner = learner

    def predict(self, x):
        return np.atleast_1d(self.learner.predict(x)).tolist()

    def update(self, x, loss):
        self.learner.update(x, self.Scalars(loss))


class FromNaive:
    """Adapts a copy of naive.py to the library, as an object learner.

    The Lipschitz constant of the copy comes with the first loss. Before that any value will do,
    because a copy that has learned nothing predicts the same with all of them.
    """

    def __init__(self, make):
        self.make, self.fresh, self.inner = make, True, make(1.0)

    def predict(self, x):
        return self.inner.predict(x)

    def update(self, x, loss):
        if self.fresh:
            self.fresh, self.inner = False, self.make(loss.lipschitz)
        self.inner.update(x, ToNaive.Loss(loss))


def learner_pair(kind, d, D):
    """Return the library's learner, and a function from L to a naive copy."""
    functions = functions_of(d, D)
    if kind == "ball":
        return LinearBall(X_NORM), lambda L: naive.LinearOGD(d, FEATURES, D, X_NORM, L)
    if kind == "finite":
        return FiniteClass(functions), lambda L: naive.Hedge(vectors(functions), D, L)
    if kind == "symmetrised ball":
        return Symmetrised(LinearBall(X_NORM)), lambda L: naive.Symmetriser(
            lambda: naive.LinearOGD(d, FEATURES, D, X_NORM), D
        )
    if kind == "symmetrised finite":
        return Symmetrised(FiniteClass(functions)), lambda L: naive.Symmetriser(
            lambda: naive.Hedge(vectors(functions), D), D
        )
    return Unusual(d), lambda L: ToNaive(Unusual(d))


def stream(loss, T, seed, *, weighted=True):
    """Return rows, labels that suit the loss, and weights, some of which are 0."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (T, FEATURES))
    X *= X_NORM / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    X *= rng.uniform(0.2, 1, (T, 1))
    score = X @ [1.0, -0.7, 0.4] + 0.2 * rng.normal(size=T)
    y: np.ndarray
    if loss in ("modified", "logistic"):
        y = np.where(score > 0, 1.0, -1.0)
    elif loss == "euclidean3":
        y = rng.normal(size=(T, 3))
        y /= np.maximum(np.linalg.norm(y, axis=1, keepdims=True), 1.0)
    elif loss == "softmax3":
        y = np.digitize(score, [-0.3, 0.3])
    else:
        y = np.clip(score, -1, 1)
        if loss == "euclidean1":
            y = y[:, None]
    weights = np.ones(T)
    if weighted:
        weights = rng.choice([0.0, 0.5, 1.0, 1.0, 3.0], T)
    return X, y, weights


def run(booster, X, y, weights):
    """Learn row by row; return the predictions [T, d] and sigma after each row [T, N]."""
    predictions, sigmas = [], []
    for x, label, w in zip(X, y, weights, strict=True):
        predictions.append(np.atleast_1d(booster.learn_one(x, label, w)))
        if isinstance(booster, SpanBoost):
            sigmas.append(booster.sigma_)
    return np.array(predictions), np.array(sigmas)


def assert_agrees(
    algorithm, kind, loss, feedback, seed, *, n=4, T=14, scale=1.0, D=1.0, eta=0.4, B=None,
    alpha=None, offset=None, weighted=True,
):  # fmt: skip
    """Run the library and naive.py on the same stream and compare the results."""
    given_loss, naive_loss = LOSSES[loss]
    d = OUTPUTS.get(loss, 1)
    learner, make = learner_pair(kind, d, D)
    X, y, weights = stream(loss, T, seed, weighted=weighted)
    rows = list(zip(X.tolist(), y.tolist(), weights.tolist(), strict=True))
    common = {"loss": given_loss, "feedback": feedback, "scale": scale, "D": D}
    naive_common = {"d": d, "D": D, "feedback": feedback, "scale": scale}
    if feedback == "greedy":
        common |= {"alpha": alpha, "offset": offset}
        default = "printed" if algorithm is SpanBoost else "shrunk"
        naive_common |= {"alpha": alpha, "offset": offset or default}
    parameters = {"D": D, "feedback": feedback, "scale": scale, "alpha": alpha}
    if algorithm is SpanBoost:
        booster = SpanBoost(learner, n, eta, B=B, **common)
        if B is None and (loss == "softmax3" or (feedback == "greedy" and loss == "absolute")):
            B = booster.B_  # the paper has no formula for these
        parameters |= {"N": n, "eta": eta, "B": B}
        copies = [make(naive.lipschitz_span(naive_loss, i, **parameters)) for i in range(1, n + 1)]
        expected, sigma, _ = naive.span(copies, rows, naive_loss, eta=eta, B=B, **naive_common)
        got, got_sigma = run(booster, X, y, weights)
        np.testing.assert_allclose(got_sigma, sigma, **CLOSE)
        assert 0 <= got_sigma.min() <= got_sigma.max() <= 1
    else:
        booster = HullBoost(learner, n, **common)
        copies = [make(naive.lipschitz_hull(naive_loss, i, **parameters)) for i in range(1, n + 1)]
        expected, _ = naive.hull(copies, rows, naive_loss, **naive_common)
        got, _ = run(booster, X, y, weights)
    np.testing.assert_allclose(got, expected, **CLOSE)
    assert np.ptp(got, axis=0).max() > 1e-6  # the predictions are not trivial
    return booster


# --------------------------------------------------------------------------------------------
# Library = paper


FEEDBACK_OF = {kind: ["linear", "greedy"] for kind in ("ball", "finite", "object")} | {
    kind: ["linear"] for kind in ("symmetrised ball", "symmetrised finite")
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("algorithm", [SpanBoost, HullBoost])
def test_every_learner_and_loss_agrees_with_the_listing(algorithm, kind, loss):
    for feedback, weighted in itertools.product(FEEDBACK_OF[kind], (False, True)):
        with kernels.plain():
            assert_agrees(algorithm, kind, loss, feedback, seed=3, weighted=weighted)


@thorough
@given(
    algorithm=st.sampled_from([SpanBoost, HullBoost]),
    kind_feedback=st.sampled_from([(k, f) for k, fs in FEEDBACK_OF.items() for f in fs]),
    loss=st.sampled_from(sorted(LOSSES)),
    seed=st.integers(0, 10**6),
    n=st.integers(1, 6),
    scale=st.sampled_from([0.3, 1.0, 2.5]),
    D=st.sampled_from([0.4, 1.0, 1.7]),
    eta_place=st.floats(0, 1),
    B_factor=st.sampled_from([None, None, 1.0, 1.3]),
    alpha=st.sampled_from([None, 0.15, 0.8]),
    offset=st.sampled_from([None, "printed", "shrunk"]),
    weighted=st.booleans(),
)
def test_any_combination_of_options_agrees_with_the_listing(
    algorithm, kind_feedback, loss, seed, n, scale, D, eta_place, B_factor, alpha, offset, weighted
):
    kind, feedback = kind_feedback
    greedy = feedback == "greedy"
    B = None if B_factor is None else B_factor * scale * D
    with kernels.plain():
        assert_agrees(
            algorithm, kind, loss, feedback, seed, n=n, scale=scale, D=D, weighted=weighted, T=10,
            eta=1 / n + eta_place * (1 - 1 / n), B=B,
            alpha=alpha if greedy else None, offset=offset if greedy else None,
        )  # fmt: skip


COMPILED = [
    (SpanBoost, "ball", "squared", "greedy", {}),
    (SpanBoost, "ball", "logistic", "linear", {"scale": 2.5}),
    (SpanBoost, "finite", "logistic", "greedy", {"offset": "shrunk"}),
    (SpanBoost, "finite", "squared", "linear", {}),
    (SpanBoost, "symmetrised ball", "squared", "linear", {}),
    (SpanBoost, "symmetrised finite", "absolute", "linear", {}),
    (SpanBoost, "ball", "absolute", "linear", {"D": 0.6}),
    (SpanBoost, "ball", "euclidean3", "greedy", {"alpha": 0.7}),
    (SpanBoost, "finite", "softmax3", "greedy", {}),
    (SpanBoost, "finite", "modified", "greedy", {}),
    (SpanBoost, "finite", "pnorm4", "greedy", {"D": 0.6}),
    (HullBoost, "ball", "squared", "greedy", {"offset": "printed"}),
    (HullBoost, "ball", "pnorm2.5", "linear", {}),
    (HullBoost, "finite", "absolute", "linear", {}),
    (HullBoost, "symmetrised finite", "squared", "linear", {"scale": 0.5}),
    (HullBoost, "finite", "euclidean3", "greedy", {}),
]


@pytest.mark.parametrize(("algorithm", "kind", "loss", "feedback", "options"), COMPILED)
def test_the_compiled_loop_agrees_with_the_listing(algorithm, kind, loss, feedback, options):
    assert_agrees(algorithm, kind, loss, feedback, seed=11, n=7, T=40, **options)


def test_the_radius_of_algorithm_1_is_the_papers_formula():
    for loss in ("squared", "pnorm4", "linear", "modified", "logistic", "euclidean3"):
        for eta, n, scale, D in [(0.05, 80, 1, 1), (0.3, 30, 2.5, 0.7), (0.9, 8, 0.2, 0.5)]:
            booster = SpanBoost(LinearBall(), n, eta, loss=LOSSES[loss][0], scale=scale, D=D)
            expected = naive.radius(LOSSES[loss][1], eta, n, scale * D)
            np.testing.assert_allclose(booster.B_, expected, rtol=1e-13)


@pytest.mark.parametrize("algorithm", [SpanBoost, HullBoost])
@pytest.mark.parametrize("d", [1, 3])
def test_predictions_outside_the_ball_are_projected(algorithm, d):
    class Far:
        def predict(self, x):
            return 7.0 if d == 1 else [6.0, 0.0, -8.0]

        def update(self, x, loss):
            pass

    booster = algorithm(Far(), 1, loss=losses.SquaredEuclidean(d), D=0.5, scale=0.8)
    expected = [0.4] if d == 1 else [0.24, 0.0, -0.32]
    np.testing.assert_allclose(np.atleast_1d(booster.predict_one([0.0])), expected, rtol=1e-15)


# --------------------------------------------------------------------------------------------
# Corollary 1


class RecordsSlopes:
    """Predicts a constant and records the slopes of its losses."""

    def __init__(self, answer=0.5):
        self.answer, self.slopes = answer, []

    def predict(self, x):
        return self.answer

    def update(self, x, loss):
        self.slopes.append(loss.slope(loss.h))


@pytest.mark.parametrize("algorithm", [SpanBoost, HullBoost])
def test_corollary_1_takes_every_gradient_at_the_answer(algorithm):
    n = 4
    booster = algorithm(RecordsSlopes(), n, loss="absolute", feedback="linear")
    # the answer lies above the label 0.3 while the first partial sum 0 lies below it
    answer = booster.learn_one([0.0], 0.3)
    assert answer > 0.3
    assert [learner.slopes for learner in booster.core.state.bank.copies] == [[1.0]] * n


def test_corollary_1_updates_sigma_with_the_gradient_at_the_answer():
    n, eta = 4, 0.5
    booster = SpanBoost(RecordsSlopes(), n, eta, loss="absolute", feedback="linear")
    np.testing.assert_allclose(booster.B_, eta * n, rtol=1e-15)
    booster.learn_one([0.0], 0.3)
    # gradient 1 at y^N, times the partial sums 0, 1/4, 2/4, 3/4, times 1 / (L_B B sqrt 1)
    np.testing.assert_allclose(booster.sigma_, np.array([0, 0.25, 0.5, 0.75]) / booster.B_)


def test_greedy_feedback_with_a_kink_uses_the_gradients_of_the_listing():
    n, eta = 4, 0.5
    booster = SpanBoost(RecordsSlopes(), n, eta, loss="absolute", feedback="greedy")
    booster.learn_one([0.0], 0.3)
    along = np.array([0, -0.25, 0.5, 0.75])  # the sign of y^{i-1} - 0.3, times y^{i-1}
    np.testing.assert_allclose(booster.sigma_, np.maximum(along, 0) / booster.B_)


# --------------------------------------------------------------------------------------------
# Compiled loop = plain loop = independent copies


def booster_of(algorithm, kind, loss, feedback, *, n=5, seed=0, randomised=False, **options):
    learner, _ = learner_pair(kind, OUTPUTS.get(loss, 1), options.get("D", 1.0))
    if randomised:
        learner = FiniteClass(learner.functions, randomised=True)
    return algorithm(learner, n, loss=LOSSES[loss][0], feedback=feedback, seed=seed, **options)


def arrays_of(state):
    """Return copies of all arrays and numbers of a model, in order."""
    if isinstance(state, np.ndarray):
        return [state.copy()]
    if isinstance(state, tuple):
        return [array for item in state for array in arrays_of(item)]
    return [np.asarray(state)] if isinstance(state, int | float | np.number) else []


def same_bits(first, second):
    return np.array_equal(np.asarray(first), np.asarray(second))


@pytest.mark.parametrize(("algorithm", "kind", "loss", "feedback", "options"), COMPILED)
def test_compiled_and_plain_agree_bit_for_bit(algorithm, kind, loss, feedback, options):
    X, y, weights = stream(loss, 60, seed=5)
    compiled = booster_of(algorithm, kind, loss, feedback, **options)
    got = compiled.learn_many(X, y, weights)
    reference = booster_of(algorithm, kind, loss, feedback, **options)
    with kernels.plain():
        assert same_bits(reference.learn_many(X, y, weights), got)
        expected = reference.predict_many(X)
    assert same_bits(compiled.predict_many(X), expected)
    pairs = zip(arrays_of(compiled.core.state), arrays_of(reference.core.state), strict=True)
    assert all(same_bits(a, b) for a, b in pairs)


@pytest.mark.parametrize("algorithm", [SpanBoost, HullBoost])
def test_compiled_and_plain_draw_the_same_random_numbers(algorithm):
    X, y, weights = stream("squared", 60, seed=6)
    compiled = booster_of(algorithm, "finite", "squared", "linear", randomised=True)
    got = compiled.learn_many(X, y, weights)
    reference = booster_of(algorithm, "finite", "squared", "linear", randomised=True)
    with kernels.plain():
        assert same_bits(reference.learn_many(X, y, weights), got)


class OneCopyBank:
    """A bank of the library with a single copy, as an object learner."""

    class Feedback:
        def __init__(self, loss, d):
            self.loss, self.d, self.weight = loss, d, loss.weight
            if loss.linear:
                self.slope = np.reshape(loss.slope(loss.h), (d, 1))

        def slopes(self, h, out):
            out[:] = np.reshape(self.loss.slope(h[:, 0]), (self.d, 1))

        def losses(self, h, out):
            out[0] = self.loss.value(h[:, 0])

    def __init__(self, learner, d, D, linear):
        self.learner, self.d, self.D, self.linear, self.bank = learner, d, D, linear, None

    def _fresh(self, x, lipschitz):
        task = Task(
            n=1, d=self.d, rows=self.learner.encode(x[None]), D=self.D, linear=self.linear,
            lipschitz=np.array([lipschitz]), smoothness=np.zeros(1), seed=0, copy=np.arange(1),
        )  # fmt: skip
        return self.learner.bank(task)

    def predict(self, x):
        h = np.empty((self.d, 1))
        bank = self.bank or self._fresh(x, 1.0)
        bank.predict(self.learner.encode(x[None])[0], h)
        return h[:, 0]

    def update(self, x, loss):
        if self.bank is None:
            self.bank = self._fresh(x, loss.lipschitz)
        h = np.reshape(self.predict(x), (self.d, 1))
        self.bank.update(self.learner.encode(x[None])[0], h, self.Feedback(loss, self.d))


INDEPENDENT = [
    *((SpanBoost, kind, "squared", "linear") for kind in LEARNERS if kind != "object"),
    *((HullBoost, kind, "squared", "greedy") for kind in ("ball", "finite")),
    (SpanBoost, "ball", "logistic", "greedy"),
    (SpanBoost, "finite", "softmax3", "greedy"),
    (SpanBoost, "ball", "euclidean3", "linear"),
    (HullBoost, "symmetrised finite", "absolute", "linear"),
]


@pytest.mark.parametrize(("algorithm", "kind", "loss", "feedback"), INDEPENDENT)
def test_a_bank_of_n_equals_n_banks_of_one(algorithm, kind, loss, feedback):
    X, y, weights = stream(loss, 25, seed=8)
    together = booster_of(algorithm, kind, loss, feedback)
    learner, make = learner_pair(kind, OUTPUTS.get(loss, 1), 1.0)
    prototype = OneCopyBank(learner, OUTPUTS.get(loss, 1), 1.0, feedback == "linear")
    apart = algorithm(prototype, 5, loss=LOSSES[loss][0], feedback=feedback)
    naive_copies = algorithm(FromNaive(make), 5, loss=LOSSES[loss][0], feedback=feedback)
    with kernels.plain():
        got = together.learn_many(X, y, weights)
    assert same_bits(apart.learn_many(X, y, weights), got)
    np.testing.assert_allclose(naive_copies.learn_many(X, y, weights), got, **CLOSE)


# --------------------------------------------------------------------------------------------
# Blocks, rows, predictions in between, seeds


SHAPES = [
    (SpanBoost, "ball", "squared", "greedy", {}),
    (SpanBoost, "ball", "logistic", "linear", {}),
    (SpanBoost, "symmetrised ball", "squared", "linear", {}),
    (SpanBoost, "finite", "squared", "linear", {"randomised": True}),
    (HullBoost, "finite", "squared", "linear", {"randomised": True}),
    (HullBoost, "ball", "squared", "greedy", {}),
]


def learn_in_blocks(booster, X, y, weights, cuts, *, peek=False):
    out = []
    for start, stop in itertools.pairwise([0, *sorted(set(cuts) - {0, len(X)}), len(X)]):
        if peek:
            booster.predict_many(X[::-1])
            booster.predict_one(X[start])
        if stop == start + 1:
            out.append(booster.learn_one(X[start], y[start], weights[start]))
        else:
            out.extend(booster.learn_many(X[start:stop], y[start:stop], weights[start:stop]))
    return np.array(out)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(cuts=st.lists(st.integers(0, 30), max_size=8), peek=st.booleans(), seed=st.integers(0, 99))
@pytest.mark.parametrize(("algorithm", "kind", "loss", "feedback", "options"), SHAPES)
@pytest.mark.parametrize("mode", ["compiled", "plain"])
def test_any_split_into_blocks_gives_the_same_bits(
    mode, algorithm, kind, loss, feedback, options, cuts, peek, seed
):
    X, y, weights = stream(loss, 30, seed)
    with kernels.plain() if mode == "plain" else contextlib.nullcontext():
        whole = booster_of(algorithm, kind, loss, feedback, seed=seed, **options)
        split = booster_of(algorithm, kind, loss, feedback, seed=seed, **options)
        expected = whole.learn_many(X, y, weights)
        assert same_bits(learn_in_blocks(split, X, y, weights, cuts, peek=peek), expected)
        assert same_bits(split.predict_many(X), whole.predict_many(X))


@pytest.mark.parametrize(("algorithm", "kind", "loss", "feedback", "options"), SHAPES)
def test_one_row_at_a_time_gives_the_same_bits(algorithm, kind, loss, feedback, options):
    X, y, weights = stream(loss, 30, seed=1)
    whole = booster_of(algorithm, kind, loss, feedback, **options)
    expected = whole.learn_many(X, y, weights)
    for peek in (False, True):
        rows = booster_of(algorithm, kind, loss, feedback, **options)
        assert same_bits(learn_in_blocks(rows, X, y, weights, range(30), peek=peek), expected)


@pytest.mark.parametrize(("algorithm", "kind", "loss", "feedback", "options"), SHAPES)
def test_learning_returns_the_prediction_before_the_update(
    algorithm, kind, loss, feedback, options
):
    X, y, weights = stream(loss, 30, seed=2)
    booster = booster_of(algorithm, kind, loss, feedback, **options)
    for x, label, w in zip(X, y, weights, strict=True):
        before = booster.predict_one(x)
        assert booster.learn_one(x, label, w) == before


@pytest.mark.parametrize("algorithm", [SpanBoost, HullBoost])
def test_draws_depend_on_the_seed(algorithm):
    X, y, weights = stream("squared", 30, seed=1)

    def predictions(seed):
        booster = booster_of(algorithm, "finite", "squared", "linear", randomised=True, seed=seed)
        return booster.learn_many(X, y, weights)

    assert same_bits(predictions(4), predictions(4))
    assert not same_bits(predictions(4), predictions(5))


def test_object_learners_give_the_same_bits_for_any_blocks():
    X, y, weights = stream("squared", 20, seed=1)
    whole = SpanBoost(Unusual(1), 4)
    expected = whole.learn_many(X, y, weights)
    rows = SpanBoost(Unusual(1), 4)
    assert same_bits(learn_in_blocks(rows, X, y, weights, range(20), peek=True), expected)


def test_a_copied_booster_is_independent():
    X, y, _ = stream("squared", 20, seed=1)
    first = SpanBoost(LinearBall(X_NORM), 4)
    first.learn_many(X[:10], y[:10])
    second = copy.deepcopy(first)
    expected = first.learn_many(X[10:], y[10:])
    assert same_bits(second.learn_many(X[10:], y[10:]), expected)


# --------------------------------------------------------------------------------------------
# Prefixes: a run of n copies contains the run of its first m copies


def partial_sums(booster, X, y):
    """Learn each row as plain Python; return y_t^0 ... y_t^N of every round, [T, N + 1, d]."""
    booster.predict_many(X[:1])  # creates the model
    model = booster.core.state
    d = 1 if y.ndim == 1 else y.shape[1]
    rows = booster.learner.encode(X)
    trace, sums = model.trace, []
    for x, label in zip(rows, y.reshape(len(y), d), strict=True):
        predict_row(model, x)
        answer = trace.y.copy()
        learn_row(model, x, label, 1.0)
        assert same_bits(trace.y, answer)
        sums.append(np.vstack([trace.before.T, trace.y]))
    return np.array(sums)


def prefix_and_own(make, n, m, loss):
    """Return partial sum m of a run of n copies, and the predictions of a run of m copies."""
    X, y, _ = stream(loss, 60, seed=9)
    with kernels.plain():
        sums = partial_sums(make(n), X, y)
        own = make(m).learn_many(X, y)
    assert np.abs(sums[-1, 1:]).min() > 0
    assert sums.shape == (60, n + 1, 1 if y.ndim == 1 else y.shape[1])
    return sums[:, m], own.reshape(60, -1)


def span_of(kind, loss, feedback, eta, **options):
    learner, _ = learner_pair(kind, OUTPUTS.get(loss, 1), 1.0)
    return lambda n: SpanBoost(learner, n, eta, loss=LOSSES[loss][0], feedback=feedback, **options)


@pytest.mark.parametrize("m", [5, 8, 12])
@pytest.mark.parametrize("feedback", ["linear", "greedy"])
@pytest.mark.parametrize("kind", ["ball", "finite"])
@pytest.mark.parametrize("loss", ["squared", "euclidean3"])
def test_squared_loss_a_prefix_is_the_smaller_run(kind, loss, feedback, m):
    prefix, own = prefix_and_own(span_of(kind, loss, feedback, 0.2), 12, m, loss)
    assert same_bits(prefix, own)


@pytest.mark.parametrize("m", [5, 9])
def test_squared_loss_a_prefix_is_the_smaller_run_symmetrised(m):
    make = span_of("symmetrised ball", "squared", "linear", 0.2)
    prefix, own = prefix_and_own(make, 12, m, "squared")
    assert same_bits(prefix, own)


@pytest.mark.parametrize("loss", ["squared", "logistic", "linear", "softmax3"])
@pytest.mark.parametrize("feedback", ["linear", "greedy"])
@pytest.mark.parametrize("m", [1, 2, 7])
def test_hull_a_prefix_is_always_the_smaller_run(loss, feedback, m):
    if loss == "softmax3":
        X, y, _ = stream(loss, 60, seed=9)
        y = np.eye(3)[y]
        learner, _ = learner_pair("finite", 3, 1.0)
        with kernels.plain():
            sums = partial_sums(
                HullBoost(learner, 10, loss=losses.Softmax(3), feedback=feedback), X, y
            )
            own = HullBoost(learner, m, loss=losses.Softmax(3), feedback=feedback)
            assert same_bits(own.learn_many(X, y.argmax(axis=1)), sums[:, m])
        return
    learner, _ = learner_pair("ball", 1, 1.0)

    def make(n):
        return HullBoost(learner, n, loss=LOSSES[loss][0], feedback=feedback)

    prefix, own = prefix_and_own(make, 10, m, loss)
    assert same_bits(prefix, own)


@pytest.mark.parametrize("booster", ["span", "hull"])
def test_a_prefix_is_the_smaller_run_when_copies_draw_at_random(booster):
    learner = FiniteClass(functions_of(1, 1.0), randomised=True)

    def make(n):
        if booster == "hull":
            return HullBoost(learner, n, feedback="linear", seed=3)
        return SpanBoost(learner, n, 0.2, feedback="linear", seed=3)

    prefix, own = prefix_and_own(make, 12, 6, "squared")
    assert same_bits(prefix, own)


def test_a_prefix_is_the_smaller_run_when_symmetrised_copies_draw_at_random():
    learner = Symmetrised(FiniteClass(functions_of(1, 1.0), randomised=True))

    def make(n):
        return HullBoost(learner, n, feedback="linear", seed=3)

    prefix, own = prefix_and_own(make, 12, 6, "squared")
    assert same_bits(prefix, own)


@pytest.mark.parametrize("feedback", ["linear", "greedy"])
def test_logistic_loss_a_prefix_needs_the_same_radius(feedback):
    eta, n, m = 0.1, 40, 15
    free = span_of("ball", "logistic", feedback, eta)
    B = free(n).B_
    assert eta * m < B < eta * n
    prefix, own = prefix_and_own(free, n, m, "logistic")
    assert not np.allclose(prefix, own, rtol=1e-3)
    prefix, own = prefix_and_own(span_of("ball", "logistic", feedback, eta, B=B), n, m, "logistic")
    assert same_bits(prefix, own)


def test_logistic_loss_a_prefix_long_enough_to_have_the_radius_is_the_smaller_run():
    eta, n, m = 0.1, 40, 30
    make = span_of("ball", "logistic", "linear", eta)
    radius = make(n).B_
    assert radius < eta * m
    np.testing.assert_allclose(make(m).B_, radius, rtol=1e-15)
    prefix, own = prefix_and_own(make, n, m, "logistic")
    np.testing.assert_allclose(prefix, own, **CLOSE)


def test_linear_loss_a_prefix_is_not_the_smaller_run():
    prefix, own = prefix_and_own(span_of("ball", "linear", "linear", 0.2), 12, 8, "linear")
    assert not np.allclose(prefix, own, rtol=1e-3)


def test_corollary_1_a_prefix_is_not_the_smaller_run():
    make = span_of("ball", "absolute", "linear", 0.2)
    B = make(12).B_
    prefix, own = prefix_and_own(make, 12, 8, "absolute")
    assert not np.allclose(prefix, own, rtol=1e-3)
    # the radius is not the reason: the gradients are taken at another answer
    prefix, own = prefix_and_own(span_of("ball", "absolute", "linear", 0.2, B=B), 12, 8, "absolute")
    assert not np.allclose(prefix, own, rtol=1e-3)
