"""The type annotation of arrays, and a type for indices."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
# compiled code does not check whether an index of this type is negative
unsigned: Any = np.uint64
