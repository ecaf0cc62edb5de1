"""The methods that are compared, and how each is run."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from benchmarks.accuracy.datasets import Data
from benchmarks.accuracy.stream import Run

SHORT = 20_000  # number of rows for the slow libraries
SHORT_LIMIT = 120.0  # seconds of processor time
LIMIT = 1_200.0


class Method(NamedTuple):
    """A method to compare."""

    group: str
    title: str
    packages: tuple[str, ...]
    short: bool = False  # runs on the first rows only

    @property
    def limit(self) -> float:
        """The time limit in seconds."""
        return SHORT_LIMIT if self.short else LIMIT

    @property
    def most(self) -> int | None:
        """The maximum number of rows, or None for all."""
        return SHORT if self.short else None


_OURS = ("numpy", "numba")
_RIVER, _MOA = ("river",), ("capymoa",)
_LIGHTGBM, _XGBOOST = ("lightgbm",), ("xgboost", "xgboost-cpu")
METHODS = {  # in the order in which they run: fast ones first
    "previous-label": Method("baseline", "previous label", ("numpy",)),
    "lightgbm-batch": Method("batch", "LightGBM", _LIGHTGBM),
    "xgboost-batch": Method("batch", "XGBoost", _XGBOOST),
    "catboost-batch": Method("tuned", "CatBoost", ("catboost",)),
    "lightgbm-tuned": Method("tuned", "LightGBM tuned", _LIGHTGBM),
    "lightgbm-chunk-1": Method("chunks", "LightGBM +1", _LIGHTGBM),
    "xgboost-chunk-1": Method("chunks", "XGBoost +1", _XGBOOST),
    "xgboost-chunk-1-slow": Method("chunks", "XGBoost +1, eta 0.1", _XGBOOST),
    "lightgbm-refit": Method("ceiling", "LightGBM refitted", _LIGHTGBM),
    "river-hoeffding": Method("streaming", "River Hoeffding tree", _RIVER, short=True),
    "capymoa-arf": Method("streaming", "CapyMOA ARF-Reg", _MOA, short=True),
    "capymoa-sgbr": Method("streaming", "CapyMOA SGBR", _MOA, short=True),
    "river-arf": Method("streaming", "River ARF", _RIVER, short=True),
    "lightgbm-chunk-10": Method("chunks", "LightGBM +10", _LIGHTGBM),
    "xgboost-chunk-10": Method("chunks", "XGBoost +10", _XGBOOST),
    "xgboost-chunk-10-slow": Method("chunks", "XGBoost +10, eta 0.1", _XGBOOST),
    "river-srp": Method("streaming", "River SRP", _RIVER, short=True),
    "capymoa-soknl": Method("streaming", "CapyMOA SOKNL", _MOA, short=True),
    "trees": Method("ours", "trees alone", _OURS),
    "auto-fast": Method("ours", "AutoBoost fast", _OURS),
    "auto-default": Method("ours", "AutoBoost", _OURS),
    "auto-thorough": Method("ours", "AutoBoost thorough", _OURS),
}


def named(*groups: str) -> list[str]:
    """Return the names of the methods in these groups."""
    return [name for name, method in METHODS.items() if method.group in groups]


def runner(name: str) -> Callable[[Data, float], Run]:
    """Return the function that runs a method; only the libraries it needs are imported."""
    library, _, kind = name.partition("-")
    if METHODS[name].group == "baseline":
        from benchmarks.accuracy import baselines

        return baselines.previous_label
    if METHODS[name].group == "ours":
        from benchmarks.accuracy import ours

        return partial(ours.ours, kind or library)
    from benchmarks.accuracy import peers_batch, peers_online

    if library in ("river", "capymoa"):
        return partial(getattr(peers_online, library), kind)
    classes: dict[str, Any] = {
        "lightgbm-tuned": peers_batch.TunedLightGBM,
        "lightgbm": peers_batch.LightGBM,
        "catboost": peers_batch.CatBoost,
        "xgboost": peers_batch.XGBoost,
    }
    new = classes.get(name, classes[library])
    if kind.endswith("-slow"):
        new = partial(new, eta=0.1)
    if kind in ("batch", "tuned"):
        return partial(peers_batch.batch, new)
    if kind == "refit":
        return partial(peers_batch.refitted, new)
    return partial(peers_batch.chunked, new, int(kind.split("-")[1]))
