"""Estimators of LightGBM, XGBoost and CatBoost as data: their parameters, and what they learned.

Files hold fitted estimators in the text or JSON form of their library. A fitted estimator is always
read back from that form before it predicts, so a model that was saved and loaded predicts the same.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.errors import ModelFileError, UserError, install_hint
from spanboost.models.refitting.catboost_json import check_catboost_json
from spanboost.models.refitting.lightgbm_text import check_lightgbm_text

DEFAULT, SHALLOW, CATBOOST = "lightgbm", "lightgbm shallow", "catboost"
NAMED = {DEFAULT: "lightgbm", SHALLOW: "lightgbm", CATBOOST: "catboost"}  # with own settings
_MODULES = {
    "LGBMRegressor": "lightgbm",
    "LGBMClassifier": "lightgbm",
    "XGBRegressor": "xgboost",
    "XGBClassifier": "xgboost",
    "CatBoostRegressor": "catboost",
    "CatBoostClassifier": "catboost",
}
_TITLES = {"lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost"}


class Form(NamedTuple):
    """How a library turns a fitted estimator into bytes, and bytes into a function."""

    dump: Callable[[Any], bytes]
    load: Callable[[bytes], Callable[[Any], Array]]  # predictions, or probabilities of classes


@dataclass(frozen=True)
class LibraryEstimator:
    """An estimator of one of the libraries, before it is fitted.

    name: its class; parameters: (name, value) of those that are set.
    """

    name: str
    parameters: tuple[tuple[str, Any], ...] = ()

    @property
    def library(self) -> str:
        """The module of the estimator."""
        if self.name not in _MODULES:
            raise ModelFileError(f"this version does not know the estimator {self.name!r:.40}")
        return _MODULES[self.name]

    def build(self) -> Any:
        """Return a new estimator."""
        module = import_library(self.library)
        return getattr(module, self.name)(**dict(self.parameters))

    def __str__(self) -> str:
        return self.name


def as_data(estimator: Any) -> Any:
    """Return an estimator as a `LibraryEstimator` if it is one; any other one unchanged."""
    name = type(estimator).__name__
    module = type(estimator).__module__.partition(".")[0]
    if _MODULES.get(name) != module:
        return estimator
    given = {key: value for key, value in estimator.get_params().items() if not _is_unset(value)}
    if not all(isinstance(value, str | bool | int | float) for value in given.values()):
        return estimator
    return LibraryEstimator(name, tuple(sorted(given.items())))


def _is_unset(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def is_installed(library: str) -> bool:
    """Return whether a library can be imported."""
    return find_spec(library) is not None


def import_library(library: str) -> Any:
    """Import a library; a UserError if it is not installed."""
    if not is_installed(library):
        hint = install_hint(library) if library == DEFAULT else f"run pip install {library}"
        raise UserError(f"the model uses {_TITLES[library]}, which is not installed; {hint}")
    return import_module(library)


def _dump_lightgbm(fitted: Any) -> bytes:
    booster = getattr(fitted, "booster_", fitted)
    text: str = booster.model_to_string()
    return text.encode()


def _load_lightgbm(data: bytes) -> Callable[[Any], Array]:
    text = data.decode()
    check_lightgbm_text(text)
    booster = import_library("lightgbm").Booster(model_str=text)
    # predictions of a row must not depend on the rows around it, nor on the number of threads
    return lambda X: np.asarray(booster.predict(X, num_threads=1))


def _dump_xgboost(fitted: Any) -> bytes:
    return bytes(fitted.get_booster().save_raw("json"))


def _load_xgboost(data: bytes) -> Callable[[Any], Array]:
    xgboost = import_library("xgboost")
    booster = xgboost.Booster({"nthread": 1}, model_file=bytearray(data))
    return lambda X: np.asarray(booster.predict(xgboost.DMatrix(X, nthread=1)))


def _dump_catboost(fitted: Any) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        fitted.save_model(str(path), format="json")
        content = json.loads(path.read_bytes())
    for varying in ("train_finish_time", "model_guid"):  # equal fits have equal bytes
        content["model_info"].pop(varying, None)
    return json.dumps(content).encode()


def _load_catboost(data: bytes) -> Callable[[Any], Array]:
    catboost, content = import_library("catboost"), json.loads(data)
    check_catboost_json(content)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        path.write_bytes(data)
        model = catboost.CatBoost().load_model(str(path), format="json")
    kind = _catboost_kind(content)
    return lambda X: np.asarray(model.predict(X, prediction_type=kind, thread_count=1))


def _catboost_kind(content: Any) -> str:
    """Return what a model of CatBoost predicts."""
    info = content["model_info"]
    if "class_params" in info:
        return "Probability"
    loss = info.get("params", {}).get("loss_function", {}).get("type")
    return "Exponent" if loss in ("Poisson", "Tweedie") else "RawFormulaVal"


FORMS = {
    "lightgbm": Form(_dump_lightgbm, _load_lightgbm),
    "xgboost": Form(_dump_xgboost, _load_xgboost),
    "catboost": Form(_dump_catboost, _load_catboost),
}
