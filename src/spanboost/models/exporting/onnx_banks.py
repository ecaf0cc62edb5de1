"""Weak learners as ONNX operators: each function returns predictions [rows, d, N] in float64."""

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.learners.columns import LARGEST, SMALLEST
from spanboost.learners.feature_scales import JUMP
from spanboost.learners.linear import LinearBank
from spanboost.learners.network import NetworkBank
from spanboost.learners.ridge import RidgeBank
from spanboost.learners.stumps import StumpBank
from spanboost.learners.tree_tables import PredictingTrees
from spanboost.models.exporting.c_banks import ridge_tables
from spanboost.models.exporting.onnx_graph import Graph
from spanboost.models.exporting.onnx_rows import Inputs, code_index, known_codes, row_zeros
from spanboost.models.exporting.onnx_trees import add_trees
from spanboost.models.exporting.program import BoosterPart
from spanboost.models.exporting.row_form import RowForm
from spanboost.rows.block import origin_of
from spanboost.rows.feature_names import key_of


class Place(NamedTuple):
    """Where a bank is in a graph."""

    graph: Graph
    form: RowForm
    inputs: Inputs
    part: BoosterPart

    @property
    def d(self) -> int:
        """The number of outputs."""
        return len(self.part.centre)

    @property
    def copies(self) -> int:
        """The number of copies."""
        return self.part.lanes[-1].last

    def numbers(self) -> str:
        """Return the numbers of the rows as the learner reads them, in float64."""
        return self.graph.cast(self.inputs.numbers[self.part.dtype], np.float64)


class Features(NamedTuple):
    """A table with a row for each feature, by the columns of the rows."""

    constant: Array  # [...] of the constant
    numbers: Array  # [columns, ...]
    codes: list[Array]  # for each column of categories: [missing, code 0, 1, ..., unknown]


@singledispatch
def add_bank(bank: Any, place: Place) -> str:
    """Add the operators of a bank; return its predictions."""
    raise TypeError(f"{type(bank).__name__} has no ONNX operators")


@add_bank.register
def _add_trees(bank: PredictingTrees, place: Place) -> str:
    graph, inputs, dtype = place.graph, place.inputs, place.part.dtype
    cells = [inputs.numbers[dtype]] if inputs.columns else []
    for code in inputs.codes:
        known = graph.add("Max", code, graph.constant(-1, np.int64))
        # the trees read codes modulo 2^24, which float32 holds exactly; -1 stays -1
        known = graph.add("Mod", known, graph.constant(2**24, np.int64), fmod=1)
        cells.append(graph.reshape(graph.cast(known, dtype), -1, 1))
    row = graph.add("Concat", *cells, axis=1) if len(cells) > 1 else cells[0]
    out = graph.cast(add_trees(graph, bank.nodes, row, inputs.columns, place.part.D), np.float64)
    # in this order, since onnxruntime fails if it multiplies transposed predictions of 0 rows
    return graph.reshape(out, -1, place.d, place.copies)


@add_bank.register
def _add_linear(bank: LinearBank, place: Place) -> str:
    keep = np.tile(bank.keep.astype(np.float64), place.d)
    sums = place.graph.call("Mul", _sum_terms(bank.inputs.S, bank.inputs.W, place), keep)
    return place.graph.reshape(sums, -1, place.d, place.copies)


@add_bank.register
def _add_network(bank: NetworkBank, place: Place) -> str:
    graph, copies = place.graph, place.copies
    units = _sigmoid(graph, _sum_terms(bank.inputs.S, bank.inputs.W, place))
    units = graph.reshape(units, -1, bank.V.shape[0] - 1, 1, copies)  # [rows, hidden, 1, N]
    V = bank.V.astype(np.float64)
    return graph.call("Add", graph.sum(graph.call("Mul", units, V[1:]), 1), V[0])


def _sigmoid(graph: Graph, a: str) -> str:
    """Return tanh(a / 2), by the series of learners/network.py."""
    y = graph.call("Mul", graph.call("Min", graph.add("Abs", a), 64.0), 0.0625)
    e = graph.call("Add", graph.call("Mul", y, 0.25), 1.0)
    for factor in (1 / 3, 0.5, 1.0):
        e = graph.call("Add", graph.call("Mul", graph.call("Mul", y, factor), e), 1.0)
    for _ in range(4):
        e = graph.call("Mul", e, e)
    s = graph.call("Div", graph.call("Sub", e, 1.0), graph.call("Add", e, 1.0))
    return graph.call("Mul", s, graph.add("Sign", a))


@add_bank.register
def _add_stumps(bank: StumpBank, place: Place) -> str:
    graph, seen = place.graph, np.flatnonzero(bank.S)
    slope = bank.U[seen, 0].astype(np.float64)  # [features, d, N]
    intercept = bank.U[seen, 1].astype(np.float64) if bank.U.shape[1] == 2 else 0 * slope
    score = np.broadcast_to(bank.score[seen, None], slope.shape)
    ones = np.array([_normalised(1.0, s) for s in bank.S[seen].tolist()])
    value = slope * ones[:, None, None] + intercept  # for the constant and for categories
    table = _by_columns(place, seen, np.stack([score, value, slope, intercept], axis=1))
    zeros = row_zeros(graph, place.inputs)
    scores, values = ([graph.call("Add", zeros, table.constant[k][None, None])] for k in (0, 1))
    if place.inputs.columns:
        x, shape, order = place.numbers(), (-1, place.inputs.columns, 1, 1), _reading_order(place)
        own = graph.constant(order, np.int64)
        active = graph.call("Greater", graph.add("Abs", graph.add("Gather", x, own, axis=1)), 0.0)
        active, numbers = graph.reshape(active, *shape), table.numbers[order]
        scores.append(graph.call("Where", active, numbers[:, 0], -np.inf))
        z = graph.add("Gather", _normalise(place, x, bank.S), own, axis=1)
        product = graph.call("Mul", graph.reshape(z, *shape), numbers[:, 2])
        values.append(graph.call("Add", product, numbers[:, 3]))
    for j, part in enumerate(table.codes):
        part[0, 0] = -np.inf  # a missing category does not predict
        rows = graph.rows_of(part, _index(place, j, len(part) - 2))  # [rows, 4, d, N]
        for k, each in enumerate((scores, values)):
            each.append(graph.add("Gather", rows, graph.constant([k], np.int64), axis=1))
    if place.inputs.unknown is not None:  # its score and its prediction are 0
        there, nothing = (
            graph.reshape(place.inputs.unknown, -1, 1, 1, 1),
            np.zeros((1, 1, place.d, place.copies)),
        )
        scores.append(graph.call("Where", there, nothing, -np.inf))
        values.append(graph.call("Add", zeros, nothing))
    best = graph.add("ArgMax", graph.add("Concat", *scores, axis=1), axis=1, keepdims=1)
    every = graph.add("Concat", *values, axis=1)
    found = graph.add("GatherElements", every, best, axis=1)
    return graph.reshape(found, -1, place.d, place.copies)


def _reading_order(place: Place) -> list[int]:
    """Return the columns of numbers in the order in which Python reads a row: ties go to the first.

    It reads dictionaries in the order of their keys.
    """
    order = range(place.inputs.columns)
    if not place.form.named:
        return [*order]
    return sorted(order, key=lambda j: key_of(place.form.names[j]))


@add_bank.register
def _add_ridge(bank: RidgeBank, place: Place) -> str:
    graph, found = place.graph, ridge_tables(bank)
    used = found.R.shape[1]
    own = found.place > 0
    target = np.zeros((len(found.feature), used))
    target[np.arange(len(own)), np.abs(found.place) - 1] = 1.0
    # what a category adds: 1, or its sign over the scale if it shares the column
    one = np.where(own, 1.0, found.sign / np.where(found.scale > 0, found.scale, 1.0))
    one = np.where(JUMP * found.scale < 1, found.mean, one)
    table = _by_columns(place, found.feature, target * one[:, None])
    row = graph.constant(table.constant[None])
    if place.inputs.columns:
        row = graph.call("Add", row, _ridge_numbers(place, found, target))
    for j, part in enumerate(table.codes):
        row = graph.call("Add", row, graph.rows_of(part, _index(place, j, len(part) - 2)))
    heads = []
    for m, (R, c) in enumerate(zip(found.R, found.c, strict=True)):
        q = graph.call("MatMul", row, np.linalg.solve(R, np.eye(used)))
        leverage = graph.call("Mul", graph.sum(graph.call("Mul", q, q), 1, True), found.weight[m])
        plain, missed = graph.call("MatMul", q, c), found.missed[[m]]
        if len(found.R) == 1:
            missed = np.tile(found.missed, place.d)
        shrink = graph.call("Add", graph.call("Mul", leverage, missed), 1.0)
        answer = graph.call("Div", plain, shrink)
        heads.append(graph.reshape(answer, -1, place.d, place.copies // len(found.R)))
    return graph.add("Concat", *heads, axis=2) if len(heads) > 1 else heads[0]


def _ridge_numbers(place: Place, found: Any, target: Array) -> str:
    """Return what the numbers of the rows add to the columns of the regression."""
    graph, width = place.graph, place.inputs.columns
    each = np.stack([found.scale, found.mean, found.place > 0, found.sign], axis=1)
    table = _by_columns(place, found.feature, each).numbers  # [columns, 4]
    into = _by_columns(place, found.feature, target).numbers  # [columns, K]
    scale, mean, own, sign = table.T
    factor = np.where(own > 0, 1.0, sign / np.where(scale > 0, scale, 1.0))
    x = graph.clip(place.numbers(), -LARGEST, LARGEST)
    size = graph.add("Abs", x)
    odd = graph.add("Or", graph.add("IsNaN", x), graph.call("Greater", size, JUMP * scale))
    small = graph.call("Less", size, SMALLEST)
    v = graph.call("Where", small, 0.0, graph.call("Mul", x, factor))
    v = graph.call("Where", odd, np.reshape(mean, (1, width)), v)
    return graph.call("MatMul", v, into)


def _sum_terms(S: Array, W: Array, place: Place) -> str:
    """Return the sums of W_f z_f over the features of a row, [rows, lanes]."""
    graph, seen = place.graph, np.flatnonzero(S)
    weights = W[seen].astype(np.float64)
    ones = np.array([_normalised(1.0, s) for s in S[seen].tolist()])
    table = _by_columns(place, seen, weights)
    single = _by_columns(place, seen, weights * ones[:, None])
    out = graph.constant(single.constant[None])
    if place.inputs.columns:
        z = _normalise(place, place.numbers(), S)
        out = graph.call("Add", out, graph.call("MatMul", z, table.numbers))
    for j, part in enumerate(single.codes):
        out = graph.call("Add", out, graph.rows_of(part, _index(place, j, len(part) - 2)))
    return out


def _normalise(place: Place, x: str, S: Array) -> str:
    """Return x / S, clipped to [-1, 1]; 0 for missing values and features never seen."""
    graph, seen = place.graph, np.flatnonzero(S)
    scale = _by_columns(place, seen, S[seen].astype(np.float64)).numbers
    x = graph.call("Where", graph.add("IsNaN", x), 0.0, x)
    return graph.call("Div", graph.clip(x, -scale, scale), np.where(scale > 0, scale, 1.0))


def _normalised(x: float, scale: float) -> float:
    return max(min(x, scale), -scale) / scale if scale > 0 else 0.0


def _index(place: Place, j: int, known: int) -> str:
    return code_index(place.graph, place.inputs.codes[j], known)


def _by_columns(place: Place, features: Array, values: Array) -> Features:
    """Return the values of features, given by number, by the columns of the rows."""
    C, shape = len(place.inputs.codes), values.shape[1:]
    origins = [origin_of(int(f), C) for f in features]
    constant, numbers = np.zeros(shape), np.zeros((place.inputs.columns, *shape))
    codes = []
    for j in range(C):
        seen = [code for column, code in origins if code is not None and column == j]
        codes.append(np.zeros((2 + known_codes(place.form, j, seen), *shape)))
    for (column, code), value in zip(origins, values, strict=True):
        if code is not None:
            codes[column][code + 1] = value
        elif column < 0:
            constant = value
        elif column < len(numbers):
            numbers[column] = value
    return Features(constant, numbers, codes)
