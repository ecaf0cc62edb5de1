"""What recent rows say about the next one, from the definitions, with lists and float64."""

import math

import numpy as np


class NaiveRecent:
    """Dense rows: numbers, then codes. Everything is computed anew for every row."""

    def __init__(self, window, nearest, fade, least):
        self.window, self.nearest, self.fade, self.least = window, nearest, fade, least
        self.rows, self.codes, self.labels, self.kept = [], [], [], []
        self.trust, self.curvature, self.densities = 1.0, 10.0, {}
        self.mean = self.variance = None

    def learn(self, numbers, codes, label):
        x, part = self._filled(numbers), max(1 / (1 + len(self.rows)), 1 / self.window)
        if self.mean is None:
            self.mean, self.variance = np.zeros(len(x)), np.zeros(len(x))
        mean = self.mean + part * (x - self.mean)
        self.variance = (1 - part) * self.variance + part * (x - self.mean) * (x - mean)
        self.mean = mean
        self.rows.append(x)
        self.codes.append(codes)
        self.labels.append(label)
        self.kept.append(1.0)

    def forget(self, part):
        self.kept = [part * one for one in self.kept]

    def learn_trust(self, chances, label):
        """Take a Newton step for the logarithmic loss of the trust."""
        if label not in self.densities:
            return
        away = {c: np.clip(d - self.densities[label], -30, 30) for c, d in self.densities.items()}
        mean = sum(chances[int(c)] * one for c, one in away.items())
        square = sum(chances[int(c)] * one**2 for c, one in away.items())
        self.curvature = self.fade * self.curvature + max(square - mean**2, 0)
        self.trust = float(np.clip(self.trust - mean / self.curvature, 0.05, 1))

    def vote(self, numbers, codes, own):
        own = np.array(own, float)
        if not self.rows:
            return own
        x = self._filled(numbers)
        scale = np.where(self.variance > 0, 1 / np.sqrt(np.maximum(self.variance, 1e-300)), 0)
        found = []
        first = max(0, len(self.rows) - self.window)
        for t in range(first, len(self.rows)):
            near = (((self.rows[t] - x) * scale) ** 2).sum() + (self.codes[t] != codes).sum()
            found.append((near, t % self.window, self.labels[t]))
        found.sort()
        reach = found[self.nearest][0] if len(found) > self.nearest else math.inf
        total, out = 0.5, 0.5 * own
        for near, _, label in found[: self.nearest]:
            weight = 1 - math.sqrt(near / reach) if reach > 0 else 1.0
            total += weight
            if len(own) > 1:
                out[int(label)] += weight
            else:
                out[0] += weight * label
        return out / total

    def bayes(self, numbers, own):
        if not self.rows:
            return np.array(own, float)
        x, ages = self._filled(numbers), np.arange(len(self.rows))[::-1]
        weights, labels = self.fade**ages * np.array(self.kept), np.array(self.labels)
        scores = np.full(len(own), -np.inf)
        for c in sorted(set(self.labels)):
            mine = labels == c
            w, rows = weights[mine], np.array(self.rows)[mine]
            total = w.sum()
            mean = (w[:, None] * rows).sum(axis=0) / total
            square = (w[:, None] * (rows - mean) ** 2).sum(axis=0)
            used = self.variance > 0
            variance = ((square + self.variance) / (total + 1))[used]
            centre = ((total * mean + self.mean) / (total + 1))[used]
            away = (x[used] - centre) ** 2 / variance
            ratios = np.log(variance / self.variance[used])
            self.densities[c] = -(ratios + away).sum() / 2
            scores[int(c)] = math.log(total + 0.5) + self.trust * self.densities[c]
        chances = np.exp(scores - scores.max())
        chances = chances / chances.sum() + self.least
        known = np.isfinite(scores)
        return np.where(known, chances / (1 + known.sum() * self.least), 1e-300)

    def _filled(self, numbers):
        x = np.array(numbers, float)
        return x if self.mean is None else np.where(np.isnan(x), self.mean, x)
