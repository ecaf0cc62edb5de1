"""The recent labels of a stream, and the rule by which a label range follows them.

Labels are read in chunks of 64. The *recent range* reaches from the smallest to the largest label
of the current chunk and the 16 chunks before it. Its width is W.

- **Wild labels.** After the first chunk, a label farther than W from the recent range is wild. It
  is learned as if it were at the nearest end of the recent range. If W is 0, no label is wild.
- **Ratios.** Labels of losses with a log link are often skewed. One above the recent range is wild
  only if it is also far on a logarithmic scale: if log(label + m), where m is the mean of the
  recent labels, is farther above the recent range than that is wide, or than log 32.
- **Widening.** Other labels widen the label range as in `GrowingLabels`: a label farther from the
  centre changes the half-width to max(2 half, distance of the label).
- **Wild labels that stay.** If 56 of the last 128 labels are wild, the recent range is extended to
  the fifth smallest and the fifth largest of them. If 8 of the last 16 chunks contain wild labels,
  it is extended to the ends that 8 chunks exceed. An extension makes it at most 32 times as wide.
  In the second case there is no limit if one label in 16 is wild.
- **New units.** If 64 of the last 72 labels are wild, and too far away to extend the recent range
  to them, the labels have new units: the level and the spread of the 64 wild labels take the place
  of the earlier level and spread.
- **Smaller units.** If the spread was steady for 8 chunks, and is at most 1/64 of that in the last
  one, whose labels use less than 1/64 of the label range, they have new units as well. Each change
  of units adds one to the number of last chunks, up to 7, because labels that become small now and
  then do not have new units. If the spread was not steady, it takes 16 chunks without a trend that
  use less than 1/4096 of the range. After the first chunk, it takes less than 1/16 of the range,
  and 4 labels at each end do not count.
- **Equal labels.** After 16 chunks of equal labels, the range has the width 0 again, if there was
  only one other label.
- **Two kinds of labels.** After two changes of units, the next one has to wait for 32,768 labels,
  and twice as long after each further one. Until then, the range is extended to whatever stays, as
  in `GrowingLabels`: a stream that changes back and forth has two kinds of labels, not new units.
- **Shrinking.** If the labels of 16 chunks are within half / 4 of the centre, the half-width is
  halved, at most once in 16 chunks.

Only the labels of rows that are learned count, so rows in blocks of any size give the same range.
Labels a y have the range of the labels y, scaled by a. If the centre may not move, it stays at 0,
and the mean of the absolute labels is used instead of their spread.
"""

from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.rows.label_ratios import FAR, clipped_mean, is_far_above
from spanboost.rows.odd_labels import oddness
from spanboost.rows.range_changes import CENTRE, HALF, ROOM, RangeChanges
from spanboost.rows.sorting import sort

LARGEST = 1e300  # largest absolute label, so that distances and widths cannot overflow
NARROWEST = 1e-300  # smallest half-width, so that dividing by it cannot overflow

CHUNK, CHUNKS = 64, 16  # labels in a chunk, chunks in the recent range
GATE = 1.0  # a label is wild if it is more than this many widths outside the recent range
SOME, OF_LAST = 56, 128  # 56 wild labels among the last 128 extend the recent range
MOST, OF_FEW = 64, 72  # 64 wild labels among the last 72 are in new units
OFTEN = 8  # wild labels in 8 of the last 16 chunks extend the recent range
STEADY = 8  # chunks of about the same spread before it drops
LITTLE = 64.0  # labels in smaller units use less than 1 / 64 of the range
FIRST_LITTLE = 16.0  # or less than 1 / 16, after the first chunk
FREE = 2  # changes of units that need no rest: away, and back
REST = 32768  # labels before the next one; twice as many after each
TRIM = 4  # labels at each end that are ignored where absurd ones may be among them

# columns of the summaries of chunks
LOW, HIGH, RAW_LOW, RAW_HIGH, WILD, LEVEL, SPREAD = range(7)
# entries of the counts; VARIED is that of odd_labels.py
FILLED, COMPLETE, LEARNED, CLIPPED, WIDENED, SHRUNK, RENEWED, UNITS, VARIED = range(9)


@kernel
class LabelHistory(NamedTuple):
    """Summaries of the recent labels, which are numbers (for vectors: distances from the centre).

    A summary holds the ends of the accepted labels, the ends of all labels, the number of wild
    labels, and the level and spread of the accepted labels.
    """

    chunk: Array  # [CHUNK] labels of the current chunk, as learned
    chunks: Array  # [CHUNKS + 1, 7] summaries, oldest first; the last one is the current chunk
    wild: Array  # [MOST, 2] the last wild labels and the numbers of their rows, oldest first
    recent: Array  # [2] the recent range
    counts: Array  # [9] see `FILLED` and the names after it
    moves: bool  # whether the centre of the label range may move
    floor: float  # upper limit on the low end of the recent range: 0 for distances
    ratios: bool  # whether labels are compared by their ratios
    scratch: Array  # [CHUNK] sorted numbers

    @property
    def sound(self) -> bool:
        """Whether all counts are in range; compiled code does not check."""
        filled, complete = self.counts[FILLED], self.counts[COMPLETE]
        return bool(
            0 <= filled < CHUNK
            and 0 <= complete <= CHUNKS
            and ((self.counts >= 0) & (self.counts < 2**50)).all()
            and not any(np.isnan(part).any() for part in self[:4])
        )

    def read(self, y: float, frame: Array, changes: RangeChanges) -> float:
        """Add a label, change the range where needed, and return the label to learn."""
        self.counts[LEARNED] += 1
        if self.is_wild(y):
            self.reject(y)
            if self.wild[MOST - SOME, 1] > self.counts[LEARNED] - OF_LAST:
                self.let_through_run(frame, changes)
        else:
            self.recent[0] = min(self.recent[0], y, self.floor)
            self.recent[1] = max(self.recent[1], y)
        y = min(max(y, self.recent[0]), self.recent[1])
        if self.counts[UNITS] != self.counts[LEARNED]:  # else it is part of the new history
            filled, number = self.counts[FILLED], self.counts[LEARNED] - self.counts[UNITS]
            self.counts[VARIED] += oddness(y, self.chunk, filled, number)
            self.chunk[filled] = y
            self.counts[FILLED] += 1
            if self.counts[FILLED] == CHUNK:
                self.close_chunk(frame, changes)
                y = min(max(y, self.recent[0]), self.recent[1])
        distance = abs(y - frame[CENTRE])
        if distance > frame[HALF]:
            frame[HALF] = max(2 * frame[HALF], distance, NARROWEST)
            self.counts[WIDENED] = self.counts[LEARNED]
            changes.add(frame, True)
        return y

    def is_wild(self, y: float) -> bool:
        """Return whether a label is far outside the recent range."""
        low, high = self.recent[0], self.recent[1]
        reach = GATE * (high - low)
        if self.counts[COMPLETE] == 0 or reach == 0 or low - reach <= y <= high + reach:
            return False
        if not self.ratios or y < low:
            return True
        level = self.typical(LEVEL, CHUNKS - self.counts[COMPLETE], CHUNKS)
        return is_far_above(y, low, high, level)

    def reject(self, y: float) -> None:
        """Remember a wild label."""
        current = self.chunks[CHUNKS]
        current[RAW_LOW] = min(current[RAW_LOW], y)
        current[RAW_HIGH] = max(current[RAW_HIGH], y)
        current[WILD] += 1
        self.counts[CLIPPED] += 1
        for i in range(MOST - 1):
            self.wild[i, 0], self.wild[i, 1] = self.wild[i + 1, 0], self.wild[i + 1, 1]
        self.wild[MOST - 1, 0], self.wild[MOST - 1, 1] = y, self.counts[LEARNED]

    def let_through_run(self, frame: Array, changes: RangeChanges) -> None:
        """Extend the recent range after many wild labels, or change the units."""
        first = MOST - SOME
        while first > 0 and self.wild[first - 1, 1] > self.counts[LEARNED] - OF_LAST:
            first -= 1
        for i in range(first, MOST):
            self.scratch[i - first] = self.wild[i, 0]
        low, high = self.inner_ends(MOST - first)
        width = max(high, self.recent[1]) - min(low, self.recent[0])
        if width <= FAR * (self.recent[1] - self.recent[0]):
            self.extend(low, high)
        elif self.wild[0, 1] > self.counts[LEARNED] - OF_FEW:
            if self.may_change_units():
                self.start_from_wild(low, high, frame, changes)
            else:
                self.extend(low, high)

    def extend(self, low: float, high: float) -> None:
        """Extend the recent range to these ends, and forget that labels were wild."""
        newest = self.chunks[CHUNKS - 1]
        newest[LOW] = self.recent[0] = min(low, self.recent[0])
        newest[HIGH] = self.recent[1] = max(high, self.recent[1])
        self.forget_wild()

    def forget_wild(self) -> None:
        """Forget which labels were wild."""
        for i in range(CHUNKS + 1):
            self.chunks[i, RAW_LOW], self.chunks[i, RAW_HIGH] = np.inf, -np.inf
            self.chunks[i, WILD] = 0
        self.wild[:, 1] = -np.inf

    def start_from_wild(self, low: float, high: float, frame: Array, changes: RangeChanges) -> None:
        """Change the units to those of the last wild labels, which become the whole history."""
        level, spread, used = 0.0, 0.0, 0
        for i in range(CHUNKS - self.counts[COMPLETE], CHUNKS):
            if self.chunks[i, WILD] < TRIM:
                level += self.chunks[i, LEVEL]
                spread += self.chunks[i, SPREAD]
                used += 1
        level, spread = level / max(used, 1), spread / max(used, 1)
        for i in range(MOST):
            self.chunk[i] = self.wild[i, 0]
        self.summarise(self.chunks[CHUNKS - 1], low, high)
        self.counts[COMPLETE], self.counts[FILLED] = 1, 0
        self.change_units(level, spread, frame, changes)

    def inner_ends(self, number: int) -> tuple[float, float]:
        """Return the ends of the numbers in `scratch` without a few at each end."""
        sort(self.scratch, number)
        return self.scratch[TRIM], self.scratch[number - 1 - TRIM]

    def summarise(self, into: Array, low: float, high: float) -> None:
        """Summarise the labels of the current chunk, clipped to these ends."""
        level, spread = 0.0, 0.0
        for i in range(CHUNK):
            level += min(max(self.chunk[i], low), high) - low  # differences are more precise
        level = low + level / CHUNK
        around = level if self.moves else 0.0
        for i in range(CHUNK):
            spread += abs(min(max(self.chunk[i], low), high) - around) / CHUNK
        into[LOW], into[HIGH] = min(low, self.floor), high
        into[LEVEL], into[SPREAD] = level, spread

    def close_chunk(self, frame: Array, changes: RangeChanges) -> None:
        """Summarise the current chunk and start the next; change the range where needed."""
        low = high = self.chunk[0]
        for i in range(1, CHUNK):
            low, high = min(low, self.chunk[i]), max(high, self.chunk[i])
        self.summarise(self.chunks[CHUNKS], low, high)
        for i in range(CHUNKS):
            for j in range(SPREAD + 1):
                self.chunks[i, j] = self.chunks[i + 1, j]
        current = self.chunks[CHUNKS]
        current[RAW_LOW], current[RAW_HIGH], current[WILD] = np.inf, -np.inf, 0
        self.counts[FILLED] = 0
        self.counts[COMPLETE] = min(self.counts[COMPLETE] + 1, CHUNKS)
        self.update_recent()
        if self.counts[LEARNED] == CHUNK:
            self.leave_out_strays(frame, changes)
        else:
            self.let_through_often()
            if not self.take_smaller_units(frame, changes):
                self.shrink(frame, changes)

    def update_recent(self) -> None:
        """Set the recent range to the ends of all complete chunks."""
        first = CHUNKS - self.counts[COMPLETE]
        self.recent[0], self.recent[1] = self.chunks[first, LOW], self.chunks[first, HIGH]
        for i in range(first, CHUNKS):
            self.recent[0] = min(self.recent[0], self.chunks[i, LOW])
            self.recent[1] = max(self.recent[1], self.chunks[i, HIGH])

    def let_through_often(self) -> None:
        """Extend the recent range if many chunks hold wild labels."""
        complete = self.counts[COMPLETE]
        if complete < OFTEN:
            return
        wild = 0.0
        for i in range(CHUNKS - complete, CHUNKS):
            wild += self.chunks[i, WILD]
        if wild == 0:
            return
        low = self.ranked(RAW_LOW, complete, OFTEN - 1)
        high = self.ranked(RAW_HIGH, complete, complete - OFTEN)
        low, high = min(low, self.recent[0]), max(high, self.recent[1])
        width, enough = self.recent[1] - self.recent[0], wild >= complete * CHUNK / CHUNKS
        if high - low > width and (enough or high - low <= FAR * width):
            self.extend(low, high)

    def ranked(self, column: int, number: int, rank: int) -> float:
        """Return the value of this rank, from 0, in a column of the last chunks."""
        for i in range(number):
            self.scratch[i] = self.chunks[CHUNKS - number + i, column]
        sort(self.scratch, number)
        return self.scratch[rank]

    def leave_out_strays(self, frame: Array, changes: RangeChanges) -> None:
        """Change the units after the first chunk if a few of its labels set the range alone."""
        for i in range(CHUNK):
            self.scratch[i] = self.chunk[i]
        low, high = self.inner_ends(CHUNK)
        whole = max(frame[HALF], self.farthest(frame))  # the last label has not widened it yet
        level = clipped_mean(self.scratch, CHUNK, low, high)
        if self.ratios and not is_far_above(whole, low, high, level):
            return
        if 0 < self.used(min(low, self.floor), high) < whole / FIRST_LITTLE:
            self.summarise(self.chunks[CHUNKS - 1], low, high)
            self.change_units(0.0, 0.0, frame, changes)

    def take_smaller_units(self, frame: Array, changes: RangeChanges) -> bool:
        """Change the units if the last chunks use little of the range; return whether they do."""
        quiet, most, level, spread = CHUNKS, frame[HALF] / LITTLE**2, 0.0, 0.0
        sudden = 1 + self.counts[RENEWED]
        if self.has_dropped(sudden):
            quiet, most = sudden, frame[HALF] / LITTLE
            first, last = CHUNKS - self.counts[COMPLETE], CHUNKS - quiet - 1
            level, spread = self.typical(LEVEL, first, last), self.typical(SPREAD, first, last)
        if self.counts[COMPLETE] < quiet or not self.may_change_units():
            return False
        low, high = self.ranked(LOW, quiet, 0), self.ranked(HIGH, quiet, quiet - 1)
        trend = self.ranked(LEVEL, quiet, quiet - 1) - self.ranked(LEVEL, quiet, 0)
        if not self.used(low, high) < most or (spread == 0 and 8 * trend > high - low):
            return False
        if self.used(low, high) == 0 and self.counts[VARIED] != 1:
            return False  # equal labels after other ones do not tell the units of the next ones
        self.counts[COMPLETE] = quiet
        self.change_units(level, spread, frame, changes)
        return True

    def may_change_units(self) -> bool:
        """Return whether there were few changes of units, or none for long."""
        changes, rows = self.counts[RENEWED], self.counts[LEARNED] - self.counts[UNITS]
        return changes < FREE or rows >= REST * 2.0 ** (changes - FREE)

    def has_dropped(self, quiet: int) -> bool:
        """Return whether the spread was steady, and is far smaller in the last `quiet` chunks.

        The chunk before them may contain labels of both kinds.
        """
        first, last = CHUNKS - self.counts[COMPLETE], CHUNKS - quiet - 1
        if last - first < STEADY:
            return False
        least = most = self.chunks[first, SPREAD]
        for i in range(first, last):
            least, most = min(least, self.chunks[i, SPREAD]), max(most, self.chunks[i, SPREAD])
        dropped = most <= 4 * least
        for i in range(last + 1, CHUNKS):
            low, high, spread = self.chunks[i, LOW], self.chunks[i, HIGH], self.chunks[i, SPREAD]
            # a spread that comes from a few labels alone is not a scale
            dropped = (
                dropped and 0 < LITTLE * spread <= least and self.used(low, high) <= 16 * spread
            )
        return dropped

    def shrink(self, frame: Array, changes: RangeChanges) -> None:
        """Halve the half-width if the last chunks are within a quarter of it."""
        farthest = self.farthest(frame)
        if (
            self.counts[COMPLETE] == CHUNKS
            and self.counts[LEARNED] - self.counts[SHRUNK] >= CHUNK * CHUNKS
            and 0 < farthest <= frame[HALF] / 4
            and frame[HALF] >= 4 * NARROWEST
        ):
            frame[HALF] /= 2
            self.counts[SHRUNK] = self.counts[LEARNED]
            changes.add(frame, True)

    def used(self, low: float, high: float) -> float:
        """Return the width of the range that labels between these ends use."""
        return high - low if self.moves else max(abs(low), abs(high))

    def farthest(self, frame: Array) -> float:
        """Return the distance of the recent range's farther end from the centre."""
        return max(self.recent[1] - frame[CENTRE], frame[CENTRE] - self.recent[0])

    def typical(self, column: int, first: int, last: int) -> float:
        """Return the average of a column over some chunks; 0 without chunks."""
        total = 0.0
        for i in range(first, last):
            total += self.chunks[i, column] / (last - first)
        return total

    def change_units(
        self, level: float, spread: float, frame: Array, changes: RangeChanges
    ) -> None:
        """Move the frame: level and spread of the chunks take the place of the earlier ones.

        If the earlier spread is 0, it is unknown. The range then is twice as wide as needed.
        """
        self.forget_wild()
        self.update_recent()
        first = CHUNKS - self.counts[COMPLETE]
        new_level = self.typical(LEVEL, first, CHUNKS)
        new_spread = self.typical(SPREAD, first, CHUNKS)
        centre, half = frame[CENTRE], frame[HALF]
        if spread > 0 and new_spread > 0:
            half = min(half / spread * new_spread, LARGEST)
        if self.moves:
            place = (level - centre) / frame[HALF] if spread > 0 else 0.0
            centre = min(max(new_level - half * place, -LARGEST), LARGEST)
        frame[CENTRE], frame[HALF] = centre, half
        if spread == 0:
            frame[HALF] = 2 * self.farthest(frame)
        frame[HALF] = max(frame[HALF], NARROWEST)
        self.counts[UNITS] = self.counts[LEARNED]
        self.counts[RENEWED] += 1
        self.counts[VARIED] = 0
        changes.add(frame, False)


@kernel
def follow_labels(
    history: LabelHistory, frame: Array, labels: Array, learned: Array, changes: RangeChanges
) -> None:
    """Read labels, and replace wild ones by what is learned.

    Stops at the end of the block, or when `changes` cannot hold the changes of another row.
    """
    while changes.done[0] < labels.shape[0] and changes.done[1] <= ROOM - 2:
        row = changes.done[0]
        if learned[row]:
            labels[row] = history.read(labels[row], frame, changes)
        changes.done[0] += 1
