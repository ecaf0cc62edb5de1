"""Write a model in another form: C source or ONNX."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spanboost.atomic_files import atomic_write
from spanboost.errors import ParameterError, UserError, warn_caller
from spanboost.models.estimator_files import ModelOrEstimator
from spanboost.models.exporting.c_source import c_source
from spanboost.models.exporting.onnx_model import onnx_bytes
from spanboost.models.exporting.program import program_of
from spanboost.models.intervals import Intervals
from spanboost.models.model import Model, require_model
from spanboost.models.wrapper import WrappedModel
from spanboost.rows.table_form import TableForm

FORMS = ("c", "onnx")


def export(
    model: ModelOrEstimator,
    path: str | os.PathLike[str],
    to: str | None = None,
    *,
    name: str = "model",
) -> None:
    """Write the predictions of a model as a program in another form. It contains no training rows.

    model: a model, or a fitted estimator of `spanboost.sklearn` or `spanboost.river` with one
        target.

    to: "c" for a C99 file without dependencies, "onnx" for an ONNX model, which needs the package
        onnx. The default is the ending of the path.
    name: of the model; the functions of a C file begin with it.

    What cannot be exported is refused or, if the predictions of the export differ from those of the
    model or lack something, named by a warning: recent rows, past labels, intervals and sets.

    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import spanboost
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> model = spanboost.SpanBoost(spanboost.LinearSGD(), n=4, label_range="auto")
    >>> predictions = model.learn_many(X, X[:, 0])
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "model.c"
    >>> spanboost.export(model, file)
    >>> "int model_predict(const double *numbers" in file.read_text()
    True
    """
    model, classes, table = _model_and_names(model)
    to = Path(path).suffix.removeprefix(".") if to is None else to
    if to not in FORMS:
        raise ParameterError("to", f"must be {' or '.join(map(repr, FORMS))} (got {to!r:.40})")
    program = program_of(model, classes, table)
    if isinstance(model, WrappedModel):
        left_out = "intervals" if isinstance(model, Intervals) else "prediction sets"
        warn_caller(UserWarning(f"{left_out} are not exported, only predictions"))
    data = onnx_bytes(program, name) if to == "onnx" else c_source(program, name).encode()
    with atomic_write(path) as file:
        file.write(data)


def _model_and_names(
    given: ModelOrEstimator,
) -> tuple[Model, Sequence[Any] | None, TableForm | None]:
    """Return the model of an estimator, its classes and its columns; None for those of a model."""
    if isinstance(given, Model) or not hasattr(given, "to_parts"):
        return require_model(given, "export"), None, None
    parts = given.to_parts()
    if len(parts.models) != 1:
        raise UserError(
            f"cannot export an estimator with {len(parts.models)} targets; train one estimator for "
            "each target and export each of them"
        )
    return parts.models[0], parts.classes, parts.table
