"""The tables of weak learners as C, and the calls that predict with them."""

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.learners.columns import WAITING, random_sign
from spanboost.learners.feature_weights import FeatureWeights
from spanboost.learners.linear import LinearBank
from spanboost.learners.network import NetworkBank
from spanboost.learners.ridge import RidgeBank
from spanboost.learners.stumps import StumpBank
from spanboost.learners.tree_tables import PredictingTrees, TreeNodes, first_children
from spanboost.models.exporting.c_literals import TYPES, records, table


class BankCode(NamedTuple):
    """The C source of a bank."""

    modules: tuple[str, ...]  # the templates that it needs
    tables: str
    body: str  # statements that set h[output][copy], given `row` and `h`


class Names(NamedTuple):
    """How the source of a bank names things."""

    prefix: str  # of its tables
    real: str  # float or double
    suffix: str  # of the functions for this type: 32 or 64
    mask: str
    copies: int


@singledispatch
def bank_code(bank: Any, names: Names) -> BankCode:
    """Return the source of a bank."""
    raise TypeError(f"{type(bank).__name__} has no C source")


@bank_code.register
def _trees_code(bank: PredictingTrees, names: Names) -> BankCode:
    nodes, p, suffix = bank.nodes, names.prefix, names.suffix
    inner = nodes.inner > 0
    feature, cell = np.unique(nodes.place // 2, return_inverse=True)
    category = (nodes.place & 2) > 0
    side = np.where(category, 0, nodes.place & 1)
    # a leaf stays where it is: nothing is above an infinite threshold
    left, leaf = np.arange(len(inner)), np.zeros(len(inner), np.int32)
    left[inner], leaf[~inner] = first_children(nodes), np.arange(len(nodes.value))
    where = np.zeros(len(inner), np.int64)
    threshold = np.full(len(inner), np.inf, nodes.threshold.dtype)
    where[inner] = 2 * (2 * cell.reshape(-1) + side) + category
    threshold[inner] = nodes.threshold
    tables = [
        records(f"static const struct node_{suffix} {p}_node", left, where, threshold),
        table(f"{p}_leaf", leaf),
        table(f"{p}_value", nodes.value),
        table(f"{p}_feature", feature.astype(np.int64)),
        f"static const struct trees_{suffix} {p}_trees = {{{names.copies}, {_levels(nodes)}, "
        f"{p}_node, {p}_leaf, {p}_value}};\n",
    ]
    body = f"""\
    {names.real} cell[{2 * max(len(feature), 1)}] = {{0}};
    int32_t at[{names.copies}];
    load_cells_{suffix}(row, {names.mask}, {p}_feature, {len(feature)}, cell);
    predict_trees_{suffix}(&{p}_trees, cell, at, h);
"""
    return BankCode(("trees",), "".join(tables), body)


def _levels(nodes: TreeNodes) -> int:
    """Return the number of splits on the longest path."""
    depth = np.zeros(len(nodes.inner), np.int64)
    # children come after their parents
    for parent, child in zip(np.flatnonzero(nodes.inner), first_children(nodes), strict=True):
        depth[child] = depth[child + 1] = depth[parent] + 1
    return int(depth.max(initial=0))


@bank_code.register
def _linear_code(bank: LinearBank, names: Names) -> BankCode:
    p = names.prefix
    tables = _sums_tables(bank.inputs, names) + table(f"{p}_keep", bank.keep)
    body = (
        f"    predict_linear_{names.suffix}(&{p}_sums, {p}_keep, {names.copies}, row, "
        f"{names.mask}, h);\n"
    )
    return BankCode(("features", "normalise", "sums", "linear"), tables, body)


@bank_code.register
def _network_code(bank: NetworkBank, names: Names) -> BankCode:
    p = names.prefix
    tables = _sums_tables(bank.inputs, names) + table(f"{p}_V", bank.V)
    body = f"""\
    {names.real} units[{bank.inputs.W.shape[1]}];
    predict_network_{names.suffix}(&{p}_sums, {p}_V, {names.copies}, row, {names.mask}, units, h);
"""
    return BankCode(("features", "normalise", "sums", "network"), tables, body)


@bank_code.register
def _stumps_code(bank: StumpBank, names: Names) -> BankCode:
    p = names.prefix
    seen = np.flatnonzero(bank.S)
    tables = [
        table(f"{p}_feature", seen.astype(np.int64)),
        table(f"{p}_scale", bank.S[seen]),
        table(f"{p}_U", bank.U[seen]),
        table(f"{p}_score", bank.score[seen]),
        f"static const struct stumps_{names.suffix} {p}_stumps = {{{len(seen)}, {p}_feature, "
        f"{p}_scale, {bank.U.shape[1]}, {names.copies}, {p}_U, {p}_score}};\n",
    ]
    body = f"""\
    double best[{names.copies}];
    predict_stumps_{names.suffix}(&{p}_stumps, row, {names.mask}, best, h);
"""
    return BankCode(("features", "normalise", "stumps"), "".join(tables), body)


class RidgeTables(NamedTuple):
    """Least squares with everything that does not depend on the row computed."""

    feature: Array  # [features] sorted numbers of the features that have columns in the fits
    place: Array  # [features] 1 + the column, negative if others share it
    scale: Array  # [features]
    mean: Array  # [features] number for a missing value
    sign: Array  # [features] of features that share a column
    R: Array  # [fit, K, K]
    c: Array  # [fit, K, lane]
    weight: Array  # [fit] mean weight
    missed: Array  # [N]


def ridge_tables(bank: RidgeBank) -> RidgeTables:
    """Return the tables of a bank of least squares."""
    columns, used = bank.columns, int(bank.columns.used[0])
    seen = np.flatnonzero((columns.place != 0) & (columns.place != WAITING))
    seen = seen[[not bank.waits(abs(place) - 1) for place in columns.place[seen].tolist()]]
    place = columns.place[seen]
    mean = np.array([columns.mean_of(abs(j) - 1) for j in place.tolist()])
    fits, n = len(bank.fits.R), bank.sums.shape[1]
    return RidgeTables(
        feature=seen.astype(np.int64),
        place=place.astype(np.int32),
        scale=columns.S[seen].astype(np.float64),
        mean=np.where(place > 0, mean, 0.0),
        sign=np.array([random_sign(int(f)) for f in seen], np.float64),
        R=bank.fits.R[:, :used, :used],
        c=bank.fits.c[:, :used],
        weight=np.array([bank.mean_weight(m) for m in range(fits)], np.float64),
        missed=np.array([bank.missed(i) for i in range(n)], np.float64),
    )


@bank_code.register
def _ridge_code(bank: RidgeBank, names: Names) -> BankCode:
    p, found = names.prefix, ridge_tables(bank)
    fits, used, _ = found.R.shape
    upper = np.triu_indices(used)
    each = {
        "feature": found.feature,
        "place": found.place,
        "scale": found.scale,
        "mean": found.mean,
        "sign": found.sign,
        "R": found.R[:, upper[0], upper[1]],
        "c": found.c,
        "weight": found.weight,
        "missed": found.missed,
    }
    tables = "".join(table(f"{p}_{name}", values) for name, values in each.items())
    tables += (
        f"static const struct ridge {p}_ridge = {{{len(found.feature)}, {p}_feature, {p}_place, "
        f"{p}_scale, {p}_mean, {p}_sign, {used}, {fits}, {names.copies}, {p}_R, {p}_c, "
        f"{p}_weight, {p}_missed}};\n"
    )
    body = f"""\
    double numbers[{max(used, 1)}], q[{max(used, 1)}];
    predict_ridge_{names.suffix}(&{p}_ridge, row, {names.mask}, numbers, q, h);
"""
    return BankCode(("features", "ridge", "ridge_real"), tables, body)


def _sums_tables(inputs: FeatureWeights, names: Names) -> str:
    """Return the tables of weighted sums of the features that were seen."""
    p, seen = names.prefix, np.flatnonzero(inputs.S)
    return "".join(
        [
            table(f"{p}_feature", seen.astype(np.int64)),
            table(f"{p}_scale", inputs.S[seen]),
            table(f"{p}_W", inputs.W[seen]),
            f"static const struct sums_{names.suffix} {p}_sums = {{{len(seen)}, {p}_feature, "
            f"{p}_scale, {inputs.W.shape[1]}, {p}_W}};\n",
        ]
    )


def real_type(dtype: Any) -> tuple[str, str]:
    """Return the C type of a dtype, and the suffix of the functions for it."""
    name = np.dtype(dtype).name
    return TYPES[name], name.removeprefix("float")
