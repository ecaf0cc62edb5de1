"""Plain implementations of how AutoBoost combines its experts under squared loss."""

import numpy as np

RATES = np.array([1 / 2, 1 / 8, 1 / 32])
STRENGTHS = (1, 30, 1000)


class PlainSecondOrder:
    """The second-order weights, on logarithms of wealth."""

    def __init__(self, K):
        self.K, self.rounds = K, 0
        self.log = np.full((K, len(RATES)), -np.log(K * len(RATES)))
        self.scale, self.distance, self.gradient = np.zeros(K), np.zeros(K), 0.0

    def weights(self):
        bets = np.exp(self.log) @ RATES / np.where(self.scale > 0, self.scale, 1)
        return bets / bets.sum()

    def learn(self, gradient, away):
        """Learn from the gradient at the answer, and answer - forecast of each expert."""
        if self.scale[0] > 0:
            won = gradient * away / self.scale
            self.log += np.log1p(np.outer(won / max(1, abs(won).max()), RATES))
        self.rounds += 1
        t, accounts = self.rounds, self.log.size
        self.log = np.log(np.exp(self.log) * t / (t + 1) + 1 / ((t + 1) * accounts))
        part = max(20 / (t + 19), 0.0003)
        size = min(abs(gradient), 3 * self.gradient**0.125 if self.gradient > 0 else np.inf)
        self.gradient = (1 - part) * self.gradient + part * size**8
        self.distance = (1 - part) * self.distance + part * away**8
        new = 9 * (self.gradient * self.distance) ** 0.125
        changed = (new > 2 * self.scale) | (new < self.scale / 2)
        self.scale = np.where(changed, new, self.scale)
        self.scale = np.maximum(self.scale, self.scale.max() / 10_000)


def aggregate_plainly(forecasts, labels, fixed_range=False):
    """Return the combined forecasts, and the weights of all candidates after the last row.

    With a label range that follows the labels, there is nothing to learn from equal labels.
    """
    K = forecasts.shape[1]
    share, gram, moment = PlainSecondOrder(K + 3), np.zeros((K, K)), np.zeros(K)
    answers, seen = [], []
    for t, (forecast, y) in enumerate(zip(forecasts, labels, strict=True), fixed_range - 1):
        limits = allowed(seen)
        experts, weights = np.clip(forecast, *limits), share.weights()
        mean = np.average(experts, weights=weights[:K])
        x = experts - mean
        x[abs(x) < 1e-12 * abs(mean)] = 0  # equal forecasts: what is left is rounding
        regressions = []
        for strength in STRENGTHS:
            rows = (1 - 0.99999**t) / 1e-5  # older rows count less
            ridge = strength * np.trace(gram) / (K * max(rows, 1)) * np.eye(K)
            matrix = gram + ridge + np.outer(x, x)
            slope = np.linalg.solve(matrix, moment) if ridge.any() else 0 * x
            regressions.append(np.clip(mean + slope @ x, *limits))
        candidates = np.append(experts, regressions)
        answer = weights @ candidates
        answers.append(answer)
        if not fixed_range and not set(seen) - {y}:
            seen = [y]
            continue
        away = answer - candidates
        away[abs(away) < 1e-12 * abs(answer)] = 0
        share.learn(2 * (answer - y), away)
        gram = 0.99999 * gram + np.outer(x, x)
        moment = 0.99999 * moment + x * (y - mean)
        seen.append(y)
    return np.array(answers), share.weights()


def allowed(labels):
    """Return the smallest and the largest forecast that is allowed after these labels."""
    if not labels:
        return -np.inf, np.inf
    low, high = min(labels), max(labels)
    reach = (high - low) / 4
    return (
        low - reach * (labels.count(low) < 3),
        high + reach * (labels.count(high) < 3),
    )
