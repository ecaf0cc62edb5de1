"""Sorting in compiled code, without new arrays."""

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel


@kernel
def sort(values: Array, number: int) -> None:
    """Sort the first values of an array in place."""
    for i in range(1, number):
        value, j = values[i], i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value
