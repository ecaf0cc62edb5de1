"""Tuning equals running the configurations one by one: every loss and model, bit for bit."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weighted_streams import ROWS, stream

from spanboost import (
    AutoBoost,
    HullBoost,
    LinearBall,
    LinearSGD,
    Network,
    Rows,
    SpanBoost,
    Stumps,
    Trees,
    save,
    tune,
)
from spanboost.analysis.progressive import LossTape
from spanboost.compiling.kernels import plain
from spanboost.data.batch import as_batch
from spanboost.errors import DataError
from spanboost.losses import Huber, PNorm, Softmax, SquaredEuclidean, radius
from spanboost.models.row_losses import losses_of
from spanboost.tuning import search
from spanboost.tuning.grid import configurations
from spanboost.tuning.rival import Rival
from spanboost.tuning.stacked import StackedBoosters

pytestmark = pytest.mark.slow  # the file as a whole

N = 5
KINDS = {"span": SpanBoost, "hull": HullBoost}


def two_labels(rows):
    X, y, _ = stream(rows)
    return X, np.where(y > np.median(y), 1.0, -1.0)


def averages(model, X, y, weights, first):
    """Learn the rows; return the losses of the two parts as `spanboost evaluate` computes them."""
    weights = np.ones(len(y)) if weights is None else weights
    answers = model.learn_many(X, y, weights)
    tape = LossTape(2)
    losses = losses_of(model, y, answers)
    tape.extend(np.column_stack([weights, weights * losses]))
    parts = [tape.average(0, first)[0], tape.average(first, tape.rows)[0]]
    tape.close()
    return parts


def assert_equal_to_separate_runs(tuned, X, y, weights, first, folder):
    """Compare every configuration and number of copies with a booster that learns alone."""
    compared = 0
    for k, one in enumerate(tuned.configurations):
        for n in np.flatnonzero(one.allowed()) + 1:
            alone = one.model(int(n))
            found = tuned.loss_first[k, n - 1], tuned.loss_rest[k, n - 1]
            assert list(found) == averages(alone, X, y, weights, first), (one.settings, n)
            save(alone, folder / "alone.sb")
            save(tuned.model(tuned.choice(k, int(n))), folder / "cut.sb")
            assert (folder / "cut.sb").read_bytes() == (folder / "alone.sb").read_bytes()
            compared += 1
    assert np.isfinite(tuned.loss_first).sum() == compared
    return compared


@pytest.mark.parametrize("booster", ["span", "hull"])
@pytest.mark.parametrize("feedback", ["greedy", "linear"])
@pytest.mark.parametrize(
    ("learner", "grid"),
    [
        (LinearSGD(), {"rate": [0.1, 2.0], "scale": [1.0, 0.5]}),
        (Stumps(intercept=True), {"rate": [0.1, 2.0]}),
        (Network(), {"rate": [0.1, 2.0], "hidden": [2, 3]}),
        (Trees(grace=8, delay=2), {"evidence": [1.0, 10.0]}),
    ],
    ids=["linear", "stumps", "network", "trees"],
)
def test_tuning_equals_separate_runs(learner, grid, booster, feedback, tmp_path):
    X, y, weights = stream()
    grid = grid | {"eta": [0.25, 1.0], "feedback": [feedback]}
    tuned = tune(
        *(X, y, weights),
        **{"learner": learner, "grid": grid, "booster": booster, "n": N, "split": 0.4},
        **{"label_range": "auto", "seed": 7},
    )
    number = assert_equal_to_separate_runs(tuned, X, y, weights, 64, tmp_path)
    values = np.prod([len(v) for name, v in grid.items() if name != "eta"])
    assert number == values * (2 + 5 if booster == "span" else 5)  # n >= 4 where eta is 1/4


@pytest.mark.parametrize("feedback", ["greedy", "linear"])
@pytest.mark.parametrize("booster", ["span", "hull"])
@pytest.mark.parametrize(
    "loss", ["squared", PNorm(4), Huber(0.2), "modified_least_squares", "logistic", "linear"]
)
def test_losses(loss, booster, feedback, tmp_path):
    X, y = two_labels(40)
    grid = {"eta": [0.3, 1.0], "feedback": [feedback]}
    fixed = {"learner": LinearSGD(), "grid": grid, "booster": booster, "n": N, "loss": loss}
    with plain():
        tuned = tune(X, y, **fixed)
        assert_equal_to_separate_runs(tuned, X, y, None, 20, tmp_path)
    without_prefixes = loss == "linear" and booster == "span"
    assert {one.prefixes for one in tuned.configurations} == {not without_prefixes}
    # with the logistic loss, B depends on n: all boosters get the B that is valid for any n
    for one in tuned.configurations:
        free = loss == "logistic" and booster == "span"
        assert ("B" in one.parameters) == free
        if free:
            assert one.parameters["B"] == radius("logistic", one.settings["eta"], 10**9, 1.0)


@pytest.mark.parametrize("booster", ["span", "hull"])
def test_the_grid_has_sizes_if_prefixes_are_not_boosters(booster, tmp_path):
    X, y = two_labels(40)
    grid = {"eta": [0.5, 1.0], "feedback": ["linear", "greedy"]}
    fixed = {"learner": Stumps(), "grid": grid, "booster": booster, "n": 6, "loss": "absolute"}
    with plain():
        tuned = tune(X, y, **fixed)
        assert_equal_to_separate_runs(tuned, X, y, None, 20, tmp_path)
    without_prefixes = [one for one in tuned.configurations if one.settings["feedback"] == "linear"]
    assert not any(one.prefixes for one in without_prefixes)
    sizes = [one.n for one in without_prefixes if one.settings.get("eta", 1.0) == 1]
    assert sizes == [1, 2, 4, 6]
    assert [one.n for one in without_prefixes if one.settings.get("eta") == 0.5] in ([], [2, 4, 6])
    assert all(one.prefixes for one in tuned.configurations if one not in without_prefixes)


@pytest.mark.parametrize("loss", [SquaredEuclidean(2), Softmax(3)])
def test_vectors(loss, tmp_path):
    X, y, _ = stream(40)
    labels = np.column_stack([y, -y]) if loss.d == 2 else np.digitize(y, [49, 51])
    fixed = {"label_range": "auto"} if loss.d == 2 else {"D": 3.0}
    grid = {"eta": [0.5, 1.0], "rate": [0.2, 0.5]}
    with plain():
        tuned = tune(X, labels, learner=LinearSGD(), grid=grid, n=4, loss=loss, **fixed)
        assert_equal_to_separate_runs(tuned, X, labels, None, 20, tmp_path)


def as_sparse(X):
    sparse = pytest.importorskip("scipy.sparse")
    return sparse.csr_matrix(X)


@pytest.mark.parametrize(
    "given",
    [
        as_sparse,
        lambda X: Rows(X[:, :2], (X[:, 2:] > 0).astype(np.int64)),
        lambda X: [dict(zip("abcd", map(float, row), strict=True)) for row in X],
    ],
    ids=["sparse", "codes", "names"],
)
def test_rows_of_every_type(given, tmp_path, monkeypatch):
    monkeypatch.setattr(search, "ROWS", 37)
    X, y, weights = stream()
    rows = given(X)
    fixed = {"grid": {"rate": [0.2, 0.5], "eta": [0.5]}, "n": 3, "label_range": "auto-zero"}
    tuned = tune(rows, y, weights, learner=LinearSGD(), **fixed)
    assert_equal_to_separate_runs(tuned, rows, y, weights, ROWS // 2, tmp_path)


@pytest.mark.parametrize("learner", [LinearSGD(), Trees(grace=8)], ids=["linear", "trees"])
def test_replayed_rows_are_not_scored_again(learner, tmp_path, monkeypatch):
    monkeypatch.setattr(search, "ROWS", 37)
    X, y, weights = stream()
    fixed = {"grid": {"eta": [0.5, 1.0]}, "n": 3, "label_range": "auto", "replay": 2, "memory": 50}
    tuned = tune(X, y, weights, learner=learner, **fixed)
    assert_equal_to_separate_runs(tuned, X, y, weights, ROWS // 2, tmp_path)


def test_linear_ball(tmp_path):
    X, y, _ = stream(40)
    X, y = X / np.linalg.norm(X, axis=1, keepdims=True).max(), np.tanh(y - 50)
    with plain():
        tuned = tune(X, y, learner=LinearBall(), grid={"eta": [0.5, 1.0], "scale": [1.0, 2.0]}, n=3)
        assert_equal_to_separate_runs(tuned, X, y, None, 20, tmp_path)


FEW = {"rate": [0.05, 0.5, 1.0], "eta": [0.5, 1.0], "feedback": ["linear", "greedy"]}


def assert_same(tuned, other, folder):
    for table in ("loss_first", "loss_rest"):
        assert getattr(tuned, table).tobytes() == getattr(other, table).tobytes()
    for k, one in enumerate((tuned, other)):
        save(one.model(), folder / f"{k}.sb")
    assert (folder / "0.sb").read_bytes() == (folder / "1.sb").read_bytes()


@pytest.mark.parametrize(("threads", "copies", "rows"), [(1, 8, 50), (2, 1, 4096), (7, 512, 1)])
def test_the_result_does_not_depend_on_threads_banks_or_blocks(
    threads, copies, rows, tmp_path, monkeypatch
):
    X, y, weights = stream()
    fixed = {"learner": LinearSGD(), "grid": FEW, "n": 4, "label_range": "auto"}
    usual = tune(X, y, weights, **fixed)
    monkeypatch.setattr(search, "BANK_COPIES", copies)
    monkeypatch.setattr(search, "ROWS", rows)
    assert_same(usual, tune(X, y, weights, threads=threads, **fixed), tmp_path)


def test_compiled_and_plain_tuning_agree(tmp_path):
    X, y, weights = stream(40)
    fixed = {"learner": LinearSGD(), "grid": FEW, "n": 4, "label_range": "auto"}
    compiled = tune(X, y, weights, **fixed)
    with plain():
        assert_same(compiled, tune(X, y, weights, **fixed), tmp_path)


def test_a_group_can_be_pickled_at_any_time(tmp_path):
    X, y, weights = stream()
    fixed = {"grid": FEW, "booster": "both", "n": 4, "label_range": "auto"}
    usual = tune(X, y, weights, learner=LinearSGD(), **fixed)
    found = configurations(LinearSGD(), **fixed)
    order, groups = search.groups_of(found)
    assert len(groups) == 4  # two boosters, two kinds of feedback
    done = []
    for group in groups:
        for first, last in ((0, 33), (33, 80), (80, 160)):
            group = pickle.loads(pickle.dumps(group))  # noqa: PLW2901
            group.learn(X[first:last], y[first:last], weights[first:last])
            if last == 80:
                group.mark()
        done.append(group)
    assert_same(usual, search.TuningResult(found, done, order), tmp_path)


@settings(max_examples=15)
@given(
    rates=st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=3, unique=True),
    etas=st.lists(st.floats(0.2, 1.0), min_size=1, max_size=3, unique=True),
    n=st.integers(5, 8),
    split=st.floats(0.05, 0.95),
    seed=st.integers(0, 1000),
)
def test_any_rates_and_steps(rates, etas, n, split, seed, tmp_path_factory):
    X, y, weights = stream(40, seed)
    grid = {"rate": rates, "eta": etas}
    fixed = {"learner": LinearSGD(), "grid": grid, "n": n, "split": split, "label_range": "auto"}
    tuned = tune(X, y, weights, **fixed)
    folder = tmp_path_factory.mktemp("models")
    for k, one in enumerate(tuned.configurations):
        alone = one.model(n)
        expected = averages(alone, X, y, weights, int(split * 40))
        found = [tuned.loss_first[k, n - 1], tuned.loss_rest[k, n - 1]]
        np.testing.assert_array_equal(found, expected)
        save(alone, folder / "alone.sb")
        save(tuned.model(tuned.choice(k, n)), folder / "cut.sb")
        assert (folder / "cut.sb").read_bytes() == (folder / "alone.sb").read_bytes()


def test_configurations_are_independent_when_weights_are_rescaled(tmp_path):
    """Under linear feedback, weights grow while `keep` shrinks, and are rescaled at 1e-9."""
    X, y = two_labels(3000)
    grid = {"rate": [1e-3, 50.0], "eta": [1.0], "feedback": ["linear"]}
    tuned = tune(X, y, learner=LinearSGD(), grid=grid, booster="span", n=2)
    assert_equal_to_separate_runs(tuned, X, y, None, 1500, tmp_path)


def test_the_chosen_model_continues_to_learn():
    X, y, weights = stream()
    fixed = {"learner": Network(hidden=3), "grid": {"rate": [0.1, 0.5], "eta": [0.5]}, "n": 4}
    tuned = tune(X[:100], y[:100], weights[:100], **fixed, label_range="auto")
    best = tuned.best()
    alone = tuned.configurations[best.configuration].model(best.n)
    alone.learn_many(X[:100], y[:100], weights[:100])
    again = tuned.model()
    expected = alone.learn_many(X[100:], y[100:])
    assert again.learn_many(X[100:], y[100:]).tobytes() == expected.tobytes()
    # the chosen model is a copy: learning does not change the result
    assert tuned.model().predict_many(X[:5]).tobytes() != again.predict_many(X[:5]).tobytes()


def test_only_the_first_part_chooses():
    X, y, _ = stream()
    tuned = tune(X, y, learner=Stumps(), n=8, label_range="auto", split=0.25)
    best = tuned.best()
    assert best.loss_first == np.nanmin(tuned.loss_first)
    assert best.loss_rest == tuned.loss_rest[best.configuration, best.n - 1]
    assert best == tuned.best_of_each()[0]
    losses = [one.loss_first for one in tuned.best_of_each()]
    assert losses == sorted(losses)
    assert len(losses) == len(tuned.configurations) == 5 * (3 + 1)  # steps below 1/8 are omitted
    alone = tuned.best(booster="hull", n=1, rate=0.5)
    assert (alone.n, alone.settings) == (1, {"booster": "hull", "rate": 0.5})
    with pytest.raises(
        ValueError, match="no booster with n=99 has a finite loss on the first part"
    ):
        tuned.best(n=99)


def test_losses_that_overflow_are_not_chosen():
    X, y, _ = stream()
    y = 1e200 * y  # their squares are infinite
    with np.errstate(over="ignore", invalid="ignore"):
        tuned = tune(X, y, learner=LinearSGD(), n=2, label_range="auto")
    with pytest.raises(
        ValueError, match=r"no booster has a finite loss on the first part: .* the loss overflowed"
    ):
        tuned.best()
    assert len(tuned.best_of_each()) == len(tuned.configurations)


def test_the_default_step_does_not_depend_on_the_number_of_copies():
    X, y, _ = stream()
    tuned = tune(X, y, learner=LinearSGD(), grid={}, booster="span", n=32, label_range="auto")
    (only,) = tuned.configurations
    assert only.settings == {"booster": "span", "eta": np.log(32) / 32}
    assert np.flatnonzero(only.allowed())[0] + 1 == 10


def test_progress_is_reported():
    X, y, _ = stream()
    counted = []
    tune(X, y, learner=LinearSGD(), n=2, label_range="auto", progress=counted.append)
    assert counted == [80, 80]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"grid": {"depth": [3]}},
            "'depth' cannot be tuned; for LinearSGD, choose from eta, scale,",
        ),
        ({"grid": {"dtype": ["float32"]}}, "'dtype' cannot be tuned"),
        ({"grid": {"rate": 0.5}}, r"'rate' must be a non-empty list of values \(got 0.5\)"),
        ({"grid": {"rate": []}}, r"'rate' must be a non-empty list of values \(got \[\]\)"),
        (
            {"grid": {"feedback": "linear"}},
            r"'feedback' must be a non-empty list of values \(got 'linear'\)",
        ),
        ({"grid": {"eta": [0.01]}}, "eta must be between 1/n = .* and 1 .got 0.01"),
        ({"grid": {"rate": [-1]}}, r"rate must be a number .* \(got -1\)"),
        ({"booster": "alg3"}, r"booster must be 'span', 'hull' or 'both' \(got 'alg3'\)"),
        ({"split": 1}, r"split must be between 0 and 1 \(got 1\)"),
        ({"split": 0.001}, r"split selects none of 160 rows to choose on \(got 0.001\)"),
        ({"threads": 0}, r"threads must be a positive integer \(got 0\)"),
        ({"n": 0}, r"n must be a positive integer \(got 0\)"),
        ({"loss": "cubic"}, "loss must be one of .*got 'cubic'"),
    ],
)
def test_bad_parameters_are_refused(wrong, message):
    X, y, _ = stream()
    with pytest.raises(ValueError, match=message):
        tune(X, y, **{"learner": LinearSGD(), "label_range": "auto"} | wrong)


class Mean:
    def predict(self, x):
        return 0.0

    def update(self, x, loss):
        pass


def test_user_defined_learners_are_refused():
    X, y, _ = stream()
    with pytest.raises(
        ValueError, match="cannot tune Mean: only learners of this package can be tuned"
    ):
        tune(X, y, learner=Mean(), n=2)


def test_a_bad_row_is_reported_by_its_number(monkeypatch):
    monkeypatch.setattr(search, "ROWS", 50)
    X, y, _ = stream()
    y[123] = np.nan
    with pytest.raises(DataError, match=r"row 123: the label is missing"):
        tune(X, y, learner=LinearSGD(), n=2, label_range="auto")


@pytest.mark.filterwarnings("ignore::spanboost.LabelWarning")
def test_an_absurd_label_is_scored_as_it_is_learned():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X[:, 0] - 2 * X[:, 1] + rng.normal(size=400)
    absurd = y.copy()
    absurd[120] = 1e9
    fixed = {"learner": LinearSGD(), "grid": FEW, "n": 4, "label_range": "auto"}
    clean, found = tune(X, y, **fixed).loss_first, tune(X, absurd, **fixed).loss_first
    assert np.nanmax(found / clean) < 2  # as given, the label would add about 5e15


def test_a_huge_loss_of_the_first_part_leaves_the_rest():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X[:, 0] - 2 * X[:, 1] + 0.1 * rng.normal(size=400)
    y[0] = 0
    group = StackedBoosters([SpanBoost(LinearSGD(), n=2, label_range=(-20, 20))])
    group.learn(X[:200], y[:200])
    group.sums += 1e300
    group.mark()
    marked = copy.deepcopy(group)
    group.learn(X[200:], y[200:])
    first, rest = group.averages()
    assert first.min() > 1e290
    alone = marked.extract(0, SpanBoost(LinearSGD(), n=2, label_range=(-20, 20)), group.core.labels)
    losses = (alone.learn_many(X[200:], y[200:]) - y[200:]) ** 2
    assert rest[0, 1] == pytest.approx(losses.mean(), rel=1e-9)


def test_a_huge_loss_of_the_first_part_leaves_the_rest_of_the_rival():
    rival = Rival(AutoBoost(budget="fast", label_range="growing"))
    X, y = np.random.default_rng(0).normal(size=(2, 60, 1))
    y[5, 0] = 1e200
    batch = as_batch(X, y[:, 0])
    with np.errstate(over="ignore", invalid="ignore"):
        rival.learn(batch.part(0, 30))
        rival.mark()
        assert np.isnan(rival.averages()[1])
        rival.learn(batch.part(30, 60))
    first, rest = rival.averages()
    assert first == np.inf
    assert not np.isnan(rest)


def test_trees_are_tuned_by_default_for_labels_in_any_units():
    X, y = np.linspace(-1, 1, 60)[:, None], np.linspace(300, 500, 60)
    given = {"learner": Trees(), "label_range": "auto"}
    with plain():
        tune(X, np.sign(X[:, 0]), n=2, loss="logistic")
        found, trees = (tune(X, y, n=2, **one) for one in ({}, given))
    np.testing.assert_array_equal(found.loss_rest, trees.loss_rest)
