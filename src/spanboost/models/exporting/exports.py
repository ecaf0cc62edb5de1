"""Write a model in another form: C source or ONNX."""

import os
from pathlib import Path

from spanboost.atomic_files import atomic_write
from spanboost.errors import ParameterError
from spanboost.models.exporting.c_source import c_source
from spanboost.models.exporting.onnx_model import onnx_bytes
from spanboost.models.exporting.program import program_of
from spanboost.models.model import Model, require_model

FORMS = ("c", "onnx")


def export(
    model: Model, path: str | os.PathLike[str], to: str | None = None, *, name: str = "model"
) -> None:
    """Write the predictions of a model as a program in another form. It contains no training rows.

    to: "c" for a C99 file without dependencies, "onnx" for an ONNX model, which needs the package
        onnx. The default is the ending of the path.
    name: of the model; the functions of a C file begin with it.

    Predictions of models with intervals or prediction sets are exported without these.

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
    require_model(model, "export")
    to = Path(path).suffix.removeprefix(".") if to is None else to
    if to not in FORMS:
        raise ParameterError("to", f"must be {' or '.join(map(repr, FORMS))} (got {to!r:.40})")
    program = program_of(model)
    data = onnx_bytes(program, name) if to == "onnx" else c_source(program, name).encode()
    with atomic_write(path) as file:
        file.write(data)
