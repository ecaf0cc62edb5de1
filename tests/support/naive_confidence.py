"""A plain transcription of the confidence sequence: every row again from the start, bisection."""

import math


def psi(u):
    return -math.log1p(-u) - u


class Path:
    """All rows up to t as they count: limits s, counted values x, centres a."""

    def __init__(self, values):
        self.s, self.x, self.a = [], [], []
        self.first = limit = 0.0
        total = 0.0
        for t, d in enumerate(values):
            x = min(max(d, -limit), limit)
            mean = total / t if t else 0.0
            self.s.append(limit)
            self.x.append(x)
            self.a.append(min(max(mean, -limit / 8), limit / 8))
            total += x
            if limit == 0:
                self.first = limit = 2 * abs(d)
            else:
                for _ in range(3):
                    limit = 2 * limit if abs(d) > limit else limit
        self.doublings = round(math.log2(limit / self.first)) if limit else 0  # after the last row

    def rate(self, j):
        return 2 / 3 / self.first * 2.0**-j

    def charge(self, j):
        rows = [row for row in zip(self.s, self.x, self.a, strict=True) if row[0] > 0]
        return sum(psi(self.rate(j) * 9 / 8 * s) * ((x - a) / (9 / 8 * s)) ** 2 for s, x, a in rows)

    def usable(self):
        """The numbers j that the limit has not outgrown in the last row."""
        head = round(math.log2(self.s[-1] / self.first))
        return range(head, head + 60)

    def wealth(self, gap, part=1):
        """The mixture at sum of x - M = gap; `part` is for wrong constants."""
        return sum(
            math.exp(self.rate(j) * gap - part * self.charge(j)) / ((j + 1) * (j + 2))
            for j in self.usable()
        )

    def width(self, level):
        """The gap at which the mixture is 2 / level."""
        if not self.s[-1]:
            return math.inf
        parts = [
            (self.rate(j), self.charge(j) + math.log((j + 1) * (j + 2))) for j in self.usable()
        ]
        low, high = 0.0, min((cost + math.log(2 / level)) / rate for rate, cost in parts)
        for _ in range(80):
            middle = (low + high) / 2
            if sum(math.exp(rate * middle - cost) for rate, cost in parts) < 2 / level:
                low = middle
            else:
                high = middle
        return high
