"""A confidence sequence for the mean of a stream: an interval after each row, all valid at once.

Let d_1, d_2, ... be any numbers, here the differences of two models' losses. Row i counts as

    x_i = min(max(d_i, -s_i), s_i),

where the limit s_i depends on earlier rows only. It starts at twice the first difference that is
not 0, whose row counts as 0. After a row with |d_i| > s_i it doubles until it exceeds |d_i|, at
most three times. So only few rows are limited, and a single absurd one moves the limit little. Let
m_i be the mean of x_i given everything before row i, and M_t = m_1 + ... + m_t. Then

    P(|x_1 + ... + x_t - M_t| <= width_t for every t)  >=  1 - level,

where width_t is the number w that solves

    sum over j = 0, 1, ... of  exp(lambda_j w - Q_j) / ((j + 1) (j + 2))  =  2 / level,
    lambda_j = 2^-j * 2 / (3 first limit),
    Q_j = sum over i <= t of  psi(lambda_j c_i) ((x_i - a_i) / c_i)^2,   c_i = 9 s_i / 8,
    psi(u) = -ln(1 - u) - u,

and a_i is the mean of x_1, ..., x_{i-1}, limited to [-s_i / 8, s_i / 8]. The sum leaves out every j
with lambda_j > 2 / (3 s_t). Rows may depend on each other and change their distribution in any
way. The argument:

- z = (x_i - a_i) / c_i is in [-1, 1]. For z >= -1 and 0 <= u < 1, exp(u z - psi(u) z^2) <= 1 + u z
  (Fan, Grama and Liu). So exp(lambda_j (x_1 + ... + x_t - M_t) - Q_j) is a supermartingale that
  starts at 1, and so is the one with the opposite sign.
- The weights 1 / ((j + 1) (j + 2)) add up to 1, so the weighted mean over j is one too. By Ville's
  inequality, it ever exceeds 2 / level with probability at most level / 2. A j that the limit has
  outgrown is dropped, which can only lower the mean.

Memory does not grow: charges Q_j are kept for the SLOTS largest usable lambda_j. When the limit
doubles, the largest is dropped and a smaller one added. Its charge is bounded from above by psi at
the current limit times all squares so far; psi(u) / u^2 increases with u, so this is safe. The
smaller lambda_j are left out. Two steps of Newton's method solve the equation from above, where
every step leaves a valid width: the logarithm of the sum is convex in w.

Sources: X. Fan, I. Grama, Q. Liu, *Exponential inequalities for martingales with applications*,
2015; S. Howard, A. Ramdas, J. McAuliffe, J. Sekhon, *Time-uniform, nonparametric, nonasymptotic
confidence sequences*, Annals of Statistics 2021; I. Waudby-Smith, A. Ramdas, *Estimating means of
bounded random variables by betting*, JRSS B 2023; Y. J. Choe, A. Ramdas, *Comparing sequential
forecasters*, Operations Research 2023.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import jit, kernel

SLOTS = 24  # the smallest lambda is enough for 2^40 rows
DOUBLINGS = 3  # most doublings of the limit after one row
LARGEST, LEAST = 1e290, 1e-290  # limits stay between these, so that nothing overflows
SLOPE = 2 / 3  # the largest lambda times the limit
WIDE = 9 / 8  # the largest |x - a|, over the limit
# lambda c of each slot, and of the next one
_EXPONENTS = SLOPE * WIDE * 0.5 ** np.arange(SLOTS + 1)
_PSI = -np.log1p(-_EXPONENTS) - _EXPONENTS


class MeanSequence(NamedTuple):
    """The state of a confidence sequence. `add_values` changes it in place."""

    counts: Array  # [3] integers: rows, rows beyond the limit, doublings of the limit
    sums: Array  # [3] the limit (0 before the first difference), the sum of x, the sum of z^2
    charges: Array  # [SLOTS] Q_j + ln((j + 1) (j + 2)), for the largest usable lambda_j first

    def state(self) -> dict[str, Any]:
        """Return the state as JSON values, for `restore_sequence`; floats are hexadecimal."""
        return {
            "counts": self.counts.tolist(),
            "sums": [value.hex() for value in self.sums.tolist()],
            "charges": [value.hex() for value in self.charges.tolist()],
        }


def new_sequence() -> MeanSequence:
    """Return the confidence sequence of a stream that has not begun."""
    j = np.arange(SLOTS)
    return MeanSequence(np.zeros(3, np.int64), np.zeros(3), np.log((j + 1) * (j + 2)))


def restore_sequence(state: dict[str, Any]) -> MeanSequence:
    """Return the sequence that `state` described; raise ValueError if it is invalid."""
    try:
        counts = np.array(state["counts"], np.int64)
        sums = np.array([*map(float.fromhex, state["sums"])])
        charges = np.array([*map(float.fromhex, state["charges"])])
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"invalid confidence sequence: {error!r}") from None
    shapes = counts.shape, sums.shape, charges.shape
    finite = np.isfinite(sums).all() and np.isfinite(charges).all()
    if shapes != ((3,), (3,), (SLOTS,)) or not finite or min(*counts, sums[0], *charges) < 0:
        raise ValueError("invalid confidence sequence: wrong sizes or negative numbers")
    return MeanSequence(counts, sums, charges)


def add_values(sequence: MeanSequence, values: Array, level: float) -> Array:
    """Add the next rows; return [rows, 2]: the sum of x and the width after each row.

    The width is infinite before the first value that is not 0. NaN counts as 0.
    """
    found = np.empty((len(values), 2))
    _add_values(sequence, np.asarray(values, np.float64), math.log(2 / level), _PSI, found)
    return found


@jit
def _add_values(
    sequence: MeanSequence, values: Array, price: float, psi: Array, found: Array
) -> None:
    counts, sums, charges = sequence
    for t in range(values.shape[0]):
        value = values[t] if values[t] == values[t] else 0.0  # NaN: both losses are infinite
        size = abs(value)
        limit = sums[0]
        counts[0] += 1
        if limit == 0:
            if LEAST < size < LARGEST:
                sums[0] = 2 * size
            found[t, 0], found[t, 1] = 0.0, np.inf
            continue
        x = min(max(value, -limit), limit)
        counts[1] += 1 if size > limit else 0
        centre = min(max(sums[1] / (counts[0] - 1), -limit / 8), limit / 8)
        z = (x - centre) / (WIDE * limit)
        sums[1] += x
        sums[2] += z * z
        for k in range(SLOTS):
            charges[k] += psi[k] * (z * z)
        found[t, 0], found[t, 1] = sums[1], _width(sequence, price)
        for _ in range(DOUBLINGS):
            if size > sums[0] and sums[0] < LARGEST:
                for k in range(SLOTS - 1):
                    charges[k] = charges[k + 1]
                j = counts[2] + float(SLOTS)
                charges[-1] = psi[-1] * sums[2] + np.log((j + 1) * (j + 2))
                sums[0] *= 2
                sums[2] /= 4
                counts[2] += 1


@kernel
def _width(sequence: MeanSequence, price: float) -> float:
    """Return the width: at first the least that one slot allows alone, then what all allow."""
    _, sums, charges = sequence
    steepest = SLOPE / sums[0]
    width, slope = np.inf, steepest
    for k in range(SLOTS):
        width = min(width, (charges[k] + price) / slope)
        slope /= 2
    for _ in range(2):
        total, slopes, slope = 0.0, 0.0, steepest
        for k in range(SLOTS):
            exponent = slope * width - charges[k] - price
            if exponent > -10:  # to leave out the others saves time, and is safe
                part = np.exp(exponent)
                total += part
                slopes += slope * part
            slope /= 2
        width -= np.log(total) * total / slopes
    return width
