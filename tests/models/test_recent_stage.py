"""The stage of AutoBoost that reads recent rows: drift, files, blocks, and no leaks."""

from itertools import pairwise

import numpy as np
import pytest
from small_experts import set_small_experts

from spanboost import (
    AutoBoost,
    Calibrated,
    ExpertTeam,
    Intervals,
    ModelFileError,
    PredictionSets,
    Rows,
    load,
    save,
)
from spanboost.models import auto
from spanboost.models.compact import compact_model

LOSSES = ("squared", "absolute", "logistic", "softmax")


@pytest.fixture(autouse=True)
def small_experts(monkeypatch):
    set_small_experts(monkeypatch)


def stream(rows, seed=0, speed=0.0):
    """Return points near centres that move, the numbers of their classes, and the labels."""
    rng = np.random.default_rng(seed)
    centres, direction = rng.uniform(-1, 1, (12, 3)), rng.normal(size=(12, 3))
    which = rng.integers(0, 12, rows)
    moved = centres[which] + speed * np.arange(rows)[:, None] * direction[which]
    X = (np.sin(moved) + 0.05 * rng.normal(size=(rows, 3))).astype(np.float32)
    return X, which % 3


def labels_for(loss, classes):
    if loss == "softmax":
        return classes
    return np.where(classes == 0, 1.0, -1.0) if loss == "logistic" else 100.0 + 10 * classes


def read(model, path):
    save(model, path)
    return path.read_bytes()


@pytest.mark.filterwarnings("ignore::spanboost.LabelWarning")
@pytest.mark.parametrize(
    ("kind", "loss"),
    [("dense", loss) for loss in LOSSES] + [("names", "softmax"), ("codes", "squared")],
)
def test_blocks_threads_and_files_do_not_matter(kind, loss, tmp_path, monkeypatch):
    X, classes = stream(400)
    classes[:150] = np.minimum(classes[:150], 1)  # the third class appears late
    y = labels_for(loss, classes)
    if loss == "squared":
        y[200:] += 400  # changes the label range
    weights = np.where(np.arange(400) % 7 == 3, 0.0, 1.0)
    codes = np.random.default_rng(1).integers(-1, 5, (400, 2))
    rows = {
        "dense": lambda a, b: X[a:b],
        "names": lambda a, b: [
            {f"x{j}": float(v) for j, v in enumerate(x) if v > 0} for x in X[a:b]
        ],
        "codes": lambda a, b: Rows(X[a:b], codes[a:b]),
    }[kind]
    whole = AutoBoost(loss=loss, seed=3)
    expected = whole.learn_many(rows(0, 400), y, weights)
    for threads, edges in ((1, (0, 3, 150, 151, 400)), (2, (0, 200, 201, 400))):
        monkeypatch.setattr(auto, "cpu_count", lambda n=threads: n)
        model, start = AutoBoost(loss=loss, seed=3), 0
        for a, b in pairwise(edges):
            answers = model.learn_many(rows(a, b), y[a:b], weights[a:b])
            known = expected[a:b, : answers.shape[1]] if answers.ndim > 1 else expected[a:b]
            np.testing.assert_array_equal(answers, known)
            save(model, tmp_path / "part.sb")
            model = load(tmp_path / "part.sb")
            start = b
        assert start == 400
        assert read(model, tmp_path / "part.sb") == read(whole, tmp_path / "whole.sb")


@pytest.mark.parametrize("loss", LOSSES)
def test_single_rows_are_blocks_of_one(loss):
    X, classes = stream(120)
    classes[:3] = (0, 1, 2)
    y = labels_for(loss, classes)
    whole, single = AutoBoost(loss=loss), AutoBoost(loss=loss)
    expected = whole.learn_many(X, y)
    for t, (x, label, answer) in enumerate(zip(X, y, expected, strict=True)):
        predicted = single.predict_one(x)
        np.testing.assert_array_equal(predicted, single.predict_many([x])[0])
        learned = single.learn_one(x, label)
        if t > 3:  # all classes are known
            np.testing.assert_array_equal(learned, predicted)
            np.testing.assert_array_equal(learned, answer)


@pytest.mark.parametrize("loss", ["logistic", "softmax", "squared"])
def test_recent_rows_follow_centres_that_move(loss):
    X, classes = stream(3000, speed=0.002)
    y = labels_for(loss, classes)
    following = AutoBoost(loss=loss)
    plain = AutoBoost(loss=loss, recent=False)
    answers, before = following.learn_many(X, y), plain.learn_many(X, y)
    if loss == "squared":
        errors = [np.mean((one - y) ** 2) for one in (answers, before)]
    elif loss == "logistic":
        errors = [np.mean((one > 0) != (y > 0)) for one in (answers, before)]
    else:
        errors = [np.mean(one.argmax(axis=1) != y) for one in (answers, before)]
    assert errors[0] < 0.6 * errors[1]


@pytest.mark.parametrize("loss", ["squared", "logistic", "softmax"])
def test_labels_that_nothing_predicts_give_no_gain_and_no_loss(loss):
    rng = np.random.default_rng(0)
    X, classes = rng.normal(size=(3000, 3)), rng.integers(0, 3, 3000)
    y = labels_for(loss, classes)

    def mean_loss(model):
        answers = model.learn_many(X, y)[1500:]
        if loss == "squared":
            return np.mean((answers - y[1500:]) ** 2)
        if loss == "logistic":
            return np.log1p(np.exp(-y[1500:] * answers)).mean()
        top = np.log(np.exp(answers).sum(axis=1))
        return (top - answers[np.arange(1500), y[1500:]]).mean()

    assert mean_loss(AutoBoost(loss=loss)) < 1.01 * mean_loss(AutoBoost(loss=loss, recent=False))


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_recent_rows_and_past_labels_do_not_need_each_other(loss):
    X, classes = stream(300)
    y = labels_for(loss, classes)
    model, alone = AutoBoost(loss=loss), AutoBoost(loss=loss, past=False)
    expected = [one.learn_many(X, y) for one in (model, alone)]
    assert (expected[0] != expected[1]).any()
    assert [*model.stages] == ["recent", "past"]
    assert [*AutoBoost(loss=loss, recent=False).stages] == ["past"]
    np.testing.assert_array_equal(model.without_past().predict_many(X), alone.predict_many(X))
    assert model.without_past().recent_stage is model.recent_stage
    assert alone.without_past() is alone
    plain = AutoBoost(loss=loss, past=False, recent=False)
    plain.learn_many(X, y)
    for one in (model, alone):
        np.testing.assert_array_equal(
            one.without_corrections().predict_many(X), plain.predict_many(X)
        )


@pytest.mark.parametrize("loss", ["squared", "logistic", "softmax"])
def test_another_pass_changes_no_recent_row(loss):
    X, classes = stream(200)
    y = labels_for(loss, classes)
    model = AutoBoost(loss=loss)
    model.learn_many(X, y)
    before = [(name, value.copy()) for name, value in model.recent_stage.tensors()]
    model.learn_again(X[::-1], y[::-1])
    for (name, value), (_, old) in zip(model.recent_stage.tensors(), before, strict=True):
        np.testing.assert_array_equal(value, old, err_msg=name)


@pytest.mark.parametrize("wrapper", [Intervals, Calibrated, PredictionSets])
def test_wrappers_predict_with_recent_rows(wrapper):
    X, classes = stream(200)
    loss = "squared" if wrapper is Intervals else "softmax"
    model = wrapper(AutoBoost(loss=loss))
    model.learn_many(X, labels_for(loss, classes))
    inner = model.without_past().model
    assert inner.recent_stage is model.model.recent_stage
    plain = model.without_corrections()
    assert plain.model.recent_stage is None
    assert plain.without_corrections() is plain
    assert (plain.predict_many(X) != model.predict_many(X)).any()


def test_a_loss_without_recent_rows_refuses_them():
    with pytest.raises(ValueError, match="recent needs squared, absolute, Huber"):
        AutoBoost(loss="poisson", recent=True)
    with pytest.raises(ValueError, match="recent must be None, True or False"):
        AutoBoost(recent="yes")


@pytest.mark.parametrize("loss", ["squared", "softmax"])
def test_a_team_gives_the_same_bits(loss, tmp_path):
    X, classes = stream(300)
    if loss == "softmax":
        from spanboost.losses import Softmax

        loss = Softmax(3)
    y = classes if not isinstance(loss, str) else labels_for(loss, classes)
    alone, team = AutoBoost(loss=loss), ExpertTeam(AutoBoost(loss=loss), workers=2)
    np.testing.assert_array_equal(team.learn_many(X, y), alone.learn_many(X, y))
    np.testing.assert_array_equal(team.predict_many(X[:9]), alone.predict_many(X[:9]))
    assert read(team.model(), tmp_path / "team.sb") == read(alone, tmp_path / "alone.sb")


def test_compact_models_hold_no_recent_rows():
    X, classes = stream(300)
    model = AutoBoost(loss="softmax")
    model.learn_many(X, classes)
    plain = model.without_corrections()
    assert plain.recent_stage is None
    with pytest.warns(UserWarning, match="recent rows and past labels are not exported"):
        small = compact_model(model)
    np.testing.assert_array_equal(small.predict_many(X), plain.predict_many(X))
    assert not any(name.startswith("recent.") for name, _ in small.tensors())
    assert AutoBoost(budget="fast").recent_stage is None
    assert AutoBoost(budget="fast", recent=True).recent_stage is not None
    assert AutoBoost(loss="poisson").recent_stage is None


@pytest.mark.parametrize("loss", ["squared", "softmax"])
def test_a_file_of_an_earlier_version_continues_without_recent_rows(loss):
    X, classes = stream(300)
    y = labels_for(loss, classes)
    old = AutoBoost(loss=loss)
    old.recent_stage = None
    old.learn_many(X[:200], y[:200])
    again = AutoBoost.restore(old.header(), {name: one.copy() for name, one in old.tensors()})
    assert again.recent_stage is None
    assert again.past == old.past
    np.testing.assert_array_equal(
        again.learn_many(X[200:], y[200:]), old.learn_many(X[200:], y[200:])
    )


def test_a_file_of_the_fast_budget_keeps_the_recent_rows_that_it_has():
    """Versions before gave the fast budget recent rows together with past labels."""
    X, classes = stream(300)
    y = labels_for("squared", classes)
    old = AutoBoost(budget="fast", past=True, recent=True)
    old.learn_many(X[:200], y[:200])
    header = old.header()
    del header["parameters"]["recent"]
    again = AutoBoost.restore(header, {name: one.copy() for name, one in old.tensors()})
    assert again.header() == header
    np.testing.assert_array_equal(
        again.learn_many(X[200:], y[200:]), old.learn_many(X[200:], y[200:])
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recent.state.rows.used", np.array([9])),
        ("recent.state.rows.place", np.full(128, 3)),
        ("recent.state.rows.labels", np.full(1000, 7.0)),
        ("recent.state.asking.awake", np.array([1, 5])),
        ("recent.state.rows.mean", np.zeros(2)),
        ("recent.state.classes.trust", np.array([2.0])),
        ("recent.state.classes.weight", np.array([-1.0, 1.0, 1.0])),
        ("recent.other", np.zeros(1)),
    ],
)
def test_forged_recent_rows_are_refused(name, value):
    X, classes = stream(60)
    model = AutoBoost(loss="softmax")
    model.learn_many(X, classes)
    tensors = {key: array.copy() for key, array in model.tensors()} | {name: value}
    with pytest.raises((ModelFileError, KeyError)):
        AutoBoost.restore(model.header(), tensors)


@pytest.mark.parametrize("sizes", [{"coordinates": 65}, {"classes": -1}, {"classes": "3"}])
def test_forged_sizes_are_refused(sizes):
    X, classes = stream(60)
    model = AutoBoost(loss="softmax")
    model.learn_many(X, classes)
    header = model.header()
    header["recent"] |= sizes
    with pytest.raises(ModelFileError, match="coordinates or classes"):
        AutoBoost.restore(header, {key: array.copy() for key, array in model.tensors()})


def noisy_codes(rows, seed):
    """Return noisy codes of eight classes, which all change in the middle, and the classes."""
    rng = np.random.default_rng(seed)
    codes, y = rng.integers(0, 2, (2, 8, 12)), rng.integers(0, 8, rows)
    concept = (np.arange(rows) >= rows // 2).astype(int)
    return (codes[concept, y] ^ (rng.random((rows, 12)) < 0.15)).astype(np.float32), y


def test_naive_bayes_follows_a_sudden_change():
    shares = []
    for seed in range(3):
        X, y = noisy_codes(6000, seed)
        found = AutoBoost("softmax").learn_many(X, y).argmax(axis=1)
        shares.append(np.mean((found == y)[3000:3500]))
    assert np.mean(shares) > 0.75  # 0.73 without forgetting and without trust


def test_a_file_without_trust_in_naive_bayes_loads():
    X, classes = stream(300)
    model = AutoBoost("softmax")
    model.learn_many(X, classes)
    names = ("recent.state.classes.trust", "recent.state.classes.curvature")
    tensors = {key: one.copy() for key, one in model.tensors() if key not in names}
    again = AutoBoost.restore(model.header(), tensors)
    assert again.recent_stage.state.classes.trust[0] == 1


def test_details_show_the_weights_of_recent_rows():
    X, classes = stream(200)
    model = AutoBoost(loss="softmax")
    model.learn_many(X, classes)
    weights = model.details()["recent_weights"]
    assert list(weights) == ["experts", "neighbours", "naive Bayes"]
    assert sum(weights.values()) == pytest.approx(1)
    assert model.recent_stage.awake == {"neighbours": True, "naive Bayes": True}
