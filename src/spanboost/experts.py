"""Hedge: follow the experts whose losses so far are small.

With losses in an interval of width `spread`, M experts, and the rate sqrt(8 ln M / t) / spread in
round t, the loss of the mixture exceeds that of the best expert after T rounds by at most

    spread (2 sqrt(T/2 ln M) + sqrt(ln M / 8))

(N. Cesa-Bianchi and G. Lugosi, *Prediction, Learning, and Games*, 2006, theorem 2.3).
"""

import math

from spanboost._jit import kernel


@kernel
def hedge_rate(M: int, t: int, spread: float) -> float:
    """The learning rate of round t = 1, 2, ..."""
    return math.sqrt(8 * math.log(M) / t) / spread


def hedge_regret(M: int, T: int, spread: float) -> float:
    """Hedge's regret after T rounds.

    >>> round(hedge_regret(M=2, T=100, spread=1.0), 3)
    12.068
    """
    return spread * (2 * math.sqrt(T / 2 * math.log(M)) + math.sqrt(math.log(M) / 8))
