"""The number of passes over a data set, against a plain transcription of the rule."""

import copy

import numpy as np
import pytest

from spanboost import AutoBoost, Intervals, LinearSGD, SpanBoost, Trees
from spanboost.analysis import passes
from spanboost.analysis.passes import Examples, Passes


def data(rows, noise, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 3))
    return X, X @ [1.0, -0.5, 0.2] + noise * rng.normal(size=rows)


def examples(X, y, weights=None):
    return Examples(X, y, np.ones(len(y)) if weights is None else weights, np.arange(len(y)))


def new_model():
    return SpanBoost(LinearSGD(rate=0.05), n=4, label_range="auto")


def trees():
    return SpanBoost(Trees(), n=8, label_range="auto")


def choose_plainly(X, y, weights, most=10):
    """Return the predictions and the number of passes of the documented rule, in file order."""
    held = int(min(max(0.1 * len(y), 100), 0.25 * len(y)))
    first, last = slice(0, len(y) - held), slice(len(y) - held, None)

    def after(k):
        model = new_model()
        for _ in range(k):
            model.learn_many(X[first], y[first], weights[first])
        return model

    losses = [
        np.average((after(k).predict_many(X[last]) - y[last]) ** 2, weights=weights[last])
        for k in range(1, most + 1)
    ]
    k = 1
    while k < most and losses[k] < 0.99 * losses[k - 1]:
        k += 1
    model = after(k)
    model.learn_many(X[last], y[last], weights[last])
    return model.predict_many(X), k


@pytest.mark.parametrize(("rows", "noise"), [(40, 0.05), (300, 0.05), (300, 3.0), (1500, 0.3)])
def test_the_choice_is_that_of_the_documented_rule(rows, noise):
    X, y = data(rows, noise)
    weights = np.random.default_rng(1).choice([0.5, 1.0, 2.0], rows)
    model, k = Passes(examples(X, y, weights), np.array).choose(new_model())
    expected, number = choose_plainly(X, y, weights)
    assert k == number
    np.testing.assert_array_equal(model.predict_many(X), expected)


def test_small_data_get_several_passes_and_noise_gets_one():
    def number(noise):
        shuffle = np.random.default_rng(0).permutation
        return Passes(examples(*data(400, noise)), shuffle).choose(trees())[1]

    assert number(0.01) > 1
    assert number(100.0) == 1


def test_one_pass_is_the_same_however_it_was_chosen():
    X, y = data(400, 100.0)
    random = [np.random.default_rng(0).permutation for _ in range(2)]
    chosen, k = Passes(examples(X, y), random[0]).choose(trees())
    assert k == 1
    plain = Passes(examples(X, y), random[1]).run(trees(), 1)
    np.testing.assert_array_equal(chosen.predict_many(X), plain.predict_many(X))


def test_large_and_tiny_data_get_one_pass(monkeypatch):
    X, y = data(300, 0.01)
    assert Passes(examples(X, y), np.array).choose(new_model())[1] > 1
    assert Passes(examples(X[:3], y[:3]), np.array).choose(new_model())[1] == 1
    monkeypatch.setattr(passes, "MOST_ROWS", 299)
    model, k = Passes(examples(X, y), np.array).choose(new_model())
    plain = new_model()
    plain.learn_many(X, y)
    assert k == 1
    np.testing.assert_array_equal(model.predict_many(X), plain.predict_many(X))


def test_an_invalid_row_is_found_before_any_is_learned():
    X, y = data(300, 0.1)
    model = new_model()
    model.learn_many(X, y)
    before = model.predict_many(X)
    y[290] = np.nan  # among the rows that are held out
    with pytest.raises(ValueError, match=r"^row 290: the label is missing"):
        Passes(examples(X, y), np.array).choose(model)
    np.testing.assert_array_equal(model.predict_many(X), before)


@pytest.mark.parametrize("scale", [1.0, 3.0])  # of the labels in the second pass
def test_further_passes_keep_the_weights_of_experts(scale):
    X, y = data(200, 0.1)
    model, twin = (AutoBoost(budget="fast", label_range="growing") for _ in range(2))
    model.learn_many(X, y)
    twin.learn_many(X, y)
    weights = model.weights_
    model.learn_again(X, y * scale)
    twin.learn_many(X, y * scale)
    assert model.weights_ == weights != twin.weights_
    np.testing.assert_array_equal(model.forecasts(X), twin.forecasts(X))
    assert np.isfinite(model.predict_many(X)).all()


def test_further_passes_keep_the_weights_of_candidates():
    X, y = data(200, 0.1)
    model, twin = (SpanBoost(LinearSGD(), n="auto", label_range="auto") for _ in range(2))
    for one in (model, twin):
        one.learn_many(X, y)
    weights = model.weights_
    model.learn_again(X, y)
    twin.learn_many(X, y)
    assert model.weights_ == weights != twin.weights_
    np.testing.assert_array_equal(model.forecasts(X), twin.forecasts(X))


def test_every_pass_is_reported():
    X, y = data(300, 0.01)
    lines = []
    k = Passes(examples(X, y), np.array, lines.append).choose(new_model())[1]
    assert [line.split(":")[0] for line in lines][:k] == [f"Pass {j}" for j in range(1, k + 1)]
    lines.clear()
    Passes(examples(X, y), np.array, lines.append).run(new_model(), 2)
    loss = np.mean((new_model().learn_many(X, y) - y) ** 2)
    assert lines[0].startswith(f"Pass 1 of 2: loss {loss:.6g}, ")
    assert lines[1].startswith("Pass 2 of 2: loss ")


class Fixed:
    """A learner that cannot be copied once it has learned."""

    def __init__(self):
        self.value = 0.0

    def predict(self, x):
        return self.value

    def update(self, x, loss):
        self.value += 0.001

    def __deepcopy__(self, memo):
        if self.value:
            raise TypeError("cannot copy")
        return Fixed()


def test_a_learner_that_cannot_be_copied_gets_one_pass():
    X, y = data(100, 0.1)
    model, k = Passes(examples(X, y), np.array).choose(SpanBoost(Fixed(), n=1, label_range="auto"))
    assert k == 1
    assert model.labels.rows == 100


def intervals():
    return Intervals(new_model())


def errors_without(model, X, y, part, n):
    """Return the errors for some rows of a twin that learns the others n times, in file order."""
    twin, rest = intervals(), np.setdiff1d(np.arange(len(y)), part)
    twin.learn_many(X[rest], y[rest])
    for _ in range(n - 1):
        twin.learn_again(X[rest], y[rest])
    return model.held_out_errors(X[part], y[part], np.ones(len(part)), by=twin)


@pytest.mark.parametrize(("n", "held"), [(1, 75), (3, 0)])
def test_models_that_leave_out_a_tenth_calibrate_a_small_data_set(n, held):
    X, y = data(300, 0.3)
    model, plain = (
        Passes(examples(X, y), np.array).run(one(), n) for one in (intervals, new_model)
    )
    np.testing.assert_array_equal(model.predict_many(X), plain.predict_many(X))
    parts = np.array_split(np.arange(300 - held), 8 if held else 10)
    errors = [errors_without(model, X, y, part, n) for part in parts[::-1]]
    if held:  # these rows were predicted before they were learned
        answers, last = new_model().learn_many(X, y)[-held:], slice(300 - held, None)
        errors.append(model.held_out_errors(X[last], y[last], np.ones(held), answers))
    expected = copy.deepcopy(model)
    expected.calibrate(np.concatenate(errors))
    levels = [0.05, 0.5, 0.95]
    found = model.predict_quantiles(X, levels)
    np.testing.assert_array_equal(found, expected.predict_quantiles(X, levels))


def test_after_several_passes_further_models_learn_new_rows_last_too():
    X, y = data(300, 0.01)
    model, n = Passes(examples(X, y), np.array).choose(intervals())
    assert n > 1
    errors = []
    for k in range(9, -1, -1):  # a tenth of the first 225 rows and of the 75 held-out ones
        first, last = np.arange(225), np.arange(225, 300)
        part = np.concatenate([np.array_split(some, 10)[k] for some in (first, last)])
        first, last = np.setdiff1d(first, part), np.setdiff1d(last, part)
        twin = intervals()
        twin.learn_many(X[first], y[first])
        for _ in range(n - 1):
            twin.learn_again(X[first], y[first])
        twin.learn_many(X[last], y[last])
        errors.append(model.held_out_errors(X[part], y[part], np.ones(len(part)), by=twin))
    expected = copy.deepcopy(model)
    expected.calibrate(np.concatenate(errors))
    levels = [0.05, 0.5, 0.95]
    found = model.predict_quantiles(X, levels)
    np.testing.assert_array_equal(found, expected.predict_quantiles(X, levels))


@pytest.mark.parametrize(
    ("rows", "n", "in_order", "expected"),
    [
        (3, 1, False, "3 more models"),
        (40, "auto", False, "10 more models"),
        (2000, 2, False, "5 more models"),
        (2000, "auto", False, "5 more models"),
        (2000, 2, True, "1 more model"),
        (2000, "auto", True, None),
        (10_000, 1, False, None),
    ],
)
def test_further_models_are_as_few_as_possible(rows, n, in_order, expected):
    lines = []
    passes = Passes(examples(*data(rows, 0.3)), np.array, lines.append, in_order=in_order)
    passes.learn(intervals(), n)
    lines = [line for line in lines if line.startswith("Calibration")]
    assert [line.split(": ")[1].split(",")[0] for line in lines] == [expected] * (
        expected is not None
    )


def test_a_model_that_cannot_be_copied_calibrates_with_the_held_out_rows():
    X, y = data(400, 0.1)
    lines = []
    model = Intervals(SpanBoost(Fixed(), n=1, label_range="auto"))
    model.learn_many(X[:100], y[:100])
    Passes(examples(X, y), np.array, lines.append).run(model, 1)
    assert [line.split(":")[0] for line in lines] == ["Pass 1 of 1"]
    assert model.forecaster.residuals.counts[0] == 100
