"""What each feature of a row adds to the predictions of a bank's copies (explaining.py asks).

Credits add up to what the copies predict, before it is cut to norm D. Features are numbered as
`block.Cells` numbers them; what no feature adds is credited to `NOBODY`.

- Sums over features: each is credited with its own term.
- Stumps: the one feature that predicts is credited with all of it.
- Trees: on the way from the root to a leaf each split moves the prediction from the mean of the
  leaves below it to that of the leaves below one of its sides, which is credited to its feature. A
  mean is weighted by the rows that leaves have learned. (What a node knew when it was split is no
  use: a few rows, and targets have wandered since.)
- Networks: a unit's movement away from what it says of a row without features is shared out in
  proportion to their terms in its sum: the rescale rule of A. Shrikumar, P. Greenside, A. Kundaje,
  *Learning important features through propagating activation differences*, ICML 2017.
"""

import math
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.core.experts import hedge_rate
from spanboost.learners.ball import BallBank
from spanboost.learners.feature_weights import FeatureWeights
from spanboost.learners.linear import LinearBank
from spanboost.learners.network import NetworkBank
from spanboost.learners.stumps import StumpBank
from spanboost.learners.symmetric import SymmetrisedBank
from spanboost.learners.trees import Pulled, TreeBank
from spanboost.rows.block import Block

NOBODY = -1


class Contributions(NamedTuple):
    """Of one row; a feature may come more than once."""

    feature: Array  # [F] by the numbers of `block.Cells`, or NOBODY
    amount: Array  # [F, d, N]

    @property
    def total(self) -> Array:
        """[d, N] what the copies predict."""
        total: Array = self.amount.sum(axis=0)
        return total


@singledispatch
def contributions_of(bank: Any, rows: Any, t: int) -> Contributions:
    """Of row t, which must be the last that the bank has predicted."""
    raise TypeError(f"{type(bank).__name__} does not say what features add to its predictions")


@contributions_of.register
def _of_ball(bank: BallBank, rows: Any, t: int) -> Contributions:
    x = rows.row(t)
    return Contributions(2 * np.arange(len(x)), x[:, None, None] * bank.W)


@contributions_of.register
def _of_linear(bank: LinearBank, rows: Any, t: int) -> Contributions:
    terms = _terms(bank.inputs, rows, t)
    return Contributions(
        _active(rows, t), terms.reshape(len(terms), -1, len(bank.keep)) * bank.keep
    )


@contributions_of.register
def _of_stumps(bank: StumpBank, rows: Any, t: int) -> Contributions:
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
def _of_network(bank: NetworkBank, rows: Any, t: int) -> Contributions:
    terms = _terms(bank.inputs, rows, t)
    terms = terms.reshape(len(terms), len(bank.V) - 1, -1)  # [active, H, N]
    said, moved = np.tanh(terms[0] / 2), terms[1:].sum(axis=0)  # the constant comes first
    slope = (1 - said**2) / 2
    np.divide(bank.scratch.unit[1:] - said, moved, out=slope, where=np.abs(moved) > 1e-9)
    amount = np.einsum("jkn,fjn->fkn", bank.V[1:], slope * terms)
    amount[0] = bank.V[0] + np.einsum("jkn,jn->kn", bank.V[1:], said)
    return Contributions(_active(rows, t), amount)


@contributions_of.register
def _of_pairs(bank: SymmetrisedBank, rows: Any, t: int) -> Contributions:
    pairs = contributions_of(bank.bank, rows, t)
    cut = pairs.amount * shrinkage(pairs.total, float(bank.D))
    lead = hedge_rate(2, int(bank.t[0]), 2 * float(bank.D)) * (bank.sums[1] - bank.sums[0])
    q1 = (1 + np.tanh(lead / 2)) / 2
    return Contributions(pairs.feature, q1 * cut[:, :, ::2] - (1 - q1) * cut[:, :, 1::2])


@contributions_of.register
def _of_trees(bank: TreeBank, rows: Any, t: int) -> Contributions:
    mean, trees = _node_means(bank), np.arange(len(bank.place))
    node = bank.scratch.node.copy()
    features, amounts = [np.full(len(trees), NOBODY)], [mean[:, 0]]
    copies = [trees]
    while (below := np.flatnonzero(node)).size:
        v = node[below]
        parent = (v - 1) // 2
        features.append(bank.place[below, parent] // 2)
        amounts.append(mean[below, v] - mean[below, parent])
        copies.append(below)
        node[below] = parent
    feature, number = np.unique(np.concatenate(features), return_inverse=True)
    amount = np.zeros((len(feature), len(trees), mean.shape[2]))
    np.add.at(amount, (number, np.concatenate(copies)), np.concatenate(amounts))
    return Contributions(feature, amount.swapaxes(1, 2))


def _node_means(bank: TreeBank) -> Array:
    """[N, node, d] what leaves predict; of inner nodes the mean over the leaves below."""
    mean, weight = bank.mean.astype(np.float64), bank.weight.astype(np.float64)
    if isinstance(bank.aim, Pulled):
        root = np.sqrt(2.0 * bank.spread)
        mean *= np.divide(bank.aim.D * weight, root, out=np.zeros_like(root), where=root > 0)[
            :, :, None
        ]
    for level in range(int(math.log2(mean.shape[1] + 1)) - 2, -1, -1):
        here = slice(2**level - 1, 2 ** (level + 1) - 1)
        left, right = (slice(2 * here.start + k, 2 * here.stop + k, 2) for k in (1, 2))
        inner = bank.place[:, here] >= 0
        both = weight[:, left] + weight[:, right]
        share = np.divide(weight[:, left], both, out=np.full(both.shape, 0.5), where=both > 0)
        middle = mean[:, right] + share[:, :, None] * (mean[:, left] - mean[:, right])
        mean[:, here] = np.where(inner[:, :, None], middle, mean[:, here])
        weight[:, here] = np.where(inner, both, weight[:, here])
    return mean


def shrinkage(columns: Array, radius: float) -> Array:
    """What the projection onto the ball of this radius multiplies each column [d, N] by."""
    norms = np.sqrt(np.square(columns, dtype=np.float64).sum(axis=0))
    return np.divide(radius, norms, out=np.ones_like(norms), where=norms > radius)


def _terms(inputs: FeatureWeights, rows: Block, t: int) -> Array:
    """[active, lane] of the sums W_f z_f."""
    feature, z = _normalised(inputs.S, rows, t)
    known = feature < len(inputs.W)
    terms = np.zeros((len(feature), inputs.W.shape[1]))
    terms[known] = inputs.W[feature[known]] * z[known, None]
    return terms


def _normalised(S: Array, rows: Block, t: int) -> tuple[Array, Array]:
    """The active features of row t as the bank numbers them, and their values z."""
    x = rows.row(t)
    size = np.zeros(len(x.feature))
    known = x.feature < len(S)
    size[known] = S[x.feature[known]]
    z = np.divide(np.clip(x.x, -size, size), size, out=np.zeros_like(size), where=size > 0)
    return x.feature.copy(), z


def _active(rows: Block, t: int) -> Array:
    """The active features of row t as `Cells` numbers them, in the order of `Block.row`."""
    entries = slice(rows.indptr[t], rows.indptr[t + 1])
    dense, data = rows.X[t], rows.data[entries]
    stored = rows.indices[entries][(data != 0) & ~np.isnan(data)]
    return np.concatenate(
        [
            [NOBODY],
            2 * np.flatnonzero((dense != 0) & ~np.isnan(dense)),
            2 * (stored & rows.mask),
            2 * np.flatnonzero(rows.codes[t] >= 0) + 1,
        ]
    )
