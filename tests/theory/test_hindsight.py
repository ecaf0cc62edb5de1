"""The best functions of a stream in hindsight, against plain oracles that keep all rows."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spanboost import Rows
from spanboost.compiling.kernels import plain
from spanboost.losses import Scalar, Squared
from spanboost.rows.block import block_of
from spanboost.rows.validation import Sparse
from spanboost.theory.hindsight import Hindsight, best_in_cross
from spanboost.theory.regret import best_in_hull

T = 60
HADAMARD = np.array([[1.0]])
for _ in range(4):
    HADAMARD = np.block([[HADAMARD, HADAMARD], [HADAMARD, -HADAMARD]])


def sparse(X):
    """Return a CSR block with an explicit zero and a missing value in every row."""
    rows = [[(j, v) for j, v in enumerate(row) if v != 0] + [(7, 0.0), (8, np.nan)] for row in X]
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.array([j for row in rows for j, _ in row], np.int64)
    return Sparse(indptr, indices, np.array([v for row in rows for _, v in row]), (len(X),))


def named(X):
    return [{f"x{j}": None if np.isnan(v) else v for j, v in enumerate(row) if v} for row in X]


def numbers(rng, rows=T, k=3):
    X = rng.standard_normal((rows, k)) * [1e-3, 1.0, 1e4]
    return np.where(rng.random(X.shape) < 0.2, rng.choice([0.0, np.nan], X.shape), X)


def block(kind, rng, rows):
    X = numbers(rng, rows)
    if kind == "codes":
        return Rows(X, rng.integers(-1, 3, (rows, 2)))
    if kind == "codes of sparse":
        return Rows(sparse(X), rng.integers(-1, 3, (rows, 2)))
    if kind == "only codes":
        return Rows(None, rng.integers(-1, 3, (rows, 2)))
    return {"dense": X, "sparse": sparse(X), "named": named(X)}[kind]


def design(blocks, bits):
    """Return all rows with a column for each feature, read one by one as the compiled loop does."""
    rows, names = [], {"constant": 0}
    with plain():
        for X in blocks:
            if isinstance(X, list):
                X = sparse([[_number(row, j) for j in range(3)] for row in X])  # noqa: PLW2901
            read = block_of(X, np.float64, bits)
            for t in range(len(read.X)):
                row = read.row(t)
                active = zip(row.feature[1:].tolist(), row.x[1:].tolist(), strict=True)
                rows.append([("constant", 1.0), *active])
    for row in rows:
        for f, _ in row:
            names.setdefault(f, len(names))
    A = np.zeros((len(rows), len(names)))
    for t, row in enumerate(rows):
        for f, x in row:
            A[t, names[f]] += x
    return A


def _number(row, j):
    value = row.get(f"x{j}", 0.0)
    return np.nan if value is None else value


def summarize(blocks, y, weights, bits=None):
    seen, first = Hindsight(bits), 0
    for X in blocks:
        last = first + (X.shape[0] if isinstance(X, Sparse) else len(X))
        seen.add(X, y[first:last], None if weights is None else weights[first:last])
        first = last
    assert first == len(y) == seen.rows
    return seen


@settings(max_examples=60)
@given(
    st.sampled_from(["dense", "sparse", "named", "codes", "codes of sparse", "only codes"]),
    st.integers(0, 10**6),
    st.lists(st.integers(1, 25), min_size=1, max_size=6),
    st.booleans(),
    st.sampled_from([None, 1, 3]),
)
@example("dense", 0, [1], False, None)
def test_the_triangle_has_the_losses_of_all_rows(kind, seed, sizes, weighted, bits):
    rng = np.random.default_rng(seed)
    bits = None if kind == "named" else bits  # their columns are hashed names, not x0, x1, x2
    blocks = [block(kind, rng, rows) for rows in sizes]
    rows = sum(sizes)
    y = 5e5 + rng.standard_normal(rows)
    weights = rng.choice([0.0, 0.5, 3.0], rows) if weighted else None
    seen = summarize(blocks, y, weights, bits)
    A, w = design(blocks, bits), np.ones(rows) if weights is None else weights
    assert seen.features == A.shape[1] - 1
    root = np.sqrt(w)[:, None]
    norms = np.linalg.norm(root * A, axis=0)
    norms[norms == 0] = 1.0  # all rows with this feature weigh 0
    best = np.linalg.lstsq(root * A / norms, root[:, 0] * (y - 5e5), rcond=1e-10)[0]
    least = w @ (A / norms @ best - (y - 5e5)) ** 2
    assert seen.linear().loss == pytest.approx(least, rel=1e-8, abs=1e-9)
    assert seen.constant_loss(5e5 + 1) == pytest.approx(w @ (y - 5e5 - 1) ** 2, rel=1e-9, abs=1e-9)
    assert seen.weight == pytest.approx(w.sum())
    assert seen.heaviest == w.max()


@pytest.mark.parametrize(
    ("columns", "noise"),
    [
        (lambda H: H, 1.0),
        (lambda H: 2000 + 5 * H, 1.0),  # years
        (lambda H: 1.7e9 + 1e5 * H, 1e-2),  # seconds since 1970
        (lambda H: H * [1e-20, 1.0, 1e10, 1e30], 1.0),
        (
            lambda H: np.column_stack([H, H, H.sum(axis=1), 0 * H]),
            1.0,
        ),  # duplicate and dependent columns
        (lambda H: np.column_stack([H, H[:, 0] + 1e-7 * H[:, 1]]), 1.0),
        (lambda H: H, 1e-5),  # a loss that is 1e-22 of the squared labels
    ],
    ids=["plain", "years", "seconds", "scales", "dependent", "nearly", "small"],
)
def test_a_loss_known_in_advance(columns, noise):
    """Labels are linear in columns of a Hadamard matrix; one more column is the residual."""
    X = columns(np.tile(HADAMARD[:, 1:5], (500, 1)))
    rest = np.tile(HADAMARD[:, 9], 500)
    y = 5e5 + np.tile(HADAMARD[:, 1:5], (500, 1)) @ [1.0, -2.0, 3.0, 0.5] + noise * rest
    seen = Hindsight()
    for first in range(0, len(y), 37):
        seen.add(X[first : first + 37], y[first : first + 37])
    # a label of 5e5 is only known to 6e-11
    assert seen.linear().loss == pytest.approx(8000 * noise**2, rel=1e-9 + 1e-10 / noise)


def test_the_weights_are_those_of_the_best_function():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3)) * [1, 100, 1e-3]
    y = 7 + X @ [2.0, 0.3, 500.0]
    np.testing.assert_allclose(summarize([X], y, None).linear().W, [7, 2, 0.3, 500], rtol=1e-9)
    np.testing.assert_allclose(summarize([X], y, None).in_ball(7.0).W, [2, 0.3, 500], rtol=1e-9)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.floats(0.01, 3), st.floats(-1, 1), st.booleans())
def test_the_best_in_a_ball_satisfies_its_conditions(seed, radius, centre, twice):
    """Inside, no slope; on the sphere, a slope straight outwards (Karush, Kuhn and Tucker)."""
    rng = np.random.default_rng(seed)
    X, y, w = rng.standard_normal((T, 3)), rng.standard_normal(T), rng.uniform(0, 2, T)
    X = np.column_stack([X, X[:, 0]]) if twice else X
    best = summarize([X[:20], X[20:]], y, w).in_ball(centre, radius)
    residuals = X @ best.W - (y - centre)
    assert best.loss == pytest.approx(w @ residuals**2)
    assert np.linalg.norm(best.W) <= radius * (1 + 1e-9)
    slope = X.T @ (w * residuals)
    multiplier = -slope @ best.W / (best.W @ best.W)
    np.testing.assert_allclose(slope, -multiplier * best.W, atol=1e-7)
    assert multiplier >= -1e-7
    assert multiplier <= 1e-7 or np.linalg.norm(best.W) == pytest.approx(radius)


def test_among_equally_good_functions_the_shortest_wins():
    x = np.linspace(-1, 1, 50)
    best = summarize([np.column_stack([x, x, x])], 6 * x, None).in_ball(0.0)
    np.testing.assert_allclose(best.W, [2, 2, 2], rtol=1e-9)


@settings(max_examples=60)
@given(
    st.integers(0, 10**6),
    st.sampled_from([0.0, 0.01, 0.3, 1.0, 3.0, 100.0]),
    st.floats(-1, 1),
    st.booleans(),
)
def test_nothing_in_the_hull_beats_the_best_combination(seed, reach, centre, dependent):
    """By convexity, on all rows, no w' of the class has a loss below loss - gap."""
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((T, 4)) * [1, 1e-3, 1e3, 1], rng.choice([0.0, 0.5, 1.0], T)
    X = np.column_stack([X, X[:, 0], X[:, 1] + 1e-3 * X[:, 3]]) if dependent else X
    y = np.sin(X[:, 0]) + 3e-4 * X[:, 2] + 0.1 * rng.standard_normal(T)
    best = summarize([X[:31], X[31:]], y, w).in_hull(centre, reach)
    assert np.abs(best.W).sum() <= reach * (1 + 1e-12)
    A = np.column_stack([np.ones(T), X])
    A /= np.abs(A[w > 0]).max(axis=0)
    residuals = A @ best.W - (y - centre)
    assert best.loss == pytest.approx(w @ residuals**2)
    slope = 2 * A.T @ (w * residuals)
    assert slope @ best.W + reach * np.abs(slope).max() <= 1e-8 * best.loss
    assert best.gap <= 1e-8 * best.loss


@pytest.mark.parametrize("reach", [0.2, 0.7])
def test_two_solvers_find_the_same_combination(reach):
    rng = np.random.default_rng(3)
    X, y = rng.uniform(-1, 1, (T, 3)), rng.uniform(-1, 1, T)
    best = summarize([X], y, None).in_hull(0.0, reach)
    A = np.column_stack([np.ones(T), X / np.abs(X).max(axis=0)])
    corners = reach * np.concatenate([A, -A], axis=1)
    with plain():
        other = best_in_hull(Scalar(Squared()), corners, y[:, None], np.ones(T))
    assert best.loss == pytest.approx(other.loss, abs=2 * other.gap + 1e-9)


def test_combinations_by_hand():
    """With orthogonal columns of norm 1, each weight shrinks by the same amount, down to 0."""
    best = best_in_cross(np.eye(3), np.array([3.0, -2.0, 0.5]), 3.0)
    np.testing.assert_allclose(best.W, [2, -1, 0], atol=1e-12)
    assert best.loss == pytest.approx(1 + 1 + 0.25)
    whole = best_in_cross(np.eye(3), np.array([3.0, -2.0, 0.5]), 5.5)
    np.testing.assert_allclose(whole.W, [3, -2, 0.5], atol=1e-12)


def test_the_gap_is_not_too_small():
    """Before the solver converges, the optimum is not below loss - gap."""
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((40, 8)), rng.standard_normal(40)
    best = best_in_cross(A, y, 0.5)
    for tolerance in (10.0, 0.3, 0.1, 0.03, 0.01):
        rough = best_in_cross(A, y, 0.5, tolerance)
        assert rough.loss - rough.gap <= best.loss <= rough.loss
    # at the corner (1, 0), residuals (-2, -3): the slope towards (0, 1) is 2 (-3 + 2)
    assert best_in_cross(np.eye(2), np.full(2, 3.0), 1.0, 1.0).gap == pytest.approx(2)


def test_rows_of_weight_0_do_not_count():
    X, y = np.array([[1.0], [100.0], [-2.0]]), np.array([1.0, 50.0, -2.0])
    seen = summarize([X], y, np.array([1.0, 0.0, 1.0]))
    # largest |x| is 2: half the label is 1 of it
    np.testing.assert_allclose(seen.in_hull(0.0, 2.0).W, [0, 2], atol=1e-9)
    assert seen.in_hull(0.0, 2.0).loss == pytest.approx(0, abs=1e-15)


def test_rows_without_features():
    seen = summarize([np.zeros((4, 2))], np.array([1.0, 2.0, 3.0, 4.0]), None)
    assert seen.features == 0
    assert seen.linear().loss == pytest.approx(5)
    assert seen.in_ball(2.0).loss == pytest.approx(1 + 0 + 1 + 4)


def test_too_many_features_are_reported():
    rng = np.random.default_rng(0)
    seen = Hindsight(limit=10)
    seen.add(np.ones((5, 10)), np.ones(5))
    assert seen.linear().loss == pytest.approx(0, abs=1e-20)
    seen.add(Sparse(np.arange(4), np.array([9, 10, 3]), np.ones(3), (3,)), np.ones(3))
    assert seen.too_many
    with pytest.raises(ValueError, match="more than 10 features"):
        seen.linear()
    for _ in range(20):  # later rows are not kept
        rows = [{f"name{k}": 1.0 for k in rng.integers(0, 10**9, 50)}]
        seen.add(rows, np.ones(1), np.full(1, 2.0))
    assert (seen.rows, seen.weight, seen.heaviest) == (28, 48.0, 2.0)
    assert not seen._names.columns
    assert seen._triangle.size == 0
