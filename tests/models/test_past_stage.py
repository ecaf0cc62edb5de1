"""The stage of AutoBoost that reads past labels: no leaks, and the same bits for all blocks."""

import copy
from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pytest
from naive_past import all_past

from spanboost import AutoBoost, LinearSGD, ModelFileError, Rows, Trees, load, save
from spanboost.compiling.kernels import plain
from spanboost.models import auto
from spanboost.models.budgets import EXPERTS, Expert
from spanboost.models.past_row import single_probability, to_probability
from spanboost.models.sleeping import PERIOD, TRIAL, new_sleep
from spanboost.rows.past_rows import RowsWithPast


@pytest.fixture(autouse=True)
def small_experts(monkeypatch):
    """A default budget of small experts, which take little time."""
    small = {"depth": 3, "candidates": 8, "evidence": 1.0, "grace": 8, "delay": 2}
    experts = (
        Expert("trees", Trees, small, 4, 0.5),
        Expert("linear", LinearSGD, {}),
    )
    monkeypatch.setitem(EXPERTS, "default", experts)


def stream(rows=600, seed=0, memory=0.9):
    """Labels with a function of the row, and errors that remember the errors before."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 3)).astype(np.float32)
    errors, noise = np.zeros(rows), rng.normal(size=rows)
    for t in range(1, rows):
        errors[t] = memory * errors[t - 1] + noise[t]
    return X, 100 + 3 * X[:, 0] + errors


def second_half(answers, y):
    return ((answers - y)[len(y) // 2 :] ** 2).mean()


def labels_for(loss, y):
    return np.where(y > 100, 1.0, -1.0) if loss == "logistic" else y


def read(model, path):
    save(model, path)
    return path.read_bytes()


KINDS = ("dense", "names", "codes", "key")


@pytest.mark.filterwarnings("ignore::spanboost.LabelWarning")
@pytest.mark.parametrize(
    ("kind", "loss"),
    [(kind, "squared") for kind in KINDS] + [("dense", "absolute"), ("names", "logistic")],
)
def test_blocks_threads_and_files_do_not_matter(kind, loss, tmp_path, monkeypatch):
    X, y = stream(400)
    y[200:] += 400 if loss != "logistic" else 0  # changes the label range
    labels = labels_for(loss, y)
    weights = np.where(np.arange(400) % 7 == 3, 0.0, 1.0)
    codes = np.random.default_rng(1).integers(-1, 5, (400, 2))
    rows = {
        "dense": lambda a, b: X[a:b],
        "names": lambda a, b: [
            {f"x{j}": float(v) for j, v in enumerate(x) if v > 0} for x in X[a:b]
        ],
        "codes": lambda a, b: Rows(X[a:b], codes[a:b]),
        "key": lambda a, b: Rows(X[a:b], codes[a:b]),
    }[kind]

    def fresh():
        return AutoBoost(loss=loss, seed=3, key=1 if kind == "key" else None)

    whole = fresh()
    expected = whole.learn_many(rows(0, 400), labels, weights)
    for threads, edges in ((1, (0, 3, 90, 400)), (2, (0, 200, 201, 400))):
        monkeypatch.setattr(auto, "cpu_count", lambda n=threads: n)
        model, answers = fresh(), []
        for a, b in pairwise(edges):
            answers.append(model.learn_many(rows(a, b), labels[a:b], weights[a:b]))
            save(model, tmp_path / "part.sb")
            model = load(tmp_path / "part.sb")
        np.testing.assert_array_equal(np.concatenate(answers), expected)
        assert read(model, tmp_path / "part.sb") == read(whole, tmp_path / "whole.sb")


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_single_rows_are_blocks_of_one(loss):
    X, y = stream(150)
    y = labels_for(loss, y)
    whole, single = AutoBoost(loss=loss), AutoBoost(loss=loss)
    expected = whole.learn_many(X, y)
    for x, label, answer in zip(X, y, expected, strict=True):
        assert single.predict_one(x) == single.predict_many([x])[0]
        predicted = single.predict_one(x)
        assert single.learn_one(x, label) == predicted == answer


@pytest.mark.parametrize("kind", ["lists", "names", "key"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_single_rows_between_blocks_give_the_same_file(kind, loss, tmp_path):
    X, y = stream(240)
    labels = labels_for(loss, y)
    X[:, 0] = np.round(X[:, 0])  # a key with few values
    rows = X.tolist()
    if kind != "lists":
        rows = [{f"x{j}": v for j, v in enumerate(x)} for x in rows]
    key = "x0" if kind == "key" else None
    whole, model = (AutoBoost(loss=loss, seed=3, key=key) for _ in range(2))
    expected = whole.learn_many(rows, labels)
    answers = model.learn_many(rows[:100], labels[:100]).tolist()
    for t in range(100, 150):
        asked = model.predict_one(rows[t])
        without = model.without_past()
        assert without.predict_one(rows[t]) == without.predict_many([rows[t]])[0]
        answers.append(model.learn_one(rows[t], labels[t]))
        assert answers[-1] == asked
    model = copy.deepcopy(model)
    answers += model.learn_many(rows[150:180], labels[150:180]).tolist()
    rest = zip(rows[180:], labels[180:], strict=True)
    answers += [model.learn_one(x, label) for x, label in rest]
    np.testing.assert_array_equal(answers, expected)
    assert read(model, tmp_path / "one.sb") == read(whole, tmp_path / "whole.sb")


def test_the_probability_of_one_score_has_the_same_bits():
    scores = np.append(np.random.default_rng(0).normal(size=500) * 300, [0.0, -1e9, 1e9, 40.0])
    ones = [single_probability(score) for score in scores.tolist()]
    assert np.array(ones).tobytes() == to_probability(scores).tobytes()


def test_single_rows_in_plain_python():
    X, y = stream(60)
    whole, model = AutoBoost(), AutoBoost()
    expected = whole.learn_many(X, y)
    answers = model.learn_many(X[:50], y[:50]).tolist()
    for t in range(50, 60):
        with plain() if t % 3 else nullcontext():
            asked = model.predict_one(X[t])
            answers.append(model.learn_one(X[t], y[t]))
        assert answers[-1] == asked
    np.testing.assert_array_equal(answers, expected)


def test_single_rows_while_the_trees_sleep(tmp_path):
    X, y = stream(60)
    whole, model = AutoBoost(), AutoBoost()
    for each in (whole, model):
        each.learn_many(X[:30], y[:30])
        each.past_stage.sleep.woken[0] = -1
    expected = whole.learn_many(X[30:], y[30:])
    answers = []
    for x, label in zip(X[30:], y[30:], strict=True):
        asked = model.predict_one(x)
        answers.append(model.learn_one(x, label))
        assert answers[-1] == asked
    np.testing.assert_array_equal(answers, expected)
    assert read(model, tmp_path / "one.sb") == read(whole, tmp_path / "whole.sb")


@pytest.mark.parametrize("loss", ["squared", "absolute", "logistic"])
def test_errors_that_remember_are_corrected(loss):
    X, y = stream(2500)
    labels = labels_for(loss, y)
    with_past = AutoBoost(loss=loss).learn_many(X, labels)
    without = AutoBoost(loss=loss, past=False).learn_many(X, labels)
    if loss == "logistic":
        losses = [
            np.log1p(np.exp(-labels * scores))[1250:].mean() for scores in (with_past, without)
        ]
        assert losses[0] < 0.8 * losses[1]
    else:
        assert second_half(with_past, y) < 0.4 * second_half(without, y)
        assert second_half(with_past, y) < 1.3  # the noise that nothing can predict is 1


def test_shuffled_time_gives_no_gain_and_no_loss():
    X, y = stream(3000)
    shuffled = np.random.default_rng(5).permutation(y)  # nothing predicts these labels
    with_past = second_half(AutoBoost().learn_many(X, shuffled), shuffled)
    assert with_past > 0.99 * np.var(shuffled[1500:])
    assert with_past < 1.01 * second_half(AutoBoost(past=False).learn_many(X, shuffled), shuffled)


def test_the_experts_are_those_of_a_model_without_past():
    X, y = stream(300)
    model, plain = AutoBoost(recent=False), AutoBoost(past=False, recent=False)
    model.learn_many(X, y)
    plain.learn_many(X, y)
    assert model.weights_ == plain.weights_
    np.testing.assert_array_equal(model.without_past().predict_many(X), plain.predict_many(X))
    assert (model.predict_many(X) != plain.predict_many(X)).any()
    assert model.without_past().past_stage is None


@pytest.mark.parametrize("delay", [1, 5])
def test_a_late_label_is_learned_with_what_was_known_before(delay):
    """A label that arrives after k rows gives what the label k rows ago gives, and no more."""
    X, y = stream(260)
    late, pending, seen, answers = AutoBoost(), [], [], []
    for t in range(len(y)):
        rows = late.with_past(X[t : t + 1])
        seen.append(rows.past[0])
        pending.append((rows, t))
        if len(pending) == delay:
            rows, first = pending.pop(0)
            answers.append(late.learn_many(rows, y[first : first + 1])[0])
    before = AutoBoost()  # learns the same rows in the same order
    before.past_stage = None
    errors = (y - before.learn_many(X, y)).tolist()
    at_once = all_past(y.tolist(), errors)
    nothing = np.full((delay - 1, at_once.shape[1]), np.nan)
    expected = np.concatenate([nothing, at_once])[: len(y)]  # row t knows the labels before t - k
    np.testing.assert_allclose(np.array(seen), expected, rtol=1e-6)
    oracle, rows = AutoBoost(), len(answers)
    known = RowsWithPast(X[:rows], np.array(seen)[:rows], np.ones(rows, bool))
    np.testing.assert_array_equal(oracle.learn_many(known, y[:rows]), answers)


def test_the_gain_is_that_of_the_delay():
    """Errors have variance 1 / (1 - 0.9^2), and 0.9^k of an error is left after k rows."""
    X, y = stream(1500)
    for delay in (1, 4, 16):
        model, past = AutoBoost(), []
        answers = np.empty(len(y))
        for t in range(len(y)):
            past.append(model.with_past(X[t : t + 1]))
            answers[t] = model.predict_many(past[t])[0]
            if t + 1 >= delay:
                model.learn_many(past[t + 1 - delay], y[t + 1 - delay : t + 2 - delay])
        noise = y[750:] - 3 * X[750:, 0]
        best = np.var(noise) * (1 - 0.81**delay)
        assert 0.85 * best < second_half(answers, y) < 1.6 * best, delay


def test_keys_have_a_past_of_their_own():
    rng = np.random.default_rng(0)
    rows = 4000
    shop, x = rng.integers(0, 40, rows), rng.normal(size=rows)
    number = rng.permutation(40) * 1.5 + 1000  # a column of numbers, which is no linear function
    level, y = rng.normal(size=40) * 5, np.empty(rows)
    for t in range(rows):
        level[shop[t]] += rng.normal()
        y[t] = level[shop[t]] + x[t]
    X = np.column_stack([number[shop], x])
    keyed = AutoBoost(key=0).learn_many(X, y)
    assert second_half(keyed, y) < 0.5 * second_half(AutoBoost().learn_many(X, y), y)


def test_a_file_without_past_continues_without_it(tmp_path):
    X, y = stream(300)
    old = AutoBoost(past=False)
    old.learn_many(X[:200], y[:200])
    header = old.header()
    del header["parameters"]["past"]  # as versions before wrote it
    again = AutoBoost.restore(header, {name: value.copy() for name, value in old.tensors()})
    assert again.past_stage is None
    np.testing.assert_array_equal(
        again.learn_many(X[200:], y[200:]), old.learn_many(X[200:], y[200:])
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("past.labels.season", np.array([500])),
        ("past.labels.seen", np.array([-1])),
        ("past.sleep.woken", np.array([9999])),
        ("past.labels.means", np.zeros((2, 2))),
        ("past.other", np.zeros(1)),
    ],
)
def test_a_forged_past_is_refused(name, value):
    X, y = stream(50)
    model = AutoBoost()
    model.learn_many(X, y)
    tensors = {key: array.copy() for key, array in model.tensors()} | {name: value}
    with pytest.raises((ModelFileError, KeyError)):
        AutoBoost.restore(model.header(), tensors)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"past": "yes"}, "past must be None, True or False"),
        ({"key": 1.5}, "key must be None, the name or the number"),
        ({"key": "store", "past": False}, r"key needs past labels \(got past=False\)"),
        ({"past": True, "loss": "poisson"}, "^past needs squared, absolute"),
        ({"key": "store", "bits": 5}, "^key needs squared, .* and at least 6 bits$"),
        ({"past": True, "loss": "hinge"}, "^past needs squared, .* or softmax loss"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        AutoBoost(**parameters)


def test_a_past_of_the_wrong_shape_is_refused():
    X, y = stream(20)
    model = AutoBoost()
    with pytest.raises(ValueError, match="use the rows that `with_past`"):
        model.learn_many(RowsWithPast(X, np.zeros((20, 2)), np.ones(20, bool)), y)
    with pytest.raises(ValueError, match="does not use past labels"):
        AutoBoost(past=False).with_past(X)


def test_trees_sleep_while_they_correct_nothing_and_wake_up():
    rng = np.random.default_rng(0)
    sleep = new_sleep()

    def learn(rows, linear, trees):
        for _ in range(rows):
            error = rng.normal()
            sleep.add_correction(error, linear * error, trees * error + 0.1 * rng.normal())

    learn(TRIAL - 1, 0.0, 0.0)
    assert sleep.awake
    learn(1, 0.0, 0.0)
    assert not sleep.awake
    learn(3 * PERIOD, 0.3, 0.0)
    assert sleep.awake  # a linear function has found something
    learn(TRIAL, 0.3, 0.0)
    assert not sleep.awake
    learn(2 * PERIOD, 0.3, 0.0)
    assert not sleep.awake  # it is still the same
    while sleep.seen[0] < 4**7:
        learn(1, 0.3, 0.2)
    assert sleep.awake
    learn(3 * TRIAL, 0.3, 0.2)
    assert sleep.awake
