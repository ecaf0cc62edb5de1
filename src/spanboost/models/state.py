"""Convert the state of a booster to arrays and JSON, and back.

Only the touched entries of tables are saved: features that were seen, nodes and leaves that a row
has reached. Before a model is built from an array, its dtype and shape are checked, and NaN is
refused. Infinite numbers are allowed, because trees have infinite thresholds.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from spanboost.checks import is_integer
from spanboost.compiling.arrays import Array
from spanboost.errors import ModelFileError
from spanboost.models.booster_core import BoosterCore
from spanboost.models.header import from_json, not_data_error
from spanboost.rows.block import Rows
from spanboost.rows.encoder import RowKind
from spanboost.rows.label_history import LEARNED, VARIED
from spanboost.rows.validation import Sparse

MEMORY = "memory."  # prefix of the arrays that hold rows for replay
COUNTS = "labels.counts"
MEMORY_ARRAYS = (
    {"X", "labels", "weights"},
    {"X", "codes", "indptr", "indices", "data", "labels", "weights"},
)

INDICES = {"codes", "indptr", "indices"}


def core_header(core: BoosterCore) -> dict[str, Any]:
    """Return the label range and the kind of rows, as JSON."""
    return {"labels": core.labels.to_json(), "rows": _rows_to_json(core)}


def core_tensors(core: BoosterCore) -> Iterator[tuple[str, Array]]:
    """Yield the arrays of a core, by name."""
    for name, value, owner in _leaves_of_core(core):
        if owner is None:
            yield name, np.ascontiguousarray(value)
            continue
        if _may_be_omitted(name, owner) and not value.any():
            continue
        mark = _mark(owner)
        yield name, value[np.nonzero(mark)]
        if value is mark:
            yield f"{name}.touched", np.flatnonzero(mark)
    if core.memory is not None:
        for name, value in core.memory.state().items():
            yield f"{MEMORY}{name}", value


def restore_core(core: BoosterCore, header: dict[str, Any], tensors: dict[str, Array]) -> None:
    """Fill a fresh core with what `core_header` and `core_tensors` returned."""
    core.labels.restore(header["labels"])
    if header["rows"] is not None:
        _restore_rows(core, header["rows"])
        _restore_memory(core, tensors)
    _add_last_count(tensors)
    expected = dict(_expected(core, tensors))
    if set(tensors) != set(expected):
        raise ModelFileError("the file has missing or unexpected arrays")
    for name, (target, where, shape) in expected.items():
        value = tensors[name]
        if target is not None:
            if value.shape != shape or value.dtype != target.dtype:
                raise ModelFileError(
                    f"{name} must be {target.dtype} of shape {shape} "
                    f"(got {value.dtype} of shape {value.shape})"
                )
            if value.dtype.kind == "f" and np.isnan(value).any():
                raise ModelFileError(f"{name} contains NaN; the file is damaged")
            target[where] = value
    if core.state.bank is not None and not all(map(_is_sound, _parts(core).values())):
        raise ModelFileError("an array holds an invalid number or index")


def _add_last_count(tensors: dict[str, Array]) -> None:
    """Add the count of labels that vary, which the first files of format 2 lack."""
    counts = tensors.get(COUNTS)
    if counts is not None and counts.shape == (VARIED,):
        tensors[COUNTS] = np.append(counts, counts[LEARNED])


def leaves(node: Any, path: str) -> Iterator[tuple[str, Array, Any]]:
    """Yield (name, array, owner) for every array in a tree of NamedTuples.

    The owner is the NamedTuple if the array is one of its tables, else None. `tables` of an owner
    names the fields that share their leading axes. The first one is 0 where nothing was learned;
    there, all tables have their initial values.
    """
    tables = getattr(node, "tables", ())
    for name in node._fields:
        value = getattr(node, name)
        if name == "scratch":
            continue
        if hasattr(value, "_fields"):
            yield from leaves(value, f"{path}.{name}")
        elif isinstance(value, np.ndarray):
            yield f"{path}.{name}", value, node if name in tables else None


def _parts(core: BoosterCore) -> dict[str, Any]:
    """Return the parts of a core that are NamedTuples of arrays, by name."""
    parts = {"algorithm": core.state.algorithm, "bank": core.state.bank}
    return parts if core.labels.history is None else parts | {"labels": core.labels.history}


def _leaves_of_core(core: BoosterCore) -> Iterator[tuple[str, Array, Any]]:
    state = core.state
    if state.bank is None:
        return
    if not core.is_data:
        raise not_data_error(core.learner)
    for name, part in _parts(core).items():
        yield from leaves(part, name)


def _mark(owner: Any) -> Array:
    """Return the table that shows which entries were touched."""
    return getattr(owner, owner.tables[0])


def _may_be_omitted(name: str, owner: Any) -> bool:
    """Return whether a file may leave out this table, if it is 0."""
    return name.rpartition(".")[2] in getattr(owner, "omitted_zeros", ())


def _is_sound(node: Any) -> bool:
    """Return whether all indices that a bank holds point into its arrays."""
    parts = [part for part in node if hasattr(part, "_fields")]
    return getattr(node, "sound", True) and all(map(_is_sound, parts))


def _rows_to_json(core: BoosterCore) -> dict[str, Any] | None:
    """Return the kind of rows and their features, as JSON; None before the first row."""
    encoder = core.encoder
    if encoder.kind is None:
        return None
    return {
        "shape": encoder.kind.shape,
        "named": encoder.kind.named,
        "features": core.features,
        "names": list(encoder.names.columns) if encoder.names else [],
    }


def _restore_rows(core: BoosterCore, rows: dict[str, Any]) -> None:
    features = rows["features"]
    kind = RowKind(from_json(rows["shape"]), bool(rows["named"]))
    names = {str(name): column for column, name in enumerate(rows["names"])}
    if (
        not (is_integer(features) and 0 <= features <= 2**40)
        or len(names) != len(rows["names"])
        or not _is_shape(core, kind.shape)
    ):
        raise ModelFileError("the description of the rows is invalid")
    if core.encoder.names is not None:
        core.encoder.names.add(names)
    core.prepare_unread(kind, features)


def _is_shape(core: BoosterCore, shape: Any) -> bool:
    """Return whether rows can have this shape: for arrays, their own shape is the second part."""
    if not isinstance(shape, tuple) or len(shape) != 2:
        return False
    counts = shape if core.encoder.names is not None else (shape[0], *shape[1])
    return all(is_integer(count) and 0 <= count < 2**40 for count in counts)


def _restore_memory(core: BoosterCore, tensors: dict[str, Array]) -> None:
    """Restore the rows for replay, and remove them from the arrays."""
    names = [name for name in tensors if name.startswith(MEMORY)]
    kept = {name.removeprefix(MEMORY): tensors.pop(name) for name in names}
    memory, learned, kind = core.memory, core.labels.seen, core.encoder.kind
    if memory is None or learned == 0 or kind is None:
        if kept:
            raise ModelFileError("the file holds rows for replay that are never read")
        return
    labels, weights, number = kept["labels"], kept["weights"], min(learned, memory.size)
    if (
        set(kept) not in MEMORY_ARRAYS
        or weights.shape != (number,)
        or labels.shape != (number, core.d)
        or not ((weights > 0) & np.isfinite(weights)).all()
        or not (np.abs(labels) < 1 + 1e-6).all()
        or {labels.dtype, weights.dtype} != {np.dtype(core.dtype)}
    ):
        raise ModelFileError("the rows for replay are invalid")
    rows: Any = kept["X"]
    if len(rows) != number or any(kept[name].dtype != np.int64 for name in INDICES & set(kept)):
        raise ModelFileError("the rows for replay are invalid")
    if "codes" in kept:
        sparse = Sparse(kept["indptr"], kept["indices"], kept["data"], (number,))
        numbers = sparse if not rows.shape[1] else rows
        rows = core.learner.encode(Rows(numbers, kept["codes"]), 1)
        shape = (rows.X.shape[1], rows.codes.shape[1])
        fits = shape == kind.shape and rows.features <= core.features
        core.prepare_unread(kind, 0, width=len(rows.x))
    else:
        fits = (kind.shape[0], rows.shape[1:]) == kind.shape
        fits = fits and rows.dtype == np.float64 and bool(np.isfinite(rows).all())
    if not fits:
        raise ModelFileError("the rows for replay are not of the kind that the model reads")
    memory.restore(rows, labels, weights, learned)


def _expected(core: BoosterCore, tensors: dict[str, Array]) -> Iterator[tuple[str, Any]]:
    """Yield (name, (target array, index, shape)) for every array that the file must contain.

    The target is None for arrays that list the touched entries of a table.
    """
    for name, value, owner in _leaves_of_core(core):
        if owner is None:
            yield name, (value, ..., value.shape)
            continue
        mark = _mark(owner)
        key = f"{name.rpartition('.')[0]}.{owner.tables[0]}.touched"
        touched = tensors.get(key, np.zeros(0, np.int64))
        sorted_ = touched.ndim == 1 and touched.dtype == np.int64 and (np.diff(touched) > 0).all()
        if not sorted_ or (len(touched) and not (touched[0] >= 0 and touched[-1] < mark.size)):
            raise ModelFileError(f"{key} is not a sorted list of table indices")
        if _may_be_omitted(name, owner) and name not in tensors:
            continue
        where = np.unravel_index(touched, mark.shape)
        yield name, (value, where, (len(touched), *value.shape[mark.ndim :]))
        yield key, (None, where, touched.shape)
