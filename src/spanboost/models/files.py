"""Models as files: safetensors with one JSON header. Data, never code.

A file holds what was learned, where there is replay the rows that may be learned again, and nothing
else: the same rows in the same order give the same bytes, whatever the blocks they came in. Of
tables only what was touched is kept: features that were seen, nodes and leaves that a row has
reached. It is written beside its place and moved there, so that a file is always a whole one.
Before a model is made of it its header (described.py) and the kind and shape of every array are
checked; the numbers themselves are taken.
"""

import json
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from spanboost import __version__
from spanboost.atomic_files import atomic_write
from spanboost.compiling.arrays import Array
from spanboost.data.schema import schema_from_json
from spanboost.errors import ModelFileError
from spanboost.models.auto import AnyModel, AutoBoost
from spanboost.models.booster import Booster, HullBoost, SpanBoost
from spanboost.models.committee import Committee
from spanboost.models.header import from_json, not_data_error, parameters_of
from spanboost.rows.block import Rows
from spanboost.rows.encoder import EncodedBlock, RowKind
from spanboost.rows.validation import Sparse

FORMAT = 1
BOOSTERS = {cls.__name__: cls for cls in (SpanBoost, HullBoost)}
MEMORY = "memory."  # how names of arrays begin that hold rows to be learned again
REMEMBERED = (
    {"X", "labels", "weights"},
    {"X", "codes", "indptr", "indices", "data", "labels", "weights"},
)


def save(model: AnyModel, path: str | os.PathLike[str], *, run: Any = None) -> None:
    """Write a model to a file; in a checkpoint `run` says how far its run is, in terms of JSON."""
    data = to_bytes(model, run=run)
    with atomic_write(path) as file:
        file.write(data)


def to_bytes(model: AnyModel, *, run: Any = None) -> bytes:
    """The bytes of a model's file."""
    from safetensors.numpy import save as to_bytes

    header = {
        "format": FORMAT,
        "library": __version__,
        **_described(model),
        "schema": None if model.schema is None else model.schema.state(),
        "run": run,
    }
    tensors = dict(_tensors(model)) if model.started else {}
    header = json.loads(_text(header))  # a copy: a reader may be adding to the schema
    text = _text(header | {"checksum": _checksum(header, tensors)})
    return to_bytes(tensors, metadata={"spanboost": text})


def _text(header: dict[str, Any]) -> str:
    return json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _checksum(header: dict[str, Any], tensors: dict[str, Array]) -> int:
    """Of all there is: a bit that turns is noticed."""
    sum_so_far = zlib.crc32(_text(header).encode())
    for name in sorted(tensors):
        sum_so_far = zlib.crc32(name.encode(), sum_so_far)
        sum_so_far = zlib.crc32(np.ascontiguousarray(tensors[name]).data, sum_so_far)
    return sum_so_far


def _described(model: AnyModel) -> dict[str, Any]:
    """All of a model but its arrays; of AutoBoost, its experts, whatever its list is by then."""
    if isinstance(model, AutoBoost):
        experts = [{"name": name} | _described(expert) for name, expert in model.experts.items()]
        return parameters_of(model) | {"experts": experts}
    if isinstance(model, Committee):
        return parameters_of(model) | {"members": [_described(one) for one in model.members]}
    state = {"labels": _label_state(model), "rows": _row_state(model)}
    return parameters_of(model) | state


def load(path: str | os.PathLike[str]) -> AnyModel:
    """The model of a file, ready to go on learning."""
    return load_checkpoint(path)[0]


def load_checkpoint(path: str | os.PathLike[str]) -> tuple[AnyModel, Any]:
    """The model of a file, and how far its run is if the file is a checkpoint."""
    try:
        return _load(Path(path))
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None


def _load(path: Path) -> tuple[AnyModel, Any]:
    from safetensors import SafetensorError, safe_open

    with path.open("rb") as start:  # what is no file, or not ours to read, is named here
        if not start.read(1):
            raise ModelFileError("the file is empty")
    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get("spanboost")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ModelFileError(f"no model, or a damaged one: {error}") from None
    if text is None:
        raise ModelFileError("a safetensors file, but no model of spanboost")
    try:
        header = json.loads(text)
        if header["format"] > FORMAT:
            raise ModelFileError(
                f"written by spanboost {header['library']}, in a form this version does not know"
            )
        if header.pop("checksum") != _checksum(header, tensors):
            raise ModelFileError("damaged: its checksum is another one")
        model = _learned(header, tensors)
        if header["schema"] is not None:
            model.schema = schema_from_json(header["schema"])
        run = header["run"]
    except ModelFileError:
        raise
    except MemoryError:
        raise ModelFileError("its tables are too large for the memory") from None
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, IndexError) as error:
        raise ModelFileError(f"its parts do not fit together: {error}") from None
    return model, run


def _label_state(model: Booster) -> dict[str, Any]:
    labels = model._labels
    return {
        "centre": labels.centre.tolist(),
        "half": labels.half,
        "rows": labels.rows,
        "seen": labels.seen,
        "warned": getattr(labels, "warned", False),
    }


def _row_state(model: Booster) -> dict[str, Any] | None:
    """What rows the model has met; None if none."""
    reader = model._reader
    if reader.kind is None:
        return None
    return {
        "shape": reader.kind.shape,
        "named": reader.kind.named,
        "features": model._features,
        "names": list(reader.names.columns) if reader.names else [],
    }


def _leaves(node: Any, path: str) -> Iterator[tuple[str, Array, Any]]:
    """(name, array, owner) of all state in a tree of NamedTuples; owner: of a table, or None.

    `tables` of an owner names its fields with the same leading axes, first the one that is 0 where
    nothing was learned: there all of them are as they were made.
    """
    tables = getattr(node, "tables", ())
    for name in node._fields:
        value = getattr(node, name)
        if name == "scratch":
            continue
        if hasattr(value, "_fields"):
            yield from _leaves(value, f"{path}.{name}")
        elif isinstance(value, np.ndarray):
            yield f"{path}.{name}", value, node if name in tables else None


def _of_auto(model: AutoBoost) -> Iterator[tuple[str, Array]]:
    """How the experts are weighed; their own arrays, by their numbers."""
    for name, value, _ in _leaves(model.combination, "combination"):
        yield name, value
    yield from _of_each(model.experts.values())


def _of_each(models: Iterable[Booster]) -> Iterator[tuple[str, Array]]:
    """The arrays of several models, by their numbers."""
    for k, model in enumerate(models):
        for name, value in _tensors(model):
            yield f"{k}.{name}", value


def _all_leaves(model: Booster) -> Iterator[tuple[str, Array, Any]]:
    state = model._model
    if state is None:
        return
    if not hasattr(state.bank, "_fields"):
        raise not_data_error(model.learner)
    yield from _leaves(state.algorithm, "algorithm")
    yield from _leaves(state.bank, "bank")


def _tensors(model: AnyModel) -> Iterator[tuple[str, Array]]:
    if isinstance(model, AutoBoost):
        yield from _of_auto(model)
        return
    if isinstance(model, Committee):
        yield from _of_each(model.members)
        return
    for name, value, owner in _all_leaves(model):
        if owner is None:
            yield name, np.ascontiguousarray(value)
            continue
        mark = _mark(owner)
        yield name, value[np.nonzero(mark)]
        if value is mark:
            yield f"{name}.touched", np.flatnonzero(mark)
    if model._memory is not None:
        for name, value in model._memory.state().items():
            yield f"{MEMORY}{name}", value


def _mark(owner: Any) -> Array:
    """The table that says where the others were touched."""
    return getattr(owner, owner.tables[0])


def _learned(header: dict[str, Any], tensors: dict[str, Array]) -> AnyModel:
    """The model, with all it has learned."""
    if header["booster"] == Committee.__name__:
        return _committee(header["members"], tensors)
    parameters = {name: from_json(value) for name, value in header["parameters"].items()}
    if header["booster"] == AutoBoost.__name__:
        return _auto(AutoBoost(**parameters), header["experts"], tensors)
    if header["booster"] not in BOOSTERS:
        raise ModelFileError(f"{header['booster']!r} is nothing this version knows")
    model = BOOSTERS[header["booster"]](**parameters)
    _restore(model, header, tensors)
    return model


def _auto(model: AutoBoost, headers: list[Any], tensors: dict[str, Array]) -> AutoBoost:
    experts = {}
    weights = {
        name.removeprefix("combination."): tensors.pop(name)
        for name in list(tensors)
        if name.startswith("combination.")
    }
    for header, expert in zip(headers, _boosters(headers, tensors), strict=True):
        if expert.loss_ != model.loss_:
            raise ModelFileError("its experts are none")
        experts[str(header["name"])] = expert
    if len(experts) != len(headers) or len(set(map(_stream, experts.values()))) != 1:
        raise ModelFileError("its experts are not of one stream")
    model.assemble(experts)
    if not weights and not model.started:
        return model
    expected = {name: value for name, value, _ in _leaves(model.combination, "")}
    for name, target in expected.items():
        value = weights.pop(name.removeprefix("."))
        if value.shape != target.shape or value.dtype != target.dtype or np.isnan(value).any():
            raise ModelFileError(f"{name} is {value.dtype} of shape {value.shape}")
        target[...] = value
    if weights:
        raise ModelFileError("arrays are missing, or there are too many")
    return model


def _committee(headers: list[Any], tensors: dict[str, Array]) -> Committee:
    members = _boosters(headers, tensors)
    if len({_text(parameters_of(member)) for member in members}) != 1:
        raise ModelFileError("its members are not of one kind")
    return Committee(members)


def _boosters(headers: list[Any], tensors: dict[str, Array]) -> list[Booster]:
    """Several models of one file."""
    parts: list[dict[str, Array]] = [{} for _ in headers]
    for name, value in tensors.items():
        number, _, rest = name.partition(".")
        parts[int(number)][rest] = value
    models = [_learned(header, part) for header, part in zip(headers, parts, strict=True)]
    if not all(isinstance(model, Booster) for model in models):
        raise ModelFileError("its parts are no boosters")
    return [model for model in models if isinstance(model, Booster)]


def _stream(expert: Booster) -> tuple[Any, ...]:
    """What experts of one stream have in common: machine code and labels are shared among them."""
    labels = expert._labels
    state = labels.half, labels.rows, labels.seen, *labels.centre.tolist()
    return expert.started, expert._dtype, expert.label_range, expert._reader.kind, *state


def _restore(model: Booster, header: dict[str, Any], tensors: dict[str, Array]) -> None:
    """What it has learned."""
    state, labels = header["labels"], model._labels
    centre = np.array(state["centre"], dtype=np.float64)
    sizes = [state["half"], state["rows"], state["seen"]]
    if centre.shape != labels.centre.shape or not np.isfinite([*centre, *sizes]).all():
        raise ModelFileError("its label range is none")
    labels.centre, labels.half = centre, float(state["half"])
    labels.rows, labels.seen = int(state["rows"]), int(state["seen"])
    if hasattr(labels, "warned"):
        labels.warned = bool(state["warned"])
    if header["rows"] is not None:
        _restore_rows(model, header["rows"])
        _restore_memory(model, tensors)
    expected = dict(_expected(model, tensors))
    if set(tensors) != set(expected):
        raise ModelFileError("arrays are missing, or there are too many")
    for name, (target, where, shape) in expected.items():
        value = tensors[name]
        if target is not None:
            if value.shape != shape or value.dtype != target.dtype:
                raise ModelFileError(f"{name} is {value.dtype} of shape {value.shape}")
            target[where] = value
    if model._model is not None and not _sound(model._model.bank):
        raise ModelFileError("its numbers lead out of its arrays")


def _sound(node: Any) -> bool:
    """Whether all parts of a bank that look places up say that these exist."""
    parts = [part for part in node if hasattr(part, "_fields")]
    return getattr(node, "sound", True) and all(map(_sound, parts))


def _restore_rows(model: Booster, rows: dict[str, Any]) -> None:
    reader, features = model._reader, int(rows["features"])
    kind = RowKind(from_json(rows["shape"]), bool(rows["named"]))
    names = {str(name): column for column, name in enumerate(rows["names"])}
    if not 0 <= features <= 2**40 or len(names) != len(rows["names"]):
        raise ModelFileError("its rows are none")
    if reader.names is not None:
        reader.names.add(names)
    model._start(EncodedBlock(reader.blank(kind), None, 0, features, 0, kind, {}), features)


def _restore_memory(model: Booster, tensors: dict[str, Array]) -> None:
    """The rows that may be learned again, taken out of the arrays."""
    names = [name for name in tensors if name.startswith(MEMORY)]
    kept = {name.removeprefix(MEMORY): tensors.pop(name) for name in names}
    memory, learned, kind = model._memory, model._labels.seen, model._reader.kind
    if memory is None or learned == 0 or kind is None:
        if kept:
            raise ModelFileError("it holds rows that nobody asks for")
        return
    labels, weights, number = kept["labels"], kept["weights"], min(learned, memory.size)
    if (
        set(kept) not in REMEMBERED
        or weights.shape != (number,)
        or labels.shape != (number, model._d)
        or not ((weights > 0) & np.isfinite(weights)).all()
        or not (np.abs(labels) < 1 + 1e-6).all()
        or {labels.dtype, weights.dtype} != {np.dtype(model._dtype)}
    ):
        raise ModelFileError("the rows it remembers are none")
    rows: Any = kept["X"]
    good = len(rows) == number
    if "codes" in kept:
        sparse = Sparse(kept["indptr"], kept["indices"], kept["data"], (number,))
        rows = model._learner.encode(Rows(sparse if not rows.shape[1] else rows, kept["codes"]), 1)
        good &= (rows.X.shape[1], rows.codes.shape[1]) == kind.shape
        good &= rows.features <= model._features
        model._start(EncodedBlock(None, None, 0, 0, len(rows.x), kind, {}), 0)
    else:
        good &= (kind.shape[0], rows.shape[1:]) == kind.shape
        good &= rows.dtype == np.float64 and bool(np.isfinite(rows).all())
    if not good:
        raise ModelFileError("the rows it remembers are not of its kind")
    memory.restore(rows, labels, weights, learned)


def _expected(model: Booster, tensors: dict[str, Array]) -> Iterator[tuple[str, Any]]:
    """name: (array it goes to, where there, its shape); (None, ...) for what says where."""
    for name, value, owner in _all_leaves(model):
        if owner is None:
            yield name, (value, ..., value.shape)
            continue
        mark = _mark(owner)
        key = f"{name.rpartition('.')[0]}.{owner.tables[0]}.touched"
        touched = tensors.get(key, np.zeros(0, np.int64))
        good = touched.ndim == 1 and touched.dtype == np.int64 and (np.diff(touched) > 0).all()
        if not good or (len(touched) and not (touched[0] >= 0 and touched[-1] < mark.size)):
            raise ModelFileError(f"{key} is no list of features, nodes or leaves")
        where = np.unravel_index(touched, mark.shape)
        yield name, (value, where, (len(touched), *value.shape[mark.ndim :]))
        yield key, (None, where, touched.shape)
