"""Save and load models: safetensors files with a JSON header. Files hold data, never code.

A file holds what was learned and, if the model uses replay, the rows that may be learned again. The
same rows in the same order give the same bytes, no matter how they are split into blocks. A file is
written under a temporary name and then renamed, so it is always complete. Before a model is built
from a file, the sizes in its header (claims.py) and its parameters (header.py) are checked. The
dtype and shape of every array and all indices in them are checked before they are used (state.py).
"""

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from spanboost import __version__
from spanboost.atomic_files import atomic_write
from spanboost.checks import BREATHING, GROWING
from spanboost.compiling.arrays import Array
from spanboost.data.schema import schema_from_json
from spanboost.errors import ModelFileError
from spanboost.models.calibrated import Calibrated
from spanboost.models.claims import check_claims
from spanboost.models.compact import compact_model
from spanboost.models.health import check_saved
from spanboost.models.intervals import BASES, Intervals
from spanboost.models.model import Model
from spanboost.models.one_at_a_time import lock_of
from spanboost.models.packing import pack_arrays, unpack_arrays
from spanboost.models.sets import PredictionSets

FORMAT = 4  # 1: up to version 0.1; 2: trees without pools; 3: nothing is packed
_ATTACHMENT = "attachment"  # name of the array with the attachment of a run
_START = b'{"__metadata__":{"spanboost":'  # of the header
MODELS: dict[str, type[Model]] = {
    **BASES,
    **{cls.__name__: cls for cls in (Calibrated, Intervals, PredictionSets)},
}


def save(
    model: Model,
    path: str | os.PathLike[str],
    *,
    run: Any = None,
    private: bool = False,
    compact: bool = False,
    attachment: bytes = b"",
) -> None:
    """Write a model to a file. In a checkpoint, `run` (JSON) is the progress of the run.

    private: only the owner may read the file.
    compact: write only what predictions depend on (compact.py).
    attachment: of the run; `load_checkpoint` returns it as its "attachment".
    """
    if compact:
        model = compact_model(model)
    data = to_bytes(model, run=run, attachment=attachment)
    with atomic_write(path, private=private) as file:
        file.write(data)


def to_bytes(model: Model, *, run: Any = None, attachment: bytes = b"") -> bytes:
    """Return the bytes of a model's file."""
    with lock_of(model):
        header = {
            **model.header(),
            "schema": None if model.schema is None else model.schema.state(),
            "run": run,
        }
        tensors = dict(model.tensors()) if model.started else {}
        check_saved(tensors)
        if attachment:
            tensors[_ATTACHMENT] = np.frombuffer(attachment, np.uint8)
        return pack(header, tensors)


def pack(header: dict[str, Any], tensors: dict[str, Array]) -> bytes:
    """Return the bytes of a file, with its format and a checksum."""
    from safetensors.numpy import save as tensors_to_bytes

    header = {"format": FORMAT, "library": __version__} | header
    header = json.loads(_text(header))  # a copy: another thread may be adding to the schema
    stored, packed = pack_arrays(tensors)
    header["packed"] = {name: list(one) for name, one in packed.items()}
    text = _text(header | {"checksum": _checksum(header, stored)})
    return tensors_to_bytes(stored, metadata={"spanboost": text})


def is_model_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a file begins as those of `save` do; it may be damaged further on."""
    with Path(path).open("rb") as file:
        return file.read(8 + len(_START)).endswith(_START)  # after the length of the header


def load(path: str | os.PathLike[str], *, trusted: bool = False) -> Model:
    """Load a model from a file, ready to continue learning.

    A file that is not `trusted` is refused if its tables would take far more memory than its size
    suggests (claims.py). All other checks are the same.
    """
    return _load(path, trusted)[0]


def from_bytes(data: bytes, *, trusted: bool = True) -> Model:
    """Return the model of a file, given the bytes of the file; `trusted` as in `load`."""
    with describe_errors("model"):
        return restore(*_parse(data), trusted)[0]


def load_checkpoint(path: str | os.PathLike[str]) -> tuple[Model, Any]:
    """Load a model and the progress of its run, from a file that this program wrote."""
    return _load(path, trusted=True)


def read_run(path: str | os.PathLike[str]) -> Any:
    """Return the progress of the run in a checkpoint, without loading or checking its model."""
    from safetensors import SafetensorError, safe_open

    Path(path).open("rb").close()  # a missing or unreadable file is an OSError here
    try:
        with safe_open(path, framework="numpy") as file:
            return json.loads((file.metadata() or {})["spanboost"])["run"]
    except (SafetensorError, ValueError, KeyError):
        raise ModelFileError(f"{path}: not a checkpoint, or a damaged one") from None


def _load(path: str | os.PathLike[str], trusted: bool) -> tuple[Model, Any]:
    with describe_errors(path):
        return restore(*read(Path(path)), trusted)


class MissingFileError(FileNotFoundError):
    """A model file that does not exist."""

    def __str__(self) -> str:
        return f"{self.filename}: file not found"


@contextmanager
def describe_errors(name: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors of reading a file into one sentence that names the file."""
    try:
        yield
    except FileNotFoundError as error:
        raise MissingFileError(error.errno, error.strerror, str(name)) from None
    except IsADirectoryError:
        raise ModelFileError(f"{name} is a folder, not a file") from None
    except ModelFileError as error:
        # the error may quote the file: keep it short, without line breaks and control characters
        text = "".join(c if c.isprintable() else " " for c in f"{error!s:.400}")
        raise ModelFileError(f"{name}: {text}") from None
    except MemoryError:
        raise ModelFileError(f"{name}: not enough memory for the tables of the model") from None
    except RecursionError:
        raise ModelFileError(f"{name}: the header is nested too deeply") from None


def restore(header: Any, tensors: dict[str, Array], trusted: bool) -> tuple[Model, Any]:
    """Return the model and the progress of the run in a file, given its header and arrays."""
    with matching_parts():
        check_header(header, tensors)
        attachment = tensors.pop(_ATTACHMENT, None)
        if "estimator" in header:
            raise ModelFileError(
                f"contains the estimator spanboost.{header['estimator']}, which only Python can "
                "use: load it with spanboost.load"
            )
        if header["booster"] not in MODELS:
            raise ModelFileError(f"this version does not know {header['booster']!r}")
        if header["format"] == 1:
            _upgrade(header)
        check_claims(header, tensors, trusted)
        model = MODELS[header["booster"]].restore(header, tensors)
        if header["schema"] is not None:
            model.schema = schema_from_json(header["schema"])
        run = header["run"]
        if attachment is not None:
            run[_ATTACHMENT] = attachment.tobytes()
    return model, run


def check_header(header: dict[str, Any], tensors: dict[str, Array]) -> None:
    """Unpack the arrays; a ModelFileError if the format is unknown or the checksum is wrong.

    The checksum and the description of the packed arrays are removed from the header.
    """
    if header["format"] > FORMAT:
        raise ModelFileError(
            f"written by spanboost {header['library']} in a format that this version does not "
            "know; upgrade spanboost to read it"
        )
    if header.pop("checksum") != _checksum(header, tensors):
        raise ModelFileError("the checksum does not match; the file is damaged")
    tensors.update(unpack_arrays(tensors, header.pop("packed", {})))


@contextmanager
def matching_parts() -> Iterator[None]:
    """Turn errors about the content of a file into a ModelFileError."""
    try:
        yield
    except ModelFileError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise ModelFileError(f"the parts of the file do not match each other: {error}") from None


def _upgrade(header: dict[str, Any]) -> None:
    """Rename the label ranges of format 1, which only grow: "auto" was what "growing" is now."""
    for one in (header, *header.get("experts", ()), *header.get("members", ())):
        parameters = one.get("parameters", {})
        if parameters.get("label_range") in BREATHING:
            old = dict(zip(BREATHING, GROWING, strict=True))
            parameters["label_range"] = old[parameters["label_range"]]


def read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the arrays of a file, which `check_header` unpacks."""
    from safetensors import SafetensorError, safe_open

    with path.open("rb") as start:  # a missing or unreadable file is an OSError here
        if not start.read(1):
            raise ModelFileError("the file is empty")
    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get("spanboost")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError:
        raise ModelFileError("not a model file, or a damaged one") from None
    return _decode_header(text), tensors


def _parse(data: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return what `read` returns, given the bytes of a file."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as tensors_from_bytes

    try:
        views = tensors_from_bytes(data)
    except (SafetensorError, KeyError):  # KeyError: an unknown dtype
        raise ModelFileError("not a model file, or a damaged one") from None
    size = int.from_bytes(data[:8], "little")  # of the header, which was checked above
    text = (json.loads(data[8 : 8 + size]).get("__metadata__") or {}).get("spanboost")
    return _decode_header(text), {name: view.copy() for name, view in views.items()}


def _decode_header(text: str | None) -> dict[str, Any]:
    if text is None:
        raise ModelFileError("a safetensors file, but not a spanboost model")
    try:
        header: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise ModelFileError(f"the header is not JSON: {error}") from None
    return header


def _text(header: dict[str, Any]) -> str:
    return json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _checksum(header: dict[str, Any], tensors: dict[str, Array]) -> int:
    """Return a checksum of the header and all arrays."""
    sum_so_far = zlib.crc32(_text(header).encode())
    for name in sorted(tensors):
        sum_so_far = zlib.crc32(name.encode(), sum_so_far)
        sum_so_far = zlib.crc32(np.ascontiguousarray(tensors[name]).data, sum_so_far)
    return sum_so_far
