"""Valid and invalid input of boosters, and their state after an error."""

import copy
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from spanboost import DataError, FiniteClass, HullBoost, LinearBall, SpanBoost, Symmetrised, losses
from spanboost.compiling import kernels

BOTH = pytest.mark.parametrize("booster", [SpanBoost, HullBoost])
NAN, INF = math.nan, math.inf

checked = settings(max_examples=60, deadline=None, derandomize=True)


@pytest.fixture
def compiled():
    """Request the compiled loop."""


@pytest.fixture(autouse=True)
def plain_python(request):
    """Run the tests as plain Python, except those that request the compiled loop."""
    if "compiled" in request.fixturenames:
        yield
        return
    with kernels.plain():
        yield


class Constant:
    """Predicts a constant and records the slopes of its losses."""

    def __init__(self, answer=0.5):
        self.answer, self.slopes = answer, []

    def predict(self, x):
        return self.answer

    def update(self, x, loss):
        self.slopes.append(loss.slope(loss.h))


def block(T=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, (T, 3))
    return X, np.clip(X @ [1.0, -0.8, 0.5] + 0.1 * rng.normal(size=T), -1, 1)


def state_of(value, skip=()):
    """Copy every array and number of a model, by name, and the attributes of object learners."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if hasattr(value, "_fields"):
        return {
            name: state_of(getattr(value, name), skip) for name in value._fields if name not in skip
        }
    if hasattr(value, "copies"):
        return [copy.deepcopy(vars(learner)) for learner in value.copies]
    return value


def same(first, second):
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, list):
        return len(first) == len(second) and all(map(same, first, second))
    return np.array_equal(first, second)


# --------------------------------------------------------------------------------------------
# Parameters


NOT_ABOVE_0 = [0, -1.0, INF, NAN, "1", None, True]
REFUSED = [
    *(({"n": v}, "n", "a positive integer") for v in (0, -3, 2.5, True, "8", NAN)),
    *(({"D": v}, "D", "a positive number") for v in NOT_ABOVE_0),
    *(({"scale": v}, "scale", "a positive number") for v in NOT_ABOVE_0),
    *(({"feedback": v}, "feedback", "'linear' or 'greedy'") for v in ("both", None, 1)),
    *(({"offset": v}, "offset", "'printed' or 'shrunk'") for v in ("none", 1, 0.0)),
    *(({"alpha": v}, "alpha", "None or a positive number") for v in (0, -0.1, INF, NAN, "1", True)),
    *(({"seed": v}, "seed", "an integer of at least 0") for v in (-1, 1.5, None, "0", True)),
    *(
        ({"label_range": v}, "label_range", "with finite low < high")
        for v in ((1, -1), (1, 1), (0, INF), (NAN, 1), 3, (0, 1, 2), ("0", "1"), None, (0,))
    ),
    ({"feedback": "linear", "alpha": 0.5}, "alpha", "needs feedback='greedy'"),
    ({"feedback": "linear", "offset": "printed"}, "offset", "needs feedback='greedy'"),
    ({"loss": "cubic"}, "loss", "'squared'.*'logistic'"),
    ({"loss": losses.PNorm(1.5)}, r"p\b", "2"),
]


@BOTH
@pytest.mark.parametrize(("bad", "name", "allowed"), REFUSED)
def test_an_invalid_parameter_is_named_with_the_allowed_values(booster, bad, name, allowed):
    with pytest.raises(ValueError, match=f"(?s){name}.*{allowed}"):
        booster(LinearBall(), **({"n": 8} | bad))


@pytest.mark.parametrize("eta", [0, -0.5, 0.124, 1.0001, 2, NAN, INF, "big"])
def test_eta_must_lie_between_1_over_n_and_1(eta):
    with pytest.raises(ValueError, match=r"(?s)eta must be between 1/n = 0.125 and 1 \(got"):
        SpanBoost(LinearBall(), 8, eta)


@pytest.mark.parametrize("n", range(1, 60))
def test_both_ends_of_the_range_of_eta_are_allowed(n):
    assert SpanBoost(LinearBall(), n, 1 / n).eta_ == 1 / n
    assert SpanBoost(LinearBall(), n, 1).eta_ == 1.0


@pytest.mark.parametrize(
    ("n", "eta"), [(1, 1.0), (2, 0.5), (3, math.log(3) / 3), (32, 5 * math.log(2) / 32)]
)
def test_eta_is_ln_n_over_n_unless_that_is_below_1_over_n(n, eta):
    booster = SpanBoost(LinearBall(), n)
    assert booster.eta is None
    assert booster.eta_ == pytest.approx(eta, rel=1e-15)


@pytest.mark.parametrize("B", [1.4, 0, -2.0, INF, NAN, "2", True])
def test_B_must_not_be_below_what_one_copy_can_reach(B):
    with pytest.raises(ValueError, match=r"B must be a number of at least scale \* D = 1.5 \(got"):
        SpanBoost(LinearBall(), 8, D=0.5, scale=3.0, B=B)


def test_B_given_is_B_used():
    booster = SpanBoost(LinearBall(), 8, D=0.5, scale=3.0, B=1.5)
    assert booster.B_ == 1.5
    assert booster.L_B_ == 2 * (1.5 + 1)


def test_corollary_1_has_its_own_radius():
    assert SpanBoost(LinearBall(), 10, 0.5, loss="absolute", feedback="linear").B_ == 5
    assert SpanBoost(LinearBall(), 10, 0.5, loss="squared", feedback="linear").B_ == 1


@BOTH
def test_a_loss_with_a_kink_under_linear_feedback_needs_a_deterministic_learner(booster):
    drawing = FiniteClass([lambda x: x[0]], randomised=True)
    for learner in (drawing, Symmetrised(drawing)):
        with pytest.raises(ValueError, match="deterministic"):
            booster(learner, 4, loss="absolute", feedback="linear")
    assert booster(drawing, 4, loss="absolute", feedback="greedy").n == 4
    assert booster(drawing, 4, loss="squared", feedback="linear").n == 4


@BOTH
def test_a_loss_on_vectors_without_constants_is_refused_by_name(booster):
    class Bare:
        d = 2

        def values(self, label, Y, out):
            out[:] = 0

        def gradients(self, label, Y, out):
            out[:] = 0

    with pytest.raises(ValueError, match=r"Bare has no method beta"):
        booster(LinearBall(), 4, loss=Bare())


# --------------------------------------------------------------------------------------------
# Bad rows


def spoiled(what):
    """Return X, y and weights of 8 rows; rows 3 and 5 are invalid in the way named."""
    X, y = block(seed=1)
    w = np.ones(8)
    kind, value = what
    {"label": y, "feature": X[:, 1], "weight": w}[kind][[3, 5]] = value
    return X, y, w


BAD = [
    *(("label", v) for v in (NAN, INF, -INF, 1.5, -1.001, 1e300)),
    *(("feature", v) for v in (INF, -INF)),
    *(("weight", v) for v in (NAN, INF, -INF, -1.0, -1e-300)),
]
MODELS = {
    "span": lambda: SpanBoost(LinearBall(), 4),
    "span, linear": lambda: SpanBoost(Symmetrised(LinearBall()), 4, feedback="linear"),
    "hull": lambda: HullBoost(LinearBall(), 4),
    "finite": lambda: SpanBoost(FiniteClass(randomised=True), 4, feedback="linear"),
    "object": lambda: SpanBoost(Constant(), 4),
}


BAD_FOR = [(model, what) for model in MODELS for what in BAD] + [
    (model, ("feature", v)) for model in ("span", "span, linear", "hull") for v in (1.2, 1e300)
]  # only LinearBall limits the norm of a row


@pytest.mark.parametrize(("model", "what"), BAD_FOR, ids=str)
def test_a_bad_row_is_named_and_nothing_is_learned(model, what):
    X, y = block()
    booster, twin = MODELS[model](), MODELS[model]()
    booster.learn_many(X, y)
    twin.learn_many(X, y)
    before = state_of(booster.core.state)
    with pytest.raises(DataError, match="row 3: ") as raised:
        booster.learn_many(*spoiled(what))
    assert raised.value.row == 3
    assert isinstance(raised.value, ValueError)
    assert same(state_of(booster.core.state), before)
    assert np.array_equal(booster.learn_many(X[::-1], y[::-1]), twin.learn_many(X[::-1], y[::-1]))


@pytest.mark.parametrize("what", [("label", NAN), ("feature", INF), ("weight", -1.0)], ids=str)
def test_a_bad_first_block_leaves_a_fresh_model(what):
    booster = SpanBoost(LinearBall(), 4)
    with pytest.raises(DataError, match="row 3: "):
        booster.learn_many(*spoiled(what))
    assert not booster.started
    X, y = block()
    expected = SpanBoost(LinearBall(), 4).learn_many(X[:, :2], y)
    assert np.array_equal(
        booster.learn_many(X[:, :2], y), expected
    )  # the number of features is not kept either


def test_messages_name_the_invalid_value():
    X, _ = block()
    booster = SpanBoost(LinearBall(), 4, label_range=(0, 10))
    for label, message in [
        (12.0, r"12 is outside label_range=\(0, 10\)"),
        (NAN, r"the label is missing \(None or NaN\); leave out rows without"),
    ]:
        with pytest.raises(DataError, match=message):
            booster.learn_one(X[0], label)
    with pytest.raises(DataError, match=r"weight must be between 0 and .* \(got -2\)"):
        booster.learn_one(X[0], 5.0, -2)
    with pytest.raises(DataError, match="column 0 is infinite"):
        booster.learn_one([INF, 0, 0], 5.0)


@BOTH
def test_rows_of_another_width_are_refused(booster):
    X, y = block()
    model = booster(LinearBall(), 4)
    model.learn_many(X, y)
    before = state_of(model.core.state)
    for call in (
        lambda: model.learn_many(X[:, :2], y),
        lambda: model.predict_many(X[:, :2]),
        lambda: model.learn_one(X[0, :2], 0.0),
        lambda: model.predict_one([0.1] * 4),
    ):
        with pytest.raises(DataError, match="features, but the model expects 3") as raised:
            call()
        assert raised.value.row == 0
    assert same(state_of(model.core.state), before)


@BOTH
@pytest.mark.parametrize("functions", [1, 2, 3, 5])
def test_a_finite_class_may_have_more_or_fewer_functions_than_rows_have_features(
    booster, functions
):
    X, y = block()
    values = [lambda x, k=k: math.sin(k + x[0]) for k in range(functions)]
    whole = booster(FiniteClass(values), 4).learn_many(X, y)
    model = booster(FiniteClass(values), 4)
    assert np.array_equal(
        np.r_[model.learn_many(X[:5], y[:5]), model.learn_many(X[5:], y[5:])], whole
    )
    with pytest.raises(DataError, match="the row has 2 features, but the model expects 3"):
        model.predict_one(X[0, :2])


@BOTH
def test_the_number_of_labels_and_weights_must_fit(booster):
    X, y = block()
    model = booster(LinearBall(), 4)
    with pytest.raises(ValueError, match="8 rows but 7 labels"):
        model.learn_many(X, y[:7])
    with pytest.raises(ValueError, match="8 rows but 9 weights"):
        model.learn_many(X, y, np.ones(9))
    with pytest.raises(
        ValueError, match=r"labels must be numbers, 1 for each row \(got shape \(8, 2\)\)"
    ):
        model.learn_many(X, np.zeros((8, 2)))
    with pytest.raises(
        ValueError, match=r"labels must be numbers, 3 for each row \(got shape \(8,\)\)"
    ):
        booster(LinearBall(), 4, loss=losses.SquaredEuclidean(3)).learn_many(X, y)
    assert not model.started


@BOTH
@pytest.mark.parametrize(
    "X", [[["a", "b"]], [[None, {}]], [[0.1, 0.2], [0.1]], [0.1, 0.2], [{"a": 0.1}]], ids=str
)
def test_blocks_that_are_not_numbers_are_refused(booster, X):
    model = booster(LinearBall(), 4)
    with pytest.raises(ValueError, match=r"rows must be numbers|rows x features"):
        model.learn_many(X, [0.0] * len(X))
    with pytest.raises(ValueError, match=r"rows must be numbers|rows x features"):
        model.predict_many(X)
    assert not model.started


@BOTH
def test_labels_that_are_not_numbers_are_refused(booster):
    X, _ = block(2)
    for y, message in (
        (["a", "b"], "row 0: the label 'a' is not a number"),
        ([{}, {}], "labels must be numbers"),
        ([[0.1], [0.2, 0.3]], "labels must be numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            booster(LinearBall(), 4).learn_many(X, y)


@BOTH
@pytest.mark.parametrize("learner", [LinearBall(), Constant()], ids=["ball", "object"])
@pytest.mark.parametrize("X", [[], np.empty((0, 3))], ids=["list", "array"])
def test_an_empty_block_is_refused(booster, learner, X):
    model = booster(learner, 4)
    with pytest.raises(ValueError, match="no rows"):
        model.learn_many(X, [])
    with pytest.raises(ValueError, match="no rows"):
        model.predict_many(X)
    assert not model.started


@BOTH
def test_functions_must_have_as_many_outputs_as_the_loss(booster):
    X, y = block()
    model = booster(FiniteClass([lambda x: x, lambda x: -x]), 4)
    with pytest.raises(ValueError, match="output"):
        model.learn_many(X, y)
    model = booster(FiniteClass([lambda x: x[0]]), 4, loss=losses.SquaredEuclidean(3))
    with pytest.raises(ValueError, match="output"):
        model.learn_many(X, np.zeros((8, 3)))


@BOTH
def test_a_function_without_a_finite_value_is_a_bad_row(booster):
    X, y = block()
    X[2, 0] = 0.0
    model = booster(FiniteClass([lambda x: NAN if x[0] == 0 else 1.0, lambda x: 0.0]), 4)
    with pytest.raises(DataError, match="no finite value") as raised:
        model.learn_many(X, y)
    assert raised.value.row == 2


# --------------------------------------------------------------------------------------------
# Labels and their range


@checked
@given(
    a=st.floats(0.01, 100),
    b=st.floats(-50, 50),
    booster=st.sampled_from([SpanBoost, HullBoost]),
    loss=st.sampled_from(["squared", losses.PNorm(3.0), losses.Huber(0.3)]),
    seed=st.integers(0, 1000),
)
def test_predictions_follow_the_labels_units(a, b, booster, loss, seed):
    X, y = block(seed=seed)
    expected = booster(LinearBall(), 4, loss=loss).learn_many(X, y)
    moved = booster(LinearBall(), 4, loss=loss, label_range=(b - a, b + a))
    got = moved.learn_many(X, np.clip(a * y + b, b - a, b + a))
    np.testing.assert_allclose(got, a * expected + b, rtol=1e-9, atol=1e-9 * a)
    assert np.ptp(expected) > 1e-4


def test_vector_labels_are_mapped_too():
    X, _ = block()
    y = np.random.default_rng(5).uniform(-0.5, 0.5, (8, 3))
    loss = losses.SquaredEuclidean(3)
    expected = SpanBoost(LinearBall(), 4, loss=loss).learn_many(X, y)
    got = SpanBoost(LinearBall(), 4, loss=loss, label_range=(2, 10)).learn_many(X, 6 + 4 * y)
    assert got.shape == (8, 3)
    np.testing.assert_allclose(got, 6 + 4 * expected, rtol=1e-12)
    with pytest.raises(DataError, match="more than 1 from the centre of label_range"):
        SpanBoost(LinearBall(), 4, loss=loss).learn_one(X[0], [0.8, 0.8, 0.0])


@checked
@given(ends=st.tuples(st.integers(-9999, 9999), st.integers(-9999, 9999)))
def test_the_ends_of_any_range_are_inside_it(ends):
    low, high = sorted(end / 100 for end in ends)
    assume(low < high)
    booster = SpanBoost(LinearBall(), 2, label_range=(low, high))
    X, _ = block(2)
    predictions = booster.learn_many(X, [low, high])
    assert np.isfinite(predictions).all()


@checked
@given(ends=st.tuples(st.integers(-9999, 9999), st.integers(-9999, 9999)))
def test_the_ends_of_any_range_are_the_two_labels_of_a_binary_loss(ends):
    low, high = sorted(end / 100 for end in ends)
    assume(low < high)
    X, y = block()
    expected = SpanBoost(LinearBall(), 2, loss="logistic").learn_many(X, np.sign(y))
    booster = SpanBoost(LinearBall(), 2, loss="logistic", label_range=(low, high))
    got = booster.learn_many(X, np.where(y > 0, high, low))
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", ["logistic", "modified_least_squares", "hinge"])
def test_binary_losses_take_two_labels_and_answer_with_scores(loss):
    X, y = block()
    expected = SpanBoost(LinearBall(), 4, loss=loss).learn_many(X, np.sign(y))
    booster = SpanBoost(LinearBall(), 4, loss=loss, label_range=(0, 1))
    assert np.array_equal(booster.learn_many(X, (y > 0).astype(int)), expected)
    assert expected[0] == 0  # a score, not the middle of the labels
    with pytest.raises(DataError, match=r"row 1: the label 0.5 is neither 0 nor 1"):
        booster.learn_many(X[:2], [1, 0.5])


def test_scores_of_the_linear_loss_are_not_mapped_but_its_labels_are():
    X, y = block()
    expected = SpanBoost(LinearBall(), 4, loss="linear").learn_many(X, y)
    booster = SpanBoost(LinearBall(), 4, loss="linear", label_range=(0, 8))
    np.testing.assert_allclose(booster.learn_many(X, 4 + 4 * y), expected, rtol=1e-12)


@pytest.mark.parametrize("label", [3, -1, 0.5, NAN, INF, "one", None])
def test_softmax_takes_class_numbers(label):
    X, _ = block(4)
    booster = SpanBoost(LinearBall(), 4, loss=losses.Softmax(3))
    scores = booster.learn_many(X, [0, 1, 2, 2.0])
    assert scores.shape == (4, 3)
    assert np.array_equal(scores[0], [0, 0, 0])
    with pytest.raises(DataError, match=r"row 2: .* class number from 0 to 2") as raised:
        booster.learn_many(X, [0, 1, label, 2])
    assert raised.value.row == 2


def test_softmax_scores_are_not_mapped():
    X, _ = block(4)
    expected = SpanBoost(LinearBall(), 4, loss=losses.Softmax(3)).learn_many(X, [0, 1, 2, 0])
    booster = SpanBoost(LinearBall(), 4, loss=losses.Softmax(3), label_range=(0, 2))
    assert np.array_equal(booster.learn_many(X, [0, 1, 2, 0]), expected)


def test_learn_scaled_answers_in_the_units_of_the_theorems():
    X, y = block()
    w = np.linspace(0, 2, 8)
    user = SpanBoost(LinearBall(), 4, label_range=(0, 8)).learn_many(X, 4 + 4 * y, w)
    out, labels, weights = SpanBoost(LinearBall(), 4, label_range=(0, 8)).learn_scaled(
        X, 4 + 4 * y, w
    )
    np.testing.assert_allclose(4 + 4 * out[:, 0], user, rtol=1e-15)
    np.testing.assert_allclose(labels, y[:, None], rtol=1e-13, atol=1e-15)
    assert np.array_equal(weights, w)


# --------------------------------------------------------------------------------------------
# Weights


@pytest.mark.parametrize("w", [0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("feedback", ["linear", "greedy"])
def test_a_weight_multiplies_the_loss_in_lines_13_and_14(w, feedback):
    booster = SpanBoost(Constant(), 2, 0.5, feedback=feedback)
    assert (booster.B_, booster.L_B_) == (1, 4)
    assert booster.learn_one([0.0], -1, w) == 0.5
    # partial sums 0, 1/4; gradients 2 and 5/2, the latter along 1/4; alpha_1 = 1/4
    np.testing.assert_allclose(booster.sigma_, [0, w * 2.5 * 0.25 / 4], rtol=1e-15)
    slopes = [learner.slopes for learner in booster.core.state.bank.copies]
    if feedback == "linear":
        expected = [[w * 2 / 4], [w * 2.5 / 4]]
    else:  # at y^{i-1} + eta h, with a factor eta of the chain rule
        expected = [[w * 0.5 * 2 * (0.25 + 1)], [w * 0.5 * 2 * (0.5 + 1)]]
    np.testing.assert_allclose(slopes, expected, rtol=1e-15)
    # a row of weight 0, then the round t = 2
    booster.learn_one([0.0], 1, 0)
    kept = 1 - booster.sigma_[1] / 2
    assert booster.learn_one([0.0], -1, 1) == pytest.approx(kept / 4 + 0.25, rel=1e-15)
    expected = w * 2.5 * 0.25 / 4 + 2.5 * 0.25 / (4 * math.sqrt(2))
    np.testing.assert_allclose(booster.sigma_, [0, expected], rtol=1e-14)


def test_sigma_stays_between_0_and_1():
    booster = SpanBoost(Constant(), 2, 0.5)
    booster.learn_one([0.0], -1, 100)
    assert booster.sigma_.tolist() == [0, 1]
    booster.learn_one([0.0], 1, 100)
    assert booster.sigma_.tolist() == [0, 0]


@pytest.mark.parametrize("model", MODELS)
def test_a_row_of_weight_0_is_predicted_and_changes_nothing(model):
    X, y = block()
    booster, twin = MODELS[model](), MODELS[model]()
    booster.learn_many(X, y)
    twin.learn_many(X, y)
    scratch = ("scratch", "trace")  # written by predictions
    before = state_of(booster.core.state, scratch)
    predicted = booster.predict_many(-X)
    assert np.array_equal(booster.learn_many(-X, np.ones(8), np.zeros(8)), predicted)
    assert same(state_of(booster.core.state, scratch), before)
    assert np.array_equal(booster.learn_many(X, y), twin.learn_many(X, y))


@pytest.mark.parametrize("model", MODELS)
def test_no_weights_are_weights_1(model):
    X, y = block()
    assert np.array_equal(
        MODELS[model]().learn_many(X, y), MODELS[model]().learn_many(X, y, [1] * 8)
    )


# --------------------------------------------------------------------------------------------
# Answers


@BOTH
def test_shapes_of_answers(booster):
    X, y = block()
    model = booster(LinearBall(), 4)
    assert np.ndim(model.predict_one(X[0])) == 0
    assert np.ndim(model.learn_one(list(X[0]), y[0])) == 0
    assert np.ndim(model.learn_one(tuple(X[0]), y[0])) == 0
    assert model.predict_many(X).shape == model.learn_many(X.tolist(), y.tolist()).shape == (8,)
    vector = booster(LinearBall(), 4, loss=losses.SquaredEuclidean(2))
    assert vector.predict_one(X[0]).shape == vector.learn_one(X[0], [0.1, 0.2]).shape == (2,)
    assert vector.predict_many(X).shape == (8, 2)


def test_sigma_is_0_at_first_and_a_copy_always():
    booster = SpanBoost(LinearBall(), 4)
    assert booster.sigma_.tolist() == [0] * 4
    booster.learn_many(*block())
    sigma = booster.sigma_
    booster.sigma_[:] = 0.77
    assert np.array_equal(booster.sigma_, sigma)
    assert 0.77 not in sigma


@BOTH
def test_input_arrays_are_not_modified(booster):
    X, y = block()
    X[0, 0] = NAN
    given_X, given_y, w = X.copy(), y.copy(), np.full(8, 2.0)
    booster(LinearBall(), 4, label_range=(-2, 2)).learn_many(X, y, w)
    assert np.array_equal(X, given_X, equal_nan=True)
    assert np.array_equal(y, given_y)
    assert (w == 2).all()


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_the_layout_of_a_block_does_not_matter(order, dtype):
    X, y = block()
    X = np.asarray(np.round(X) if dtype is np.int64 else X, dtype=dtype, order=order)
    expected = SpanBoost(LinearBall(2.0), 4).learn_many(X.tolist(), y.tolist())
    got = SpanBoost(LinearBall(2.0), 4).learn_many(X[::2], y[::2].astype(np.float64))
    again = SpanBoost(LinearBall(2.0), 4).learn_many(X[::2].tolist(), y[::2].tolist())
    assert np.array_equal(got, again)
    assert np.array_equal(SpanBoost(LinearBall(2.0), 4).learn_many(X, y), expected)
