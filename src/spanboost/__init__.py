"""Online gradient boosting: any weak online learner made strong, in one pass over a stream."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spanboost.auto import AutoBoost
    from spanboost.block import Rows
    from spanboost.booster import HullBoost, SpanBoost
    from spanboost.errors import ConstantWarning, DataError, LabelWarning, ModelFileError
    from spanboost.explaining import explain
    from spanboost.importances import feature_importances
    from spanboost.learners.ball import LinearBall
    from spanboost.learners.external.torch import TorchModule
    from spanboost.learners.external.vw import VowpalWabbit
    from spanboost.learners.finite import FiniteClass
    from spanboost.learners.linear import LinearSGD
    from spanboost.learners.network import Network
    from spanboost.learners.objects import FromTargets
    from spanboost.learners.own import FromBank
    from spanboost.learners.stumps import Stumps
    from spanboost.learners.symmetric import Symmetrised
    from spanboost.learners.trees import Trees
    from spanboost.modelfile import load, save
    from spanboost.tuning import tune

__version__ = "0.1.0"

_HOMES = {
    "AutoBoost": "auto",
    "SpanBoost": "booster",
    "HullBoost": "booster",
    "ConstantWarning": "errors",
    "DataError": "errors",
    "LabelWarning": "errors",
    "FiniteClass": "learners.finite",
    "LinearBall": "learners.ball",
    "LinearSGD": "learners.linear",
    "Network": "learners.network",
    "Rows": "block",
    "Stumps": "learners.stumps",
    "Symmetrised": "learners.symmetric",
    "TorchModule": "learners.external.torch",
    "Trees": "learners.trees",
    "VowpalWabbit": "learners.external.vw",
    "explain": "explaining",
    "feature_importances": "importances",
    "FromBank": "learners.own",
    "FromTargets": "learners.objects",
    "ModelFileError": "errors",
    "load": "modelfile",
    "save": "modelfile",
    "tune": "tuning",
}

__all__ = [
    "AutoBoost",
    "ConstantWarning",
    "DataError",
    "FiniteClass",
    "FromBank",
    "FromTargets",
    "HullBoost",
    "LabelWarning",
    "LinearBall",
    "LinearSGD",
    "ModelFileError",
    "Network",
    "Rows",
    "SpanBoost",
    "Stumps",
    "Symmetrised",
    "TorchModule",
    "Trees",
    "VowpalWabbit",
    "explain",
    "feature_importances",
    "load",
    "save",
    "tune",
]


def __getattr__(name: str) -> Any:
    # NumPy and the rest wait until a name is asked for: `import spanboost` costs nothing
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"spanboost.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
