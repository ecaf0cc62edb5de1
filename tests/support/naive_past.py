"""Past labels, computed row by row from lists of all labels."""

import numpy as np

LAST = 3
RATES = (0.3, 0.05, 0.01)


def _decayed(values, rate):
    """The mean of values whose weights shrink by 1 - rate with every further one."""
    if not values:
        return np.nan
    weights = (1 - rate) ** np.arange(len(values))[::-1]
    return float(np.dot(weights, values) / weights.sum())


def _lag(values, lag):
    return values[-lag] if 1 <= lag <= min(len(values), 400) else np.nan


def _season(labels):
    means, doubt = {}, {}
    for lag in range(1, min(len(labels), 400)):
        squares = [(labels[t] - labels[t - lag]) ** 2 for t in range(lag, len(labels))]
        ages = 0.999 ** np.arange(len(squares))[::-1]
        if ages.sum() >= 20:
            means[lag] = float(np.dot(ages, squares) / ages.sum())
            doubt[lag] = means[lag] * (1 + 3 * (2 / ages.sum()) ** 0.5)
    good = [
        lag
        for lag in range(4, 399)
        if lag + 1 in means and means[lag] <= means[lag - 1] and means[lag] <= means[lag + 1]
    ]
    best = 0
    for lag in good:
        if not best or doubt[lag] < 0.98 * doubt[best]:
            best = lag
    return best


def past_row(labels, errors, season):
    """What is known after these labels, without a key."""
    levels = [_lag(labels, i) for i in range(1, LAST + 1)]
    levels += [_lag(labels, lag) for lag in (season, season - 1, 2 * season)]
    levels += [_decayed(labels, rate) for rate in RATES]
    others = [_lag(errors, i) for i in range(1, LAST + 1)]
    others += [_decayed(errors, rate) for rate in RATES[:2]]
    return levels, [*others, _lag(errors, season)]


def key_row(rows):
    """What is known about a key whose rows were these (number, label, error), and the next row."""
    labels = [label for _, label, _ in rows]
    errors = [error for _, _, error in rows]
    levels = [_lag(labels, i) for i in range(1, LAST + 1)]
    levels += [_decayed(labels, rate) for rate in RATES[:2]]
    return levels, [_lag(errors, 1), _decayed(errors, RATES[0])]


def all_past(labels, errors, keys=None):
    """The past of every row of a stream, as it is learned with labels that arrive at once."""
    out, by_key, season = [], {}, 0
    for t in range(len(labels)):
        levels, others = past_row(labels[:t], errors[:t], season)
        if keys is not None:
            rows = by_key.setdefault(keys[t], [])
            own, own_errors = key_row(rows)
            gap = t - rows[-1][0] if rows else np.nan
            levels, others = levels + own, [*others, *own_errors, gap]
        out.append(levels + others)
        if keys is not None:
            by_key[keys[t]].append((t, labels[t], errors[t]))
        if t + 1 < 400 or (t + 1) % 16 == 0:
            season = _season(labels[: t + 1])
    return np.array(out)
