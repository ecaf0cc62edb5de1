"""Arrays with room for many entries, of which only the first ones are in use.

The operating system gives memory to a page when it is first written, so room that is never written
costs no memory. Two habits would spoil that: NumPy asks for huge pages for large arrays, of 2 MB
each, and arrays from memory that was used before are cleared as a whole. So the room is mapped.
"""

import math
import mmap
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array

_MAPPED = 2**17  # bytes; smaller arrays may share their pages


def new_room(shape: int | tuple[int, ...], dtype: Any) -> Array:
    """Return zeros that take memory when they are written, one small page after the other."""
    size = math.prod(np.atleast_1d(shape).tolist()) * np.dtype(dtype).itemsize
    if size < _MAPPED or not hasattr(mmap, "MAP_PRIVATE"):  # as on Windows
        return np.zeros(shape, dtype)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, dtype).reshape(shape)
