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
    """One copy: the normal equations A u = b, and the range and mean of each feature."""

    def __init__(self, ridge):
        self.ridge = Fraction(ridge)
        self.order, self.A, self.b, self.past = [], [], [], []
        self.low, self.high, self.prior, self.scale = {}, {}, {}, {}
        self.waiting = set()  # features whose values were all missing
        self.mass = self.missed = self.whole = Fraction(0)

    def dense(self, x):
        """Return a number for each column; strays and missing values count as the mean."""
        given = {f: v for f, v in x if f in self.order}
        return [self.number(f, given.get(f, 0.0)) for f in self.order]

    def number(self, f, v):
        if math.isnan(v) or abs(v) > 4 * self.scale[f]:
            k = self.order.index(f)
            return sum((x[k] for x in self.past), Fraction(0)) / max(len(self.past), 1)
        return Fraction(v)

    def fitted(self, dense):
        """Return the numbers of the row without those of columns that have had one number only."""
        return [0 if f != 0 and self.low[f] == self.high[f] else v
                for f, v in zip(self.order, dense, strict=True)]  # fmt: skip

    def forecast(self, x):
        if not self.past:
            return 0.0
        x = self.fitted(self.dense(x))
        leverage = dot(solve(self.A, x), x) * self.mass / len(self.past)
        omega = self.missed / self.whole if self.missed < self.whole else 1
        return float(dot(solve(self.A, self.b), x) / (1 + omega * leverage))

    def learn(self, x, y, weight, answer):
        """Learn a row that was answered with this forecast, after the projection."""
        y, weight, answer = Fraction(y), Fraction(weight), Fraction(answer)
        for f, v in x:
            if math.isnan(v):
                self.waiting |= {f} - {*self.order}
                continue
            self.scale[f] = max(self.scale.get(f, 0.0), abs(v))
            if f not in self.order:
                self.add_feature(f, Fraction(v))
        dense = self.dense(x)
        self.join_fit(dense)
        self.raise_priors(dense, max(self.mass / max(len(self.past), 1), weight))
        row = self.fitted(dense)
        for i, p in enumerate(row):
            self.b[i] += weight * y * p
            for j, q in enumerate(row):
                self.A[i][j] += weight * p * q
        self.past.append(dense)
        self.mass += weight
        self.missed += weight * (y - answer) ** 2
        self.whole += weight * y**2

    def raise_priors(self, dense, level):
        for k, (f, v) in enumerate(zip(self.order, dense, strict=True)):
            self.low[f], self.high[f] = min(self.low[f], v), max(self.high[f], v)
            largest = max(abs(self.low[f]), abs(self.high[f]))
            due = max(self.high[f] - self.low[f], NARROW * largest)
            if due > 2 * self.prior[f]:
                self.A[k][k] += self.ridge * level * (due**2 - self.prior[f] ** 2)
                self.prior[f] = due

    def join_fit(self, dense):
        """Let columns that get their second number join the fit: they were a constant multiple."""
        for k, (f, v) in enumerate(zip(self.order, dense, strict=True)):
            w = self.low[f]
            if k == 0 or w != self.high[f] or v == w:
                continue
            self.b[k] = w * self.b[0]
            for i in range(len(self.order)):
                if i != k:
                    self.A[i][k] = self.A[k][i] = w * self.A[i][0]
            self.A[k][k] += w * w * self.A[0][0]

    def add_feature(self, f, v):
        """Add a feature whose past values are 0, or were missing, and count as this first one."""
        past = v if f in self.waiting or not self.past else Fraction(0)
        self.order.append(f)
        self.A = [*([*row, Fraction(0)] for row in self.A), [Fraction(0)] * len(self.order)]
        self.b.append(Fraction(0))
        self.past = [[*x, past] for x in self.past]
        self.low[f], self.high[f] = min(past, v), max(past, v)
        self.prior[f] = Fraction(0)
