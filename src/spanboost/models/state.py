"""Convert the state of a booster to arrays and JSON, and back.

Only the touched entries of tables are saved: features that were seen, nodes and leaves that a row
has reached. Before a model is built from an array, its dtype and shape are checked, and NaN is
refused. Infinite numbers are allowed, because trees have infinite thresholds.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from spanboost.checks import is_integer
from spanboost.compiling.arrays import Array
from spanboost.errors import ModelFileError
from spanboost.learners.tree_bank import TreeBank
from spanboost.learners.tree_selection import select_trees
from spanboost.learners.tree_tables import filled_part, predicting_part
from spanboost.models.booster_core import BoosterCore
from spanboost.models.compact_arrays import pack_array, unpack_arrays
from spanboost.models.header import from_json, not_data_error
from spanboost.models.kept_rows import (
    SAMPLE,
    kept_tensors,
    restore_fitted,
    restore_memory,
    restore_sample,
    take_kept,
)
from spanboost.models.old_trees import pool_trees
from spanboost.rows.encoder import RowKind
from spanboost.rows.feature_names import FeatureNames
from spanboost.rows.label_history import LEARNED, VARIED
from spanboost.rows.times import FIRST_PARTS, are_parts

COUNTS = "labels.counts"


def core_header(core: BoosterCore) -> dict[str, Any]:
    """Return the label range and the kind of rows, as JSON."""
    kind = {"compact": True} if core.compact else {}
    return {"labels": core.labels.to_json(), "rows": _rows_to_json(core)} | kind


def core_tensors(core: BoosterCore) -> Iterator[tuple[str, Array]]:
    """Yield the arrays of a core, by name."""
    for name, value, owner in _leaves_of_core(core, _in_file_order):
        if owner is None:
            stored = pack_array(core.state.bank, name, value) if core.compact else value
            yield name, np.ascontiguousarray(stored)
            continue
        if _may_be_omitted(name, owner) and not value.any():
            continue
        mark = touched_mark(owner)
        yield name, value[np.nonzero(mark)]
        if value is mark:
            yield f"{name}.touched", np.flatnonzero(mark)
    yield from kept_tensors(core)


def restore_core(core: BoosterCore, header: dict[str, Any], tensors: dict[str, Array]) -> None:
    """Fill a fresh core with what `core_header` and `core_tensors` returned."""
    if header.get("compact") is True:
        core.restrict()
    core.labels.restore(header["labels"])
    if header["rows"] is not None:
        _restore_rows(core, header["rows"])
        restore_memory(core, tensors)
        restore_fitted(core, tensors)
    sample = take_kept(tensors, SAMPLE)
    _add_last_count(tensors)
    if core.compact:
        unpack_arrays(core.state.bank, tensors)
        bank = filled_part(predicting_part(core.state.bank), "bank", tensors)
        core.state = core.state._replace(bank=bank)
    else:
        pool_trees(core.state.bank, "bank", tensors)
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
    restore_sample(core, sample)


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


def _leaves_of_core(
    core: BoosterCore, convert: Callable[[Any], Any] = lambda part: part
) -> Iterator[tuple[str, Array, Any]]:
    state = core.state
    if state.bank is None:
        return
    if not core.is_data:
        raise not_data_error(core.learner)
    for name, part in _parts(core).items():
        for leaf in leaves(convert(part), name):
            if _is_stored(core, leaf[0]):
                yield leaf


def _is_stored(core: BoosterCore, name: str) -> bool:
    """Return whether a file has this array; a compact one has only those that predictions need."""
    read = getattr(core.state.bank, "predicts_with", None)
    if not core.compact or read is None or not name.startswith("bank."):
        return True
    return name.removeprefix("bank.") in read


def _in_file_order(part: Any) -> Any:
    """Return the part with all trees in an order that does not depend on how they grew."""
    if isinstance(part, TreeBank):
        return select_trees(part, np.arange(len(part.start)))
    if hasattr(part, "_fields"):
        return type(part)(*map(_in_file_order, part))
    return part


def touched_mark(owner: Any) -> Array:
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
    names = encoder.names
    columns = {} if encoder.columns is None else {"columns": [*encoder.columns]}
    times = _times_to_json(names) if names is not None and encoder.kind.named else columns
    return {
        "shape": encoder.kind.shape,
        "named": encoder.kind.named,
        "features": core.features,
        "names": list(names.columns) if names else [],
    } | times


def _times_to_json(names: FeatureNames) -> dict[str, Any]:
    """Return how dictionaries with times are read; empty if version 0.1.0 reads them so."""
    iso_times = {"iso_times": True} if names.iso_times else {}
    first = names.time_parts == FIRST_PARTS
    return iso_times | ({} if first else {"time_parts": [*names.time_parts]})


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
    core.encoder.columns = _restore_columns(rows.get("columns"), kind)
    time_parts = rows.get("time_parts", FIRST_PARTS)
    if not are_parts(time_parts):
        raise ModelFileError(f"the features of times are unknown: {time_parts!r:.60}")
    if core.encoder.names is not None:
        core.encoder.names.add(names)
        core.encoder.names.iso_times = rows.get("iso_times", False) is True
        core.encoder.names.time_parts = tuple(time_parts)
    core.prepare_unread(kind, features)


def _restore_columns(columns: Any, kind: RowKind) -> tuple[str, ...] | None:
    """Return the columns of a frame; None if the rows were no frames, or of an older version."""
    if columns is None:
        return None
    texts = isinstance(columns, list) and all(isinstance(name, str) for name in columns)
    if not texts or kind.named or not len(set(columns)) == len(columns) == kind.shape[0]:
        raise ModelFileError("the columns of the rows are invalid")
    return tuple(columns)


def _is_shape(core: BoosterCore, shape: Any) -> bool:
    """Return whether rows can have this shape: for arrays, their own shape is the second part."""
    if not isinstance(shape, tuple) or len(shape) != 2:
        return False
    counts = shape if core.encoder.names is not None else (shape[0], *shape[1])
    return all(is_integer(count) and 0 <= count < 2**40 for count in counts)


def _expected(core: BoosterCore, tensors: dict[str, Array]) -> Iterator[tuple[str, Any]]:
    """Yield (name, (target array, index, shape)) for every array that the file must contain.

    The target is None for arrays that list the touched entries of a table.
    """
    for name, value, owner in _leaves_of_core(core):
        if owner is None:
            yield name, (value, ..., value.shape)
            continue
        mark = touched_mark(owner)
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
