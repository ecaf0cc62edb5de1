"""The loss of a model on the sample of learned rows that it keeps (rows/row_sample.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.models.loss_record import AverageLoss
from spanboost.models.one_at_a_time import lock_of
from spanboost.models.row_losses import losses_of
from spanboost.rows.block import Block, Rows, as_rows
from spanboost.rows.encoder import EncodedBlock, NumberedBlock
from spanboost.rows.validation import Sparse

if TYPE_CHECKING:
    from spanboost.models.model import Model


class LabelledRows(NamedTuple):
    """Rows with labels and weights, to measure losses."""

    rows: Any  # as encoded by the learner
    labels: Array  # [rows, outputs] as `losses_of` takes them
    weights: Array  # [rows]


class SampleLoss(NamedTuple):
    """The average loss of a sample of learned rows.

    It is lower than that of new rows, unless the stream has drifted: then old rows raise it.
    """

    rows: int
    loss: float

    def __str__(self) -> str:
        kept = f"on a sample of {self.rows:,} learned rows, old and new"
        return f"{self.loss:z.6g} {kept}; `evaluate` measures it on unseen rows"


def describe_loss(loss: AverageLoss | SampleLoss, *, calibrated: bool) -> str:
    """Return a loss as text; that of a calibrated model is the loss before calibration."""
    return f"{loss}; before calibration" if calibrated else str(loss)


def has_sample(model: Model) -> bool:
    """Return whether the model or its parts keep learned rows."""
    samples = [one.row_sample for one in (model, *model.parts.values())]
    return model.started and any(one is not None and one.kept for one in samples)


def sampled_models(model: Model) -> list[Model]:
    """Return the models that keep a sample of rows: this one, or its parts."""
    return [model] if model.row_sample is not None else list(model.parts.values())


def sample_loss(model: Model) -> SampleLoss:
    """Return the loss of the rows that the model keeps; requires `has_sample(model)`.

    For a committee, it is the average over its members. Probabilities are those before calibration,
    as for the average loss so far.
    """
    rows, total, weight = 0, 0.0, 0.0
    with lock_of(model):
        for part in sampled_models(model.uncalibrated):
            sample = kept_rows(part)
            losses = encoded_losses(part, _decode(sample.rows), sample.labels)
            rows += len(losses)
            total += float(sample.weights @ losses)
            weight += float(sample.weights.sum())
    return SampleLoss(rows, total / weight if weight > 0 else float("nan"))


def kept_rows(model: Model) -> LabelledRows:
    """Return the rows that a model keeps; raise a ValueError if it keeps no rows."""
    kept = model.row_sample
    if kept is None or kept.kept == 0:
        raise ValueError(
            f"{model!r} has kept no rows: give X and y, as in feature_importances(model, X, y)"
        )
    rows = kept.rows.take(np.arange(kept.kept))
    return LabelledRows(rows, kept.labels[: kept.kept], kept.weights[: kept.kept])


def sampled_rows(model: Model, most: int) -> Any:
    """Return at most `most` of the rows that a model keeps, as its parts read them, or None."""
    kept, kind = model.row_sample, model.encoder.kind
    if kept is None or kept.kept == 0 or kind is None:
        return None
    chosen = np.unique(np.linspace(0, kept.kept - 1, most).astype(int))
    rows = _decode(kept.rows.take(chosen))
    return NumberedBlock(rows, len(chosen), kind.named, {}) if isinstance(rows, Rows) else rows


def encoded_losses(model: Model, rows: Any, labels: Array) -> Array:
    """Return the losses of `Rows` with numbered columns, or of rows that are not a `Block`.

    The labels before these rows are unknown, and recent rows may be among them, so the experts
    predict alone.
    """
    answers = _predict(model.without_corrections(), rows, len(labels))
    return losses_of(model, labels[:, 0] if labels.shape[1] == 1 else labels, answers)


def _predict(model: Model, rows: Any, number: int) -> Array:
    kind = model.encoder.kind
    if kind is None:
        raise ValueError(f"{model!r} has learned nothing")
    if isinstance(rows, Rows):
        numbered: Any = NumberedBlock(rows, number, kind.named, {})
        return model.predict_many(numbered)
    block = EncodedBlock(rows, as_rows(rows), number, 0, 0, kind, {})
    return model.as_booster().predict_encoded(block, 0, number)


def _decode(rows: Any) -> Any:
    """Return encoded rows as `encoded_losses` takes them: every part of a model can read these."""
    if not isinstance(rows, Block):
        return rows
    if rows.X.shape[1]:
        return Rows(rows.X, rows.codes)
    columns = rows.indices & rows.mask
    return Rows(Sparse(rows.indptr, columns, rows.data, (len(rows.codes),)), rows.codes)
