"""Save and restore the rows that a booster keeps: for replay, for fits, and its sample of rows."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.errors import ModelFileError
from spanboost.losses import Softmax
from spanboost.models.booster_core import BoosterCore
from spanboost.rows.block import Rows
from spanboost.rows.row_sample import RowSample
from spanboost.rows.validation import Sparse

MEMORY = "memory."  # prefix of the arrays that hold rows for replay
SAMPLE = "sample."  # prefix of the arrays that hold the sample
FITTED = "fitted."  # prefix of the arrays that hold the rows that an estimator is fitted to
ARRAYS = (
    {"X", "labels", "weights"},
    {"X", "codes", "indptr", "indices", "data", "labels", "weights"},
)
INDICES = {"codes", "indptr", "indices"}


def kept_tensors(core: BoosterCore) -> Iterator[tuple[str, Array]]:
    """Yield the arrays of the rows that a core keeps, by name."""
    each = (MEMORY, core.memory), (SAMPLE, core.sample), (FITTED, core.fitted)
    for prefix, kept in each:
        if kept is not None:
            for name, value in kept.state().items():
                yield f"{prefix}{name}", value


def restore_memory(core: BoosterCore, tensors: dict[str, Array]) -> None:
    """Restore the rows for replay, and remove them from the arrays."""
    kept = take_kept(tensors, MEMORY)
    memory, learned = core.memory, core.labels.seen
    if memory is None or learned == 0:
        if kept:
            raise ModelFileError("the file holds rows for replay that are never read")
        return
    rows = _read_rows(core, kept, min(learned, memory.size), "rows for replay")
    labels, weights = kept["labels"], kept["weights"]
    if memory.classes and labels.shape[1] == core.d:  # a file of an earlier version
        labels = labels.argmax(axis=1)[:, None].astype(labels.dtype)
    if (
        labels.shape[1] != (1 if memory.classes else core.d)
        or not (_are_labels if memory.classes else _are_scaled)(core, labels)
        or {labels.dtype, weights.dtype} != {np.dtype(core.dtype)}
    ):
        raise ModelFileError("the rows for replay are invalid")
    memory.restore(rows, labels, weights, learned)


def _are_scaled(core: BoosterCore, labels: Array) -> bool:
    """Return whether numbers can be labels in the model's units."""
    if core.labels.log_link:
        return bool(((labels >= 0) & np.isfinite(labels)).all())
    return bool((np.abs(labels) < 1 + 1e-6).all())


def take_kept(tensors: dict[str, Array], prefix: str) -> dict[str, Array]:
    """Remove kept rows from the arrays of a file, and return them."""
    names = [name for name in tensors if name.startswith(prefix)]
    return {name.removeprefix(prefix): tensors.pop(name) for name in names}


def restore_sample(core: BoosterCore, kept: dict[str, Array]) -> None:
    """Restore the sample of rows.

    Files written before models kept a sample have none. If such a file has rows for replay, some of
    them become the sample.
    """
    if core.sample is None or not kept:
        _sample_from_memory(core)
        return
    _fill_sample(core, core.sample, kept)


def restore_fitted(core: BoosterCore, tensors: dict[str, Array]) -> None:
    """Restore the rows that an estimator is fitted to, and remove them from the arrays."""
    kept = take_kept(tensors, FITTED)
    if core.fitted is not None and core.labels.seen > 0:
        _fill_sample(core, core.fitted, kept)
    elif kept:
        raise ModelFileError("the file holds rows for fits that are never read")


def _fill_sample(core: BoosterCore, sample: RowSample, kept: dict[str, Array]) -> None:
    """Restore an empty sample of the rows that a core has learned."""
    labels, weights = kept["labels"], kept["weights"]
    rows = _read_rows(core, kept, len(weights), "sampled rows")
    if (
        not 0 < len(weights) <= min(sample.size_for(rows), core.labels.seen)
        or not _are_labels(core, labels)
        or {labels.dtype, weights.dtype} != {np.dtype(np.float64)}
    ):
        raise ModelFileError("the sampled rows are invalid")
    sample.restore(rows, labels, weights)


def _sample_from_memory(core: BoosterCore) -> None:
    memory = core.memory
    if core.sample is None or memory is None or memory.learned == 0:
        return
    number, newest = min(memory.learned, memory.size), np.array([memory.learned - 1])
    size = min(number, core.sample.size_for(memory.rows.take(newest % memory.ring)))
    slots = (memory.learned - 1 - np.arange(size) * number // size) % memory.ring
    labels, scores = memory.labels[slots].astype(np.float64), core.labels.scores
    if not scores:
        labels = core.labels.to_user(labels).reshape(size, -1)
    core.sample.restore(memory.rows.take(slots), labels, memory.weights[slots])


def _are_labels(core: BoosterCore, labels: Array) -> bool:
    """Return whether a sample can have these labels: in the user's units, or class numbers."""
    if not isinstance(core.labels.loss, Softmax):
        return labels.shape[1] == core.d and bool(np.isfinite(labels).all())
    return labels.shape[1] == 1 and bool(np.isin(labels, np.arange(core.d)).all())


def _read_rows(core: BoosterCore, kept: dict[str, Array], number: int, what: str) -> Any:
    """Return the rows of a file, encoded; a `ModelFileError` if the model cannot read them."""
    if (
        set(kept) not in ARRAYS
        or len(kept["X"]) != number
        or kept["weights"].shape != (number,)
        or kept["labels"].shape[:1] != (number,)
        or kept["labels"].ndim != 2
        or not ((kept["weights"] > 0) & np.isfinite(kept["weights"])).all()
        or any(kept[name].dtype != np.int64 for name in INDICES & set(kept))
    ):
        raise ModelFileError(f"the {what} are invalid")
    kind, rows = core.encoder.kind, kept["X"]
    if kind is None:
        raise ModelFileError(f"the {what} are invalid")
    if "codes" in kept:
        sparse = Sparse(kept["indptr"], kept["indices"], kept["data"], (number,))
        encoded: Any = core.learner.encode(
            Rows(rows if rows.shape[1] else sparse, kept["codes"]), 1
        )
        shape = (encoded.X.shape[1], encoded.codes.shape[1])
        fits = shape == kind.shape and encoded.features <= core.features
        core.prepare_unread(kind, 0, width=len(encoded.x))
    else:
        encoded = rows
        fits = (kind.shape[0], rows.shape[1:]) == kind.shape
        fits = fits and rows.dtype == np.float64 and bool(np.isfinite(rows).all())
    if not fits:
        raise ModelFileError(f"the {what} are not of the kind that the model reads")
    return encoded
