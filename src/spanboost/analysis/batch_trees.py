"""Gradient boosting of trees on all rows at once: the batch model that `spanboost demo` shows.

It follows the usual recipe of batch libraries (histograms of 255 bins, squared loss, 100 trees of
32 leaves, rate 0.1), so the comparison needs none of them. A test compares it with scikit-learn's.
"""

from typing import NamedTuple, Self

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import jit, kernel

_TREES, _DEPTH, _RATE = 100, 5, 0.1
_BINS = 255  # intervals of a feature, with equally many rows each
_LEAST = 20  # rows on each side of a split


@kernel
class _Tree(NamedTuple):
    """A complete tree; node k has the children 2k + 1 and 2k + 2."""

    features: Array  # [inner nodes] the feature that a node splits
    bins: Array  # [inner nodes] the last bin that goes left
    values: Array  # [leaves]

    def child(self, codes: Array, node: int) -> int:
        """Return the child of an inner node for a row of bins."""
        return 2 * node + 1 + int(codes[self.features[node]] > self.bins[node])


class BatchTrees:
    """Boosted regression trees, fitted to numeric rows without missing values."""

    def fit(self, X: Array, y: Array) -> Self:
        """Fit all trees to the rows; earlier trees are discarded."""
        quantiles = np.linspace(0, 1, _BINS + 1)[1:-1]
        self._edges = [np.unique(np.quantile(column, quantiles)) for column in X.T]
        self._mean, self._trees = float(np.mean(y)), list[_Tree]()
        codes, rest = self._encode(X), y - np.mean(y)
        for _ in range(_TREES):
            tree = _grow(codes, rest)
            _add(tree, codes, -1.0, rest)
            self._trees.append(tree)
        return self

    def predict(self, X: Array) -> Array:
        """Return a prediction for each row."""
        codes, answers = self._encode(X), np.full(len(X), self._mean)
        for tree in self._trees:
            _add(tree, codes, 1.0, answers)
        return answers

    def _encode(self, X: Array) -> Array:
        """Return the bin of each value, [rows, features]."""
        pairs = zip(self._edges, X.T, strict=True)
        found = [np.searchsorted(edges, column) for edges, column in pairs]
        return np.stack(found, axis=1).astype(np.uint8)


def _grow(codes: Array, rest: Array) -> _Tree:
    """Return a tree for the part of the labels that earlier trees have left."""
    inner, leaves = 2**_DEPTH - 1, 2**_DEPTH
    features, bins = np.zeros(inner, np.int64), np.full(inner, _BINS)  # every row goes left
    tree, node = _Tree(features, bins, np.zeros(leaves)), np.zeros(len(rest), np.int64)
    for level in range(_DEPTH):
        sums, counts = np.zeros((2, 2**level, codes.shape[1], _BINS))
        _split_level(tree, codes, rest, node, sums, counts)
    sums, counts = (np.bincount(node - inner, one, leaves) for one in (rest, None))
    return tree._replace(values=_RATE * sums / np.maximum(counts, 1))


@jit
def _split_level(
    tree: _Tree, codes: Array, rest: Array, node: Array, sums: Array, counts: Array
) -> None:
    """Split all nodes of one level, and move each row to its child."""
    nodes, features, bins = sums.shape
    first = nodes - 1  # the first node of the level
    for i in range(len(rest)):
        for j in range(features):
            sums[node[i] - first, j, codes[i, j]] += rest[i]
            counts[node[i] - first, j, codes[i, j]] += 1
    for k in range(nodes):
        total, rows, most = sums[k, 0].sum(), counts[k, 0].sum(), 0.0
        for j in range(features):
            left, count = 0.0, 0.0
            for b in range(bins):
                left += sums[k, j, b]
                count += counts[k, j, b]
                if min(count, rows - count) < _LEAST:
                    continue
                gain = left**2 / count + (total - left) ** 2 / (rows - count)
                if gain > most:
                    most, tree.features[first + k], tree.bins[first + k] = gain, j, b
    for i in range(len(rest)):
        node[i] = tree.child(codes[i], node[i])


@jit
def _add(tree: _Tree, codes: Array, sign: float, out: Array) -> None:
    """Add the values of a tree to `out`, or subtract them."""
    for i in range(len(out)):
        node = 0
        while node < len(tree.features):
            node = tree.child(codes[i], node)
        out[i] += sign * tree.values[node - len(tree.features)]
