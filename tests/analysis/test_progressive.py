"""Progressive validation: which rows are scored, when, and in which units."""

from contextlib import closing
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanboost import HullBoost, LinearBall, LinearSGD, SpanBoost
from spanboost.analysis.progressive import LossTape, progressive, rows_to_show, running_totals
from spanboost.data.batch import Batch
from spanboost.data.generated import make_drifting_stream
from spanboost.losses import Quantile, Softmax
from spanboost.models.row_losses import losses_of


def batches(X, y, cuts, weights=None):
    whole = Batch(X, y, weights, "memory", np.arange(1, len(y) + 1))
    ends = [0, *sorted(cuts), len(y)]
    return [whole.part(a, b) for a, b in pairwise(ends) if a < b]


def models():
    return {"span": SpanBoost(LinearBall(x_norm=3), n=4), "hull": HullBoost(LinearBall(3), n=4)}


@pytest.mark.parametrize("shape", [(4, 3), (4, 1), (2,), (4, 2, 1), (0, 3)])
def test_gains_that_do_not_fit_the_totals_are_refused(shape):
    with pytest.raises(ValueError, match="do not fit totals of shape"):
        running_totals(np.zeros(2), np.ones(shape))


@given(st.lists(st.integers(1, 99), max_size=4, unique=True))
def test_totals_do_not_depend_on_batches(cuts):
    X, y = make_drifting_stream(100)
    weights = np.random.default_rng(0).uniform(0, 2, 100)
    with closing(LossTape(3)) as tape:
        steps = list(progressive(models(), batches(X, y, cuts, weights), tape))
        halves = tape.average(0, 50)[0], tape.average(50, 100)[0]
    totals = np.concatenate([step.totals for step in steps])
    losses = (models()["span"].learn_many(X, y, weights) - y) ** 2
    np.testing.assert_array_equal(totals[:, 0], np.cumsum(weights))
    np.testing.assert_array_equal(totals[:, 1], np.cumsum(weights * losses))
    assert not np.array_equal(totals[:, 1], totals[:, 2])
    shown = [step.first + row + 1 for step in steps for row in rows_to_show(step)]
    assert shown == [1, 2, 4, 8, 16, 32, 64]
    assert halves[0] == pytest.approx(np.average(losses[:50], weights=weights[:50]))
    assert halves[1] == pytest.approx(np.average(losses[50:], weights=weights[50:]))


def test_models_do_not_change_without_learning():
    X, y = make_drifting_stream(100)
    model = models()["hull"]
    model.learn_many(X, y)
    before = model.predict_many(X)
    with closing(LossTape(2)) as tape:
        for _ in progressive({"model": model}, batches(X, y, [30]), tape, learn=False):
            pass
        assert tape.average(0, 100)[0] == pytest.approx(((before - y) ** 2).mean())
    np.testing.assert_array_equal(model.predict_many(X), before)


def test_a_tape_can_be_resumed(tmp_path):
    path = tmp_path / "losses"
    tape = LossTape(2, path)
    gains = np.random.default_rng(1).random((50, 2))
    whole = tape.extend(gains)
    tape.close()
    again = LossTape(2, path, rows=20)
    np.testing.assert_array_equal(again.last, whole[19])
    np.testing.assert_array_equal(again.extend(gains[20:]), whole[20:])
    np.testing.assert_array_equal(again.sums([0, 7])[0], whole[6])
    again.flush()
    assert path.stat().st_size == 50 * 16
    again.close()


@pytest.mark.parametrize("wild", [1e18, 1e300])
def test_a_huge_loss_does_not_change_the_averages_of_other_rows(wild):
    losses = np.random.default_rng(2).uniform(1, 2, 40_000)
    gains = np.column_stack([np.ones(40_000), losses])
    gains[15_000, 1] = wild
    with closing(LossTape(2)) as tape:
        tape.extend(gains)
        assert tape.average(20_000, 40_000)[0] == pytest.approx(losses[20_000:].mean(), rel=1e-13)
        assert tape.average(15_001, 15_002)[0] == losses[15_001]
        assert tape.average(0, 40_000)[0] == pytest.approx(wild / 40_000)


def test_an_infinite_loss_of_weight_0_does_not_count():
    with np.errstate(over="ignore"):
        [step] = progressive_steps([1.0, 1e300, 1.0], [1.0, 0.0, 1.0])
    assert step.losses[1, 0] == np.inf
    assert np.isfinite(step.totals).all()


def progressive_steps(y, weights):
    X = np.zeros((len(y), 1))
    model = SpanBoost(LinearSGD(), n=1, label_range="auto")
    with closing(LossTape(2)) as tape:
        parts = batches(X, np.array(y), [], np.array(weights))
        return list(progressive({"one": model}, parts, tape))


def test_the_average_of_no_rows_is_nan():
    with closing(LossTape(2)) as tape:
        assert np.isnan(tape.average(0, 0)).all()


@pytest.mark.parametrize(
    ("loss", "label", "answer", "value"),
    [
        ("squared", 500_000.0, 499_990.0, 100.0),
        ("absolute", 5.0, 2.0, 3.0),
        (Quantile(0.9), 5.0, 2.0, 2.7),
        ("hinge", -1.0, 0.25, 1.25),
        ("logistic", 1.0, 0.0, np.log(2)),
        (Softmax(3), 2.0, [0.0, 0.0, 0.0], np.log(3)),
    ],
)
def test_losses_are_in_the_units_of_the_labels(loss, label, answer, value):
    scores = loss in ("hinge", "logistic") or isinstance(loss, Softmax)
    model = HullBoost(LinearSGD(), loss=loss, label_range=(-1, 1) if scores else (0, 1e6))
    losses = losses_of(model, np.array([label, label]), np.array([answer, answer]))
    np.testing.assert_allclose(losses, [value, value])
