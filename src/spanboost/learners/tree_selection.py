"""Some of the trees of a bank, or all of them, as a bank in which the order of nodes is fixed.

In a pool, the nodes of different trees follow each other as they were created, which depends on the
sizes of blocks. Here the roots come first, then the other nodes tree by tree, and the records of
candidates come in the order of their nodes. So equal trees give equal arrays.
"""

from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.learners.candidates import SUMS, Candidates
from spanboost.learners.leaf_rules import GreedyLeaves
from spanboost.learners.pools import take_entries
from spanboost.learners.tree_bank import FULL, TreeBank
from spanboost.learners.tree_rows import new_tree_scratch


def select_trees(bank: TreeBank, copies: Array) -> TreeBank:
    """Return the trees `copies`, whose numbers must increase."""
    used, number = int(bank.used[0]), len(bank.start)
    tree = trees_of_nodes(bank)[number:]  # of all nodes but the roots
    below = number + np.argsort(tree, kind="stable")
    nodes = np.concatenate([copies, below[np.isin(np.sort(tree), copies)]])
    new_number = np.zeros(used, np.int32)
    new_number[nodes] = np.arange(len(nodes))
    room = len(bank.link) // number * len(copies)
    tables = take_entries(bank, nodes, room)
    old_link, link = bank.link[nodes], tables["link"]
    link[: len(nodes)] = np.where(old_link > 0, new_number[np.maximum(old_link, 0)], 0)
    growing = np.flatnonzero((old_link < 0) & (old_link > FULL))
    link[growing] = -1 - np.arange(len(growing))
    aim = bank.aim
    return bank._replace(
        **tables,
        used=np.array([len(nodes)], bank.used.dtype),
        candidates=_select_records(bank.candidates, copies, -1 - old_link[growing], growing),
        rounds=bank.rounds.copy(),
        start=bank.start[copies],
        aim=GreedyLeaves(aim.step[copies]) if isinstance(aim, GreedyLeaves) else aim,
        sums=bank.sums.only(copies),
        scratch=bank.scratch.renewed(len(copies)),
    )


def trees_of_nodes(bank: TreeBank) -> Array:
    """Return the tree of each node in use."""
    link = bank.link[: bank.used[0]]
    tree = np.full(len(link), -1, np.int64)
    level = np.arange(len(bank.start))  # the roots
    tree[level] = level
    while len(level):
        inner = level[link[level] > 0]
        left = link[inner]
        tree[left] = tree[left + 1] = tree[inner]
        level = np.concatenate([left, left + 1])
    return tree


def _select_records(pool: Candidates, copies: Array, records: Array, owner: Array) -> Candidates:
    """Return these records, in this order, with new owners."""
    room = len(pool.owner) // len(pool.state) * len(copies)
    tables = take_entries(pool, records, room)
    tables["owner"][: len(owner)] = owner
    return pool._replace(
        **tables,
        used=np.array([len(records)], pool.used.dtype),
        state=pool.state[copies],
    )


def pack_trees(bank: TreeBank) -> tuple[Any, ...]:
    """Return the fields of a bank and of its candidates without unused room and scratch space."""
    ordered = select_trees(bank, np.arange(len(bank.start)))
    rows, pool = bank.scratch.rows, ordered.candidates
    fields = _trimmed(ordered) | {"candidates": None, "scratch": None}
    room = len(bank.link), len(pool.owner)
    return fields, _trimmed(pool), room, (rows.values.shape[1] // 2, rows.filled.shape[1])


def unpack_trees(
    fields: dict[str, Any], pool: dict[str, Any], room: tuple[int, int], width: tuple[int, int]
) -> TreeBank:
    """Return the bank whose fields `pack_trees` returned."""
    candidates = Candidates(**pool)
    bank = TreeBank(**fields)
    _, d = bank.mean.shape
    _, rows, number = candidates.table.shape
    dtype = bank.mean.dtype
    return bank._replace(
        **take_entries(bank, np.arange(bank.used[0]), room[0]),
        candidates=candidates._replace(
            **take_entries(candidates, np.arange(candidates.used[0]), room[1])
        ),
        scratch=new_tree_scratch(len(bank.start), d, rows - SUMS, number, *width, dtype),
    )


def _trimmed(pool: Any) -> dict[str, Any]:
    """Return the fields of a pool, whose tables have only the entries in use."""
    tables = {name: getattr(pool, name)[: pool.used[0]] for name in pool.tables}
    return pool._asdict() | tables
