"""Compares trees, bit for bit, with naive trees; tests of rows, parameters, files and memory."""

import copy
import dataclasses
import math
import pickle

import numpy as np
import pytest
from banks import LOSSES, Oracles, arrays_of, assert_same_state, codes_for, stream, weights_for
from forged import changed, file_arrays
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_tree import GROUP, Tree
from scipy_free import Csr

from spanboost import (
    HullBoost,
    LinearSGD,
    ModelFileError,
    Rows,
    SpanBoost,
    Trees,
    load,
    save,
)
from spanboost.compiling.kernels import plain
from spanboost.compiling.random_numbers import hash_integer, streams, uniform
from spanboost.learners import trees
from spanboost.learners.split_sums import new_sketch
from spanboost.learners.tree_selection import select_trees, trees_of_nodes
from spanboost.losses import Softmax
from spanboost.rows.block import ObjectRows

F32, F64 = np.float32, np.float64
BOOSTERS = {"span": SpanBoost, "hull": HullBoost}
SMALL = Trees(depth=3, candidates=16, evidence=1.0, grace=8, delay=3)
KINDS = {
    "dense": lambda X: X,
    "sparse": Csr,
    "codes": lambda X: Rows(X[:, 2:], codes_for(X)),
}


def cells(X):
    """Return rows as the naive tree reads them."""
    if isinstance(X, Rows):
        numbers = [list(enumerate(x)) for x in X.numbers]
        codes = [[(str(j), max(c, -1)) for j, c in enumerate(x)] for x in X.codes]
        return [a + b for a, b in zip(numbers, codes, strict=True)]
    if isinstance(X, Csr):
        ends = zip(X.indptr, X.indptr[1:], strict=False)
        pairs = [list(zip(X.indices[a:b], X.data[a:b], strict=True)) for a, b in ends]
        return [[(int(j), v) for j, v in row if v != 0] for row in pairs]
    return [list(enumerate(x)) for x in X]


class NaiveTrees(Oracles):
    """The same learner as naive copies of the same precision."""

    def __init__(self, learner):
        super().__init__(self.copy, learner.dtype)
        self.learner, self.greedy_step = learner, learner.greedy_step

    def encode(self, X, D):
        rows = cells(X)
        return ObjectRows([[(j, self.dtype(v)) for j, v in row] for row in rows])

    def copy(self, task, i):
        state = streams(task.seed, task.n)[i]
        step = None
        if not task.linear:
            c = task.smoothness[i]
            step = 1 / c if 0 < c < math.inf else task.D / task.lipschitz[i]
        return Tree(
            task.d,
            learner=self.learner,
            wait=self.learner.delay * i,
            step=step,
            cut=task.D,
            draw=lambda: uniform(state),
            number=self.dtype,
            codes=self.codes(task, i),
        )

    def codes(self, task, i):
        """Return uniform numbers of variance 1 / S, from a hash of the seed and their place."""
        S = self.learner.sketch
        if not S or task.d == 1:
            return None
        key = hash_integer(task.seed)
        places = [[(i << 40) + (s << 32) + k for k in range(task.d)] for s in range(S)]
        unit = [[(hash_integer(key ^ place) >> 11) / 2**53 for place in row] for row in places]
        return [[self.dtype((2 * u - 1) * math.sqrt(3 / S)) for u in row] for row in unit]


def splits(model):
    """Return the number of splits of each tree."""
    bank = model.core.state.bank
    inner = bank.link[: bank.used[0]] > 0
    return np.bincount(trees_of_nodes(bank)[inner], minlength=len(bank.start))


def assert_exact(learner, booster, X, y, weights, **options):
    model = BOOSTERS[booster](learner, **options)
    oracle = BOOSTERS[booster](NaiveTrees(learner), **options)
    with plain():
        got = model.learn_many(X, y, weights), model.predict_many(X)
        want = oracle.learn_many(X, y, weights), oracle.predict_many(X)
    np.testing.assert_array_equal(got, want)
    return model


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("feedback", ["greedy", "linear"])
@pytest.mark.parametrize("booster", BOOSTERS)
def test_trees_equal_the_naive_trees_bit_for_bit(booster, feedback, loss):
    X, y = stream(250, loss=loss, centre=0.0)
    D = 1.0 if feedback == "greedy" else 0.6
    for dtype, kind in ((F32, "dense"), (F64, "codes"), (F32, "sparse")):
        learner = dataclasses.replace(SMALL, dtype=dtype)
        options = {"n": 3, "loss": LOSSES[loss], "feedback": feedback, "D": D}
        model = assert_exact(learner, booster, KINDS[kind](X), y, weights_for(250), **options)
        assert splits(model).min() > 1


@settings(max_examples=25)
@given(
    feedback=st.sampled_from(["greedy", "linear"]),
    loss=st.sampled_from(sorted(LOSSES)),
    kind=st.sampled_from(sorted(KINDS)),
    columns=st.integers(1, 4),
    dtype=st.sampled_from([F32, F64]),
    depth=st.integers(1, 4),
    candidates=st.sampled_from([2, 10, 32]),
    evidence=st.sampled_from([0.0, 0.5, 4.0]),
    grace=st.sampled_from([1, 7, 20]),
    delay=st.integers(0, 10),
    recency=st.integers(1, 3),
    sketch=st.integers(0, 3),
    seed=st.integers(0, 10**6),
)
def test_any_options_agree_with_the_naive_trees_bit_for_bit(
    feedback, loss, kind, columns, dtype, depth, candidates, evidence, grace, delay, recency,
    sketch, seed,
):  # fmt: skip
    X, y = stream(120, seed, loss=loss)
    X = X[:, :columns] if kind == "dense" else X
    learner = Trees(depth, candidates, evidence, grace, delay, recency, dtype, sketch=sketch)
    options = {"n": 2, "loss": LOSSES[loss], "feedback": feedback, "seed": seed}
    assert_exact(learner, "span", KINDS[kind](X), y, weights_for(120, seed), **options)


def classes_of(X, number):
    """Return class numbers that depend on two columns."""
    codes = np.digitize(X[:, 0], [-0.5, 0, 0.5]) + 4 * (X[:, 1] > 0)
    return codes % number


@pytest.mark.parametrize("classes", [2, 3, 7, 9])
@pytest.mark.parametrize("feedback", ["greedy", "linear"])
def test_sketched_trees_of_classes_equal_the_naive_trees_bit_for_bit(feedback, classes):
    X, _ = stream(250)
    y = classes_of(np.nan_to_num(X), classes)
    learner = dataclasses.replace(SMALL, sketch=3)
    options = {"n": 3, "loss": Softmax(classes), "feedback": feedback, "D": 6.0}
    model = assert_exact(learner, "span", X, y, weights_for(250), **options)
    assert splits(model).min() > 1


# --------------------------------------------------------------------------------------------
# Leaves


def single_tree(learner, **options):
    """Return a booster of one tree with step 1."""
    return SpanBoost(learner, 1, 1.0, **options)


def unsplit_tree(**options):
    """Return trees that never split."""
    return Trees(evidence=1e20, delay=0, dtype=F64, **options)


def test_a_leaf_predicts_the_mean_residual():
    X, y = stream(100)
    weights = weights_for(100)
    model = single_tree(unsplit_tree())
    with plain():
        model.learn_many(X, y, weights)
    assert model.predict_one(X[0]) == pytest.approx(np.average(y, weights=weights), rel=1e-12)


@pytest.mark.parametrize("recency", [1, 2, 3])
def test_recency_weights_rows_by_powers_of_their_number(recency):
    X, y = stream(50)
    model = single_tree(unsplit_tree(recency=recency))
    with plain():
        model.learn_many(X, y)
    number = np.arange(51.0) ** recency
    expected = np.average(y, weights=np.diff(number))
    assert model.predict_one(X[0]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("recency", [1, 3])
@pytest.mark.parametrize("feedback", ["greedy", "linear"])
def test_in_a_leaf_a_row_of_weight_2_equals_two_rows(feedback, recency):
    X, y = stream(50)
    once, twice = (single_tree(unsplit_tree(recency=recency), feedback=feedback) for _ in range(2))
    if feedback == "linear":  # its slopes depend on the label only
        once, twice = (
            single_tree(unsplit_tree(recency=recency), feedback=feedback, loss="linear")
            for _ in range(2)
        )
    with plain():
        once.learn_many(X, y, np.full(50, 2.0))
        twice.learn_many(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    assert once.predict_one(X[0]) == pytest.approx(twice.predict_one(X[0]), rel=1e-12)


def test_the_scale_of_the_weights_does_not_matter():
    X, y = stream(200)
    weights = np.random.default_rng(0).choice([0.5, 1.0, 3.0], 200)
    with plain():
        models = [single_tree(SMALL) for _ in range(2)]
        expected, got = (
            model.learn_many(X, y, weights * scale)
            for model, scale in zip(models, (1, 2.0**-20), strict=True)
        )
    np.testing.assert_array_equal(got, expected)
    assert splits(models[0]).min() > 0


def test_candidates_sum_up_their_left_side():
    X, y = stream(90)
    model = single_tree(dataclasses.replace(unsplit_tree(), candidates=16))
    with plain():
        model.learn_many(X, y)
    bank = model.core.state.bank
    place, (threshold, weight, sums) = bank.candidates.place[0], bank.candidates.table[0]
    first = GROUP * bank.candidates.phases[0]
    before = np.cumsum(y) / np.arange(1, 91)
    distance = y - np.r_[0, before[:-1]]
    for c in range(16):
        column, missing_left = place[c // GROUP] // 4, place[c // GROUP] % 2 == 0
        x = X[:, column]
        left = np.where(np.isnan(x), missing_left, x <= threshold[c])
        left[:first] = False
        assert weight[c] == left.sum()
        assert sums[c] == pytest.approx(distance[left].sum(), rel=1e-9, abs=1e-12)


def test_the_best_candidate_splits():
    """The label is a step in column 1 of 5; every copy finds it at its first check."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 5))
    y = np.where(X[:, 1] > 0.2, 0.6, -0.3)
    learner = Trees(depth=1, candidates=40, delay=0)
    model = SpanBoost(learner, 4, alpha=1.0)
    model.learn_many(X[:41], y[:41])
    bank = model.core.state.bank
    assert splits(model).tolist() == [1] * 4
    assert (bank.place[:4] // 4 == 1).all()
    assert np.abs(bank.threshold[:4] - 0.2).max() < 0.3


def test_copies_start_one_after_the_other():
    X, y = stream(40)
    model = SpanBoost(Trees(delay=7), 8)
    model.learn_many(X, y)
    rows = model.core.state.bank.weight[:8]
    np.testing.assert_array_equal(rows, np.maximum(40 - 7 * np.arange(8), 0))


# --------------------------------------------------------------------------------------------
# Rows


def error(model, rows, y):
    predictions = model.learn_many(rows, y)
    return np.mean((predictions - y)[len(y) // 2 :] ** 2) / np.var(y)


@pytest.mark.parametrize("side", [0.5, -0.5])
def test_missing_values_go_to_a_learned_side(side):
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 1, (3000, 2))
    X[rng.random(3000) < 0.4, 0] = np.nan
    y = np.where(np.isnan(X[:, 0]) | (X[:, 0] > 0.5), side, -side)
    assert error(SpanBoost(Trees(), 20, 0.2), X, y) < 0.05


def test_splits_can_separate_missing_values():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (2000, 1))
    X[rng.random(2000) < 0.5] = np.nan
    y = np.where(np.isnan(X[:, 0]), 0.5, -0.5)
    assert error(SpanBoost(Trees(), 20, 0.2), X, y) < 0.01


def coded(T=3000, seed=2):
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, 7, (T, 2))
    y = np.where(np.isin(codes[:, 0], [-1, 2, 5]), 0.5, -0.5)
    return codes, y


def test_splits_can_separate_categories():
    codes, y = coded()
    assert error(SpanBoost(Trees(), 20, 0.2), Rows(None, codes), y) < 0.05


def test_an_unseen_category_differs_from_all_known_ones():
    codes, y = coded()
    model = SpanBoost(Trees(), 20, 0.2)
    model.learn_many(Rows(None, codes), y)
    new = model.predict_many(Rows(None, [[7, 0], [1000, 0], [2**24 - 1, 0], [2**24 + 2, 0]]))
    assert new[0] == new[1] == new[2]
    assert new[3] == model.predict_many(Rows(None, [[2, 0]]))[0]  # codes are taken modulo 2^24


def test_the_codes_of_categories_do_not_matter():
    codes, y = coded()
    names = np.array([90, 3, 17, 5, 40, 8, 2])
    renamed = np.where(codes < 0, codes, names[codes])
    ours, theirs = (SpanBoost(Trees(), 5).learn_many(Rows(None, c), y) for c in (codes, renamed))
    np.testing.assert_array_equal(ours, theirs)


@settings(max_examples=10)
@given(st.lists(st.integers(-20, 20), min_size=4, max_size=4))
def test_the_scale_of_features_does_not_matter(powers):
    X, y = stream(200)
    with plain():
        ours = SpanBoost(SMALL, 2).learn_many(X, y)
        theirs = SpanBoost(SMALL, 2).learn_many(X * 2.0 ** np.array(powers), y)
    np.testing.assert_array_equal(ours, theirs)


def test_sparse_rows_are_0_where_they_store_nothing():
    rng = np.random.default_rng(3)
    X = (rng.random((3000, 40)) < 0.1) * rng.choice([-1.0, 1.0, 2.0], (3000, 40))
    y = 0.4 * (X[:, 3] > 0) - 0.4 * (X[:, 8] < 0)
    model, dense = SpanBoost(Trees(), 100, 0.1), SpanBoost(Trees(), 100, 0.1)
    assert error(model, Csr(X), y) < 0.1
    bank = model.core.state.bank
    dense.learn_many(X, y)
    bank = bank._replace(scratch=dense.core.state.bank.scratch)
    dense.core.state = model.core.state._replace(bank=bank)
    np.testing.assert_array_equal(dense.predict_many(X), model.predict_many(Csr(X)))


def test_rows_without_a_cell_are_learned():
    model = SpanBoost(SMALL, 2)
    model.learn_many(Csr(np.zeros((60, 3))), np.full(60, 0.5))
    assert splits(model).tolist() == [0, 0]
    assert model.predict_many(Csr(np.zeros((1, 3))))[0] > 0.3
    X, y = stream(100)
    model.learn_many(Csr(np.nan_to_num(X)), y)
    assert splits(model).min() > 0


def test_new_features_are_used():
    X, y = stream(400, missing=False)
    model = SpanBoost(SMALL, 2)
    model.learn_many(Csr(X[:200, 1:2]), y[:200])
    before = model.predict_many(Csr(X))
    np.testing.assert_array_equal(before, model.predict_many(Csr(X[:, :2])))
    model.learn_many(Csr(X[200:]), y[200:])
    assert not np.array_equal(model.predict_many(Csr(X)), model.predict_many(Csr(X[:, 1:2])))


def test_column_numbers_that_are_too_large_do_not_change_the_model():
    model = SpanBoost(SMALL, 2)
    wide = Csr(np.ones((1, 1)))
    model.learn_many(wide, [0.5])
    before = arrays_of(model.core.state)
    wide.indices = np.array([2**35])
    with pytest.raises(ValueError, match="too large for trees"):
        model.learn_many(wide, [0.5])
    assert all(map(np.array_equal, before, arrays_of(model.core.state)))


# --------------------------------------------------------------------------------------------
# Parameters, files, memory


def test_trees_fit_the_plain_residual():
    assert SpanBoost(Trees(), 4).core.state.mode.alpha.tolist() == [1.0] * 4
    assert SpanBoost(Trees(), 4, scale=0.5).core.state.mode.alpha.tolist() == [0.5] * 4
    assert SpanBoost(Trees(), 4, alpha=0.25).core.state.mode.alpha.tolist() == [0.25] * 4
    assert SpanBoost(LinearSGD(), 4, 0.5).core.state.mode.alpha.tolist() == [0.5] * 4
    averaged = HullBoost(Trees(), 4)
    np.testing.assert_allclose(averaged.core.state.mode.alpha, averaged.steps_)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("depth", v) for v in (0, 21, 2.5, True)),
        *(("candidates", v) for v in (0, -4, 7, 8.0)),
        *(("evidence", v) for v in (-1, math.nan, math.inf, "1")),
        *(("grace", v) for v in (0, 1.5)),
        *(("delay", v) for v in (-1, 0.5)),
        *(("recency", v) for v in (0, 101, 1.5)),
        ("dtype", np.float16),
    ],
)
def test_parameters_out_of_range_are_rejected(name, value):
    with pytest.raises(ValueError, match=rf"^{name} must be .* \(got "):
        SpanBoost(Trees(**{name: value}), 3)


@pytest.mark.parametrize("feedback", ["greedy", "linear"])
def test_a_loaded_tree_resumes_learning(feedback, tmp_path):
    X, y = stream(1000)
    rows = KINDS["codes"](X)
    model = SpanBoost(SMALL, 3, feedback=feedback, label_range="auto")
    model.learn_many(Rows(rows.numbers[:600], rows.codes[:600]), y[:600])
    assert splits(model).min() > 1
    save(model, tmp_path / "trees.sb")
    again = load(tmp_path / "trees.sb")
    rest = Rows(rows.numbers[600:], rows.codes[600:])
    np.testing.assert_array_equal(again.learn_many(rest, y[600:]), model.learn_many(rest, y[600:]))
    assert_same_state(again.core.state, model.core.state)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bank.place", 10**6),
        ("bank.place", -2),
        ("bank.link", 10**6),
        ("bank.link", 1),  # a child comes after its parent
        ("bank.link", 0),  # leaves without records
        ("bank.used", 0),
        ("bank.used", 10**6),
        ("bank.candidates.used", -1),
        ("bank.candidates.used", 0),
        ("bank.candidates.used", 10**6),
        ("bank.candidates.owner", 0),
        ("bank.candidates.owner", -1),
        ("bank.candidates.owner", 10**6),
        ("bank.candidates.place", 10**6),
        ("bank.candidates.place", -1),
        ("bank.candidates.seen", -1),
        ("bank.candidates.phases", 0),
    ],
)
def test_a_file_with_indices_out_of_range_is_rejected(name, value, tmp_path):
    X, y = stream(300)
    model = SpanBoost(SMALL, 2)
    model.learn_many(X, y)
    assert splits(model).min() > 1
    path = tmp_path / "trees.sb"
    save(model, path)
    changed(path, tensors=lambda arrays: arrays | {name: np.full_like(arrays[name], value)})
    with pytest.raises(ModelFileError, match="an array holds an invalid number or index"):
        load(path)


@pytest.mark.parametrize("name", ["bank.weight.touched", "bank.candidates.phases.touched"])
@pytest.mark.parametrize(
    "edit", [lambda t: t[::-1].copy(), lambda t: t + 100, lambda t: t - 1, lambda t: t * 1.0]
)
def test_a_file_with_invalid_nodes_or_leaves_is_rejected(name, edit, tmp_path):
    X, y = stream(100)
    model = SpanBoost(SMALL, 2)
    model.learn_many(X, y)
    path = tmp_path / "trees.sb"
    save(model, path)
    changed(path, tensors=lambda arrays: arrays | {name: edit(arrays[name])})
    with pytest.raises(ModelFileError, match=f"{name} is not a sorted list of table indices"):
        load(path)


@pytest.mark.parametrize("feedback", ["greedy", "linear"])
def test_files_contain_only_the_nodes_and_leaves_in_use(feedback, tmp_path):
    X, y = stream(1500)
    path = tmp_path / "trees.sb"
    model, sizes = SpanBoost(Trees(), 20, feedback=feedback, label_range="auto"), []
    for rows in (slice(1), slice(1, 50), slice(50, 1500)):
        model.learn_many(X[rows], y[rows])
        save(model, path)
        sizes.append(path.stat().st_size)
        bank = model.core.state.bank
        assert_same_state(load(path).core.state.bank, select_trees(bank, np.arange(20)))
    assert sizes[0] < sizes[1] < sizes[2]
    assert sizes[0] < 1e4
    bank, arrays = model.core.state.bank, file_arrays(path)
    nodes, leaves = arrays["bank.weight.touched"], arrays["bank.candidates.phases.touched"]
    began = np.count_nonzero(bank.rounds[0] > bank.start)
    assert len(nodes) == began + 2 * splits(model).sum()
    assert len(leaves) == bank.candidates.used[0] <= began + splits(model).sum()
    assert len(arrays["bank.mean"]) == len(nodes)
    assert len(arrays["bank.candidates.table"]) == len(leaves)
    fresh = SpanBoost(Trees(), 20, feedback=feedback)
    fresh.learn_many(X[:1], y[:1])
    for name, old, new in (
        *((name, fresh.core.state.bank, bank) for name in bank.tables),
        *((n, fresh.core.state.bank.candidates, bank.candidates) for n in bank.candidates.tables),
    ):
        untouched = getattr(new, new.tables[0]) == 0
        untouched[:1] = False  # the fresh model has learned a row in its first tree
        np.testing.assert_array_equal(getattr(new, name)[untouched], getattr(old, name)[untouched])


def test_memory_is_as_in_the_docstring():
    model = SpanBoost(Trees(), 100)
    model.learn_many(np.ones((1, 10)), [0.5])
    size = sum(array.nbytes for array in arrays_of(model.core.state))
    assert 12e6 < size < 13.5e6
    assert sum(array.nbytes for array in arrays_of(model.core.state)) == size


def test_the_gain_is_the_decrease_of_the_sum_of_squares():
    X, y = stream(200, missing=False)
    model, rows = single_tree(Trees(depth=1, dtype=F64)), 0
    with plain():
        while not (model.started and splits(model)[0]):
            phases = model.core.state.bank.candidates.phases[0] if rows else 0
            model.learn_one(X[rows], y[rows])
            rows += 1
    bank, mean = model.core.state.bank, np.cumsum(y) / np.arange(1, 201)
    counted = slice(GROUP * phases, rows)
    left = X[counted, bank.place[0] // 4] <= bank.threshold[0]
    distance = (y - np.r_[0, mean[:-1]])[counted]
    sides = distance[left], distance[~left]
    gain = distance.var() * left.size - sum(side.var() * side.size for side in sides)
    assert bank.spread[0] == pytest.approx(gain, rel=1e-9)
    expected = [mean[rows - 1] - distance.mean() + side.mean() for side in sides]
    assert bank.mean[1:, 0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("label", [1.0, 0.7, -1 / 3])
def test_constant_labels_cause_no_split(label):
    X, _ = stream(3000)
    model = SpanBoost(Trees(evidence=1.0, grace=8, delay=2), 10)
    model.learn_many(X, np.full(3000, label))
    assert splits(model).max() == 0


@pytest.mark.parametrize("loss", ["squared", "absolute", "logistic", "euclidean2"])
def test_state_stays_finite(loss):
    X, y = stream(300, loss=loss)
    for labels in (y, np.broadcast_to(y[:1], y.shape)):
        model = SpanBoost(SMALL, 3, loss=LOSSES[loss])
        assert np.isfinite(model.learn_many(X, labels)).all()
        assert all(
            np.isfinite(a).all() for a in (model.core.state.bank.mean, model.core.state.bank.spread)
        )


def test_boosted_trees_learn_a_function_that_is_not_linear():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (6000, 4))
    y = 0.8 * np.sign(X[:, 0] * X[:, 1])
    trees = error(SpanBoost(Trees(), 30, 0.2), X, y)
    assert trees < 0.2 < error(SpanBoost(LinearSGD(), 30, 0.2), X, y)


def used_records(model):
    return model.core.state.bank.candidates.used[0]


def test_pickles_hold_the_nodes_and_leaves_in_use_only():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 3))
    y = np.sign(X[:, 0] * X[:, 1]) / 2
    model = SpanBoost(Trees(depth=10), n=20, eta=0.2)
    model.learn_many(X[:300], y[:300])
    state = pickle.dumps(model)
    table = model.core.state.bank.candidates.table
    assert len(state) < 1.1 * table[: used_records(model)].nbytes + 1e5
    copies = [pickle.loads(state), copy.deepcopy(model)]
    expected = model.learn_many(X[300:], y[300:])
    for one in copies:
        assert one.learn_many(X[300:], y[300:]).tobytes() == expected.tobytes()


# --------------------------------------------------------------------------------------------
# Projections


def test_the_gain_in_projections_is_the_gain_in_all_outputs_on_average():
    codes = new_sketch(np.arange(20_000), 3, 5, seed=1, dtype=F64).codes
    apart = np.array([1.0, -2.0, 0.5, 0.0, 3.0])
    gains = ((codes @ apart) ** 2).sum(axis=1)
    assert gains.mean() == pytest.approx(apart @ apart, rel=0.03)
    assert np.quantile(gains, 0.01) > 0.01 * (apart @ apart)  # few trees are blind for it


def test_the_code_of_an_output_depends_on_its_tree_and_the_seed_only():
    few, many = (new_sketch(np.arange(4), 3, d, seed=7, dtype=F32).codes for d in (2, 30))
    np.testing.assert_array_equal(few, many[:, :, :2])
    alone = new_sketch(np.array([2]), 3, 30, seed=7, dtype=F32).codes
    np.testing.assert_array_equal(alone[0], many[2])
    other = new_sketch(np.arange(4), 3, 30, seed=8, dtype=F32).codes
    assert len(np.unique(np.concatenate([many, other]))) > 0.99 * 2 * many.size


def test_sketched_trees_take_no_more_memory_for_more_classes():
    X, _ = stream(250)
    tables = []
    for classes in (3, 30):
        model = SpanBoost(dataclasses.replace(SMALL, sketch=3), 2, loss=Softmax(classes))
        with plain():
            model.learn_many(X, classes_of(np.nan_to_num(X), 3))
        tables.append(model.core.state.bank.candidates.table.shape)
    assert tables[0] == tables[1]


@pytest.mark.parametrize(("classes", "depth"), [(2, 3), (3, 3), (6, 2), (20, 1)])
def test_sketched_trees_with_many_classes_are_less_deep(classes, depth, monkeypatch):
    monkeypatch.setattr(trees, "MOST_MEANS", 2 * 3 * 2**4)  # 2 trees, 3 classes, 3 levels
    X, _ = stream(250)
    y = classes_of(np.nan_to_num(X), classes)
    for sketch, expected in ((3, depth), (0, 3)):
        learner = dataclasses.replace(SMALL, sketch=sketch, evidence=0.0, delay=0)
        model = SpanBoost(learner, 2, loss=Softmax(classes))
        with plain():
            model.learn_many(X, y)
        bank = model.core.state.bank
        assert bank.depth == expected
        assert bank.used[0] <= 2 * (2 ** (expected + 1) - 1)


def test_a_file_without_projections_is_as_those_of_earlier_versions(tmp_path):
    X, _ = stream(250)
    y = classes_of(np.nan_to_num(X), 3)
    for sketch in (0, 3):
        model = SpanBoost(dataclasses.replace(SMALL, sketch=sketch), 2, loss=Softmax(3))
        model.learn_many(X, y)
        save(model, tmp_path / "model.sb")
        fields = model.parameters()["parameters"]["learner"]["fields"]
        assert ("sketch" in fields) == bool(sketch)
        assert ("bank.sums.codes" in file_arrays(tmp_path / "model.sb")) == bool(sketch)
        again = load(tmp_path / "model.sb")
        np.testing.assert_array_equal(again.learn_many(X, y), model.learn_many(X, y))
