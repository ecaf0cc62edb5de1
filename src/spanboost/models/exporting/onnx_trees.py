"""Trees as one operator of ONNX, TreeEnsembleRegressor, with an output for each copy."""

from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.learners.tree_tables import TreeNodes, first_children
from spanboost.models.exporting.onnx_graph import ML, Graph

LEAF, NUMBER, CATEGORY = "LEAF", "BRANCH_LEQ", "BRANCH_EQ"


def add_trees(graph: Graph, nodes: TreeNodes, row: str, columns: int, D: Any) -> str:
    """Add the operator; return the predictions of all trees, [rows, d N].

    row: [rows, cells] the numbers, then the codes of categories.
    columns: number of columns of numbers.
    D: predictions are projected to this norm.
    """
    tree, trees = trees_of(nodes), _tree_count(nodes)
    order = np.argsort(tree, kind="stable")  # the nodes of a tree follow its root
    number = np.empty(len(tree), np.int64)  # of a node among those of its tree
    number[order] = np.arange(len(tree)) - np.searchsorted(tree[order], tree[order])
    inner = nodes.inner > 0
    place, threshold = _expand(nodes.place, inner, 0), _expand(nodes.threshold, inner, 0.0)
    left, category = _expand(first_children(nodes), inner, 0), (place & 2) > 0
    # a missing number goes right at the second place of a feature, unless all numbers go left
    missing_left = inner & ~category & ((place % 2 == 0) | np.isposinf(threshold))
    d, double = nodes.value.shape[1], nodes.threshold.dtype == np.float64
    leaves = np.flatnonzero(~inner)
    attributes = {
        "nodes_treeids": tree[order],
        "nodes_nodeids": number[order],
        "nodes_featureids": np.where(category, columns + place // 4, place // 4)[order],
        "nodes_modes": np.where(inner, np.where(category, CATEGORY, NUMBER), LEAF)[order],
        "nodes_truenodeids": np.where(inner, number[left], 0)[order],
        "nodes_falsenodeids": np.where(inner, number[left + inner], 0)[order],
        "nodes_missing_value_tracks_true": missing_left.astype(np.int64)[order],
        "target_treeids": np.repeat(tree[leaves], d),
        "target_nodeids": np.repeat(number[leaves], d),
        "target_ids": (tree[leaves][:, None] + trees * np.arange(d)).ravel(),
        _typed("nodes_values", double): _numbers(threshold[order], double),
        _typed("target_weights", double): _numbers(project(nodes.value, D).ravel(), double),
    }
    plain = {
        name: one.tolist() if isinstance(one, np.ndarray) else one
        for name, one in attributes.items()
    }
    return graph.add(
        "TreeEnsembleRegressor",
        row,
        domain=ML,
        n_targets=d * trees,
        post_transform="NONE",
        **plain,
    )


def trees_of(nodes: TreeNodes) -> Array:
    """Return the tree of each node."""
    tree = np.zeros(len(nodes.inner), np.int64)
    tree[: _tree_count(nodes)] = np.arange(_tree_count(nodes))
    for parent, child in zip(np.flatnonzero(nodes.inner), first_children(nodes), strict=True):
        tree[child] = tree[child + 1] = tree[parent]
    return tree


def project(value: Array, D: Any) -> Array:
    """Return predictions [.., d] projected to norm D."""
    if value.shape[1] == 1:
        return np.clip(value, -D, D)
    norms = np.sqrt(np.square(value).sum(axis=1, keepdims=True))
    shrink = np.divide(D, norms, out=np.ones_like(norms), where=norms > D)
    projected: Array = value * shrink
    return projected


def _tree_count(nodes: TreeNodes) -> int:
    return len(nodes.inner) - 2 * len(nodes.place)


def _expand(of_splits: Array, inner: Array, other: Any) -> Array:
    """Return values of splits as values of nodes."""
    values = np.full(len(inner), other, of_splits.dtype)
    values[inner] = of_splits
    return values


def _typed(name: str, double: bool) -> str:
    return f"{name}_as_tensor" if double else name


def _numbers(values: Array, double: bool) -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(values.astype(np.float64), "") if double else values
