"""Classes that appear in the stream: a booster gets more outputs and keeps what it has learned.

The class axis of every array is extended at its end. The new class starts as every class starts in
a model that has learned nothing, so its score is 0.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.models.booster_core import BoosterCore
from spanboost.models.state import leaves, touched_mark

ABSENT = -690.0  # the score of a class before its first label: its probability is about 1e-300


def class_spans(labels: Array, d: int) -> Iterator[tuple[int, int, int]]:
    """Yield (first, last, classes) for rows between the first labels of new classes.

    labels: [rows, classes] unit vectors; d: the number of classes before the first row.
    """
    classes = np.maximum.accumulate(np.maximum(labels.argmax(axis=1) + 1, d))
    starts = np.flatnonzero(np.diff(classes, prepend=d))
    bounds = [0, *starts.tolist(), len(classes)]
    for first, last in pairwise(bounds):
        if first < last:
            yield first, last, int(classes[first])


def widen_core(core: BoosterCore, narrow: BoosterCore) -> None:
    """Move everything that a core with fewer outputs has learned to one that has learned nothing.

    The narrow core cannot be used afterwards.
    """
    core.encoder, core.memory, core.call = narrow.encoder, narrow.memory, narrow.call
    core.sample, core.fitted = narrow.sample, narrow.fitted
    core.labels.rows, core.labels.seen = narrow.labels.rows, narrow.labels.seen
    core.labels.weight_scale = narrow.labels.weight_scale
    kind = narrow.encoder.kind
    if kind is None:
        return
    core.prepare_unread(kind, narrow.features, narrow.width)
    marks = dict[int, tuple[Array, ...]]()  # the touched entries of each owner, found once
    for part in ("algorithm", "bank"):
        wide, old = (leaves(getattr(one.state, part), part) for one in (core, narrow))
        for (_, target, _), (_, value, owner) in zip(wide, old, strict=True):
            # tables of the old bank may have more room, which is not used yet
            both: tuple[Any, ...] = tuple(map(slice, map(min, target.shape, value.shape)))
            if owner is not None:
                if id(owner) not in marks:
                    marks[id(owner)] = np.nonzero(touched_mark(owner))
                touched = marks[id(owner)]
                both = (*touched, *both[len(touched) :])
            target[both] = value[both]
