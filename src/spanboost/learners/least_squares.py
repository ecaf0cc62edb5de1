"""Least squares in square-root form, updated row by row.

A fit is a triangular matrix R and vectors c, such that R'R = prior + sum of w x x' and
R'c = sum of w y x, over the rows so far. A row is added by Givens rotations, which are backward
stable: nearly collinear columns and scales from 1e-9 to 1e9 do no harm, and errors do not
accumulate. A forecast and an update cost O(K^2) each.
"""

import math
from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel


def regret_bound(
    features: int,
    T: int,
    ridge: float,
    label: float,
    norm: float,
    raises: int = 1,
    growth: float = 1.0,
) -> float:
    """Bound the regret of one copy after T rows, under squared loss, against any linear function u.

    Labels and forecasts lie in [-label, label]; rows have weight 1. `norm` is the norm of u, each
    coefficient multiplied by the range of its column. `raises` counts the rows in which a range
    doubled or a feature was new; the first row is one. `growth` is the largest factor by which a
    range grew since a feature's second row.

    In the other rows, let r be the plain forecast x . u and e = y - r. The fit's squared error
    increases by e^2 / (1 + a), where a is the leverage. If y and r have the same sign, the loss
    exceeds this by at most y^2 a / (1 + a) or e^2 a / (1 + a). If not, by the squared distance
    of y from the forecast, times a / (1 + a). So it is at most (2 label)^2 ln(1 + a). The sum
    of ln(1 + a) is the logarithm of a ratio of determinants, which Hadamard's inequality bounds.

    >>> round(regret_bound(features=3, T=1000, ridge=0.01, label=1.0, norm=1.0), 2)
    169.8
    """
    volume = math.log1p(T) + features * (2 * math.log(growth) + math.log1p(T / ridge))
    return ridge * norm**2 + (2 * label) ** 2 * (raises + volume)


@kernel
class Fits(NamedTuple):
    """Several fits to the same rows, which may have other weights in each of them."""

    R: Array  # [fit, K, K] upper triangular
    c: Array  # [fit, K, lane] a lane is one label of the rows

    def widened(self, K: int) -> "Fits":
        """Return the same fits with K columns; nothing is known about the new ones."""
        fits, known, lanes = self.c.shape
        wide = Fits(np.zeros((fits, K, K)), np.zeros((fits, K, lanes)))
        wide.R[:, :known, :known], wide.c[:, :known] = self.R, self.c
        return wide  # np.pad would write to all of it, and so take memory

    def coefficients(self, used: int) -> Array:
        """Return the coefficients of the first `used` columns, [fit, used, lane]."""
        R, c = self.R[:, :used, :used], self.c[:, :used]
        return np.linalg.solve(R, c) if used else c

    def solve_row(self, m: int, x: Array, q: Array) -> float:
        """Set q to the solution of R' q = x in fit m, and return q . q, the leverage of x."""
        R, used = self.R[m], x.shape[0]
        size = 0.0
        for j in range(used):
            q[j] = x[j]
        for j in range(used):
            v = q[j] / R[j, j]
            q[j] = v
            size += v * v
            rest, row = q[j + 1 :], R[j, j + 1 : used]  # slices, so that the loop vectorises
            for k in range(rest.shape[0]):
                rest[k] -= row[k] * v
        return size

    def combine(self, m: int, q: Array, lane: int) -> float:
        """Return the plain forecast for the row that `solve_row` set q for."""
        total = 0.0
        for j in range(q.shape[0]):
            total += q[j] * self.c[m, j, lane]
        return total

    def add_row(self, m: int, row: Array, labels: Array, first: int) -> None:
        """Add a row of weight 1, which is 0 before column `first`; this overwrites its arrays."""
        R, c, used = self.R[m], self.c[m], row.shape[0]
        for j in range(first, used):
            v = row[j]
            if v == 0:
                continue
            length = math.sqrt(R[j, j] * R[j, j] + v * v)
            cosine, sine = R[j, j] / length, v / length
            R[j, j] = length
            rotate(R[j, j + 1 : used], row[j + 1 :], cosine, sine)
            rotate(c[j], labels, cosine, sine)

    def restart_column(self, m: int, j: int, row: Array, labels: Array) -> None:
        """Forget column j and the sums of all columns; `row` and `labels` are scratch space.

        The sums are the products with the constant, in column 0. What is left is what the rows
        say about the other columns if the values in column j were all equal, but unknown. Columns
        0 and j must get priors before the next row.
        """
        R, c = self.R[m], self.c[m]
        for k in range(j):
            R[k, j] = 0
        R[0] = 0
        c[0] = 0
        R[j, j], row[j] = 0, 0
        for k in range(j + 1, row.shape[0]):
            row[k], R[j, k] = R[j, k], 0
        for lane in range(labels.shape[0]):
            labels[lane], c[j, lane] = c[j, lane], 0
        self.add_row(m, row, labels, j + 1)


@kernel
def rotate(above: Array, row: Array, cosine: float, sine: float) -> None:
    """Rotate two vectors."""
    for k in range(above.shape[0]):
        r, x = above[k], row[k]
        above[k] = cosine * r + sine * x
        row[k] = cosine * x - sine * r
