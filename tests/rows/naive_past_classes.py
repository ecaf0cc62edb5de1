"""What past labels say about the next class, from the definitions, with lists and dictionaries."""

import math

import numpy as np


class NaivePastClasses:
    """Counts and weights in plain Python."""

    def __init__(self, sources):
        self.counts = [{} for _ in range(sources)]
        self.totals = {}
        self.weights = [1.0] + [0.0] * sources
        self.curvature = [10.0] * (1 + sources)

    def correct(self, own, sources):
        """Return the probabilities after the last label, and those of the scores."""
        known = sorted(self.totals)
        whole = sum(self.totals.values()) + 0.5 * len(known)
        share = {c: (self.totals[c] + 0.5) / whole for c in known}
        self.terms = [[float(one)] + [0.0] * len(sources) for one in own]
        for s, source in enumerate(sources):
            if not math.isnan(source):
                after = self.counts[s].get(int(source), {})
                number = sum(after.values()) + 1
                for c in known:
                    chance = (after.get(c, 0.0) + share[c]) / number
                    self.terms[c][1 + s] = math.log(chance / share[c])
        scores = [sum(w * t for w, t in zip(self.weights, one, strict=True)) for one in self.terms]
        scores = [score if c in share else float(own[c]) for c, score in enumerate(scores)]
        top = max(scores)
        norm = top + math.log(sum(math.exp(score - top) for score in scores))
        combined = [score - norm for score in scores]
        last = [float(one) for one in own]
        if not math.isnan(sources[0]):
            for c in known:
                last[c] = math.log(share[c]) + self.terms[c][1]
        self.chances = [math.exp(one) for one in combined]
        return np.stack([last, combined], axis=1)

    def learn(self, sources, c):
        """Learn the class of the row that was corrected last."""
        for s in range(len(self.weights) if c in self.totals else 0):
            away = [min(max(one[s] - self.terms[c][s], -30), 30) for one in self.terms]
            mean = sum(p * a for p, a in zip(self.chances, away, strict=True))
            square = sum(p * a * a for p, a in zip(self.chances, away, strict=True))
            self.curvature[s] = 0.998 * self.curvature[s] + max(square - mean**2, 0)
            step = mean / (self.curvature[s] * len(self.weights))
            self.weights[s] = min(max(self.weights[s] - step, 0.0), 2.0)
        for s, source in enumerate(sources):
            if not math.isnan(source):
                _add(self.counts[s].setdefault(int(source), {}), c)
        _add(self.totals, c)


def _add(counts, c):
    for key in counts:
        counts[key] *= 0.999
    counts[c] = counts.get(c, 0.0) + 1
