"""Label ranges that change: the rule "growing", and how boosters follow changes of any range."""

import math
import warnings

import numpy as np
import pytest
from banks import bits_of
from hypothesis import given, settings
from hypothesis import strategies as st

from spanboost import (
    DataError,
    FiniteClass,
    HullBoost,
    LabelWarning,
    LinearBall,
    LinearSGD,
    Network,
    SpanBoost,
    Stumps,
    Symmetrised,
    Trees,
    losses,
)
from spanboost.compiling.kernels import plain
from spanboost.core.loop import predict_row
from spanboost.losses import Absolute, Huber, PNorm, Quantile, Squared, SquaredEuclidean
from spanboost.rows.labels import GrowingLabels, RangeChange
from spanboost.theory.regret import audit_span

# Every learner that can be rescaled, with every kind of state.
LEARNERS = {
    "ball": LinearBall(6.0),
    "linear": LinearSGD(),
    "linear, decay": LinearSGD(decay=0.5),
    "linear, hashed": LinearSGD(bits=2, dtype=np.float64),
    "stumps": Stumps(),
    "stumps, intercept": Stumps(intercept=True),
    "network": Network(hidden=4),
    "trees": Trees(depth=3, candidates=8, evidence=0.5, grace=5, delay=2),
}
CASES = {
    **{f"{name}, greedy": (learner, "greedy") for name, learner in LEARNERS.items()},
    **{f"{name}, as printed": (learner, "linear") for name, learner in LEARNERS.items()},
    "symmetrised ball": (Symmetrised(LEARNERS["ball"]), "linear"),
    "symmetrised linear": (Symmetrised(LEARNERS["linear"]), "linear"),
}
BOTH = pytest.mark.parametrize("booster", [SpanBoost, HullBoost])
EVERY = pytest.mark.parametrize("case", CASES)
CHANGING = pytest.mark.parametrize("label_range", ["auto", "auto-zero", "growing", "growing-zero"])

checked = settings(max_examples=40, deadline=None, derandomize=True)


def make(case="linear, greedy", booster=SpanBoost, label_range="growing", **options):
    learner, feedback = CASES[case]
    return booster(learner, n=3, feedback=feedback, label_range=label_range, **options)


def stream(T=40, seed=0, d=1):
    """Rows whose labels are far from 0 and spread over time, so that the range grows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, 4)).clip(-2.5, 2.5)
    y = 1000 + X @ rng.normal(size=(4, d)) * np.geomspace(1, 50, T)[:, None]
    return X, y[:, 0] if d == 1 else y


def label_state(model):
    public = {name for name in vars(model.labels) if not name.startswith("_")}
    parts = {name: getattr(model.labels, name) for name in public - {"loss"}}
    history = bits_of(model.labels.history) if model.labels.history else None
    return {name: np.array(v).tolist() for name, v in parts.items()} | {"history": history}


def state(model):
    return model.started and bits_of(model.core.state), label_state(model)


def is_unclipped(model, X):
    """Return whether neither D nor B clips anything on these rows."""
    with plain():
        trace = model.core.state.trace
        rows = model.core.learner.encode(X, model.D)
        for t in range(len(X)):
            x = rows[t] if isinstance(rows, np.ndarray) else rows.row(t)
            model.core.state.bank.predict(x, trace.h)
            free = np.linalg.norm(trace.h, axis=0).max() < model.D
            predict_row(model.core.state, x)
            sums = np.hstack([trace.before, trace.y[:, None]])
            if not (free and np.linalg.norm(sums, axis=0).max() < model.reach_):
                return False
    return True


# --------------------------------------------------------------------------------------------
# The range itself


def expected_ranges(y, weights, around_first):
    """Apply the rule label by label; return each row's range for prediction and for learning."""
    centre, half, seen, ranges = np.zeros(y.shape[1]), 0.0, 0, []
    for label, weight in zip(y, weights, strict=True):
        before = (centre, half)
        if weight > 0:
            if around_first and seen == 0:
                centre = label
            distance = np.hypot.reduce(np.abs(label - centre))
            if distance > half:
                half = max(2 * half, distance, 1e-300)
            seen += 1
        ranges.append((before, (centre, half)))
    return ranges


@checked
@given(st.data(), st.sampled_from(["growing", "growing-zero"]), st.integers(1, 3))
def test_the_range_follows_its_rule_in_blocks_of_any_size(data, label_range, d):
    T = data.draw(st.integers(1, 20))
    sizes = st.floats(-1e6, 1e6) | st.sampled_from([0.0, 5.0, -5.0, 1e300, 5e-324])
    y = np.array(data.draw(st.lists(st.tuples(*[sizes] * d), min_size=T, max_size=T)))
    weights = np.array(
        data.draw(st.lists(st.sampled_from([0.0, 1.0, 0.5]), min_size=T, max_size=T))
    )
    labels = GrowingLabels(Squared(), d, label_range)
    ranges = expected_ranges(y, weights, label_range == "growing")
    t = 0
    while t < T:
        last = data.draw(st.integers(t + 1, T))
        plan = labels.plan(y[t:last], weights[t:last])
        at = {t + new.row: new for new in plan.changes}
        for row, ((old_centre, old_half), (centre, half)) in enumerate(ranges[t:last], t):
            assert (labels.half, *labels.centre) == (old_half, *old_centre)
            if row in at:
                part = labels.change(at[row])
                assert part == (old_half / half if old_half else 0)
            assert (labels.half, *labels.centre) == (half, *centre)
            label = plan.labels[row - t]
            assert math.hypot(*label) <= 1 + 1e-12
            if weights[row] > 0:
                close = 1e-15 * (half + np.abs(centre).max())
                np.testing.assert_allclose(labels.to_user(label[None]).ravel(), y[row], 1e-9, close)
        np.testing.assert_array_equal(plan.learned, y[t:last])
        labels.count(weights[t:last], plan.after, plan.ends)
        t = last
    assert (labels.rows, labels.seen) == (T, np.count_nonzero(weights))


def scale_bank(bank, a):
    """Return the bank scaled as squared loss requires."""
    if hasattr(bank, "W"):
        return bank._replace(W=bank.W * a)
    return bank._replace(
        inputs=bank.inputs._replace(
            W=bank.inputs.W * a, G=np.maximum(bank.inputs.G * (a * a), np.float32(1e-20))
        ),
        mass=bank.mass * a,
    )


def learn_with_fixed_ranges(new_model, X, y, weights):
    """Use a model with a fixed range for every segment, and scale the bank in between."""
    model, answers = None, []
    ranges = expected_ranges(y[:, None], weights, around_first=True)
    for t, ((_, old), (centre, half)) in enumerate(ranges):
        answers.append(0.0 if model is None else model.predict_one(X[t]) if old else centre[0])
        if weights[t] == 0:
            continue
        if model is None or half != old:
            wider = new_model((centre[0] - (half or 1), centre[0] + (half or 1)))
            wider.predict_one(X[t])
            if model is not None:
                bank = scale_bank(model.core.state.bank, float(old / half))
                wider.core.state = model.core.state._replace(bank=bank)
            model = wider
        model.learn_one(X[t], y[t], weights[t])
    return answers


@BOTH
@pytest.mark.parametrize(
    "case", [f"{a}, {b}" for a in ("ball", "linear") for b in ("greedy", "as printed")]
)
def test_it_is_a_fixed_range_between_widenings(booster, case):
    X, y = stream(60)
    y = np.round(y)  # then the ends of all ranges are integers
    weights = np.random.default_rng(1).choice([0.0, 1.0, 2.0], 60)
    with plain():
        expected = learn_with_fixed_ranges(lambda ends: make(case, booster, ends), X, y, weights)
        model = make(case, booster)
        np.testing.assert_array_equal(model.learn_many(X, y, weights), expected)
    assert model.labels.half > 20


# --------------------------------------------------------------------------------------------
# Blocks and rows


@EVERY
@BOTH
@CHANGING
def test_blocks_and_rows_give_the_same_model_bit_for_bit(booster, case, label_range):
    X, y = stream()
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0], len(y))
    with plain():
        whole, rows = (make(case, booster, label_range) for _ in range(2))
        answers = [rows.learn_one(x, *rest) for x, *rest in zip(X, y, weights, strict=True)]
        np.testing.assert_array_equal(whole.learn_many(X, y, weights), answers)
    assert state(whole) == state(rows)


@checked
@given(st.data(), st.sampled_from(list(CASES)), st.integers(1, 2))
def test_however_a_stream_is_split_the_model_is_the_same(data, case, d):
    T = data.draw(st.integers(2, 12))
    numbers = st.floats(-100, 100, width=16)
    X, y = stream(T, d=d)
    y = np.array(data.draw(st.lists(st.tuples(*[numbers] * d), min_size=T, max_size=T)))
    cuts = sorted(data.draw(st.sets(st.integers(1, T - 1))))
    with plain():
        whole, split = (make(case, loss=SquaredEuclidean(d)) for _ in range(2))
        parts = zip(np.split(X, cuts), np.split(y, cuts), strict=True)
        answers = np.concatenate([split.learn_many(*part) for part in parts])
        np.testing.assert_array_equal(whole.learn_many(X, y), answers)
    assert state(whole) == state(split)


@EVERY
@BOTH
def test_compiled_and_plain_agree_bit_for_bit(booster, case):
    X, y = stream()
    compiled, oracle = make(case, booster), make(case, booster)
    got = compiled.learn_many(X, y)
    with plain():
        np.testing.assert_array_equal(got, oracle.learn_many(X, y))
    assert state(compiled) == state(oracle)
    assert compiled.labels.half > 20


@EVERY
def test_learn_one_returns_the_prediction_before_the_label(case):
    X, y = stream()
    with plain():
        model = make(case)
        for x, label in zip(X, y, strict=True):
            predicted = model.predict_one(x)
            assert model.learn_one(x, label) == predicted


# --------------------------------------------------------------------------------------------
# Predictions keep their units


@EVERY
@BOTH
@pytest.mark.parametrize(
    "loss", [Squared(), Absolute(), PNorm(3.0)], ids=lambda v: type(v).__name__
)
def test_widening_does_not_change_predictions(booster, case, loss):
    X, y = stream(25)
    model = make(case, booster, loss=loss)
    with plain():
        model.learn_many(X, y, np.full(25, 0.02))  # light rows, so that nothing reaches D
        assert is_unclipped(model, X)
        before, half = model.predict_many(X), model.labels.half
        assert np.ptp(before) > 0.01
        # the weight is so small that the row widens the range but teaches nothing
        model.learn_one(X[0], model.labels.centre[0] - 5.7 * half, weight=1e-19)
        assert model.labels.half == pytest.approx(5.7 * half)
        close = 1e-6 if model.core.dtype is np.float32 else 1e-14
        np.testing.assert_allclose(model.predict_many(X), before, rtol=0, atol=close * half)


@EVERY
def test_doubling_the_range_is_exact(case):
    X, y = stream(25)
    model = make(case)
    with plain():
        model.learn_many(X, y, np.full(25, 0.02))
        assert is_unclipped(model, X)
        before, labels = model.predict_many(X), model.labels
        model.core.change_range(RangeChange(0, labels.centre, 2 * labels.half))
        np.testing.assert_array_equal(model.predict_many(X), before)


@checked
@given(st.sampled_from(list(CASES)), st.integers(-40, 40), st.booleans())
def test_predictions_follow_the_labels_units_exactly(case, power, around_zero):
    X, y = stream(30)
    label_range = "growing-zero" if around_zero else "growing"
    with plain():
        expected = make(case, label_range=label_range).learn_many(X, y)
        got = make(case, label_range=label_range).learn_many(X, y * 2.0**power)
    np.testing.assert_array_equal(got, expected * 2.0**power)


@EVERY
def test_where_the_labels_lie_does_not_matter(case):
    X, y = stream(30)
    y = np.round(y)
    with plain():
        here, there = make(case), make(case)
        expected, got = here.learn_many(X, y), there.learn_many(X, y + 5000)
    assert bits_of(here.core.state) == bits_of(there.core.state)
    np.testing.assert_allclose(got[1:], expected[1:] + 5000, rtol=1e-14)
    assert got[0] == expected[0] == 0


@pytest.mark.parametrize(
    ("loss", "p"),
    [
        (Squared(), 2),
        (PNorm(3.5), 3.5),
        (Absolute(), 1),
        (Quantile(0.9), 1),
        (SquaredEuclidean(1), 2),
    ],
    ids=lambda v: type(v).__name__,
)
def test_a_loss_scales_with_its_degree(loss, p):
    assert losses.degree(loss) == p
    on_vectors, a = losses.on_vectors(loss), 0.25
    label, Y = np.array([0.5]), np.array([[-0.75, 0.25, 1.0]])
    for method, power in (("values", p), ("gradients", p - 1)):
        shape = 3 if method == "values" else (1, 3)
        wide, narrow = np.empty(shape), np.empty(shape)
        getattr(on_vectors, method)(label, Y, wide)
        getattr(on_vectors, method)(a * label, a * Y, narrow)
        np.testing.assert_allclose(narrow, a**power * wide, rtol=1e-14)


@pytest.mark.parametrize("degree", ["two", True, math.nan, math.inf, 0.5, None])
def test_an_invalid_degree_is_refused(degree):
    with pytest.raises(ValueError, match=r"Own.degree must be a number, at least 1 \(got "):
        losses.degree(type("Own", (), {"degree": degree})())
    assert losses.degree(Huber()) == losses.degree(object()) == 2


@pytest.mark.parametrize(
    ("loss", "b"),
    [("squared", 0.5), (PNorm(3.0), 0.25), (Absolute(), 1), (Quantile(0.9), 1), (Huber(), 0.5)],
    ids=str,
)
def test_slopes_are_one_degree_below_the_loss(loss, b):
    X, y = stream(20)
    with plain():
        model = make(loss=loss)
        model.learn_many(X, y)
        bank, labels = model.core.state.bank, model.labels
        G = bank.inputs.G.copy()
        model.core.change_range(RangeChange(0, labels.centre, 2 * labels.half))
    np.testing.assert_array_equal(bank.inputs.G, G * np.float32(b * b))


def test_slopes_and_losses_have_units_too():
    X, y = stream(10)
    with plain():
        model = make("symmetrised linear")
        model.learn_many(X, y)
        bank = model.core.state.bank
        G, sums = bank.bank.inputs.G.copy(), bank.sums.copy()
        bank.rescale(0.5, 0.25)
    np.testing.assert_array_equal(bank.sums, sums / 8)
    np.testing.assert_array_equal(bank.bank.inputs.G, np.maximum(G / 16, np.float32(1e-20)))
    assert sums.any()


# --------------------------------------------------------------------------------------------
# First labels, weights, vectors


@EVERY
@CHANGING
def test_a_constant_stream_is_predicted_at_once(case, label_range):
    X, _ = stream(10)
    with plain():
        model = make(case, label_range=label_range)
        assert model.predict_many(X).tolist() == [0] * 10
        answers = model.learn_many(X, np.full(10, 42.0))
        assert answers[0] == 0
        if not label_range.endswith("-zero"):
            assert answers[1:].tolist() == [42] * 9
            assert model.learn_one(X[0], 43.0) == 42  # now the range has a width
            assert model.predict_one(X[0]) == pytest.approx(42, abs=1)
        assert np.isfinite(model.predict_many(X)).all()
        assert model.labels.half == (42 if label_range.endswith("-zero") else 1)


def test_rows_of_weight_0_are_answered_and_change_nothing():
    X, y = stream()
    with plain():
        model, twin = make(), make()
        assert model.learn_many(X[:5], y[:5], np.zeros(5)).tolist() == [0] * 5
        assert label_state(model) == label_state(twin) | {"rows": 5}
        np.testing.assert_array_equal(model.learn_many(X, y), twin.learn_many(X, y))
        before = state(model)[0], model.labels.half
        predicted = model.predict_many(X)
        answers = model.learn_many(X, np.full(len(y), 1e300), np.zeros(len(y)))
        np.testing.assert_array_equal(answers, predicted)
        assert before == (state(model)[0], model.labels.half)


@BOTH
def test_vector_labels_lie_around_the_first_vector(booster):
    X, y = stream(400, d=3)
    model = booster(LinearSGD(), n=3, loss=SquaredEuclidean(3), label_range="growing")
    answers = model.learn_many(X, y)
    assert answers[0].tolist() == [0, 0, 0]
    np.testing.assert_array_equal(answers[1], y[0])
    np.testing.assert_array_equal(model.labels.centre, y[0])
    farthest = np.linalg.norm(y - y[0], axis=1).max()
    assert farthest <= model.labels.half * (1 + 1e-15) < 2 * farthest
    errors = ((answers - y)[200:] ** 2).mean()
    assert errors < y[200:].var(axis=0).mean() / 2


@BOTH
@pytest.mark.parametrize("loss", ["squared", "absolute", Huber(0.1)], ids=str)
def test_it_learns_as_well_as_with_the_right_range(booster, loss):
    """Labels are positive and skewed, like ages. A single stream differs by 10 % either way."""
    errors = {(1, 29): 0.0, "auto": 0.0, "growing": 0.0}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(3000, 5))
        y = np.clip(np.round(9 + X @ [2, -1, 1, 0.5, 0] + rng.gamma(2, 1, 3000)), 1, 29)
        for label_range in errors:
            model = booster(LinearSGD(), n=4, loss=loss, label_range=label_range)
            errors[label_range] += ((model.learn_many(X, y) - y)[1000:] ** 2).mean()
    assert errors["auto"] < 1.05 * errors[1, 29]
    assert errors["growing"] < 1.05 * errors[1, 29]


# --------------------------------------------------------------------------------------------
# Extreme labels


def model_and_extreme_label(first=40, label=5000.0):
    """Return a model that has seen labels within 1 of 100, a row, and an extreme label."""
    X, _ = stream(first)
    model = make()
    y = 100 + np.cos(np.arange(first))
    model.learn_many(X, y, np.ones(first))
    return model, X[0], label


def test_an_extreme_label_warns_once():
    with plain():
        model, x, label = model_and_extreme_label()
        X, y = [x] * 4, [100, label, 100, 9e6]
        sentence = (
            r"^row 41: the label 5000 is \d+ half-widths from the centre, so the label range is "
            r"now from -4798 to 5000; .* If the label is a mistake, .*\(low, high\)$"
        )
        with pytest.warns(LabelWarning, match=sentence) as caught:
            model.learn_many(X, y)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        model.learn_one(x, -1e12)  # warned already


def test_the_warning_needs_thirty_labels():
    with plain():
        model, x, label = model_and_extreme_label(30)
        with pytest.warns(LabelWarning, match="row 30"):
            model.learn_one(x, label)


def test_a_warning_turned_into_an_error_leaves_the_model_unchanged():
    with plain():
        model, x, label = model_and_extreme_label()
        before = state(model)
        with pytest.raises(LabelWarning):
            model.learn_many([x, x], [100, label])
        assert state(model) == before
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.learn_many([x, x], [100, label])
        assert model.labels.half > 4000


@pytest.mark.parametrize(
    ("first", "label"), [(29, 5000.0), (40, 110.0), (40, 90.0)], ids=["early", "high", "low"]
)
def test_other_labels_widen_the_range_without_a_warning(first, label):
    with plain():
        model, x, label = model_and_extreme_label(first, label)
        model.learn_one(x, label)
    assert abs(label - model.labels.centre[0]) <= model.labels.half


def test_the_warning_counts_learned_rows_and_needs_a_width():
    X, _ = stream(60)
    with plain():
        model = make()
        weights = np.r_[np.ones(10), np.zeros(40), np.ones(10)]
        model.learn_many(X, np.r_[np.arange(50), np.full(10, 1e6)], weights)
        constant = make()
        constant.learn_many(X, np.r_[np.full(50, 7.0), np.full(10, 1e6)])
    assert not model.labels.warned
    assert not constant.labels.warned


def test_an_extreme_vector_is_named():
    X, y = stream(40, d=2)
    with plain():
        model = make(loss=SquaredEuclidean(2))
        model.learn_many(X, y)
        with pytest.warns(
            LabelWarning, match=r"(?s)row 40: the label \[1.e\+09 0.e\+00\] is .*from \["
        ):
            model.learn_one(X[0], [1e9, 0])


# --------------------------------------------------------------------------------------------
# Errors


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("label", math.nan, r"the label is missing"),
        ("label", -math.inf, r"the label must be finite \(got -inf\)"),
        ("label", -1.1e300, r"the label -1.1e\+300 is too large; the limit is 1e\+300"),
        ("feature", math.inf, "infinite"),
        ("weight", -1.0, r"the weight must be between 0 and .* \(got -1\)"),
    ],
    ids=str,
)
@pytest.mark.parametrize("started", [False, True])
def test_a_bad_row_leaves_the_model_and_the_range_as_they_were(name, value, message, started):
    X, y = stream()
    with plain():
        model = make()
        if started:
            model.learn_many(X[:10], y[:10])
        before = state(model)
        X, y, weights = X.copy(), y.copy(), np.ones(len(y))
        y[5] = 2000  # would widen the range
        {"label": y, "feature": X[:, 2], "weight": weights}[name][20] = value
        with pytest.raises(DataError, match=f"row 20: .*{message}"):
            model.learn_many(X, y, weights)
    assert state(model) == before
    assert model.started is started


@BOTH
@CHANGING
@pytest.mark.parametrize(
    "learner",
    [FiniteClass(), Symmetrised(FiniteClass())],
    ids=["finite", "symmetrised finite"],
)
def test_learners_that_cannot_be_scaled_need_a_range(booster, label_range, learner):
    with pytest.raises(
        ValueError,
        match=f"label_range='{label_range}' .* {type(learner).__name__} .*\\(low, high\\)",
    ):
        booster(learner, feedback="linear", label_range=label_range)


@BOTH
@CHANGING
@pytest.mark.parametrize(
    "loss",
    ["linear", "logistic", "hinge", "modified_least_squares", losses.Softmax(3)],
    ids=str,
)
def test_losses_that_predict_scores_need_a_range(booster, label_range, loss):
    with pytest.raises(
        ValueError, match=f"label_range='{label_range}' .* predicts scores: .*\\(low, high\\)"
    ):
        booster(LinearBall(), loss=loss, label_range=label_range)


@BOTH
@pytest.mark.parametrize("label_range", ["Auto", "", "automatic", "ab"])
def test_other_words_are_not_a_range(booster, label_range):
    with pytest.raises(
        ValueError, match=r"label_range must be .*'growing' or 'growing-zero' \(got"
    ):
        booster(LinearBall(), label_range=label_range)


def test_audits_need_a_fixed_range():
    X, y = stream(5)
    model = SpanBoost(LinearBall(6.0), n=2, feedback="linear", label_range="auto")
    with pytest.raises(ValueError, match=r"learn_scaled.*audit.*\(low, high\)"):
        audit_span(model, X, y, np.zeros(5), 1.0)
    assert not model.started
