"""Types of the rows and labels that users pass to models."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from numpy.typing import ArrayLike

from spanboost.rows.block import Rows


class SparseMatrix(Protocol):
    """A sparse matrix or array of SciPy."""

    def tocsr(self) -> Any:
        """Return the matrix in compressed rows."""


RowLike: TypeAlias = ArrayLike | Mapping[Any, Any]
RowsLike: TypeAlias = ArrayLike | Rows | SparseMatrix | Sequence[RowLike]
