"""Count labels that differ from equal ones, to find a single odd one among them.

An odd label counts 1: the labels before and after it are equal. A label that begins another run of
labels counts 3. So a count of 1 means that all labels but one are equal.
"""

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel


@kernel
def oddness(y: float, chunk: Array, filled: int, number: int) -> int:
    """Return what a label adds to the count.

    chunk: the labels before it, at the places before `filled`; negative places are at the end.
    number: of the labels since the last change of units, this one included.
    """
    if number == 1 or y == chunk[filled - 1]:
        return 0
    if number == 2:
        return 1  # the first label may be the odd one
    returns = y == chunk[filled - 2]
    if number == 3:
        return 0 if returns else 3
    return -2 if returns and y == chunk[filled - 3] else 3  # the last label was an odd one
