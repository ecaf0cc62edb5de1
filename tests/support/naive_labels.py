"""The rule of label ranges that follow the labels, label by label, from lists of labels.

It shares no code with the package. Everything is computed again for each label.
"""

import math
import statistics

LONG, SHORT = 1e300, 1e-300


class Chunk:
    """The labels of a chunk as learned, and the wild ones as given.

    ends: the range that the chunk contributes, if it is not that of its labels.
    """

    def __init__(self, learned=()):
        self.learned, self.wild, self.ends = list(learned), [], None

    def range(self):
        return self.ends or (min(self.learned), max(self.learned))

    def clip(self, low, high):
        self.learned = [min(max(label, low), high) for label in self.learned]

    def level(self):
        return statistics.fmean(label - self.learned[0] for label in self.learned) + self.learned[0]

    def spread(self, moves):
        around = self.level() if moves else 0.0
        return statistics.fmean(abs(label - around) for label in self.learned)


def mean(values):
    values = list(values)
    return sum(value / len(values) for value in values)


class NaiveRange:
    """The range of numbers (or distances of vectors) after each label."""

    def __init__(self, around_first=True, vectors=False):
        self.around_first, self.vectors = around_first, vectors
        self.moves = around_first and not vectors
        self.centre, self.half, self.number = 0.0, 0.0, 0
        self.chunks, self.current = [], Chunk()
        self.wild = []  # (number, label)
        self.last_shrink = 0
        self.changes_of_units = 0
        self.last_change_of_units = 0
        self.clipped = 0
        self.runs = []  # (label, how often in a row), since the last change of units

    def recent(self):
        ends = [chunk.range() for chunk in self.chunks]
        ends += [(label, label) for label in self.current.learned]
        if not ends:
            return math.inf, -math.inf
        low, high = min(low for low, _ in ends), max(high for _, high in ends)
        return (min(low, 0.0) if self.vectors else low), high

    def width(self):
        low, high = self.recent()
        return high - low

    def learn(self, y):
        """Return the label to learn, and the changes: (centre, half, exact)."""
        changes = []
        self.number += 1
        if self.number == 1 and self.moves:
            self.centre = y
            changes.append((y, 0.0, True))
        low, high = self.recent()
        reach = high - low
        restarted = False
        learned = y
        if self.chunks and reach > 0 and not low - reach <= y <= high + reach:
            self.clipped += 1
            self.wild = [*self.wild, (self.number, y)][-64:]
            self.current.wild.append(y)
            restarted = self.let_through_run(changes)
            low, high = self.recent()
            learned = min(max(y, low), high)
        if not restarted:
            self.add_to_runs(learned)
            self.current.learned.append(learned)
            if len(self.current.learned) == 64:
                self.close(changes)
                low, high = self.recent()
                learned = min(max(learned, low), high)
        distance = abs(learned - self.centre)
        if distance > self.half:
            self.half = max(2 * self.half, distance, SHORT)
            changes.append((self.centre, self.half, True))
        return learned, changes

    def let_through_run(self, changes):
        last = [label for number, label in self.wild if number > self.number - 128]
        if len(last) < 56:
            return False
        low, high = sorted(last)[4], sorted(last)[-5]
        if self.extended(low, high) <= 32 * self.width():
            self.extend(low, high)
            return False
        if len([1 for number, _ in self.wild if number > self.number - 72]) < 64:
            return False
        if not self.may_change_units():
            self.extend(low, high)
            return False
        calm = [chunk for chunk in self.chunks if len(chunk.wild) < 4]
        level = mean(chunk.level() for chunk in calm)
        spread = mean(chunk.spread(self.moves) for chunk in calm)
        new = Chunk(label for _, label in self.wild)
        new.clip(low, high)
        self.chunks, self.current = [new], Chunk()
        self.new_units(level, spread, changes)
        return True

    def add_to_runs(self, label):
        if self.runs and self.runs[-1][0] == label:
            label, number = self.runs.pop()
            self.runs.append((label, number + 1))
        else:
            self.runs.append((label, 1))

    def only_one_differs(self):
        labels, numbers = zip(*self.runs, strict=True) if self.runs else ((), ())
        inner = len(labels) == 3 and numbers[1] == 1 and labels[0] == labels[2]
        return inner or (len(labels) == 2 and numbers[0] == 1)

    def extended(self, low, high):
        return max(high, self.recent()[1]) - min(low, self.recent()[0])

    def extend(self, low, high):
        now = self.recent()
        self.chunks[-1].ends = min(low, now[0]), max(high, now[1])
        self.forget_wild()

    def forget_wild(self):
        self.wild = []
        for chunk in [*self.chunks, self.current]:
            chunk.wild = []

    def close(self, changes):
        self.chunks = [*self.chunks, self.current][-16:]
        self.current = Chunk()
        if self.number == 64:
            self.leave_out_strays(changes)
            return
        self.let_through_often()
        if not self.take_smaller_units(changes):
            self.shrink(changes)

    def leave_out_strays(self, changes):
        ordered = sorted(self.chunks[-1].learned)
        low, high = ordered[4], ordered[-5]
        reach = max(abs(label - self.centre) for label in ordered)
        if 0 < self.used(low, high) < max(self.half, reach) / 16:
            self.chunks[-1].clip(low, high)
            self.new_units(0.0, 0.0, changes)

    def used(self, low, high):
        if self.vectors:
            low = min(low, 0.0)
        return high - low if self.moves else max(abs(low), abs(high))

    def let_through_often(self):
        lows = sorted(min(chunk.wild) for chunk in self.chunks if chunk.wild)
        highs = sorted(max(chunk.wild) for chunk in self.chunks if chunk.wild)
        if len(lows) < 8:
            return
        low, high = lows[7], highs[-8]
        total = sum(len(chunk.wild) for chunk in self.chunks)
        width = self.extended(low, high)
        allowed = 16 * total >= 64 * len(self.chunks) or width <= 32 * self.width()
        if width > self.width() and allowed:
            self.extend(low, high)

    def may_change_units(self):
        rest = 2**15 * 2 ** (self.changes_of_units - 2)
        return self.changes_of_units < 2 or self.number - self.last_change_of_units >= rest

    def take_smaller_units(self, changes):
        if not self.may_change_units():
            return False
        sudden = 1 + self.changes_of_units
        steady, quiet = self.chunks[: -sudden - 1], self.chunks[-sudden:]
        limit, level, spread = self.half / 64, 0.0, 0.0
        if self.has_dropped(steady, quiet):
            level = mean(chunk.level() for chunk in steady)
            spread = mean(chunk.spread(self.moves) for chunk in steady)
        elif len(self.chunks) == 16:
            quiet, limit = self.chunks, self.half / 4096
        else:
            return False
        low, high = min(map(self.low, quiet)), max(chunk.range()[1] for chunk in quiet)
        levels = [chunk.level() for chunk in quiet]
        if not self.used(low, high) < limit:
            return False
        if self.used(low, high) == 0 and not self.only_one_differs():
            return False
        if spread == 0 and 8 * (max(levels) - min(levels)) > high - low:
            return False
        self.chunks = quiet
        self.new_units(level, spread, changes)
        return True

    def has_dropped(self, steady, quiet):
        if len(steady) < 8:
            return False
        spreads = [chunk.spread(self.moves) for chunk in steady]
        return max(spreads) <= 4 * min(spreads) and all(
            0 < 64 * chunk.spread(self.moves) <= min(spreads)
            and self.used(*chunk.range()) <= 16 * chunk.spread(self.moves)
            for chunk in quiet
        )

    def low(self, chunk):
        return min(chunk.range()[0], 0.0) if self.vectors else chunk.range()[0]

    def shrink(self, changes):
        low, high = self.recent()
        farthest = max(high - self.centre, self.centre - low)
        rested = self.number - self.last_shrink >= 1024
        if len(self.chunks) == 16 and rested and 0 < farthest <= self.half / 4:
            self.half /= 2
            self.last_shrink = self.number
            changes.append((self.centre, self.half, True))

    def new_units(self, level, spread, changes):
        self.changes_of_units += 1
        self.runs = []
        self.last_change_of_units = self.number
        self.forget_wild()
        new_level = mean(chunk.level() for chunk in self.chunks)
        new_spread = mean(chunk.spread(self.moves) for chunk in self.chunks)
        place = (level - self.centre) / self.half if spread > 0 else 0.0
        if spread > 0 and new_spread > 0:
            self.half = min(self.half / spread * new_spread, LONG)
        if self.moves:
            self.centre = min(max(new_level - self.half * place, -LONG), LONG)
        low, high = self.recent()
        farthest = max(high - self.centre, self.centre - low)
        if spread == 0:
            self.half = 2 * farthest
        self.half = max(self.half, SHORT)
        changes.append((self.centre, self.half, False))
