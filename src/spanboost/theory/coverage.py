"""How far the coverage of calibrated quantiles can be from what was asked, on any sequence.

A forecaster of quantiles (models/quantiles/levels.py) keeps a number h for each of K levels. After
each label, h moves by step * (level - 1) if the label is at or below the quantile, and by
step * level if it is above. Over rows s to e, the moves of a level sum up to h_e - h_s, so

    sum over the rows of (level - [label <= quantile]) = (h_e - h_s) / step.

The quantile is -inf where the number in use is <= -limit and inf where it is >= limit; there, h
moves back. The numbers in use are the isotonic regression of h, so quantiles never cross. Two
adjacent levels that are out of order have the same number in use, so they move together, and the
lower one by less: they are never out of order by more than a step. In a block of levels with the
same number, let the largest h be that of level j. The levels from j to the end of the block have an
average of at most that number (else isotonic regression would split the block), and each h among
them is at most a step below the previous one. So h is at most (K - 1) / 2 steps above the number in
use, and for the same reason at most as much below. Hence h stays within
limit + (K + 1) / 2 steps of 0.

If labels arrive late, the quantile that was predicted counts. Each row that waits for its label can
move two adjacent levels further apart by a step, and h beyond the limit by a step. Rows before s
whose labels arrive after s move h too, and rows up to e whose labels arrive after e do not yet.

Nothing is assumed about the labels. The bound holds for every interval of the stream, also for
those between two changes of it.
"""

from spanboost.theory.arguments import check, count, not_negative, positive


def coverage_bound(
    rows: int, step: float, limit: float, levels: int = 1, pending: int = 0
) -> float:
    """Return a bound on |share of labels at or below the quantile - level|, for any rows in a row.

    rows: number of consecutive rows, anywhere in the stream.
    step, limit: of the forecaster. levels: number of its levels.
    pending: most rows that wait for their labels at a time.
    """
    check(
        rows=count(rows),
        step=positive(step),
        limit=positive(limit),
        levels=count(levels),
        pending=not_negative(pending),
    )
    farthest = limit / step + (levels + 1) / 2 * (1 + pending)
    return min(1.0, 2 * (farthest + pending) / rows)
