"""The type annotation of arrays."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
