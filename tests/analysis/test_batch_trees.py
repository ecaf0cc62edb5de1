import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from spanboost.analysis.batch_trees import BatchTrees
from spanboost.data.generated import make_drifting_stream


@pytest.fixture(scope="module")
def rows():
    X, y = make_drifting_stream(8000, seed=1)
    return X[:4000], y[:4000]  # before the change


def test_it_is_as_good_as_a_batch_library(rows):
    X, y = rows
    batch = HistGradientBoostingRegressor(random_state=0)
    ours, theirs = (
        np.mean((model.fit(X[:3000], y[:3000]).predict(X[3000:]) - y[3000:]) ** 2)
        for model in (BatchTrees(), batch)
    )
    assert ours < 1.05 * theirs
    assert ours < 0.05 * np.var(y)


def test_one_tree_splits_as_a_plain_search_does(rows, monkeypatch):
    monkeypatch.setattr("spanboost.analysis.batch_trees._TREES", 1)
    X, y = rows[0][:200, :3], rows[1][:200]
    rate, mean = 0.1, y.mean()
    found = BatchTrees().fit(X, y).predict(X)
    assert found == pytest.approx(mean + rate * plain_tree(X, y - mean, depth=5))


def plain_tree(X, rest, depth):
    """Return the fit of a tree that tries every split between two values."""
    best, least = None, np.sum((rest - rest.mean()) ** 2)
    for j in range(X.shape[1]) if depth else ():
        for value in np.sort(X[:, j])[19:-20]:
            left = X[:, j] <= value
            error = sum(np.sum((rest[side] - rest[side].mean()) ** 2) for side in (left, ~left))
            if error < least - 1e-12:
                best, least = left, error
    answers = np.full(len(rest), rest.mean())
    if best is not None:
        for side in (best, ~best):
            answers[side] = plain_tree(X[side], rest[side], depth - 1)
    return answers


def test_few_equal_rows_are_predicted_by_their_mean():
    X, y = np.ones((3, 2)), np.array([0.0, 1.0, 5.0])
    assert BatchTrees().fit(X, y).predict(X) == pytest.approx([2.0, 2.0, 2.0])
