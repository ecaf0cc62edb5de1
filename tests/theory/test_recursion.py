"""The measured recursion against a plain transcription, and bounds on adversarial streams."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loss_streams import KINKED, SMOOTH, no_more, rows, streams
from naive_recursion import naive_bound
from stages import Scripted, loss_values, run_rounds

from spanboost import HullBoost, LinearBall, LinearSGD, SpanBoost, Stumps
from spanboost.losses import Linear, Softmax, SquaredEuclidean, on_vectors
from spanboost.models.committee import Committee
from spanboost.theory.measured_pass import audit
from spanboost.theory.recursion import Recursion
from spanboost.theory.regret import audit_hull, audit_span, best_linear, linear_norm

TERMS = ("initial", "copies", "sigma", "curvature", "projection")


def measured(booster, X, labels, weights, f, W):
    """Return the regret and the measured bound of a pass, in the model's units."""
    recursion = Recursion(booster, model_units=True)
    answers, known, weights = booster.learn_scaled(X, labels, weights)
    slopes, again = recursion.add()
    np.testing.assert_allclose(again, answers, rtol=1e-15)
    loss = on_vectors(booster.loss_)
    of_f = weights @ loss_values(loss, known, f)
    along = np.einsum("tdn,td->n", slopes, f)
    regret = weights @ loss_values(loss, known, answers) - of_f
    return regret, recursion.bound(along, of_f, W)


@st.composite
def passes(draw, losses=(*SMOOTH, *KINKED)):
    """A function that makes a booster of either algorithm, and a stream for it."""
    loss, D, N, predictions, f, labels, weights = draw(streams(list(losses)))
    kinked = type(loss) in map(type, KINKED)
    options = {"n": N, "D": D, "loss": loss, "scale": draw(st.sampled_from([0.5, 1.0, 2.0]))}
    options["feedback"] = draw(st.sampled_from(["linear", "greedy"]))
    if draw(st.booleans()):
        options["eta"] = draw(st.floats(1 / N, 1))
        # a small ball, so that projection is at work
        if options["feedback"] == "greedy" and draw(st.booleans()):
            options["B"] = D * options["scale"]
        kind, W = SpanBoost, draw(st.floats(1, 5))
    else:
        kind, W = HullBoost, 1.0
    at_final = kinked and options["feedback"] == "linear"
    stream = rows(predictions), labels, weights, W * options["scale"] * f, W
    return (lambda: kind(Scripted(), **options)), stream, at_final


@given(passes())
def test_every_term_is_that_of_the_proof(case):
    """Every stage of every term, and the room that the bound leaves: the gap of convexity."""
    make, (X, labels, weights, f, W), at_final = case
    regret, bound = measured(make(), X, labels, weights, f, W)
    booster = make()
    r = run_rounds(booster, X, labels, weights)
    terms, total, gap = naive_bound(booster, r, f, W, at_final=at_final)
    for name in TERMS:
        expected = terms[name]
        np.testing.assert_allclose(getattr(bound, name), expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(bound.stages, sum(terms[name] for name in TERMS[1:]), atol=1e-8)
    assert bound.total == pytest.approx(total, rel=1e-8, abs=1e-8)
    assert no_more(regret, bound.total)
    assert gap >= -1e-9
    if not at_final:
        assert bound.total - regret == pytest.approx(gap, rel=1e-6, abs=1e-8)


@given(passes([Linear()]))
def test_linear_losses_have_no_slack(case):
    make, (X, labels, weights, f, W), _ = case
    regret, bound = measured(make(), X, labels, weights, f, W)
    assert bound.total == pytest.approx(regret, rel=1e-9, abs=1e-9)


@given(passes())
def test_a_large_norm_leaves_no_slack(case):
    """If W grows, f / W vanishes, and with it the only inequality: a checksum of the sums."""
    make, (X, labels, weights, f, _), at_final = case
    regret, bound = measured(make(), X, labels, weights, f, 1e9)
    if not at_final:
        assert bound.total == pytest.approx(regret, rel=1e-6, abs=1e-6)


def test_a_norm_below_the_step_is_refused():
    recursion = Recursion(HullBoost(LinearBall(), n=2))
    with pytest.raises(ValueError, match="at least the step 1"):
        recursion.bound(np.zeros(2), 0.0, 0.5)


# --------------------------------------------------------------------------------------------
# Audits of whole models, in the units of the labels


def wild(rows=400, seed=0):
    """Rows whose labels change their size and centre, with a few absurd ones."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 3))
    y = X @ [3.0, -2.0, 1.0] + rng.standard_normal(rows)
    y[rows // 2 :] = 1e4 + 500 * y[rows // 2 :]
    y[rows // 3] = 1e7
    return X, y


@pytest.mark.parametrize("kind", [SpanBoost, HullBoost])
@pytest.mark.parametrize("W", [1.0, 3.0])
def test_a_bound_does_not_depend_on_the_units(kind, W):
    """Labels 10 y + 100 in a range of 90 to 110: every term is that of y, times 100."""
    rng = np.random.default_rng(2)
    X, y, f = rng.uniform(-1, 1, (60, 3)), rng.uniform(-1, 1, 60), rng.uniform(-2, 2, 60)
    one = audit(kind(LinearSGD(), n=4), X, y, f, W)
    other = audit(kind(LinearSGD(), n=4, label_range=(90, 110)), X, 10 * y + 100, 10 * f + 100, W)
    assert other.regret == pytest.approx(100 * one.regret)
    for name in TERMS:
        expected = 100 * getattr(one.bound.recursion, name)
        np.testing.assert_allclose(getattr(other.bound.recursion, name), expected, atol=1e-6)


@pytest.mark.parametrize("label_range", ["auto", "auto-zero", "growing", (-1e4, 2e7)])
@pytest.mark.parametrize("kind", [SpanBoost, HullBoost])
@pytest.mark.parametrize("learner", [LinearSGD(), LinearSGD(dtype=np.float32), Stumps()], ids=str)
@pytest.mark.filterwarnings("ignore::spanboost.errors.LabelWarning")
def test_changes_of_units_are_measured(label_range, kind, learner):
    X, y = wild()
    weights = np.random.default_rng(1).uniform(0, 3, len(y))
    weights[::17] = 0
    f = X @ [1.0, 2.0, 3.0] + 10

    def run(f_norm):
        booster = kind(learner, n=4, label_range=label_range)
        return audit(booster, X, y, f, f_norm, weights)

    one = run(1.0)
    assert one.regret == pytest.approx(
        weights @ (answers_of(kind, learner, label_range, X, y, weights) - y) ** 2
        - weights @ (f - y) ** 2
    )
    size = abs(one.loss) + abs(one.comparator)
    assert one.slack >= -1e-9 * size
    assert abs(run(1e12).slack) <= 1e-6 * size


def answers_of(kind, learner, label_range, X, y, weights):
    return kind(learner, n=4, label_range=label_range).learn_many(X, y, weights)


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([LinearSGD(), Stumps()]))
def test_replayed_rows_do_not_count(seed, replay, learner):
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(-1, 1, (80, 2)), rng.uniform(-1, 1, 80)
    f = rng.uniform(-1, 1, 80)

    def booster():
        return SpanBoost(learner, n=3, replay=replay, memory=20)

    answers = booster().learn_many(X, y)
    one = audit(booster(), X, y, f)
    assert one.loss == pytest.approx(((answers - y) ** 2).sum())
    assert one.slack >= -1e-9
    assert audit(booster(), X, y, f, 1e9).slack == pytest.approx(0, abs=1e-5)


@pytest.mark.filterwarnings("ignore::spanboost.errors.LabelWarning")
def test_a_measured_booster_predicts_the_same():
    X, y = wild()
    plain, watched = (SpanBoost(LinearSGD(), n=4, label_range="auto") for _ in range(2))
    recursion = Recursion(watched)
    predictions = watched.learn_many(X, y)
    np.testing.assert_array_equal(plain.learn_many(X, y), predictions)
    assert recursion.recorded == len(y)
    # a row that changes the label range is predicted twice, and the first prediction counts
    np.testing.assert_array_equal(recursion.add(y[:, None])[1][:, 0], predictions)
    assert plain.learn_one(X[0], y[0]) == watched.learn_one(X[0], y[0])
    assert recursion.recorded == 1  # only the block that was learned last
    recursion.close()
    watched.learn_many(X, y)
    assert recursion.recorded == 0


def test_audits_of_the_theorems_measure_too():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (300, 3))
    y = np.clip(X @ [1.5, -0.8, 0.3], -1, 1)
    W = best_linear(X, y)
    booster = SpanBoost(LinearBall(), n=16, feedback="linear", scale=1.5)
    one = audit_span(booster, X, y, X @ W.T, linear_norm(W, 1, 1))
    assert one.measured.f_norm == max(1, linear_norm(W, 1, 1) / 1.5)
    assert one.regret <= one.measured.total < one.bound.total / 20
    values = rng.uniform(-1, 1, (300, 4))
    hull = audit_hull(HullBoost(LinearBall(), n=8, feedback="linear"), X, y, values)
    assert hull.regret <= hull.measured.total + 1e-6
    assert hull.measured.f_norm == 1


@pytest.mark.parametrize("loss", ["squared", "absolute", "logistic"])
def test_a_model_of_several_boosters_is_measured_through_one_of_them(loss):
    rng = np.random.default_rng(0)
    X, f = rng.uniform(-1, 1, (150, 2)), rng.uniform(-1, 1, 150)
    y = np.sign(X[:, 0] + 0.3 * rng.standard_normal(150))

    def members():
        return [SpanBoost(LinearSGD(rate=rate), n=3, loss=loss) for rate in (0.1, 2.0)]

    one = audit(Committee(members()), X, y, f)
    alone = [audit(member, X, y, f) for member in members()]
    each = [member.learn_many(X, y) for member in members()]
    mean = np.mean(each, axis=0)
    slope = {
        "squared": 2 * (mean - y),
        "absolute": np.sign(mean - y),
        "logistic": -y / (1 + np.exp(y * mean)),
    }[loss]
    totals = [
        part.bound.total + slope @ (mean - answers)
        for part, answers in zip(alone, each, strict=True)
    ]
    assert one.bound.total == pytest.approx(min(totals))
    assert one.bound.part == str(int(np.argmin(totals)))
    assert one.bound.terms["aggregation"] == one.bound.aggregation
    assert one.slack >= 0


def test_audits_refuse_what_they_cannot_measure():
    X, y = np.zeros((4, 1)), np.zeros(4)
    with pytest.raises(ValueError, match="finite number of at least 1"):
        audit(SpanBoost(LinearSGD(), n=2), X, y, y, 0.5)


@pytest.mark.parametrize(
    ("loss", "label_range"),
    [(Softmax(3), (-1, 1)), (SquaredEuclidean(3), (-2, 2)), (SquaredEuclidean(3), "auto")],
)
def test_vectors_are_measured_in_blocks(loss, label_range):
    """More rows than a block; as W grows, the bound tends to the regret."""
    rng = np.random.default_rng(0)
    X, f = rng.uniform(-1, 1, (1100, 2)), rng.uniform(-1, 1, (1100, 3))
    y = rng.integers(0, 3, 1100) if isinstance(loss, Softmax) else rng.uniform(-1, 1, (1100, 3))

    def run(W):
        booster = SpanBoost(LinearSGD(), n=3, loss=loss, label_range=label_range)
        one = audit(booster, X, list(y), f, W)
        assert booster.core.records is None
        return one

    assert run(1.0).slack > 0
    assert run(1e9).slack == pytest.approx(0, abs=1e-3)
