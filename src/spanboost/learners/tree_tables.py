"""Trees for prediction only: the splits and the leaf values, without what learning needs.

This is the only module that reads the nodes of a `TreeBank` for prediction files and exports.

The nodes of all trees are in one list. The first N are the roots. The children of the j-th inner
node in the list, counted from 0, are the nodes N + 2 j and N + 2 j + 1. So no links are stored, and
equal trees give equal arrays, however they grew.
"""

from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.errors import ModelFileError
from spanboost.learners.feature_weights import grow_table
from spanboost.learners.leaf_rules import LinearLeaves
from spanboost.learners.tree_bank import TreeBank
from spanboost.rows.block import Row


class TreeNodes(NamedTuple):
    """The nodes of N trees.

    Feature f of a row (`Cells` in rows/block.py) has the places 2 f and 2 f + 1. A missing number
    is -inf at the first and +inf at the second. A row goes left if the value at the place is at
    most the threshold or, for the code of a category (odd f), if both are equal.
    """

    inner: Array  # [nodes] 1 for a split, 0 for a leaf
    place: Array  # [splits]
    threshold: Array  # [splits]
    value: Array  # [leaves, d] predictions, before the projection to norm D


class TreeWalk(NamedTuple):
    """The nodes as a descent reads them, and the current row."""

    link: Array  # [nodes] the left child; -1 - leaf for a leaf
    place: Array  # [nodes]
    threshold: Array  # [nodes]
    values: Array  # [2 * features] values of the row by place
    filled: Array  # [width] the places in `values` that are set
    cells: Array  # [1] number of these places


@kernel
class PredictingTrees(NamedTuple):
    """N trees that predict and do not learn."""

    nodes: TreeNodes
    scratch: TreeWalk

    def grown(self, features: int, width: int) -> "PredictingTrees":
        """Return the same trees with room for more features and wider rows."""
        walk = self.scratch
        values, filled = grow_table(walk.values, 2 * features), grow_table(walk.filled, width)
        return self._replace(scratch=walk._replace(values=values, filled=filled))

    @property
    def sound(self) -> bool:
        """Whether all places are in range; compiled code does not check."""
        place = self.nodes.place
        return bool(((place >= 0) & (place < len(self.scratch.values))).all())

    def predict(self, x: Row, h: Array) -> None:
        """Predict with the leaves that the row reaches."""
        walk, value = self.scratch, self.nodes.value
        self.load_row(x)
        for i in range(h.shape[1]):
            v = i
            while walk.link[v] >= 0:
                p, t = walk.place[v], walk.threshold[v]
                cell = walk.values[p]
                right = cell != t if p & 2 != 0 else cell > t
                v = walk.link[v] + (1 if right else 0)
            leaf = -1 - walk.link[v]
            for k in range(h.shape[0]):
                h[k, i] = value[leaf, k]

    def load_row(self, x: Row) -> None:
        """Write the values of the row, each to its two places, and 0 to all others."""
        values, filled, cells = self.scratch.values, self.scratch.filled, self.scratch.cells
        low, high = values.dtype.type(-np.inf), values.dtype.type(np.inf)
        for a in range(cells[0]):
            values[filled[a]], values[filled[a] + 1] = 0, 0
        cells[0] = 0
        for a in range(x.feature.shape[0]):
            p, v = 2 * x.feature[a], x.x[a]
            if p < values.shape[0]:  # else no split uses the feature
                values[p], values[p + 1] = (low, high) if np.isnan(v) else (v, v)
                filled[cells[0]] = p
                cells[0] += 1


def predicting_part(part: Any) -> Any:
    """Return a bank, or a part of one, whose trees predict and do not learn."""
    if isinstance(part, TreeBank):
        room = part.scratch.rows
        return _with_nodes(read_nodes(part), room.values.shape[1] // 2, room.filled.shape[1])
    if hasattr(part, "_fields"):
        return type(part)(*map(predicting_part, part))
    return part


def filled_part(part: Any, path: str, tensors: dict[str, Array]) -> Any:
    """Return a part of a bank with the trees of a file; a ModelFileError if they are invalid."""
    if isinstance(part, PredictingTrees):
        given = TreeNodes(*(tensors[f"{path}.nodes.{name}"] for name in TreeNodes._fields))
        _check_nodes(given, part.nodes)
        return _with_nodes(given, len(part.scratch.values) // 2, len(part.scratch.filled))
    if hasattr(part, "_fields"):
        pairs = zip(part._fields, part, strict=True)
        return type(part)(*(filled_part(one, f"{path}.{name}", tensors) for name, one in pairs))
    return part


def read_nodes(bank: TreeBank) -> TreeNodes:
    """Return the nodes of the trees of a bank."""
    level = np.arange(len(bank.start))  # the roots
    levels = [level]
    while (split := level[bank.link[level] > 0]).size:
        left = bank.link[split].astype(np.int64)
        level = np.stack([left, left + 1], axis=1).ravel()
        levels.append(level)
    order = np.concatenate(levels)
    inner = bank.link[order] > 0
    splits = order[inner]
    return TreeNodes(
        inner.astype(np.uint8),
        bank.place[splits].astype(np.int32),
        bank.threshold[splits],
        _leaf_values(bank, order[~inner]),
    )


def first_children(nodes: TreeNodes) -> Array:
    """Return the left child of each split; the right child is the next node."""
    trees = len(nodes.inner) - 2 * len(nodes.place)
    children: Array = trees + 2 * np.arange(len(nodes.place))
    return children


def _leaf_values(bank: TreeBank, leaves: Array) -> Array:
    """Return the predictions of some leaves, with the same bits as `predict_mean` of their rule."""
    mean, weight, spread = bank.mean[leaves], bank.weight[leaves], bank.spread[leaves]
    if not isinstance(bank.aim, LinearLeaves):
        return np.ascontiguousarray(mean)
    used = spread > 0
    root = np.sqrt(spread + spread, where=used, out=np.ones_like(spread))
    far = np.where(used, bank.aim.D * weight / root, spread)
    return np.ascontiguousarray(far[:, None] * mean)


def _with_nodes(nodes: TreeNodes, features: int, width: int) -> PredictingTrees:
    """Return trees with these nodes, and room for rows with this number of features."""
    inner, dtype = nodes.inner > 0, nodes.value.dtype
    link = np.empty(len(inner), np.int32)
    link[inner] = first_children(nodes)
    link[~inner] = -1 - np.arange(len(nodes.value))
    place, threshold = np.zeros(len(inner), np.int32), np.zeros(len(inner), dtype)
    place[inner], threshold[inner] = nodes.place, nodes.threshold
    values, filled = np.zeros(2 * max(features, 1), dtype), np.zeros(width, np.int64)
    walk = TreeWalk(link, place, threshold, values, filled, np.zeros(1, np.int64))
    return PredictingTrees(nodes, walk)


def _check_nodes(given: TreeNodes, fresh: TreeNodes) -> None:
    """Raise a ModelFileError unless these are nodes of as many trees as `fresh` has."""
    trees, d = fresh.value.shape
    for one, like in zip(given, fresh, strict=True):
        if one.dtype != like.dtype or one.ndim != like.ndim:
            raise ModelFileError("the nodes of trees have an unexpected type")
    inner = given.inner
    if (
        (inner > 1).any()
        or len(inner) != trees + 2 * np.count_nonzero(inner)
        or len(given.place) != np.count_nonzero(inner)
        or len(given.threshold) != len(given.place)
        or given.value.shape != (len(inner) - len(given.place), d)
        # children come after their parents, so every path ends
        or (first_children(given) <= np.flatnonzero(inner)).any()
    ):
        raise ModelFileError("the nodes of trees do not form trees")
