"""Trees in files of formats 1 and 2, where each tree had room for all nodes it could have.

There, the children of node v were 2 v + 1 and 2 v + 2, the place of a leaf was -1, and the number
of a leaf's record was that of its leftmost descendant one level above the full depth. Now all trees
share one pool of nodes and one of records.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.errors import ModelFileError
from spanboost.learners.tree_bank import TreeBank

NODES, RECORDS = "weight.touched", "candidates.phases.touched"
NODE_TABLES = ("weight", "place", "threshold", "mean", "spread")


def pool_trees(part: Any, path: str, tensors: dict[str, Array]) -> None:
    """Replace the arrays of old trees by those of trees in pools.

    part: the bank, or another NamedTuple that may contain trees; path: the name of its arrays.
    """
    for bank, name in _tree_banks(part, path):
        if f"{name}.{NODES}" in tensors and f"{name}.link" not in tensors:
            own = {
                key.removeprefix(f"{name}."): tensors.pop(key)
                for key in list(tensors)
                if key.startswith(f"{name}.")
            }
            tensors |= {f"{name}.{key}": value for key, value in _pooled(bank, own).items()}


def _tree_banks(part: Any, path: str) -> Iterator[tuple[TreeBank, str]]:
    if isinstance(part, TreeBank):
        yield part, path
        return
    for name in getattr(part, "_fields", ()):
        yield from _tree_banks(getattr(part, name), f"{path}.{name}")


class _Shape(NamedTuple):
    """The numbers of an old file."""

    trees: int
    depth: int

    @property
    def nodes(self) -> int:
        """The room for nodes in one tree."""
        return int(2 ** (self.depth + 1) - 1)

    @property
    def leaves(self) -> int:
        """The room for records in one tree."""
        return int(2 ** (self.depth - 1))

    def record_of(self, node: Array) -> Array:
        """Return the number of the record of nodes above the full depth."""
        level = np.frexp(node + 1)[1] - 1
        return (node + 1 - (1 << level)) << (self.depth - 1 - level)


def _pooled(bank: TreeBank, own: dict[str, Array]) -> dict[str, Array]:
    """Return the arrays of one bank in pools."""
    shape = _Shape(len(bank.start), bank.depth)
    touched = _indices(own, NODES, shape.trees * shape.nodes)
    records = _indices(own, RECORDS, shape.trees * shape.leaves)
    for name in NODE_TABLES:
        if own[name].shape[:1] != touched.shape:
            raise ModelFileError(f"{name} has the wrong number of nodes")
    tree, node = np.divmod(touched, shape.nodes)
    if own["place"].dtype.kind != "i" or (own["place"][node >= 2 * shape.leaves - 1] != -1).any():
        raise _damage()
    number = _new_numbers(shape.trees, tree, node)
    link = np.zeros(len(touched), np.int32)
    inner = np.flatnonzero(own["place"] >= 0)
    left = _find(touched, touched[inner] + node[inner] + 1)
    right = _find(touched, touched[inner] + node[inner] + 2)
    if (
        (number[right] != number[left] + 1).any()
        or np.count_nonzero(node) != 2 * len(inner)  # every node but a root has a parent
    ):
        raise _damage()
    link[inner] = number[left]
    owner = _link_records(shape, records, tree, node, link, own["place"])
    order = np.argsort(number)
    own |= {name: own[name][order] for name in NODE_TABLES}
    own["place"] = np.maximum(own["place"], 0)
    used = max(shape.trees, int(number.max(initial=-1)) + 1)
    return own | {
        "link": link[order],
        NODES: number[order],
        "used": np.array([used]),
        RECORDS: np.arange(len(records)),
        "candidates.owner": number[owner].astype(np.int32),
        "candidates.used": np.array([len(records)]),
    }


def _new_numbers(trees: int, tree: Array, node: Array) -> Array:
    """Return the new numbers of nodes: first the roots, then pairs of children."""
    number = tree.copy()
    below = np.flatnonzero(node > 0)
    order = np.lexsort((node[below], tree[below], (node[below] - 1) // 2))
    number[below[order]] = trees + np.arange(len(below))
    return number


def _link_records(
    shape: _Shape, records: Array, tree: Array, node: Array, link: Array, place: Array
) -> Array:
    """Link leaves to their records; return the index of the leaf of each record."""
    leaf = np.flatnonzero((place == -1) & (node < 2 * shape.leaves - 1))
    flat = tree[leaf] * shape.leaves + shape.record_of(node[leaf])
    order = np.argsort(flat)
    owner: Array = leaf[order][_find(flat[order], records)]
    link[owner] = -1 - np.arange(len(records))
    return owner


def _find(places: Array, wanted: Array) -> Array:
    """Return where the wanted numbers are in a sorted array; a `ModelFileError` if one is not."""
    at = np.searchsorted(places, wanted)
    if (at == len(places)).any() or (places[at] != wanted).any():
        raise _damage()
    return at


def _indices(own: dict[str, Array], name: str, room: int) -> Array:
    """Return the indices of touched entries; a `ModelFileError` if they are not."""
    touched = own.get(name, np.zeros(0, np.int64))
    if (
        touched.ndim != 1
        or touched.dtype != np.int64
        or (np.diff(touched) <= 0).any()
        or (len(touched) and not (touched[0] >= 0 and touched[-1] < room))
    ):
        raise ModelFileError(f"{name} is not a sorted list of table indices")
    return touched


def _damage() -> ModelFileError:
    return ModelFileError("an array holds an invalid number or index")
