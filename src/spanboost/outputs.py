"""How many outputs a prediction has."""

from typing import NamedTuple

from spanboost._jit import kernel


@kernel
class One(NamedTuple):
    """Predictions are numbers: known to the compiler, so that loops over outputs vanish."""

    def number(self) -> int:
        """Outputs of a prediction."""
        return 1


@kernel
class Many(NamedTuple):
    """Predictions are vectors of R^d."""

    d: int

    def number(self) -> int:
        """Outputs of a prediction."""
        return self.d
