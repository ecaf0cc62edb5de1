"""A slow reference version of one online regression tree, with objects and no library code.

A row is a list of cells `(name, value)`: the name of a number is an int, that of a category a
string. A number not in the row is 0. NaN, or a category of -1, is missing. As in naive_learners.py
all numbers have one type, and the order of operations is that of the library.
"""

import functools
import math

import naive_learners
import numpy as np

GROUP = 2  # candidates per group
LEAST = 5  # the fewest rows on each side
FLOOR = 1e-7  # added to the variance
PRIOR = 24  # rows that the mean of a parent counts for, if candidates sum up projections


class Split:
    """A candidate split, with the statistics of its left side."""

    def __init__(self, name, missing_left):
        self.name, self.missing_left = name, missing_left
        self.threshold, self.weight, self.sums = None, 0, None

    def goes_left(self, row):
        value = dict(row).get(self.name, 0)
        if isinstance(self.name, str):
            return value == self.threshold
        return self.missing_left if math.isnan(value) else value <= self.threshold

    def set_threshold(self, row, number):
        value = number(dict(row).get(self.name, 0))
        if math.isnan(value):
            value = number(-np.inf if self.missing_left else np.inf)
        if isinstance(self.name, int) and value > 0:
            value = np.nextafter(value, number(0))
        self.threshold = value


class Leaf:
    def __init__(self, level, weight, mean, spread):
        self.level, self.weight, self.mean, self.spread = level, weight, mean, spread
        self.groups = None
        self.rows = 0


class Inner:
    def __init__(self, split, left, right):
        self.split, self.left, self.right = split, left, right


class Tree(naive_learners.Copy):
    """A tree. `step` converts slopes to targets; it is None under linear feedback.

    codes: [S, d] of the projections that candidates sum up; None for all outputs.
    """

    def __init__(self, d, *, learner, wait, step, cut, draw, number, codes=None):
        super().__init__(d, 1.0, cut=cut, number=number)
        self.codes = codes
        self.learner, self.wait, self.draw, self.evidence = learner, wait, draw, learner.evidence
        self.step = None if step is None else number(step)
        self.root = Leaf(0, number(0), self.zeros(d), number(0))

    def find(self, row):
        """Return the leaf of a row, and a function that replaces it."""
        owner, side = self, "root"
        while isinstance(getattr(owner, side), Inner):
            owner = getattr(owner, side)
            side = "left" if owner.split.goes_left(row) else "right"
        return getattr(owner, side), functools.partial(setattr, owner, side)

    def value(self, leaf):
        if self.step is not None:
            return leaf.mean
        if not leaf.spread > 0:
            return self.zeros(self.d)
        far = self.cut * leaf.weight / np.sqrt(leaf.spread + leaf.spread)
        return [far * m for m in leaf.mean]

    def predict(self, row):
        return self.value(self.find(row)[0])

    def update(self, row, loss):
        if self.wait > 0:
            self.wait -= 1
            return
        leaf, replace = self.find(row)
        w, h = self.number(loss.weight), self.project(self.value(leaf))
        slope = loss.slope(h)
        target = [-g / w for g in slope]
        if self.step is not None:
            target = [p - g / w * self.step for p, g in zip(h, slope, strict=True)]
        distance = [r - m for r, m in zip(target, leaf.mean, strict=True)]
        self.learn(leaf, target, w)
        if leaf.level < self.learner.depth:
            self.count_row(leaf, row, self.measure(distance), w, replace)

    def measure(self, distance):
        """Return what candidates sum up for a row."""
        if self.codes is None:
            return distance
        return [self.in_four_lanes(code, distance) for code in self.codes]

    def in_four_lanes(self, a, b):
        """Return the inner product; lane j adds up the places 4 k + j, the rest goes to lane 0."""
        lanes, whole = self.zeros(4), len(a) // 4 * 4
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            lanes[k % 4 if k < whole else 0] += x * y
        return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])

    @property
    def sums(self):
        return self.d if self.codes is None else len(self.codes)

    def learn(self, leaf, target, w):
        one = self.number(1)
        leaf.weight += w
        kept = old = one - w / leaf.weight
        for _ in range(self.learner.recency - 1):
            kept *= old
        means, square = [], self.number(0)
        for r, m in zip(target, leaf.mean, strict=True):
            new = m + (r - m) * (one - kept)
            square += (r - m) * (r - new) if self.step is not None else r * r
            means.append(new)
        leaf.mean = means
        leaf.spread += w * square

    def count_row(self, leaf, row, distance, w, replace):
        if leaf.rows == 0:
            leaf.groups = [None] * (self.learner.candidates // GROUP)
            leaf.phases = math.ceil(len(leaf.groups) / max(len(row), 1))
            leaf.total = [self.number(0), self.zeros(self.sums)]
        n, first = leaf.rows, GROUP * leaf.phases
        if n < leaf.phases and not row:
            return
        leaf.rows += 1
        if n < first:
            for g in range(n % leaf.phases, len(leaf.groups), leaf.phases):
                if n < leaf.phases:
                    leaf.groups[g] = self.draw_group((g + self.draw()) / len(leaf.groups), row)
                leaf.groups[g][n // leaf.phases].set_threshold(row, self.number)
            return
        leaf.total[0] += w
        for k, r in enumerate(distance):
            leaf.total[1][k] += w * r
        for group in leaf.groups:
            for split in group:
                if split.goes_left(row):
                    split.weight += w
                    split.sums = [a + w * r for a, r in zip(split.sums, distance, strict=True)]
        counted = n + 1 - first
        if counted % self.learner.grace == 0:
            self.try_split(leaf, counted, replace)

    def draw_group(self, part, row):
        """Return candidates on one cell; `part` is its position in the row, from 0 to 1."""
        at = part * len(row)
        group = [Split(row[int(at)][0], at - int(at) < 0.5) for _ in range(GROUP)]
        for split in group:
            split.weight, split.sums = self.number(0), self.zeros(self.sums)
        return group

    def try_split(self, leaf, counted, replace):
        n, total = leaf.total
        unit, best, most = n / self.number(counted), None, self.number(0)
        for split in (split for group in leaf.groups for split in group):
            m = split.weight
            if m < self.number(LEAST) * unit or n - m < self.number(LEAST) * unit:
                continue
            gain = self.number(0)
            for part, whole in zip(split.sums, total, strict=True):
                apart = part / m - (whole - part) / (n - m)
                gain += apart * apart
            gain *= m * ((n - m) / n)
            if gain > most:
                best, most = split, gain
        patience = np.sqrt(self.number(self.learner.grace) / self.number(counted))
        variance = leaf.spread / leaf.weight
        chance = unit * (variance + self.number(FLOOR))
        if best and most > self.number(self.evidence) * chance * patience:
            means = self.child_means(leaf, best)
            weights = best.weight, n - best.weight
            if self.codes is not None:
                weights = [min(w, self.number(PRIOR) * unit) for w in weights]
            children = [
                Leaf(leaf.level + 1, w, list(mean), w * variance)
                for w, mean in zip(weights, means, strict=True)
            ]
            replace(Inner(best, *children))

    def child_means(self, leaf, best):
        """Return the means of all outputs on both sides of a split."""
        (n, total), rest = leaf.total, leaf.total[0] - best.weight
        if self.codes is not None:
            return leaf.mean, leaf.mean
        middle = [m - whole / n for m, whole in zip(leaf.mean, total, strict=True)]
        left = [m + part / best.weight for m, part in zip(middle, best.sums, strict=True)]
        right = [
            m + (whole - part) / rest
            for m, part, whole in zip(middle, best.sums, total, strict=True)
        ]
        return left, right
