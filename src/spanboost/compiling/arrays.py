"""The type of every array here."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
