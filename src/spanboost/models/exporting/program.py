"""The prediction program of a model: what it computes from a row, as plain data.

The writers of C (c_source.py) and ONNX (onnx_model.py) translate a program. It consists of boosters
and of combinations of their forecasts. A model that cannot be translated is refused here.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.core.algorithms import Span
from spanboost.core.stacked import StackedAlgorithm
from spanboost.errors import UserError
from spanboost.learners.linear import LinearBank
from spanboost.learners.network import NetworkBank
from spanboost.learners.ridge import RidgeBank
from spanboost.learners.stumps import StumpBank
from spanboost.learners.text import learner_text
from spanboost.learners.tree_tables import PredictingTrees
from spanboost.losses import Logistic, Softmax
from spanboost.models.auto import AutoBoost
from spanboost.models.booster import Booster
from spanboost.models.calibrated import Calibrated
from spanboost.models.choice import Choosing
from spanboost.models.committee import Committee
from spanboost.models.compact import compact_model
from spanboost.models.exporting.combinations import Mean, Mixed, mixed
from spanboost.models.exporting.row_form import RowForm, row_form
from spanboost.models.model import Model
from spanboost.models.predictions import class_names, known_classes
from spanboost.models.refitted import Refitted
from spanboost.models.wrapper import WrappedModel
from spanboost.rows.table_form import TableForm

BANKS = (PredictingTrees, LinearBank, NetworkBank, RidgeBank, StumpBank)


class Lane(NamedTuple):
    """One run of Algorithm 1 or 2 over the copies `first` to `last` - 1 of a bank.

    y = keep_i y + eta_i (scale h_i), then projected to norm `radius`, for every copy i.
    """

    first: int
    last: int
    keep: Array
    eta: Array
    scale: Any
    radius: Any  # None for Algorithm 2, which does not project


class BoosterPart(NamedTuple):
    """A booster: its bank, the algorithm that combines the copies, and the units of forecasts."""

    bank: Any  # one of BANKS
    dtype: Any
    mask: int  # 2^bits - 1 if features are hashed, otherwise -1
    D: Any  # predictions of copies are projected to this norm
    lanes: Sequence[Lane]
    places: Sequence[int]  # the copies after which a partial sum is a forecast
    centre: Array  # [d] a forecast is centre + half y, half exp(y) or a score, y
    half: float
    link: str  # "linear", "log" or "score"


class CombinedPart(NamedTuple):
    """A combination of the forecasts of several parts."""

    parts: Sequence["BoosterPart | CombinedPart"]
    how: Mean | Mixed


Part = BoosterPart | CombinedPart


class Program(NamedTuple):
    """A model as data."""

    form: RowForm
    outputs: int
    part: Part
    classes: Sequence[str]  # names, or numbers if they have none; empty for numbers and scores
    binary: bool  # whether the prediction is the log-odds of the second of two classes
    description: str  # of the model, for the first lines of a file


def program_of(
    model: Model, classes: Sequence[Any] | None = None, table: TableForm | None = None
) -> Program:
    """Return the program of a model; a UserError if the model has none.

    classes, table: of an estimator, whose model knows only the numbers of classes and columns.
    """
    if isinstance(model, Calibrated):
        raise UserError(
            "calibrated probabilities cannot be exported; export `model.model`, or train without "
            "--calibrate"
        )
    inner = model.model if isinstance(model, WrappedModel) else model
    small = compact_model(inner)
    binary = isinstance(small.loss_, Logistic)
    part = _part(small)
    d = len(_first(part).centre)
    # the schema belongs to the model around the inner one
    names = _classes(model, d, classes)
    return Program(row_form(model, table), d, part, names, binary, repr(inner).strip("<>"))


def forecasts_of(part: Part) -> int:
    """Return the number of forecasts of a part."""
    return len(part.places) if isinstance(part, BoosterPart) else 1


def boosters_of(part: Part) -> list[BoosterPart]:
    """Return all boosters of a part, in order."""
    if isinstance(part, BoosterPart):
        return [part]
    return [one for inner in part.parts for one in boosters_of(inner)]


def _first(part: Part) -> BoosterPart:
    return boosters_of(part)[0]


def _part(model: Model) -> Part:
    if isinstance(model, AutoBoost):
        parts = [_part(expert) for expert in model.experts.values()]
        return CombinedPart(parts, mixed(model.mixture, model.labels))
    if isinstance(model, Committee):
        return CombinedPart([_part(one) for one in model.members], Mean())
    booster = model.as_booster()
    if isinstance(booster, Choosing):
        return CombinedPart([_booster(booster)], mixed(booster.mixture, booster.labels))
    return _booster(booster)


def _booster(model: Booster) -> BoosterPart:
    if isinstance(model, Refitted):
        model.check_fixed("an export")
    core, labels = model.core, model.labels
    bank, algorithm = core.state.bank, core.state.algorithm
    if not isinstance(bank, BANKS):
        raise UserError(
            f"cannot export {learner_text(model.learner)}: only models of linear functions, "
            "stumps, networks, least squares or trees, and AutoBoost, can be exported"
        )
    if isinstance(algorithm, StackedAlgorithm):
        N = algorithm.N
        each = ((c * N, (c + 1) * N) for c in range(core.task.n // N))
        lanes = [_lane(algorithm.each.one(a // N, a, b), a) for a, b in each]
    else:
        lanes = [_lane(algorithm, 0)]
    places = model.places.tolist() if isinstance(model, Choosing) else [core.task.n - 1]
    bits = getattr(core.learner, "bits", None)
    return BoosterPart(
        bank=bank,
        dtype=core.dtype,
        mask=-1 if bits is None else 2**bits - 1,
        D=core.dtype(core.state.D),
        lanes=lanes,
        places=places,
        centre=np.asarray(labels.centre, np.float64),
        half=float(labels.half),
        link="score" if labels.scores else "log" if labels.log_link else "linear",
    )


def _lane(algorithm: Any, first: int) -> Lane:
    """Return what `forward` of the algorithm computes, with the same bits."""
    eta = algorithm.eta
    span = isinstance(algorithm, Span)
    keep = eta.dtype.type(1) - (algorithm.sigma * eta if span else eta)
    scale, radius = eta.dtype.type(algorithm.scale), None
    if span:
        radius = eta.dtype.type(algorithm.B)
    return Lane(first, first + len(eta), keep, eta, scale, radius)


def _classes(model: Model, d: int, given: Sequence[Any] | None) -> list[str]:
    """Return the names of the classes whose probabilities the predictions stand for."""
    if not isinstance(model.loss_, Logistic | Softmax):
        return []
    known = known_classes(model) if given is None and model.schema is not None else given
    if known is not None and len(known) < 2:
        raise UserError(
            "cannot export a model that has seen fewer than two classes; train it on rows of more "
            "classes"
        )
    if given is not None:
        return [*map(str, given)]
    if model.schema is not None:
        return class_names(model)[: max(d, 2)]
    return ["-1", "1"] if isinstance(model.loss_, Logistic) else [str(k) for k in range(d)]
