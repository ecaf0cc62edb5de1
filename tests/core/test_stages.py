"""Learning copy by copy gives the same model, bit for bit, as learning row by row."""

import itertools

import numpy as np
import pytest
from banks import KINDS, LOSSES, arrays_of, assert_same_state, stream, weights_for
from hypothesis import given, settings
from hypothesis import strategies as st

from spanboost import HullBoost, LinearSGD, SpanBoost, Trees, save
from spanboost.compiling.kernels import plain
from spanboost.core.loop import learn
from spanboost.core.stages import has_stages
from spanboost.learners import tree_rows
from spanboost.losses import Poisson

BOOSTERS = {"span": SpanBoost, "hull": HullBoost}


def row_by_row(model, X, y, weights):
    """Learn a block in the order of the listing; return the predictions."""
    core = model.core

    def run(*args):
        core.call(learn, core.state, *args)

    block = model.check(X, y, weights)
    return np.concatenate(core.learn_parts(block, run, model.labels.to_user))


def part_of(X, rows):
    return X.take(rows) if hasattr(X, "take") and not isinstance(X, np.ndarray) else X[rows]


@settings(max_examples=40)
@given(
    booster=st.sampled_from(sorted(BOOSTERS)),
    feedback=st.sampled_from(["greedy", "linear"]),
    loss=st.sampled_from(["squared", "logistic", "euclidean2"]),
    kind=st.sampled_from(["dense", "codes"]),
    chunk=st.integers(1, 90),
    n=st.integers(1, 4),
    depth=st.integers(1, 4),
    evidence=st.sampled_from([0.0, 0.5, 4.0]),
    grace=st.sampled_from([1, 7, 100]),
    delay=st.integers(0, 10),
    recency=st.integers(1, 2),
    offset=st.sampled_from(["printed", "shrunk"]),
    replay=st.sampled_from([0, 0, 2]),
    seed=st.integers(0, 10**6),
    cut=st.integers(1, 119),
)
def test_both_orders_agree_bit_for_bit(
    booster, feedback, loss, kind, chunk, n, depth, evidence, grace, delay, recency, offset,
    replay, seed, cut,
):  # fmt: skip
    X, y = stream(120, seed, loss=loss)
    rows, weights = KINDS[kind](X), weights_for(120, seed)
    learner = Trees(depth, 16, evidence, grace, delay, recency)
    options = {"loss": LOSSES[loss], "feedback": feedback, "replay": replay}
    if feedback == "greedy":
        options["offset"] = offset
    one, other = (BOOSTERS[booster](learner, n, seed=seed, **options) for _ in range(2))
    before, tree_rows.ROWS = tree_rows.ROWS, chunk
    try:
        with plain():
            for part in (slice(0, cut), slice(cut, 120)):
                block = part_of(rows, part), y[part], weights[part]
                got = one.learn_many(*block)
                np.testing.assert_array_equal(got, row_by_row(other, *block))
    finally:
        tree_rows.ROWS = before
    assert has_stages(one.core.state)
    assert_same_state(one.core.state, other.core.state)


@pytest.mark.parametrize("kind", ["dense", "sparse", "both"])
def test_blocks_of_any_size_give_the_same_file(kind, tmp_path):
    """Compiled, with more rows than fit into a chunk."""
    X, y = stream(1300)
    rows = KINDS[kind](X)
    models = [SpanBoost(Trees(depth=5, evidence=2.0), 12, 0.3, replay=1) for _ in range(3)]
    models[0].learn_many(rows, y)
    row_by_row(models[1], rows, y, None)
    edges = [0, 1, 2, 40, 700, 1300]
    if kind == "dense":
        for first, last in itertools.pairwise(edges):
            models[2].learn_many(rows[first:last], y[first:last])
    else:
        models[2].learn_many(rows, y)
    files = []
    for k, model in enumerate(models):
        save(model, tmp_path / f"{k}.sb")
        files.append((tmp_path / f"{k}.sb").read_bytes())
    assert files[0] == files[1] == files[2]
    assert models[0].core.state.bank.used[0] > 100


def test_wide_rows_come_in_smaller_chunks():
    rng = np.random.default_rng(0)
    X = (rng.random((300, 3000)) < 0.01) * rng.standard_normal((300, 3000))
    y = np.clip(X[:, :50].sum(axis=1), -1, 1)
    one, other = (SpanBoost(Trees(evidence=1.0, grace=8), 6, 0.3) for _ in range(2))
    sparse = KINDS["sparse"](X)
    np.testing.assert_array_equal(one.learn_many(sparse, y), row_by_row(other, sparse, y, None))
    assert len(one.core.state.bank.scratch.rows.values) < 100
    assert_same_state(one.core.state, other.core.state)


def test_single_rows_equal_blocks():
    X, y = stream(200, missing=False)
    one, other = (SpanBoost(Trees(evidence=1.0, grace=8), 6, 0.3, replay=2) for _ in range(2))
    single = [one.learn_one(x.tolist(), label) for x, label in zip(X, y, strict=True)]
    np.testing.assert_array_equal(single, other.learn_many(X, y))
    assert_same_state(one.core.state, other.core.state)


def test_copies_that_depend_on_later_ones_are_learned_row_by_row():
    X, y = stream(30)
    models = [
        SpanBoost(LinearSGD(), 3),
        SpanBoost(Trees(), 3, loss="absolute", feedback="linear"),
        SpanBoost(Trees(), 3, loss=Poisson(), label_range="auto"),
    ]
    for model in models:
        model.learn_many(X, np.abs(y))
        assert not has_stages(model.core.state)
    stages = SpanBoost(Trees(), 3)
    stages.learn_many(X, y)
    assert has_stages(stages.core.state)
    assert arrays_of(stages.core.state)
