"""The order of the rows, chosen by a rule that looks at nothing but the labels.

Some published files are sorted by class, place or time. A learner that follows the last labels does
well on such a stream, or the second half differs from the first. The rule compares the average
labels of both halves of the file: if they differ by more than `LIMIT` standard errors, the file is
sorted, and the headline shuffles its rows.
"""

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.data.batch import Batch

FILE = "file"
LIMIT = 10.0  # standard errors


def shuffle_name(seed: int) -> str:
    """Return the name of the order of the shuffle with this seed."""
    return f"shuffle{seed}"


def gap_of_halves(labels: Array) -> float:
    """Return the difference of the average labels of both halves, in standard errors."""
    halves = np.array_split(np.asarray(labels, np.float64), 2)
    if not len(halves[1]):
        return 0.0
    difference = abs(float(halves[0].mean() - halves[1].mean()))
    error = float(np.sqrt(sum(half.var() / len(half) for half in halves)))
    if error == 0:
        return 0.0 if difference == 0 else np.inf
    return difference / error


def headline_order(labels: Array) -> str:
    """Return the order for the headline: that of the file, or the first shuffle."""
    return shuffle_name(0) if gap_of_halves(labels) > LIMIT else FILE


def in_order(examples: Batch, order: str) -> Batch:
    """Return the rows of a file in an order: "file", "shuffle0", "shuffle1", ..."""
    if order == FILE:
        return examples
    seed = int(order.removeprefix("shuffle"))
    return examples.take(np.random.default_rng(seed).permutation(examples.rows))
