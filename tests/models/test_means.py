"""Models of counts and positive numbers: Poisson, Gamma and Tweedie loss."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mean_tweedie_deviance

from spanboost import (
    AutoBoost,
    DataError,
    HullBoost,
    LinearBall,
    LinearSGD,
    SpanBoost,
    Trees,
    explain,
    load,
    save,
)
from spanboost.learners.ridge import Ridge
from spanboost.losses import resolve
from spanboost.theory.choice import audit_choice
from spanboost.theory.measured_pass import audit as measured_audit
from spanboost.theory.regret import audit_span

LOSSES = ("poisson", "gamma", "tweedie:1.5")
pytestmark = pytest.mark.filterwarnings("ignore::spanboost.LabelWarning")


def stream(loss, rows=2000, scale=3.0, seed=0):
    """Return rows, labels and their true means, exp of a linear function."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 3))
    means = scale * np.exp(X @ [1.0, -0.5, 0.0])
    if loss == "poisson":
        return X, rng.poisson(means).astype(float), means
    y = rng.gamma(2, means / 2)
    return X, np.where(rng.random(rows) < 0.2, 0, y) if loss != "gamma" else y, means


def linear(loss, **parameters):
    return HullBoost(
        LinearSGD(), n=1, **{"loss": loss, "D": 6.0, "label_range": "auto"} | parameters
    )


def ridge(loss, **parameters):
    return HullBoost(Ridge(), n=1, **{"loss": loss, "D": 6.0, "label_range": "auto"} | parameters)


def deviance(loss, y, predictions):
    return mean_tweedie_deviance(y, predictions, power=resolve(loss).power)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("new", [linear, ridge])
def test_the_mean_is_learned(new, loss):
    X, y, means = stream(loss, 6000)
    if loss == "tweedie:1.5":
        means = 0.8 * means  # a fifth of the labels is 0
    predictions = new(loss).learn_many(X, y)
    assert (predictions > 0).all()
    late = slice(3000, None)
    found, best = (deviance(loss, y[late], one[late]) for one in (predictions, means))
    constant = deviance(loss, y[late], np.full(3000, y[late].mean()))
    assert found - best < 0.06 * (constant - best)


@pytest.mark.parametrize("loss", LOSSES)
def test_predictions_are_in_the_units_of_the_labels(loss):
    X, y, _ = stream(loss, 500)
    plain = linear(loss).learn_many(X, y)
    for unit in (2.0**-40, 2.0**40):
        scaled = linear(loss).learn_many(X, unit * y)
        np.testing.assert_allclose(scaled[1:], unit * plain[1:], rtol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("label_range", ["auto", "growing", (0, 200)])
def test_blocks_of_any_size_give_the_same_bits(loss, label_range):
    X, y, _ = stream(loss, 700)
    y[300:310] = 150.0
    whole = linear(loss, label_range=label_range, replay=1)
    parts = linear(loss, label_range=label_range, replay=1)
    single = linear(loss, label_range=label_range, replay=1)
    expected = whole.learn_many(X, y)
    ends = [0, 1, 3, 50, 64, 65, 300, 301, 700]
    found = [parts.learn_many(X[a:b], y[a:b]) for a, b in pairwise(ends)]
    np.testing.assert_array_equal(np.concatenate(found), expected)
    one_by_one = [single.learn_one(X[t], float(y[t])) for t in range(700)]
    np.testing.assert_array_equal(one_by_one, expected)
    np.testing.assert_array_equal(single.predict_one(X[0]), whole.predict_many(X[:1])[0])


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_autoboost_gives_the_same_bits_in_blocks_and_after_a_restart(loss, tmp_path):
    X, y, _ = stream(loss, 1500)
    whole, parts = AutoBoost(loss, budget="fast"), AutoBoost(loss, budget="fast")
    expected = whole.learn_many(X, y)
    first = [parts.learn_many(X[:700], y[:700])]
    first += [[parts.learn_one(X[t], float(y[t]))] for t in range(700, 720)]
    save(parts, tmp_path / "model")
    rest = load(tmp_path / "model").learn_many(X[720:], y[720:])
    np.testing.assert_array_equal(np.concatenate([*first, rest]), expected)
    assert (expected > 0).all()
    whole_deviance = deviance(loss, y[750:], expected[750:])
    assert whole_deviance < deviance(loss, y[750:], np.full(750, y[750:].mean()))


@pytest.mark.parametrize("loss", LOSSES)
def test_files_keep_the_first_labels(loss, tmp_path):
    X, y, _ = stream(loss, 200)
    whole, parts = linear(loss), linear(loss)
    expected = whole.learn_many(X, y)
    parts.learn_many(X[:20], y[:20])
    save(parts, tmp_path / "model")
    np.testing.assert_array_equal(
        load(tmp_path / "model").learn_many(X[20:], y[20:]), expected[20:]
    )


@pytest.mark.parametrize("at", [0, 3, 900])
@pytest.mark.parametrize("size", [1e4, 1e9, 1e300])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("new", [linear, ridge])
def test_a_wild_label_does_no_lasting_harm(new, loss, size, at):
    X, y, _ = stream(loss, 6000)
    clean = new(loss).learn_many(X, y)
    wild = y.copy()
    wild[at] = size
    predictions = new(loss).learn_many(X, wild)
    late = slice(3000, None)
    found, best = (deviance(loss, y[late], one[late]) for one in (predictions, clean))
    assert found < 1.02 * best


def test_labels_in_new_units_are_followed():
    X, y, _ = stream("gamma", 4000)
    y[2000:] *= 1e5
    predictions = linear("gamma").learn_many(X, y)
    assert deviance("gamma", y[2200:], predictions[2200:]) < 0.8


def test_zeros_before_the_first_positive_label():
    X, y, _ = stream("poisson", 3000)
    y = np.concatenate([np.zeros(200), 1e6 * y])[:3000]
    predictions = linear("poisson").learn_many(X, y)
    assert (predictions > 0).all()
    assert 1e5 < predictions[2000:].mean() < 1e7


@pytest.mark.parametrize("label_range", ["auto", "growing", (0, 50)])
@pytest.mark.parametrize(
    ("loss", "label"), [("poisson", -1.0), ("gamma", 0.0), ("tweedie:1.5", -2.0)]
)
def test_labels_outside_the_domain_are_refused_and_change_nothing(loss, label, label_range):
    X, y, _ = stream(loss, 100)
    model = linear(loss, label_range=label_range)
    model.learn_many(X, y)
    before = model.predict_many(X)
    bad = y.copy()
    bad[7] = label
    with pytest.raises(
        DataError, match=r"row 7: \w+ loss needs labels (of at least|above) 0 \(got"
    ):
        model.learn_many(X, bad)
    with pytest.raises(DataError, match="0"):
        model.learn_one(X[0], label)
    np.testing.assert_array_equal(model.predict_many(X), before)


def test_a_fixed_range_refuses_labels_outside():
    model = linear("poisson", label_range=(0, 10))
    with pytest.raises(DataError, match=r"the label 11 is outside label_range=\(0, 10\)"):
        model.learn_many([[1.0]], [11.0])
    with pytest.raises(ValueError, match="must not contain negative numbers for Poisson"):
        linear("poisson", label_range=(-1, 10))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    st.lists(st.floats(0, 1e300), min_size=1, max_size=200), st.sampled_from(["auto", "growing"])
)
def test_any_labels_leave_finite_positive_predictions(labels, label_range):
    model = linear("tweedie:1.5", label_range=label_range)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predictions = model.learn_many(np.ones((len(labels), 1)), labels)
    assert np.isfinite(predictions).all()
    assert (predictions > 0).all()


def test_n_and_eta_can_be_chosen_online():
    X, y, _ = stream("poisson", 1500)
    model = SpanBoost(LinearSGD(), n="auto", eta="auto", loss="poisson", D=6.0, label_range="auto")
    predictions = model.learn_many(X, y)
    assert deviance("poisson", y[700:], predictions[700:]) < 1.4


def test_explanations_add_up_to_the_logarithm():
    X, y, _ = stream("poisson", 1000)
    model = SpanBoost(LinearSGD(), n=4, loss="poisson", D=3.0, B=6.0, label_range="auto")
    model.learn_many(X, y)
    found = explain(model, X[0])
    assert found.prediction == pytest.approx(np.log(model.predict_one(X[0])))
    total = found.base + sum(found.contributions.values())
    assert total == pytest.approx(found.prediction, abs=1e-5)


# -- Theorems --------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_the_audit_covers_a_fixed_range_with_linear_feedback(loss):
    X, y, _ = stream(loss, 300)
    y = np.clip(y, 1e-3, 20)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    model = SpanBoost(LinearBall(), n=10, loss=loss, feedback="linear", label_range=(0, 20), D=1.0)
    f = X @ [0.6, -0.3, 0.0]
    found = audit_span(model, X, y, f, f_norm=1.0)
    assert found.regret <= found.bound.total


def test_audits_refuse_what_no_theorem_covers():
    X, y, _ = stream("poisson", 50)
    greedy = SpanBoost(LinearBall(x_norm=2.0), n=10, loss="poisson", label_range=(0, 100))
    with pytest.raises(ValueError, match="no theorem covers greedy feedback for losses with a log"):
        audit_span(greedy, X, y, np.zeros(50), f_norm=1.0)
    following = SpanBoost(
        LinearBall(x_norm=2.0), n=10, loss="poisson", feedback="linear", label_range="auto"
    )
    with pytest.raises(ValueError, match="fixed label range"):
        audit_span(following, X, y, np.zeros(50), f_norm=1.0)
    fixed = linear("poisson", label_range=(0, 100))
    with pytest.raises(ValueError, match="not computed for losses with a log link"):
        measured_audit(fixed, X, y, np.zeros(50))
    choosing = SpanBoost(LinearSGD(), n="auto", loss="poisson", label_range=(0, 100))
    with pytest.raises(ValueError, match="not computed for losses with a log link"):
        audit_choice(choosing, X, y)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_trees_learn_the_mean(loss):
    X, y, means = stream(loss, 4000)
    model = SpanBoost(Trees(), n=50, eta=0.1, loss=loss, D=3.0, B=6.0, label_range="auto")
    predictions, late = model.learn_many(X, y), slice(2000, None)
    means = 0.8 * means if loss == "tweedie:1.5" else means  # a fifth of the labels is 0
    found, best = (deviance(loss, y[late], one[late]) for one in (predictions, means))
    constant = deviance(loss, y[late], np.full(2000, y[late].mean()))
    assert found - best < 0.25 * (constant - best)


@pytest.mark.slow
def test_predictions_of_autoboost_stay_in_a_fixed_range():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1500, 2))
    shares = np.clip(0.5 + 0.6 * X[:, 0] + rng.normal(0, 0.05, 1500), 0, 1)
    shares[:700] = shares[:700].clip(0.3, 0.7)  # later labels leave the range so far
    predictions = AutoBoost(budget="fast", label_range=(0, 1)).learn_many(X, shares)
    assert predictions.min() >= 0
    assert predictions.max() <= 1
    assert np.corrcoef(predictions[1000:], shares[1000:])[0, 1] > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("at", [3, 900])
def test_a_wild_count_does_no_lasting_harm_to_autoboost(at):
    X, y, _ = stream("poisson", 4000)
    clean = AutoBoost("poisson", budget="fast").learn_many(X, y)
    wild = y.copy()
    wild[at] = 1e9
    predictions = AutoBoost("poisson", budget="fast").learn_many(X, wild)
    late = slice(2000, None)
    found, best = (deviance("poisson", y[late], one[late]) for one in (predictions, clean))
    assert found < 1.03 * best


def skewed(kind, rows=6000):
    """Return ordinary rows and skewed labels, none of which is a mistake."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 4))
    means = np.exp(1 + 0.8 * X[:, 0] - 0.5 * X[:, 1] * (X[:, 2] > 0))
    if kind == "poisson":
        return X, rng.poisson(means).astype(float)
    if kind == "gamma":
        return X, means * rng.lognormal(-0.72, 1.2, rows)
    return X, np.where(rng.random(rows) < 0.95, 0, rng.gamma(1, 1000 * means))


@pytest.mark.parametrize("loss", LOSSES)
def test_skewed_labels_are_learned_as_they_are(loss):
    X, y = skewed(loss.partition(":")[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = linear(loss)
        model.learn_many(X, y)
    assert model.health.labels.clipped == 0
    absurd = model.labels.plan(np.full(1, 1e9), np.ones(1))
    assert absurd.learned.item() <= y.max()


def plain_limit(labels):
    """Return the largest label that is not wild after these labels, whose number is 64 k <= 1024.

    The recent range and the mean are those of all of them.
    """
    low, high, mean = min(labels), max(labels), float(np.mean(labels))
    ratio = (high + mean) / (low + mean)
    return max((high + mean) * min(ratio, 32) - mean, 2 * high - low)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([64, 128, 1024]),
    st.floats(0, 3),
    st.floats(0, 0.99),
    st.integers(-200, 200),
)
@settings(max_examples=60, deadline=None)
def test_wild_labels_are_those_far_above_on_a_logarithmic_scale(seed, rows, skew, zeros, size):
    rng = np.random.default_rng(seed)
    y = rng.lognormal(0, skew, rows) * 10.0**size
    y[rng.random(rows) < zeros] = 0
    if np.ptp(y) == 0:
        return
    model = linear("tweedie:1.5")
    model.learn_many(np.zeros((rows, 1)), y)
    if model.health.labels.new_units or model.health.labels.clipped:
        return  # the recent range is not that of all labels
    limit = plain_limit(y.tolist())
    for factor, learned in ((1 - 1e-9, limit), (1 + 1e-9, y.max())):
        plan = model.labels.plan(np.array([limit * factor]), np.ones(1))
        assert plan.learned.item() == pytest.approx(learned, rel=1e-8)
