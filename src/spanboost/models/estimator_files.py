"""Save and load models, and the estimators for scikit-learn and River.

The file of an estimator is a safetensors file, too. Its header has the name of the class and what
the estimator knows besides its models: parameters, columns, categories, classes. Every model is an
array of bytes: a complete model file, with all of its checks (files.py).
"""

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from spanboost.atomic_files import atomic_write, check_writable
from spanboost.errors import ModelFileError
from spanboost.models import files
from spanboost.models.compact import compact_model
from spanboost.models.model import Model, require_model
from spanboost.models.one_at_a_time import lock_of
from spanboost.models.plain_data import decode, encode
from spanboost.rows.table_form import TableForm

_ESTIMATORS = {  # the classes that a file may name
    "sklearn": ("BoostingRegressor", "BoostingClassifier"),
    "river": ("BoostingRegressor", "BoostingClassifier", "BoostingMultiTargetRegressor"),
}


# names of data files, which a model must not replace by mistake
_DATA = (".csv", ".tsv", ".jsonl", ".json", ".ndjson", ".parquet", ".arrow", ".feather")


class EstimatorParts(NamedTuple):
    """An estimator as data."""

    name: str  # the module and the class, such as "sklearn.BoostingRegressor"
    state: dict[str, Any]  # plain values, as `plain_data.encode` takes them
    models: Sequence[Model]
    # what only the estimator knows by name, for exports; not in the file
    classes: Sequence[Any] = ()  # of a classifier, in the order of the model
    table: TableForm | None = None  # the columns of its frames, in the order of the model


class FittedEstimator(Protocol):
    """A fitted estimator of `spanboost.sklearn` or `spanboost.river`."""

    def to_parts(self) -> EstimatorParts:
        """Return the estimator as data."""


ModelOrEstimator: TypeAlias = Model | FittedEstimator


def save(
    model: ModelOrEstimator,
    path: str | os.PathLike[str],
    *,
    private: bool = False,
    compact: bool = False,
) -> None:
    """Write a model to a file, or a fitted estimator of `spanboost.sklearn` or `spanboost.river`.

    The file holds data, never code. `load` restores it.

    private: only the owner may read the file.
    compact: write a smaller file for prediction only. The loaded model predicts the same numbers
        and refuses to learn. The file contains no training rows.
    """
    if Path(path).suffix.lower() in _DATA:
        raise ValueError(f"{os.fspath(path)} has the name of a data file; models are .sb files")
    check_writable(path)
    if isinstance(model, Model) or not hasattr(model, "to_parts"):
        files.save(require_model(model, "save"), path, private=private, compact=compact)
        return
    with lock_of(model):
        name, state, models = model.to_parts()[:3]
        if compact:
            models = [compact_model(one) for one in models]
        header = {"estimator": name, "state": encode(state)}
        tensors = {f"model.{k}": files.to_bytes(one) for k, one in enumerate(models)}
    arrays = {key: np.frombuffer(data, np.uint8) for key, data in tensors.items()}
    data = files.pack(header, arrays)
    with atomic_write(path, private=private) as file:
        file.write(data)


def load(path: str | os.PathLike[str], *, trusted: bool = False) -> Any:
    """Load a model or an estimator from a file, ready to continue learning.

    A file that is not `trusted` is refused if its tables would take far more memory than its size
    suggests (claims.py). All other checks are the same.
    """
    with files.describe_errors(path):
        header, arrays = files.read(Path(path))
        if not (isinstance(header, dict) and "estimator" in header):
            return files.restore(header, arrays, trusted)[0]
        with files.matching_parts():
            files.check_header(header, arrays)
            numbers = range(len(arrays))
            models = [
                files.from_bytes(arrays[f"model.{k}"].tobytes(), trusted=trusted) for k in numbers
            ]
            parts = EstimatorParts(header["estimator"], decode(header["state"]), models)
            return _class_of(parts.name).from_parts(parts)


def _class_of(name: str) -> Any:
    module, _, cls = name.partition(".")
    if cls not in _ESTIMATORS.get(module, ()):
        raise ModelFileError(f"this version does not know the estimator {name!r:.60}")
    return getattr(import_module(f"spanboost.{module}"), cls)
