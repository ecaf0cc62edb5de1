"""Pack the arrays of a model file: compressed with Zstandard, in an order that compresses well.

The description of a file says which arrays are packed: their dtype, shape and order. It bounds the
memory of the unpacked arrays before anything is unpacked, so that a small file cannot take much of
it; `pack_arrays` packs less if a file would be beyond the bound.

- PLAIN: as the array is.
- BYTES: all first bytes of the numbers, then all second bytes, and so on.
- PLANES: an array of three dimensions, by the second one.
- ROWS: the candidates of trees by the row that set their threshold, and then as PLANES. The
  thresholds of one row are its values, which recur in every tree that the row has reached.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from spanboost.checks import is_integer
from spanboost.compiling.arrays import Array
from spanboost.errors import ModelFileError
from spanboost.learners.candidates import GROUP

PLAIN, BYTES, PLANES, ROWS = "plain", "bytes", "planes", "rows"
LEVEL = 3  # higher ones take far longer and gain 2 %
SMALL = 256  # bytes of an array that is stored as it is
FREE, RATIO = 2**22, 64  # most bytes of the unpacked arrays: FREE + RATIO * those of the packed
DTYPES = {np.dtype(name) for name in ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")}
TABLE, PHASES = "candidates.table", "candidates.phases"


class Packed(NamedTuple):
    """What was packed into an array of bytes."""

    dtype: str
    shape: list[int]
    order: str

    @property
    def bytes(self) -> int:
        """The size of the unpacked array."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


def pack_arrays(arrays: dict[str, Array]) -> tuple[dict[str, Array], dict[str, Packed]]:
    """Return the arrays to store, and the description of those that are packed."""
    packed, stored = dict[str, Packed](), dict(arrays)
    for name, array in arrays.items():
        if array.nbytes > SMALL and array.dtype in DTYPES:
            order, data = _smallest(name, array, arrays)
            if len(data) < array.nbytes:
                stored[name] = np.frombuffer(data, np.uint8)
                packed[name] = Packed(array.dtype.name, list(array.shape), order)
    by_ratio = sorted(packed, key=lambda name: packed[name].bytes / stored[name].size)
    while not _is_bounded(packed, stored):  # only arrays that are almost empty
        name = by_ratio.pop()
        stored[name] = arrays[name]
        del packed[name]
    return stored, packed


def unpack_arrays(stored: dict[str, Array], description: Any) -> dict[str, Array]:
    """Return the arrays that `pack_arrays` got; a ModelFileError if they cannot be unpacked."""
    try:
        packed = {name: _check(Packed(*one)) for name, one in description.items()}
        if not _is_bounded(packed, stored):
            raise ModelFileError("the arrays would take far more memory than the file suggests")
        arrays = dict(stored)
        for name in sorted(packed, key=lambda name: packed[name].order == ROWS):  # phases first
            arrays[name] = _unpack(name, packed[name], arrays)
        return arrays
    except (ValueError, TypeError, LookupError, AttributeError, OSError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError("the packed arrays are damaged") from None


def _is_bounded(packed: dict[str, Packed], stored: dict[str, Array]) -> bool:
    unpacked = sum(one.bytes for one in packed.values())
    return unpacked <= FREE + RATIO * sum(stored[name].nbytes for name in packed)


def _check(one: Packed) -> Packed:
    """Return what a file says about a packed array; a ValueError if it cannot be."""
    if (
        one.order not in (PLAIN, BYTES, PLANES, ROWS)
        or np.dtype(one.dtype) not in DTYPES
        or not all(is_integer(length) and length > 0 for length in one.shape)
        or (one.order in (PLANES, ROWS) and len(one.shape) != 3)
    ):
        raise ValueError("invalid description")
    return one


def _smallest(name: str, array: Array, arrays: dict[str, Array]) -> tuple[str, bytes]:
    """Return the order that compresses best, and the compressed bytes."""
    orders: tuple[str, ...] = (PLAIN, BYTES) if array.itemsize > 1 else (PLAIN,)
    if array.ndim == 3:
        orders = (PLANES if _row_order(name, array.shape, arrays) is None else ROWS,)
    tried = [(order, _compress(_ordered(order, name, array, arrays))) for order in orders]
    return min(tried, key=lambda one: len(one[1]))


def _ordered(order: str, name: str, array: Array, arrays: dict[str, Array]) -> Array:
    if order == ROWS:
        rows = _row_order(name, array.shape, arrays)
        assert rows is not None
        array = np.take_along_axis(array, rows[:, None], axis=2)
    if order in (PLANES, ROWS):
        array = array.transpose(1, 0, 2)
    array = np.ascontiguousarray(array)
    if order == BYTES:
        return np.ascontiguousarray(array.reshape(-1).view(np.uint8).reshape(-1, array.itemsize).T)
    return array


def _unpack(name: str, one: Packed, arrays: dict[str, Array]) -> Array:
    dtype, shape = np.dtype(one.dtype), tuple(one.shape)
    data = np.frombuffer(_decompress(arrays[name], one.bytes), np.uint8)
    if one.order == BYTES:
        return np.ascontiguousarray(data.reshape(dtype.itemsize, -1).T).view(dtype).reshape(shape)
    if one.order == PLAIN:
        return data.view(dtype).reshape(shape).copy()
    a, b, c = shape
    array: Array = data.view(dtype).reshape(b, a, c).transpose(1, 0, 2).copy()
    rows = _row_order(name, shape, arrays) if one.order == ROWS else None
    if one.order == ROWS and rows is None:
        raise ValueError("the order is unknown")
    if rows is not None:
        ordered, array = array, np.empty_like(array)
        np.put_along_axis(array, rows[:, None], ordered, axis=2)
    return array


def _row_order(name: str, shape: tuple[int, ...], arrays: dict[str, Array]) -> Array | None:
    """Return the candidates of each leaf by the row that set their threshold, [records, C].

    None if the array is not a table of candidates.
    """
    prefix = name.removesuffix(TABLE)
    phases = arrays.get(f"{prefix}{PHASES}")
    if prefix == name or phases is None or phases.shape != shape[:1]:
        return None
    c, phases = np.arange(shape[2]), np.maximum(phases, 1)[:, None]
    row = c % GROUP * phases + c // GROUP % phases  # as `Candidates.set_thresholds` does
    return np.argsort(row, axis=1, kind="stable")


def _compress(array: Array) -> bytes:
    data: bytes = _codec().compress(array, asbytes=True)
    return data


def _decompress(stored: Array, size: int) -> bytes:
    data: bytes = _codec().decompress(np.ascontiguousarray(stored), size, asbytes=True)
    return data


def _codec() -> Any:
    from pyarrow import Codec  # loads a large library

    return Codec("zstd", LEVEL)
