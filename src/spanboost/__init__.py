"""Online gradient boosting: turn a weak online learner into a strong one, in one pass."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spanboost.analysis import mlflow, pictures
    from spanboost.analysis.comparison import Comparison, compare
    from spanboost.analysis.drift import Drift
    from spanboost.analysis.evaluation import Evaluation, evaluate
    from spanboost.analysis.explanation import Explanation
    from spanboost.analysis.explanations import explain
    from spanboost.analysis.importances import feature_importances
    from spanboost.analysis.metrics.collected import Metrics
    from spanboost.analysis.metrics.of_intervals import IntervalMetrics, QuantileMetrics
    from spanboost.errors import (
        ConstantWarning,
        DataError,
        LabelWarning,
        ModelFileError,
        WeightWarning,
    )
    from spanboost.learners.ball import LinearBall
    from spanboost.learners.external.torch import TorchModule
    from spanboost.learners.external.vw import VowpalWabbit
    from spanboost.learners.finite import FiniteClass
    from spanboost.learners.from_bank import FromBank
    from spanboost.learners.linear import LinearSGD
    from spanboost.learners.network import Network
    from spanboost.learners.objects import FromTargets
    from spanboost.learners.ridge import Ridge
    from spanboost.learners.stumps import Stumps
    from spanboost.learners.symmetric import Symmetrised
    from spanboost.learners.trees import Trees
    from spanboost.models.auto import AutoBoost
    from spanboost.models.booster import HullBoost, SpanBoost
    from spanboost.models.calibrated import Calibrated
    from spanboost.models.estimator_files import load, save
    from spanboost.models.exporting.exports import export
    from spanboost.models.intervals import Intervals
    from spanboost.models.refitted import Refitted
    from spanboost.models.sets import PredictionSets
    from spanboost.parallel.cluster import Cluster
    from spanboost.parallel.expert_team import ExpertTeam
    from spanboost.parallel.team import Team
    from spanboost.rows.block import Rows
    from spanboost.tuning.result import TuningResult
    from spanboost.tuning.search import tune

__version__ = "0.2.0.dev0"

_HOMES = {  # public names, and the modules that hold them
    "AutoBoost": "models.auto",
    "SpanBoost": "models.booster",
    "HullBoost": "models.booster",
    "Calibrated": "models.calibrated",
    "Cluster": "parallel.cluster",
    "Comparison": "analysis.comparison",
    "ConstantWarning": "errors",
    "DataError": "errors",
    "Drift": "analysis.drift",
    "Evaluation": "analysis.evaluation",
    "ExpertTeam": "parallel.expert_team",
    "Explanation": "analysis.explanation",
    "IntervalMetrics": "analysis.metrics.of_intervals",
    "Intervals": "models.intervals",
    "LabelWarning": "errors",
    "FiniteClass": "learners.finite",
    "LinearBall": "learners.ball",
    "LinearSGD": "learners.linear",
    "Metrics": "analysis.metrics.collected",
    "Network": "learners.network",
    "PredictionSets": "models.sets",
    "QuantileMetrics": "analysis.metrics.of_intervals",
    "Refitted": "models.refitted",
    "Ridge": "learners.ridge",
    "Rows": "rows.block",
    "Stumps": "learners.stumps",
    "Symmetrised": "learners.symmetric",
    "Team": "parallel.team",
    "TorchModule": "learners.external.torch",
    "Trees": "learners.trees",
    "TuningResult": "tuning.result",
    "VowpalWabbit": "learners.external.vw",
    "WeightWarning": "errors",
    "compare": "analysis.comparison",
    "evaluate": "analysis.evaluation",
    "explain": "analysis.explanations",
    "export": "models.exporting.exports",
    "feature_importances": "analysis.importances",
    "FromBank": "learners.from_bank",
    "FromTargets": "learners.objects",
    "ModelFileError": "errors",
    "load": "models.estimator_files",
    "save": "models.estimator_files",
    "tune": "tuning.search",
}

_ESTIMATORS = ("BoostingClassifier", "BoostingRegressor")  # of two libraries

__all__ = [
    "AutoBoost",
    "Calibrated",
    "Cluster",
    "Comparison",
    "ConstantWarning",
    "DataError",
    "Drift",
    "Evaluation",
    "ExpertTeam",
    "Explanation",
    "FiniteClass",
    "FromBank",
    "FromTargets",
    "HullBoost",
    "IntervalMetrics",
    "Intervals",
    "LabelWarning",
    "LinearBall",
    "LinearSGD",
    "Metrics",
    "ModelFileError",
    "Network",
    "PredictionSets",
    "QuantileMetrics",
    "Refitted",
    "Ridge",
    "Rows",
    "SpanBoost",
    "Stumps",
    "Symmetrised",
    "Team",
    "TorchModule",
    "Trees",
    "TuningResult",
    "VowpalWabbit",
    "WeightWarning",
    "compare",
    "evaluate",
    "explain",
    "export",
    "feature_importances",
    "load",
    "mlflow",
    "pictures",
    "save",
    "tune",
]


def __getattr__(name: str) -> Any:
    # NumPy and the rest wait until a name is used: `import spanboost` costs nothing
    if name in _ESTIMATORS:  # an AttributeError would lose its text in `from spanboost import`
        raise ImportError(
            f"cannot import {name!r} from {__name__!r}; import it from spanboost.sklearn or "
            "spanboost.river",
            name=__name__,
        )
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_hint(name)}")
    if name in _HOMES:
        value = getattr(import_module(f"spanboost.{_HOMES[name]}"), name)
    else:
        value = import_module(f"spanboost.analysis.{name}")
    globals()[name] = value
    return value


def _hint(name: str) -> str:
    from spanboost.errors import did_you_mean

    return "" if name.startswith("_") else did_you_mean(name, __all__)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
