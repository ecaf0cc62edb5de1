"""Online gradient boosting: any weak online learner made strong, in one pass over a stream."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spanboost.analysis.explanations import explain
    from spanboost.analysis.importances import feature_importances
    from spanboost.errors import ConstantWarning, DataError, LabelWarning, ModelFileError
    from spanboost.learners.ball import LinearBall
    from spanboost.learners.external.torch import TorchModule
    from spanboost.learners.external.vw import VowpalWabbit
    from spanboost.learners.finite import FiniteClass
    from spanboost.learners.from_bank import FromBank
    from spanboost.learners.linear import LinearSGD
    from spanboost.learners.network import Network
    from spanboost.learners.objects import FromTargets
    from spanboost.learners.stumps import Stumps
    from spanboost.learners.symmetric import Symmetrised
    from spanboost.learners.trees import Trees
    from spanboost.models.auto import AutoBoost
    from spanboost.models.booster import HullBoost, SpanBoost
    from spanboost.models.files import load, save
    from spanboost.rows.block import Rows
    from spanboost.tuning.search import tune

__version__ = "0.1.0"

_HOMES = {
    "AutoBoost": "models.auto",
    "SpanBoost": "models.booster",
    "HullBoost": "models.booster",
    "ConstantWarning": "errors",
    "DataError": "errors",
    "LabelWarning": "errors",
    "FiniteClass": "learners.finite",
    "LinearBall": "learners.ball",
    "LinearSGD": "learners.linear",
    "Network": "learners.network",
    "Rows": "rows.block",
    "Stumps": "learners.stumps",
    "Symmetrised": "learners.symmetric",
    "TorchModule": "learners.external.torch",
    "Trees": "learners.trees",
    "VowpalWabbit": "learners.external.vw",
    "explain": "analysis.explanations",
    "feature_importances": "analysis.importances",
    "FromBank": "learners.from_bank",
    "FromTargets": "learners.objects",
    "ModelFileError": "errors",
    "load": "models.files",
    "save": "models.files",
    "tune": "tuning.search",
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
