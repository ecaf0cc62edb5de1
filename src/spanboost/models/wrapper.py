"""A model around another model, whose predictions it returns, with calibrated state of its own.

Intervals and sets of classes are such models. In files, the arrays of the parts have prefixes.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from spanboost.compiling.arrays import Array
from spanboost.errors import ModelFileError, ParameterError
from spanboost.models.booster import Booster
from spanboost.models.loss_record import AverageLoss
from spanboost.models.model import Composition, Model
from spanboost.models.state import leaves
from spanboost.rows.encoder import RowEncoder
from spanboost.rows.label_ends import LabelEnds
from spanboost.rows.labels import LabelHealth, Labels
from spanboost.rows.row_sample import RowSample
from spanboost.rows.user_types import RowsLike


class WrappedModel(Model):
    """Base class of models whose predictions are those of another one."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def _set_schema(self, schema: Any) -> None:
        super()._set_schema(schema)
        self.model.schema = schema  # which names the columns of its key

    @property
    def loss_(self) -> Any:
        """The loss of the model."""
        return self.model.loss_

    @property
    def threads(self) -> int | None:
        """The number of threads of the model."""
        return self.model.threads

    @threads.setter
    def threads(self, number: int | None) -> None:
        self.model.threads = number

    @property
    def parts(self) -> Mapping[str, Booster]:
        """The boosters that the model consists of, by name."""
        return self.model.parts

    @property
    def labels(self) -> Labels:
        """The label range so far, and how many rows were seen."""
        return self.model.labels

    @property
    def label_ends(self) -> LabelEnds | None:
        """The smallest and the largest label learned so far; None if they are unknown."""
        return self.model.label_ends

    @property
    def label_health(self) -> LabelHealth:
        """Facts about the labels so far."""
        return self.model.label_health

    @property
    def encoder(self) -> RowEncoder:
        """The encoder of rows, with their kind and the names of features."""
        return self.model.encoder

    def encoders(self) -> list[RowEncoder]:
        """Return the encoders of all boosters of the model."""
        return self.model.encoders()

    @property
    def started(self) -> bool:
        """Whether the model has seen a row."""
        return self.model.started

    @property
    def weights_(self) -> dict[str, float]:
        """The weight of each part of the model."""
        return self.model.weights_

    @property
    def losses_(self) -> dict[str, float]:
        """The average loss of each part so far by name; empty if it is not recorded."""
        return self.model.losses_

    @property
    def average_loss(self) -> AverageLoss | None:
        """The average loss so far; None if it is not recorded, or there are no rows yet."""
        return self.model.average_loss

    @property
    def sigma_(self) -> Array | None:
        """The current shrinkage of every copy; None unless the model runs Algorithm 1."""
        return self.model.sigma_

    @property
    def row_sample(self) -> RowSample | None:
        """The sample of rows that the model keeps."""
        return self.model.row_sample

    def as_booster(self) -> Booster:
        """Return the model if it is a single booster; raise a ValueError if it has several."""
        return self.model.as_booster()

    def predict_many(self, X: RowsLike) -> Array:
        """Return the predictions of the model; learn nothing."""
        return self.model.predict_many(X)

    def learn_again(self, X: RowsLike, y: ArrayLike, weights: ArrayLike | None = None) -> Array:
        """Learn a block of rows that the model has learned before, in a further pass.

        The rows are no longer unseen, so what is calibrated does not change.
        """
        return self.model.learn_again(X, y, weights)

    def without_past(self) -> Self:
        """Return the same around a model that predicts without past labels."""
        return self._around(self.model.without_past())

    def without_corrections(self) -> Self:
        """Return the same around a model that predicts without past labels and recent rows."""
        return self._around(self.model.without_corrections())

    def _around(self, model: Model) -> Self:
        """Return the same around another model."""
        if model is self.model:
            return self
        copied = copy.copy(self)
        copied.model = model
        return copied

    def corrections(self, X: RowsLike) -> Array | float:
        """Return what recent rows and past labels add to the predictions of a block."""
        return self.model.corrections(X)

    def compose(self, predictions: Sequence[Array]) -> Composition:
        """Return how the predictions of the parts compose the prediction for one row."""
        return self.model.compose(predictions)

    def details(self) -> dict[str, Any]:
        """Return what `inspect` shows besides parameters, as JSON."""
        return self.model.details()

    def call_text(self) -> str:
        """Return the call that creates such a model, as Python source."""
        return f"{type(self).__name__}({self.model.call_text()})"


class HeldOutCalibrated(WrappedModel):
    """Base class of models that errors of rows which were not learned can calibrate."""

    def held_out_errors(
        self, X: Any, y: Array, weights: Array, forecasts: Array | None = None, by: Any = None
    ) -> Array:
        """Return the errors of rows that were not learned, [rows of positive weight, numbers].

        forecasts: predictions of these rows; None are those of `by`.
        by: the model that has not learned the rows; None is this one.
        """
        raise NotImplementedError

    def calibrate(self, errors: Array) -> None:
        """Start the calibration again with such errors: split conformal prediction."""
        raise NotImplementedError

    def learn_held_out(
        self,
        X: RowsLike,
        y: ArrayLike,
        weights: ArrayLike | None = None,
        forecasts: Array | None = None,
    ) -> Array:
        """Learn a block of rows that all passes before have left out; calibrate with them first."""
        block, labels = self.check(X, y, weights), np.array(y, np.float64).reshape(-1)
        kept = np.ones(len(labels)) if weights is None else np.array(weights, np.float64)
        self.calibrate(self.held_out_errors(X, labels, kept, forecasts))
        return self.model.learn_checked(block.checked)


def prefixed_tensors(models: Mapping[str, Model]) -> Iterator[tuple[str, Array]]:
    """Yield the arrays of models, with the prefix of each."""
    for prefix, model in models.items():
        for name, value in model.tensors():
            yield f"{prefix}.{name}", value


def split_tensors(tensors: Mapping[str, Array], prefixes: Sequence[str]) -> dict[str, Any]:
    """Return the arrays of each prefix, without it; a KeyError if another one occurs."""
    parts: dict[str, dict[str, Array]] = {name: {} for name in prefixes}
    for name, value in tensors.items():
        prefix, _, rest = name.partition(".")
        parts[prefix][rest] = value
    return parts


def fill_arrays(state: Any, arrays: dict[str, Array], prefix: str) -> None:
    """Set the arrays of a state; a ModelFileError if they do not fit it."""
    for name, target, _ in leaves(state, prefix):
        value = arrays.pop(name.removeprefix(f"{prefix}."))
        if value.shape != target.shape or value.dtype != target.dtype or np.isnan(value).any():
            raise ModelFileError(
                f"{name} must be {target.dtype} of shape {target.shape} without NaN "
                f"(got {value.dtype} of shape {value.shape})"
            )
        target[...] = value
    if arrays:
        raise ModelFileError(f"the file contains unknown arrays of {prefix}")


def check_inner(model: Any) -> None:
    """Raise a `ParameterError` if a wrapper cannot be put around the model."""
    if isinstance(model, WrappedModel):
        raise ParameterError(
            "model",
            "must be AutoBoost() or a booster; intervals, prediction sets and calibrated "
            f"probabilities cannot be combined (got {model!r})",
        )
    if not isinstance(model, Model):
        raise ParameterError(
            "model",
            "must be AutoBoost() or a booster, not an estimator for scikit-learn or River "
            f"(got {model!r})",
        )
