"""Experts that learn a block in steps, while the combination of earlier steps is learned."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.models.booster import Booster, HullBoost, SpanBoost
from spanboost.models.booster_core import CheckedBlock

STEP = 512  # rows


def step_edges(rows: int) -> list[int]:
    """Return the ends of the steps of a block."""
    return [*range(STEP, rows, STEP), rows]


def learn_in_steps(expert: Booster, block: CheckedBlock, edges: Sequence[int]) -> Iterator[Array]:
    """Learn a block; yield the predictions of the rows of each step, whose ends are `edges`."""
    core = expert.core
    if type(expert) not in (SpanBoost, HullBoost) or block.labels.shape[1] > core.d:
        answers = expert.learn_checked(block)  # in one step
        for first, last in pairwise([0, *edges]):
            yield answers[first:last]
        return
    to_user = expert.labels.to_user
    for parts in core.learn_parts_in_steps(block, core.learn_rows, to_user, edges):
        yield np.concatenate(parts)
