"""One run: a model learns a stream, and its predictions are scored."""

import math
import time
import warnings
from typing import Any

import numpy as np

from benchmarks.wild.cases import Case
from benchmarks.wild.results import Key
from benchmarks.wild.streams import Stream
from spanboost import AutoBoost, SpanBoost, Trees
from spanboost.losses import Huber, Quantile

PEER = "lightgbm"  # label and model of the runs of LightGBM
LOSS = {"huber": Huber(), "quantile": Quantile(0.5)}  # other losses have their own names


def model(name: str, loss: str) -> Any:
    """Create boosted trees alone, or AutoBoost with a budget."""
    if name == "trees":
        return SpanBoost(Trees(), n=100, eta=0.1, loss=LOSS.get(loss, loss), label_range="auto")
    return AutoBoost(LOSS.get(loss, loss), budget=name)


def measure(case: Case, key: Key) -> dict[str, Any]:
    """Run one model on one stream; return its errors, or why the run failed."""
    stream = case.stream(key.seed)
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about wild labels, which are the point here
            row: dict[str, Any] = {"mse": _errors(stream, _predictions(stream, key))}
            if case.experts:
                experts = model(key.model, key.loss).experts.items()
                row["experts"] = {
                    name: _errors(stream, one.learn_many(stream.X, stream.y))
                    for name, one in experts
                }
    except (ArithmeticError, ValueError) as error:
        return {"error": f"{type(error).__name__}: {error}"[:200]}
    return row | {"seconds": round(time.perf_counter() - start, 1)}


def has_peer() -> bool:
    """Return whether LightGBM is installed."""
    try:
        import lightgbm  # noqa: F401
    except ImportError:
        return False
    return True


def _predictions(stream: Stream, key: Key) -> np.ndarray:
    if key.model != PEER:
        return model(key.model, key.loss).learn_many(stream.X, stream.y)
    from benchmarks.accuracy.peers_batch import TREES, LightGBM

    peer, half = LightGBM([]), len(stream.y) // 2
    peer.learn(stream.X[:half], stream.y[:half], TREES)
    return peer.predict(stream.X)


def _errors(stream: Stream, predictions: np.ndarray) -> dict[str, float]:
    errors = stream.mse(predictions)
    if not all(map(math.isfinite, errors.values())):
        raise ArithmeticError("some predictions are not finite")
    return {name: float(f"{error:.6g}") for name, error in errors.items()}
