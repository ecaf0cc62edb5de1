"""Models and training runs in MLflow (docs/mlflow.md).

A logged model is a folder with a model file and the flavours `spanboost` and `python_function`. So
`load_model` returns it as it was saved, and MLflow's own tools can serve it and score data with it.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from spanboost import __version__
from spanboost.atomic_files import create_folder
from spanboost.compiling.arrays import Array
from spanboost.errors import UserError, did_you_mean, install_hint
from spanboost.losses import Logistic, Softmax
from spanboost.models.estimator_files import ModelOrEstimator, load, save
from spanboost.models.model import Model
from spanboost.models.predictions import prediction_table, probabilities
from spanboost.models.row_losses import losses_of
from spanboost.rows.frame_rows import frame_names, is_frame

FLAVOR = "spanboost"
MODEL_FILE, ENVIRONMENT = "model.sb", "python_env.yaml"
_CAUSE = re.compile(r"\(Caused by \w+\([\"'][^:]*: (.*)[\"']\)\)$")  # of a failed connection
_CREDENTIALS = re.compile(r"://[^\s/@]*@")
EVERY = 1.1  # metrics are logged when the number of rows has grown by this factor


def import_mlflow() -> Any:
    """Return the module mlflow; a UserError says how to install it."""
    try:
        import mlflow
        import mlflow.models
        import mlflow.pyfunc
    except ImportError:
        raise UserError(f"this needs the package mlflow; {install_hint('mlflow')}") from None
    return mlflow


@contextmanager
def explain_mlflow_errors(mlflow: Any) -> Iterator[None]:
    """Turn errors of MLflow, its server and its database into a UserError of one sentence."""
    try:
        yield
    except _failures(mlflow) as error:
        lines = str(getattr(error, "orig", None) or error).strip().splitlines()
        reason = lines[0] if lines else type(error).__name__
        cause = _CAUSE.search(reason)
        text = f"MLflow at {mlflow.get_tracking_uri()}: {(cause[1] if cause else reason):.300}"
        raise UserError(_CREDENTIALS.sub("://***@", text)) from None


def _failures(mlflow: Any) -> tuple[type[Exception], ...]:
    """Return the errors that MLflow raises; a missing package of its database is one of them."""
    found: tuple[type[Exception], ...] = (mlflow.exceptions.MlflowException, ImportError, OSError)
    library = sys.modules.get("sqlalchemy")  # only MLflow's databases import it
    return found if library is None else (*found, library.exc.SQLAlchemyError)


def save_model(
    model: ModelOrEstimator,
    path: str | os.PathLike[str],
    *,
    compact: bool = False,
    signature: Any = None,
    input_example: Any = None,
    pip_requirements: Iterable[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    mlflow_model: Any = None,
) -> None:
    """Write a model or an estimator to a new folder, as an MLflow model.

    compact: write a smaller model for prediction only, without training rows.
    signature, metadata: as for the other flavours of MLflow.
    input_example: rows from which the signature is inferred if it is not given; they are not saved.
    pip_requirements: packages that a server installs (default: this version of spanboost).
    mlflow_model: the description to extend; `log_model` passes it.
    """
    mlflow = import_mlflow()
    folder = Path(path)
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder} exists and is not empty; choose a new folder")
    create_folder(folder)
    save(model, folder / MODEL_FILE, compact=compact)
    described = mlflow.models.Model() if mlflow_model is None else mlflow_model
    mlflow.pyfunc.add_to_model(
        described,
        loader_module=__name__,
        data=MODEL_FILE,
        python_env=ENVIRONMENT,
    )
    described.add_flavor(FLAVOR, data=MODEL_FILE, spanboost_version=__version__, compact=compact)
    if metadata is not None:
        described.metadata = dict(metadata)
    if signature is None and input_example is not None:
        answers = PyfuncModel(load(folder / MODEL_FILE)).predict(input_example)
        signature = mlflow.models.infer_signature(input_example, answers)
    if signature is not None:
        described.signature = signature
    needed = [f"spanboost=={__version__}"] if pip_requirements is None else pip_requirements
    (folder / "requirements.txt").write_text("".join(f"{one}\n" for one in needed))
    environment = {
        "python": platform.python_version(),
        "build_dependencies": ["pip"],
        "dependencies": ["-r requirements.txt"],
    }
    (folder / ENVIRONMENT).write_text(json.dumps(environment, indent=2) + "\n")  # YAML, too
    described.save(str(folder / "MLmodel"))


def log_model(
    model: ModelOrEstimator,
    name: str = "model",
    *,
    registered_model_name: str | None = None,
    **settings: Any,
) -> Any:
    """Log a model or an estimator in the active run, or in a new one; return MLflow's description.

    name: of the logged model.
    registered_model_name: also register it under this name, as a new version.
    settings: those of `save_model`.
    """
    mlflow = import_mlflow()
    return mlflow.models.Model.log(
        artifact_path=None,
        name=name,
        flavor=sys.modules[__name__],
        model=model,
        registered_model_name=registered_model_name,
        **settings,
    )


def load_model(model_uri: str, dst_path: str | None = None) -> Any:
    """Load a model or an estimator from an address of MLflow, such as "models:/houses/1".

    A model that was not saved compact is ready to continue learning.
    """
    mlflow = import_mlflow()
    folder = mlflow.artifacts.download_artifacts(artifact_uri=model_uri, dst_path=dst_path)
    flavors = mlflow.models.Model.load(folder).flavors
    if FLAVOR not in flavors:
        raise UserError(f"{model_uri} is not a model of spanboost (flavours: {', '.join(flavors)})")
    return load(Path(folder) / flavors[FLAVOR]["data"])


class PyfuncModel:
    """A model as MLflow's `pyfunc` calls it."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """Return predictions for a frame, an array or a list of rows.

        They are numbers, or for classes a frame with the most probable class and the probability
        of each. Models that were not trained on files do not know the names of classes; they return
        probabilities. Estimators return what their `predict` does; those of River take
        frames only. A batch without rows has no predictions.

        A frame without a column that a model of files needs is a UserError, as it is for files.
        """
        model, empty = self.model, _is_empty(model_input)
        if not isinstance(model, Model):
            if not hasattr(model, "predict"):  # of River
                return model.predict_many(model_input)
            return _no_estimates(model) if empty else model.predict(model_input)
        _require_columns(model, model_input)
        outputs = len(model.labels.centre)
        none = np.empty((0, outputs) if outputs > 1 else 0)
        answers = none if empty else model.predict_many(model_input)
        if not isinstance(model.loss_, Logistic | Softmax):
            return answers
        if model.schema is None:
            return probabilities(answers)
        return prediction_table(model, answers).to_pandas()


def _is_empty(rows: Any) -> bool:
    """Return whether a block has no rows; scheduled jobs score such blocks, too."""
    return bool((rows.shape[0] if hasattr(rows, "shape") else len(rows)) == 0)


def _no_estimates(estimator: Any) -> Array:
    """Return the empty predictions of an estimator of scikit-learn, which refuses such blocks."""
    if hasattr(estimator, "classes_"):
        return np.empty(0, estimator.classes_.dtype)
    parts = estimator.to_parts()
    return np.empty((0, len(parts.models)) if parts.state["several"] else 0)


def _require_columns(model: Model, rows: Any) -> None:
    """Raise a UserError if rows are a frame without a column of the files that the model learned.

    Dictionaries may leave out any key, but a frame with fewer columns is often a mistake.
    """
    if model.schema is None or model.schema.form != "table" or not is_frame(rows):
        return
    present = [*map(str, frame_names(rows))]
    for column in model.schema.columns:
        if column.name not in present:
            needed = "; the model needs this column; if its values are not known, leave them empty"
            hint = did_you_mean(column.name, present) or needed
            raise UserError(f"column {column.name!r:.40} not found in the frame{hint}")


def _load_pyfunc(path: str) -> PyfuncModel:
    """Load a model for `mlflow.pyfunc`, which calls this function by name."""
    return PyfuncModel(load(path))


class SilentRun(AbstractContextManager["SilentRun"]):
    """A training run that is not logged."""

    def __exit__(self, *error: Any) -> None:
        """Do nothing."""

    def add_losses(self, losses: Array, weights: Any = None) -> None:
        """Ignore the losses of rows."""

    def finish(self, result: Mapping[str, Any], model: Model, *, compact: bool = False) -> None:
        """Ignore the result."""


class TrainingRun(SilentRun):
    """A run of MLflow with the parameters of a model and its progressive losses.

    Every row is predicted before it is learned, so the losses are those of unseen rows. The metric
    `loss` is the mean over all rows so far, `recent_loss` over the rows since the last entry. The
    step is the number of rows. Entries follow each other when the rows have grown by a tenth.

    model: the model that learns.
    experiment: name of the experiment; None is the active one.
    rows: rows that were learned before, if the run continues another one.

    If there is an active run, or the environment variable MLFLOW_RUN_ID is set, that run is used.
    """

    def __init__(self, model: Model, experiment: str | None = None, *, rows: int = 0) -> None:
        self._mlflow, self.model, self.experiment = import_mlflow(), model, experiment
        self.rows, self._logged = rows, rows
        self._sums: Array = np.zeros(2)  # of weights and of weighted losses
        self._since: Array = np.zeros(2)  # the same since the last entry
        self._stack = ExitStack()

    def __enter__(self) -> TrainingRun:
        with explain_mlflow_errors(self._mlflow):
            if self.experiment is not None:
                self._mlflow.set_experiment(self.experiment)
            if self._mlflow.active_run() is None:
                self._stack.enter_context(self._mlflow.start_run())
            self._mlflow.log_params(parameters_of(self.model))
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            if error[0] is None:
                self._log()
        finally:
            with explain_mlflow_errors(self._mlflow):
                self._stack.__exit__(*error)

    def add(self, y: Any, predictions: Array, weights: Any = None) -> None:
        """Add the labels of rows and the predictions that were made before they were learned."""
        self.add_losses(losses_of(self.model, y, predictions), weights)

    def add_losses(self, losses: Array, weights: Any = None) -> None:
        """Add the losses of rows."""
        each = np.ones(len(losses)) if weights is None else np.asarray(weights, np.float64)
        sums = np.array([each.sum(), each @ losses])
        self._sums, self._since = self._sums + sums, self._since + sums
        self.rows += len(losses)
        if self.rows >= EVERY * self._logged:
            self._log()

    def finish(self, result: Mapping[str, Any], model: Model, *, compact: bool = False) -> None:
        """Log the result of a pass, as `train --json` prints it, and the model that has learned."""
        self._log()
        with explain_mlflow_errors(self._mlflow):
            self._mlflow.log_metrics(dict(_numbers(result)), step=self.rows)
            log_model(model, compact=compact)

    def _log(self) -> None:
        if self.rows == self._logged:
            return
        found = {"loss": self._sums, "recent_loss": self._since}
        means = {name: float(sums[1] / sums[0]) for name, sums in found.items() if sums[0] > 0}
        with explain_mlflow_errors(self._mlflow):
            self._mlflow.log_metrics(means, step=self.rows)
        self._logged, self._since = self.rows, np.zeros(2)


def parameters_of(model: Model) -> dict[str, str]:
    """Return the parameters of a model as MLflow stores them."""
    given = model.parameters()
    plain = {"model": given["booster"]} | given["parameters"]
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in plain.items()
    }


def _numbers(result: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, float]]:
    """Yield the finite numbers of a result by name; those of parts have a prefix."""
    for name, value in result.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{prefix}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value):
            yield f"{prefix}{name}", float(value)
