"""How far the coverage of calibrated quantiles can be from what was asked, on any sequence.

A forecaster of quantiles (models/quantiles/levels.py) keeps a number h for each of K levels. After
each label, h moves by step * (level - c), where c is 1 if the label is below the quantile and 0 if
it is above. If they are equal, h moves towards the log-odds of the level, by a c between 0 and 1.
Over rows s to e, the moves of a level sum up to h_e - h_s, so

    sum over the rows of (level - c) = (h_e - h_s) / step.

As [label < quantile] <= c <= [label <= quantile], a bound on |h_e - h_s| / step bounds how far the
share of labels below the quantile is above the level, and how far the share of labels at or below
it is below the level. Quantiles are compared as they are returned, so within the label range.

The quantile is -inf where the number in use is <= -limit and inf where it is >= limit, or the end
of the label range: no label is beyond it, so h moves back. The numbers in use are the isotonic
regression of h, so quantiles never cross. Two adjacent levels that are out of order have the same
number in use, so they move together, and the lower one moves down by more or up by less, as its own
log-odds are lower: they are never out of order by more than a step. In a block of levels with the
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
    """Return a bound on the error of the share of labels below a quantile, for any rows in a row.

    The share of labels below the quantile is at most the level plus the bound. The share of labels
    at or below it is at least the level minus the bound. If no label is equal to its quantile, both
    shares are the same. Intervals with their ends contain at least the coverage minus twice the
    bound, and intervals without them at most the coverage plus twice the bound.

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
