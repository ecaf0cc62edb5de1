"""The type of arrays, of any dtype and shape."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
