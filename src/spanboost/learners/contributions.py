"""The contribution of each feature to the predictions of a bank (for analysis/explanations.py).

The contributions add up to the predictions of the copies before the projection to norm D. Features
are numbered as by `Cells` in rows/block.py; the part that is due to no feature, such as a constant,
is `NO_FEATURE`'s.

- Linear functions, least squares: the contribution of a feature is its own term of the sum.
- Stumps: the one feature that predicts contributes the whole prediction.
- Trees: each split on the path from the root to the leaf changes the prediction from the mean of
  all leaves below the split to the mean of the leaves on one side. The split's feature contributes
  this change. Leaves are weighted by the rows they have learned. (The statistics of a node when it
  was split are not used: they come from few rows, and the targets have changed since.)
- Networks: the difference between a unit's output and its output for a row without features is
  divided among the features in proportion to their terms in the unit's sum. This is the rescale
  rule of A. Shrikumar, P. Greenside, A. Kundaje, *Learning important features through propagating
  activation differences*, ICML 2017.
"""

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.core.experts import hedge_rate
from spanboost.learners.ball import BallBank
from spanboost.learners.feature_weights import FeatureWeights
from spanboost.learners.leaf_rules import LinearLeaves
from spanboost.learners.linear import LinearBank
from spanboost.learners.network import NetworkBank
from spanboost.learners.ridge import RidgeBank
from spanboost.learners.stumps import StumpBank
from spanboost.learners.symmetric import SymmetrisedBank
from spanboost.learners.tree_bank import TreeBank
from spanboost.rows.block import Block, BlockWithMissing

NO_FEATURE = -1


class Contributions(NamedTuple):
    """The contributions to one row's predictions; a feature may occur more than once."""

    feature: Array  # [F] feature numbers as in `Cells`, or NO_FEATURE
    amount: Array  # [F, d, N]

    @property
    def total(self) -> Array:
        """The predictions of the copies [d, N], before the projection."""
        total: Array = self.amount.sum(axis=0)
        return total


@singledispatch
def contributions_of(bank: Any, rows: Any, t: int) -> Contributions:
    """Return the contributions for row t, which must be the last row the bank predicted."""
    raise TypeError(f"{type(bank).__name__} cannot attribute its predictions to features")


@contributions_of.register
def _ball_contributions(bank: BallBank, rows: Any, t: int) -> Contributions:
    x = rows.row(t)
    return Contributions(2 * np.arange(len(x)), x[:, None, None] * bank.W)


@contributions_of.register
def _linear_contributions(bank: LinearBank, rows: Any, t: int) -> Contributions:
    terms = _terms(bank.inputs, rows, t)
    return Contributions(
        _active(rows, t), terms.reshape(len(terms), -1, len(bank.keep)) * bank.keep
    )


@contributions_of.register
def _ridge_contributions(bank: RidgeBank, rows: Any, t: int) -> Contributions:
    x, weights, columns = rows.row(t), bank.weights(), bank.columns
    leverage = np.broadcast_to(bank.scratch.leverage, weights.shape[2])
    shrink = [1 + bank.missed(i) * a for i, a in enumerate(leverage)]
    amount = np.zeros((len(x.feature), *weights.shape[1:]))
    for a, (f, v) in enumerate(zip(x.feature, x.x, strict=True)):
        if (j := columns.find_column(f)) >= 0:
            amount[a] = weights[j] * columns.number_of(f, float(v)) / shrink
    return Contributions(_active(rows, t), amount)


@contributions_of.register
def _stumps_contributions(bank: StumpBank, rows: Any, t: int) -> Contributions:
    feature, z = _normalised(bank.S, rows, t)
    known = feature < len(bank.S)
    score = np.zeros((len(feature), len(bank.unseen)))
    value = np.zeros((len(feature), *bank.U.shape[2:]))
    score[known] = bank.score[feature[known]]
    value[known] = bank.U[feature[known], 0] * z[known, None, None]
    if bank.U.shape[1] == 2:
        value[known] += bank.U[feature[known], 1]
    predicts = np.arange(len(feature))[:, None] == score.argmax(axis=0)
    return Contributions(_active(rows, t), value * predicts[:, None, :])


@contributions_of.register
def _network_contributions(bank: NetworkBank, rows: Any, t: int) -> Contributions:
    terms = _terms(bank.inputs, rows, t)
    terms = terms.reshape(len(terms), len(bank.V) - 1, -1)  # [active, H, N]
    base, moved = np.tanh(terms[0] / 2), terms[1:].sum(axis=0)  # the constant comes first
    slope = (1 - base**2) / 2
    np.divide(bank.scratch.unit[1:] - base, moved, out=slope, where=np.abs(moved) > 1e-9)
    amount = np.einsum("jkn,fjn->fkn", bank.V[1:], slope * terms)
    amount[0] = bank.V[0] + np.einsum("jkn,jn->kn", bank.V[1:], base)
    return Contributions(_active(rows, t), amount)


@contributions_of.register
def _symmetrised_contributions(bank: SymmetrisedBank, rows: Any, t: int) -> Contributions:
    pairs = contributions_of(bank.bank, rows, t)
    clipped = pairs.amount * shrinkage(pairs.total, float(bank.D))
    lead = hedge_rate(2, int(bank.t[0]), 2 * float(bank.D)) * (bank.sums[1] - bank.sums[0])
    q1 = (1 + np.tanh(lead / 2)) / 2
    return Contributions(pairs.feature, q1 * clipped[:, :, ::2] - (1 - q1) * clipped[:, :, 1::2])


@contributions_of.register
def _trees_contributions(bank: TreeBank, rows: Any, t: int) -> Contributions:
    mean, parents, trees = _node_means(bank), _parents(bank), np.arange(len(bank.start))
    node = bank.scratch.node[: len(trees)].copy()
    features, amounts = [np.full(len(trees), NO_FEATURE)], [mean[: len(trees)]]
    copies = [trees]
    while (below := np.flatnonzero(node >= len(trees))).size:
        v = node[below]
        parent = parents[v]
        features.append(bank.place[parent] // 2)
        amounts.append(mean[v] - mean[parent])
        copies.append(below)
        node[below] = parent
    feature, number = np.unique(np.concatenate(features), return_inverse=True)
    amount = np.zeros((len(feature), len(trees), mean.shape[1]))
    np.add.at(amount, (number, np.concatenate(copies)), np.concatenate(amounts))
    return Contributions(feature, amount.swapaxes(1, 2))


def _parents(bank: TreeBank) -> Array:
    """Return the parent of each node; roots have none, which is 0 here."""
    link = bank.link[: bank.used[0]]
    inner = np.flatnonzero(link > 0)
    parents = np.zeros(len(link), np.int64)
    parents[link[inner]] = parents[link[inner] + 1] = inner
    return parents


def _node_means(bank: TreeBank) -> Array:
    """Return [node, d]: predictions of leaves, and for inner nodes the mean of those below."""
    used = bank.used[0]
    mean, weight = (table[:used].astype(np.float64) for table in (bank.mean, bank.weight))
    if isinstance(bank.aim, LinearLeaves):
        root = np.sqrt(2.0 * bank.spread[:used])
        mean *= np.divide(bank.aim.D * weight, root, out=np.zeros_like(root), where=root > 0)[
            :, None
        ]
    for inner in reversed(_levels(bank)):
        left = bank.link[inner]
        right = left + 1
        both = weight[left] + weight[right]
        share = np.divide(weight[left], both, out=np.full(both.shape, 0.5), where=both > 0)
        mean[inner] = mean[right] + share[:, None] * (mean[left] - mean[right])
        weight[inner] = both
    return mean


def _levels(bank: TreeBank) -> list[Array]:
    """Return the inner nodes of all trees, level by level from the roots."""
    levels, node = [], np.arange(len(bank.start))
    while (inner := node[bank.link[node] > 0]).size:
        levels.append(inner)
        node = np.concatenate([bank.link[inner], bank.link[inner] + 1])
    return levels


def shrinkage(columns: Array, radius: float) -> Array:
    """Return the factor by which projecting onto the ball scales each column of [d, N]."""
    norms = np.sqrt(np.square(columns, dtype=np.float64).sum(axis=0))
    return np.divide(radius, norms, out=np.ones_like(norms), where=norms > radius)


def _terms(inputs: FeatureWeights, rows: Block, t: int) -> Array:
    """Return the terms W_f z_f, [active, lane]."""
    feature, z = _normalised(inputs.S, rows, t)
    known = feature < len(inputs.W)
    terms = np.zeros((len(feature), inputs.W.shape[1]))
    terms[known] = inputs.W[feature[known]] * z[known, None]
    return terms


def _normalised(S: Array, rows: Block, t: int) -> tuple[Array, Array]:
    """Return the active features of row t as the bank numbers them, and their values z."""
    x = rows.row(t)
    size = np.zeros(len(x.feature))
    known = x.feature < len(S)
    size[known] = S[x.feature[known]]
    z = np.divide(np.clip(x.x, -size, size), size, out=np.zeros_like(size), where=size > 0)
    return x.feature.copy(), z


def _active(rows: Block, t: int) -> Array:
    """Return the features of row t as `Cells` numbers them, in the order of `row`."""
    entries = slice(rows.indptr[t], rows.indptr[t + 1])

    def is_read(values: Array) -> Array:
        return (values != 0) & (isinstance(rows, BlockWithMissing) | ~np.isnan(values))

    return np.concatenate(
        [
            [NO_FEATURE],
            2 * np.flatnonzero(is_read(rows.X[t])),
            2 * (rows.indices[entries][is_read(rows.data[entries])] & rows.mask),
            2 * np.flatnonzero(rows.codes[t] >= 0) + 1,
        ]
    )
