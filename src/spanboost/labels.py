"""Labels and weights as users give them, checked, and predictions in the users' units."""

from typing import Any

import numpy as np

from spanboost.arrays import Array
from spanboost.errors import DataError
from spanboost.losses import Softmax, is_binary, predicts_scores
from spanboost.rows import as_numbers, refuse


def weights_of(weights: Any, rows: int, allowed: bool, dtype: Any = np.float64) -> Array:
    """Importance weights, finite and not negative; 1 where none are given."""
    if weights is None:
        return np.ones(rows, dtype)
    given = _numbers(weights, rows, 1, "weights")[:, 0]
    refuse(
        ~((given >= 0) & (given <= np.finfo(dtype).max)),
        lambda t: f"the weight is {given[t]:g}; it must be finite and not negative",
    )
    if not allowed:
        refuse(
            (given != 0) & (given != 1),
            lambda t: f"the weight is {given[t]:g}, and the learner takes no weights",
        )
    return given.astype(dtype)


class Labels:
    """Labels and predictions between the user's units and the model's.

    The range (low, high) is mapped onto [-1, 1]. In R^d labels must lie in the ball around the
    range's centre with half its width as radius, which is mapped onto the unit ball.
    """

    def __init__(self, loss: Any, d: int, label_range: tuple[float, float]) -> None:
        self.loss, self.d = loss, d
        self.low, self.high = map(float, label_range)
        self.centre, self.half = (self.low + self.high) / 2, (self.high - self.low) / 2

    def to_model(self, y: Any, rows: int) -> Array:
        """Labels as vectors of R^d, [rows, d], in the loss's label set."""
        if isinstance(self.loss, Softmax):
            return self._classes(y, rows)
        given = _numbers(y, rows, self.d, "labels")
        refuse(~np.isfinite(given).all(axis=1), lambda t: f"the label is {_show(given[t])}")
        if is_binary(self.loss):
            ends = np.where(given == self.high, 1.0, np.where(given == self.low, -1.0, 0.0))
            refuse(
                (ends == 0).any(axis=1),
                lambda t: (
                    f"the label {_show(given[t])} is neither {self.low:g} nor {self.high:g}, "
                    f"the two labels of {type(self.loss).__name__}"
                ),
            )
            return ends
        labels = (given - self.centre) / self.half
        with np.errstate(over="ignore"):
            norms = np.sqrt((labels * labels).sum(axis=1))
        refuse(norms > 1 + 1e-12, lambda t: self._outside(given[t]))
        return np.asarray(labels)

    def to_user(self, out: Array) -> Array:
        """Predictions in label units (scores stay scores); numbers when d = 1."""
        out = out.astype(np.float64)
        if not predicts_scores(self.loss):
            out = self.centre + self.half * out
        return out[:, 0] if self.d == 1 else out

    def _outside(self, label: Array) -> str:
        limits = f"label_range=({self.low:g}, {self.high:g})"
        if self.d == 1:
            return f"the label {_show(label)} is outside {limits}"
        return f"the label {_show(label)} is more than {self.half:g} from the centre of {limits}"

    def _classes(self, y: Any, rows: int) -> Array:
        if np.shape(y) != (rows,):
            raise ValueError(f"labels must be classes, one to a row; {rows} rows were given")
        for t, c in enumerate(y):
            if isinstance(c, str) or c not in range(self.d):
                raise DataError(t, f"the label {c!r} is not a class 0 to {self.d - 1}")
        return np.eye(self.d)[np.asarray(y, dtype=np.int64)]


def _numbers(values: Any, rows: int, d: int, name: str) -> Array:
    try:
        given = as_numbers(values)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, {d} to a row") from None
    if given.ndim == 0 or len(given) != rows:
        raise ValueError(f"{rows} rows but {given.shape[0] if given.ndim else 'a single'} {name}")
    if given.size != rows * d:
        raise ValueError(f"{name} must be numbers, {d} to a row; these have shape {given.shape}")
    return given.reshape(rows, d).astype(np.float64)


def _show(label: Array) -> str:
    return f"{label[0]:g}" if len(label) == 1 else f"{label}"
