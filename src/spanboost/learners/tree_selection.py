"""Some of the trees of a bank as a bank of their own.

The result does not depend on the other trees: nodes keep their order, and the records of
candidates come in the order of their nodes. So a tree that learned beside others gives the same
arrays as one that learned alone.
"""

from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.learners.candidates import Candidates
from spanboost.learners.leaf_rules import GreedyLeaves
from spanboost.learners.pools import extended
from spanboost.learners.trees import TreeBank


def select_trees(bank: TreeBank, copies: Array) -> TreeBank:
    """Return the trees `copies`, whose numbers must increase."""
    used, number = int(bank.used[0]), len(bank.start)
    nodes = np.flatnonzero(np.isin(trees_of_nodes(bank), copies))
    new_number = np.zeros(used, np.int32)
    new_number[nodes] = np.arange(len(nodes))
    room = len(bank.link) // number * len(copies)
    tables = _kept_entries(bank, nodes, room)
    old_link, link = bank.link[nodes], tables["link"]
    link[: len(nodes)] = np.where(old_link > 0, new_number[np.maximum(old_link, 0)], 0)
    growing = np.flatnonzero(old_link < 0)
    link[growing] = -1 - np.arange(len(growing))
    aim, scratch = bank.aim, bank.scratch
    return bank._replace(
        **tables,
        used=np.array([len(nodes)], bank.used.dtype),
        candidates=_select_records(bank.candidates, copies, -1 - old_link[growing], growing),
        rounds=bank.rounds.copy(),
        start=bank.start[copies],
        aim=GreedyLeaves(aim.step[copies]) if isinstance(aim, GreedyLeaves) else aim,
        scratch=scratch._replace(
            values=scratch.values.copy(),
            filled=scratch.filled.copy(),
            cells=scratch.cells.copy(),
            node=scratch.node[copies],
            level=scratch.level[copies],
            slope=np.ascontiguousarray(scratch.slope[:, copies]),
            target=scratch.target.copy(),
        ),
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
    tables = _kept_entries(pool, records, room)
    tables["owner"][: len(owner)] = owner
    return pool._replace(
        **tables,
        used=np.array([len(records)], pool.used.dtype),
        state=pool.state[copies],
        scratch=pool.scratch.copy(),
    )


def _kept_entries(pool: Any, entries: Array, room: int) -> dict[str, Any]:
    """Return the tables of a pool with these entries only, in this order."""
    return {name: extended(getattr(pool, name)[entries], room) for name in pool.tables}
