"""Types of the rows and labels that users pass to models."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from numpy.typing import ArrayLike

from spanboost.rows.block import Rows


class SparseMatrix(Protocol):
    """A sparse matrix or array of SciPy."""

    def tocsr(self) -> Any:
        """Return the matrix in compressed rows."""


if TYPE_CHECKING:
    RowLike: TypeAlias = ArrayLike | Mapping[Any, Any]
    RowsLike: TypeAlias = ArrayLike | Rows | SparseMatrix | Sequence[RowLike]
    LabelLike: TypeAlias = Any
    LearnerLike: TypeAlias = Any
    FeatureDict: TypeAlias = dict[Any, Any]
    Contribution: TypeAlias = Any
    CopiesLike: TypeAlias = Any
    StepLike: TypeAlias = Any
else:  # classes, so that `help` shows their names instead of long unions

    class RowLike:
        """One row: a sequence of numbers, or a dictionary of features."""

    class RowsLike:
        """Several rows: an array, a sparse matrix, `Rows`, a data frame, or a list of rows."""

    class LabelLike:
        """A label: a number, a class, or a vector."""

    class LearnerLike:
        """A learner: its name, an object such as `Trees(depth=4)`, or your own."""

    class FeatureDict:
        """One row in River: names of features, and numbers, strings or times."""

    class Contribution:
        """A part of a prediction: a number, or a vector for predictions in R^d."""

    class CopiesLike:
        """A number of copies: an integer, "auto", or None for the default."""

    class StepLike:
        """A step: a number, "auto", or None for the default."""
