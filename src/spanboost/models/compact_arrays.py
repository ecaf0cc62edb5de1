"""The arrays of a regression in compact files: without the room that is reserved for columns.

A bank of least squares reserves a square matrix for all columns that it may get. A compact file has
only the upper triangle of the columns in use.
"""

from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.errors import ModelFileError
from spanboost.learners.ridge import RidgeBank

_R, _C, _USED = "bank.fits.R", "bank.fits.c", "bank.columns.used"
_LOW, _HIGH = "bank.columns.low", "bank.columns.high"


def pack_array(bank: Any, name: str, value: Array) -> Array:
    """Return an array of a bank as a compact file has it."""
    if not isinstance(bank, RidgeBank) or name not in (_R, _C, _LOW, _HIGH):
        return value
    if name in (_LOW, _HIGH):
        return (name == _HIGH) * (bank.columns.low < bank.columns.high).astype(value.dtype)
    used = int(bank.columns.used[0])
    if name == _C:
        return np.ascontiguousarray(value[:, :used])
    rows, columns = np.triu_indices(used)
    return np.ascontiguousarray(value[:, rows, columns])


def unpack_arrays(bank: Any, tensors: dict[str, Array]) -> None:
    """Replace the packed arrays of a compact file by those of the bank."""
    if not isinstance(bank, RidgeBank):
        return
    R, c = (np.zeros_like(one) for one in bank.fits)
    used = int(tensors[_USED].reshape(-1)[0]) if tensors[_USED].size == 1 else -1
    rows, columns = np.triu_indices(min(max(used, 0), R.shape[1]))
    packed, lanes = tensors[_R], tensors[_C]
    if (
        not 0 <= used <= R.shape[1]
        or packed.shape != (len(R), len(rows))
        or lanes.shape != (len(c), used, c.shape[2])
        or {packed.dtype, lanes.dtype} != {R.dtype}
    ):
        raise ModelFileError("the arrays of a regression do not match its number of columns")
    R[:, rows, columns], c[:, :used] = packed, lanes
    tensors[_R], tensors[_C] = R, c
