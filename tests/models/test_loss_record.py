"""AutoBoost records its losses so far, and those of its experts."""

import numpy as np
import pytest
from forged import changed

from spanboost import AutoBoost, Intervals, ModelFileError, load, save
from spanboost.models.row_losses import losses_of

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (150, 3))
Y = {
    "squared": 40 + 3 * X[:, 0],
    "quantile:0.8": 40 + 3 * X[:, 0],
    "logistic": (X[:, 0] > 0).astype(float),
    "softmax": np.array([0, 1] * 75),
    "poisson": np.floor(2 + X[:, 0]),
}


def model(loss="squared"):
    return AutoBoost(loss, budget="fast")


@pytest.mark.parametrize("loss", Y)
def test_the_average_is_that_of_the_predictions(loss):
    y, auto = Y[loss], model(loss)
    weights = np.arange(150) % 3
    answers = np.concatenate(
        [auto.learn_many(X[k : k + 50], y[k : k + 50], weights[k : k + 50]) for k in (0, 50, 100)]
    )
    losses = losses_of(auto, y, answers)
    assert auto.average_loss.loss == pytest.approx(np.average(losses, weights=weights), rel=1e-9)
    assert auto.average_loss.weight == weights.sum()
    assert auto.losses_.keys() == auto.experts.keys()


def test_experts_have_the_losses_of_the_same_boosters_alone():
    auto, alone = model(), model().experts["trees"]
    auto.learn_many(X, Y["squared"])
    answers = alone.learn_many(X, Y["squared"])
    assert auto.losses_["trees"] == pytest.approx(np.mean(losses_of(alone, Y["squared"], answers)))


@pytest.mark.parametrize(
    ("loss", "past"), [("squared", False), ("squared", True), ("logistic", False)]
)
def test_blocks_and_files_do_not_change_a_bit(loss, past, tmp_path):
    block, blocks, rows = (AutoBoost(loss, budget="fast", past=past) for _ in range(3))
    assert block.average_loss is None
    y = Y[loss]
    block.learn_many(X[:60], y[:60])
    for k in range(0, 60, 7):
        blocks.learn_many(X[k : min(k + 7, 60)], y[k : min(k + 7, 60)])
    for x, label in zip(X[:60], y[:60], strict=True):
        rows.learn_one(x, label)
    save(blocks, tmp_path / "m.sb")
    for same in (blocks, rows, load(tmp_path / "m.sb")):
        assert same.loss_record.sums.tolist() == block.loss_record.sums.tolist()


def test_another_pass_adds_nothing():
    auto = model()
    auto.learn_many(X, Y["squared"])
    before = auto.average_loss
    auto.learn_again(X, Y["squared"])
    assert auto.average_loss == before


def test_files_of_earlier_versions_start_a_record(tmp_path):
    auto = model()
    auto.learn_many(X, Y["squared"])
    save(auto, tmp_path / "m.sb")
    changed(tmp_path / "m.sb", tensors=without_losses)
    old = load(tmp_path / "m.sb")
    assert old.average_loss is None
    old.learn_many(X[:10], Y["squared"][:10])
    assert old.average_loss.weight == 10


def without_losses(arrays):
    return {name: array for name, array in arrays.items() if name != "losses.sums"}


@pytest.mark.parametrize("sums", [np.zeros(3), np.full(7, -1.0), np.full(7, np.nan)])
def test_forged_losses_are_refused(sums, tmp_path):
    auto = model()
    auto.learn_many(X, Y["squared"])
    save(auto, tmp_path / "m.sb")
    assert auto.loss_record.sums.shape == (7,)
    changed(tmp_path / "m.sb", tensors=lambda arrays: arrays | {"losses.sums": sums})
    with pytest.raises(ModelFileError, match="losses of the experts"):
        load(tmp_path / "m.sb")


def test_tables_and_wrapped_models_show_the_losses():
    wrapped = Intervals(model())
    wrapped.learn_many(X, Y["squared"])
    inner = wrapped.model
    assert (wrapped.average_loss, wrapped.losses_) == (inner.average_loss, inner.losses_)
    page = inner._repr_html_()
    assert f"<td>loss so far</td><td>{inner.average_loss}</td>" in page
    assert "<th>loss so far</th>" in page
    assert f"<td>{inner.losses_['trees']:.6g}</td>" in page
