"""How far the coverage of calibrated quantiles can be from what was asked, on any sequence.

A forecaster of quantiles (models/quantiles/levels.py) keeps a number h for each of K levels. After
each label, h moves by step * (level - 1) if the label is at or below the quantile, and by
step * level if it is above. Over rows s to e, the moves of a level sum up to h_e - h_s, so

    sum over the rows of (level - [label <= quantile]) = (h_e - h_s) / step.

The quantile is -inf where h <= -limit and inf where h >= limit; there, h moves back. Numbers of two
adjacent levels that are out of order are averaged before they are used, so they move together, and
the lower one by less: they are never out of order by more than a step. So a number is less than K
steps away from the average that is used for it, and h stays within limit + K step of 0. If labels
arrive late, the numbers can move on by one step for each pending row. Nothing is assumed about the
labels.
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
    return min(1.0, 2 * (limit / step + levels * (1 + pending)) / rows)
