"""Combinations of forecasts as ONNX operators, in float64."""

import numpy as np

from spanboost.models.aggregation import ROUNDING
from spanboost.models.exporting.combinations import (
    LabelMix,
    LogisticMix,
    Mean,
    Mixed,
    Regression,
    SoftmaxMix,
)
from spanboost.models.exporting.onnx_graph import Graph
from spanboost.models.score_aggregation import FARTHEST


def add_combination(graph: Graph, how: Mean | Mixed, forecasts: str) -> str:
    """Return the combination of forecasts [rows, d, K], as [rows, d, 1]."""
    if isinstance(how, Mean):
        return graph.add("ReduceMean", forecasts, axes=[2], keepdims=1)
    centre = how.centre[:, None]
    if how.log_link:
        given = graph.add("Log", graph.call("Div", forecasts, how.half))
    else:
        given = graph.call("Div", graph.call("Sub", forecasts, centre), how.half)
    mix = how.how
    if isinstance(mix, LabelMix):
        out = _label_mix(graph, mix, given)
    elif isinstance(mix, LogisticMix):
        out = _logistic_mix(graph, mix, given)
    else:
        out = _softmax_mix(graph, mix, given)
    if how.log_link:
        out = graph.call("Mul", graph.add("Exp", out), how.half)
    else:
        out = graph.call("Add", graph.call("Mul", out, how.half), centre)
    return graph.clip(out, *how.limits)


def _label_mix(graph: Graph, mix: LabelMix, forecasts: str) -> str:
    """Return the weighted mean of the forecasts and of regressions over them."""
    candidates = graph.clip(forecasts, mix.low, mix.high)
    if mix.regressions:
        experts = mix.weights[: len(mix.weights) - len(mix.regressions)]
        mean = graph.call("MatMul", candidates, experts[:, None] / experts.sum())
        x = _subtract(graph, candidates, mean)
        each = [_regression(graph, one, x, mean) for one in mix.regressions]
        clipped = [graph.clip(one, mix.low, mix.high) for one in each]
        candidates = graph.add("Concat", candidates, *clipped, axis=2)
    combined = graph.call("MatMul", candidates, mix.weights[:, None])
    if mix.shift == 0:
        return combined
    return graph.clip(graph.call("Add", combined, mix.shift), mix.low, mix.high)


def _subtract(graph: Graph, a: str, b: str) -> str:
    """Return a - b; 0 if that can be a rounding error."""
    away = graph.call("Sub", a, b)
    size = graph.call("Max", graph.add("Abs", a), graph.add("Abs", b))
    counts = graph.call("Greater", graph.add("Abs", away), graph.call("Mul", size, ROUNDING))
    return graph.call("Where", counts, away, 0.0)


def _regression(graph: Graph, one: Regression | None, x: str, mean: str) -> str:
    """Return the forecast of a regression: with L q = x and L m = moment, q . m over the rest."""
    if one is None:
        return mean
    inverse = np.linalg.solve(np.tril(one.L), np.eye(len(one.L)))
    q = graph.call("MatMul", x, inverse.T)
    answer = graph.call("MatMul", q, (inverse @ one.moment)[:, None])
    size = graph.sum(graph.call("Mul", q, q), 2, True)
    shrink = graph.call("Add", graph.call("Mul", size, one.ratio), 1.0)
    return graph.call("Add", mean, graph.call("Div", answer, shrink))


def _logistic_mix(graph: Graph, mix: LogisticMix, odds: str) -> str:
    """Return the log-odds of a mixture of probabilities."""
    weights, K = mix.weights[:-1], len(mix.weights) - 1
    slope = mix.inverse.T @ mix.moment
    mean = graph.call("MatMul", odds, weights[:, None] / weights.sum())
    away = graph.call("MatMul", graph.call("Sub", odds, mean), slope[:K, None])
    along = graph.call("Add", graph.call("Mul", mean, 1 + slope[K]), slope[K + 1])
    regression = graph.clip(graph.call("Add", away, along), -FARTHEST, FARTHEST)
    every = graph.add("Concat", odds, regression, axis=2)
    every = graph.clip(every, -FARTHEST, FARTHEST)
    logs = []
    for sign in (-1.0, 1.0):  # of the positive class, then of the negative one
        rest = graph.call("Add", graph.add("Exp", graph.call("Mul", every, sign)), 1.0)
        chances = graph.call("Div", 1.0, rest)
        logs.append(graph.add("Log", graph.call("MatMul", chances, mix.weights[:, None])))
    return graph.add("Sub", *logs)


def _softmax_mix(graph: Graph, mix: SoftmaxMix, scores: str) -> str:
    """Return the logarithms of a mixture of the probabilities of classes."""
    chances = graph.add("Softmax", scores, axis=1)
    mixed = graph.call("MatMul", chances, mix.weights[:, None])
    return graph.add("Log", graph.call("Max", mixed, 1e-300))
