"""How much log-loss the calibration of probabilities can cost, on any sequence.

The mixture of C candidates (models/probability_map.py) predicts p_t = sum of w_t,i p_t,i. The
weight of each candidate is multiplied by the probability that it gave to the label, and row t mixes
a share s_t of equal weights into the weights. Let l_t be the log-loss of the mixture, and l_t,1
that of the model, which is one of the candidates. Bayes' rule gives, for any labels,

    w_{t+1,1} >= (1 - s_{t+1}) w_t,1 exp(l_t - l_t,1).

So the sum of l_t - l_t,1 is at most log C - sum of log(1 - s_t). With s_t = S / (t + F), t from 0,
this is at most log C + S / (1 - S / F) (log(1 + T / (F - 1))), because -log(1 - s) <= s / (1 - s).
For weighted rows, the loss of a row counts in units of the largest weight so far; x -> x^part is
concave for part <= 1, so the same holds.
"""

import math

from spanboost.theory.arguments import check, count, positive


def excess_loss_bound(rows: int, candidates: int, share: float, first: float) -> float:
    """Return a bound on the log-loss of calibrated probabilities minus that of the model, in nats.

    rows: number of rows, from the first one on; the bound is on the sum over all of them.
    candidates, share, first: of the mixture.
    """
    check(rows=count(rows), candidates=count(candidates), share=positive(share))
    check(first=(first, "a number above 1 and above the share", first > max(1, share)))
    return math.log(candidates) + share / (1 - share / first) * math.log1p(rows / (first - 1))
