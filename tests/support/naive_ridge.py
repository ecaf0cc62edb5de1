"""Least squares in exact arithmetic: one copy of Ridge with squared loss, with no library code.

A row is a list of `(feature, value)`, the constant first; a missing value is NaN. All sums are
fractions, so each forecast solves the normal equations without rounding. There are at most 64 rows,
so every value is accepted when it is learned.
"""

import math
from fractions import Fraction

NARROW = Fraction(1, 10**10)


def solve(A, b):
    """Return the solution of A u = b, by Gauss's elimination."""
    rows = [[*row, y] for row, y in zip(A, b, strict=True)]
    for k in range(len(rows)):
        pivot = next(r for r in range(k, len(rows)) if rows[r][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for r in range(len(rows)):
            if r != k and rows[r][k] != 0:
                part = rows[r][k] / rows[k][k]
                rows[r] = [v - part * p for v, p in zip(rows[r], rows[k], strict=True)]
    return [row[-1] / row[k] for k, row in enumerate(rows)]


def dot(u, x):
    return sum((a * b for a, b in zip(u, x, strict=True)), Fraction(0))


class NaiveRidge:
    """One copy: the rows so far, the range of each feature, and the strengths of the priors."""

    def __init__(self, ridge):
        self.ridge = Fraction(ridge)
        self.order, self.rows = [], []
        self.low, self.high, self.prior, self.strength, self.scale = {}, {}, {}, {}, {}
        self.waiting = set()  # features whose values were all missing
        self.missed = self.whole = Fraction(0)

    def dense(self, x):
        """Return a number for each column; strays and missing values are replaced."""
        given = {f: v for f, v in x if f in self.order}
        return [self.number(f, given.get(f, 0.0)) for f in self.order]

    def number(self, f, v):
        if math.isnan(v):
            return self.mean(f)
        return Fraction(v if abs(v) <= 64 * self.scale[f] else math.copysign(self.scale[f], v))

    def mean(self, f):
        k = self.order.index(f)
        return sum((x[k] for x, _, _ in self.rows), Fraction(0)) / max(len(self.rows), 1)

    def matrix(self):
        K = len(self.order)
        A = [[sum((w * x[i] * x[j] for x, _, w in self.rows), Fraction(0)) for j in range(K)]
             for i in range(K)]  # fmt: skip
        for k, f in enumerate(self.order):
            A[k][k] += self.strength[f]
        return A, [sum((w * y * x[k] for x, y, w in self.rows), Fraction(0)) for k in range(K)]

    def mean_weight(self):
        return (sum(w for _, _, w in self.rows) + self.strength.get(0, 0)) / max(len(self.rows), 1)

    def forecast(self, x):
        if not self.rows:
            return 0.0
        x, (A, b) = self.dense(x), self.matrix()
        leverage = dot(solve(A, x), x) * self.mean_weight()
        omega = self.missed / self.whole if self.missed < self.whole else 1
        return float(dot(solve(A, b), x) / (1 + omega * leverage))

    def learn(self, x, y, weight, answer):
        """Learn a row that was answered with this forecast, after the projection."""
        y, weight, answer = Fraction(y), Fraction(weight), Fraction(answer)
        for f, v in x:
            if math.isnan(v):
                self.waiting |= {f} - {*self.order}
                continue
            if f not in self.order:
                self.add_feature(f, v)
            self.scale[f] = max(self.scale.get(f, 0.0), abs(v))
        dense = self.dense(x)
        level = max(self.mean_weight(), weight)
        for f, v in zip(self.order, dense, strict=True):
            self.low[f], self.high[f] = min(self.low[f], v), max(self.high[f], v)
            largest = max(abs(self.low[f]), abs(self.high[f]))
            due = max(self.high[f] - self.low[f], NARROW * largest)
            if due > 2 * self.prior[f]:
                self.strength[f] += self.ridge * level * (due**2 - self.prior[f] ** 2)
                self.prior[f] = due
        self.rows.append((dense, y, weight))
        self.missed += weight * (y - answer) ** 2
        self.whole += weight * y**2

    def add_feature(self, f, v):
        """Add a feature: its past values are 0, or if they were missing, this first value."""
        past = Fraction(v if f in self.waiting or not self.rows else 0)
        self.order.append(f)
        self.rows = [([*x, past], y, w) for x, y, w in self.rows]
        self.low[f] = self.high[f] = past
        self.prior[f] = self.strength[f] = Fraction(0)
