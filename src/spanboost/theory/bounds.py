"""The guarantees as plain functions from numbers to the separate terms of a bound.

The symbols are the paper's. ``T`` is the number of rounds, ``N`` the number of copies of the base
learner, ``eta`` the step size, ``D`` the bound on the predictions of a base function, ``R`` the
regret R(T) of the base learner on linear losses of slope at most 1, ``f_norm`` the norm
||f||_1 >= 1 of the comparator f, and ``Delta_0`` the total loss of the zero function minus that of
f. ``L_B`` and ``beta_B`` are the Lipschitz and smoothness constants on the ball of radius ``B``.

With importance weights of at most 1, the losses w_t l_t stay in the class, and the bounds hold
unchanged, with Delta_0 a weighted sum. Larger weights must be divided by the largest one; in the
original units, L_B and beta_B, and hence every term, are then multiplied by it.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from spanboost.checks import is_step
from spanboost.compiling.arrays import Array
from spanboost.theory.arguments import check, count, finite, norm, not_negative, positive


class SpanBound(NamedTuple):
    """The terms of a regret bound against one function in the span."""

    initial: float
    smoothness: float
    learner: float
    sigma: float

    @property
    def total(self) -> float:
        """The regret bound."""
        return sum(self)


class HullBound(NamedTuple):
    """The terms of a regret bound against every convex combination."""

    smoothness: float
    learner: float

    @property
    def total(self) -> float:
        """The regret bound."""
        return sum(self)


class BatchBound(NamedTuple):
    """The terms of a bound on the batch errors Delta_i, one entry for each i = 1..N."""

    initial: Array
    smoothness: Array

    @property
    def total(self) -> Array:
        """The bounds on Delta_1..Delta_N."""
        return self.initial + self.smoothness


class GreedyRegret(NamedTuple):
    """A step size for greedy fitting and the regret on linear losses that it yields."""

    alpha: float
    regret: float


def theorem_1(
    *,
    eta: float,
    N: int,
    T: int,
    f_norm: float,
    Delta_0: float,
    L_B: float,
    beta_B: float,
    B: float,
    R: float,
) -> SpanBound:
    """Return the bound of Theorem 1 on the regret of Algorithm 1 against one f in the span.

    - ``initial``: the part of Delta_0, the excess loss of the zero function, that N steps leave;
    - ``smoothness``: the cost of curvature, because steps of size eta follow linearised losses, and
      the cost of projecting onto the ball;
    - ``learner``: the base learner's own regret, at the scale of the gradients and of f;
    - ``sigma``: the regret of learning the shrinkage factors by online gradient descent.

    The proof steps up to eta D outside the ball before it projects. If the smoothness grows with
    the radius (p-norm losses with p > 2), pass beta at radius B + eta D as ``beta_B``.

    More copies shrink the first term and, at eta = ln(N) / N, the second term:

    >>> import math
    >>> for N in (10, 100, 1000):
    ...     bound = theorem_1(eta=math.log(N) / N, N=N, T=1000, f_norm=1.0, Delta_0=1000.0,
    ...                       L_B=4.0, beta_B=2.0, B=1.0, R=10.0)
    ...     print(*(round(term) for term in bound))
    73 1382 40 253
    9 276 40 253
    1 41 40 253
    """
    check(N=count(N), T=count(T))
    check(
        eta=(eta, f"between 1/N = {1 / N:g} and 1", is_step(eta, N)),
        f_norm=norm(f_norm),
        Delta_0=finite(Delta_0),
        L_B=not_negative(L_B),
        beta_B=not_negative(beta_B),
        B=not_negative(B),
        R=not_negative(R),
    )
    return SpanBound(
        initial=(1 - eta / f_norm) ** N * Delta_0,
        smoothness=3 * eta * beta_B * B**2 * f_norm * T,
        learner=L_B * f_norm * R,
        sigma=2 * L_B * B * f_norm * math.sqrt(T),
    )


def theorem_2(*, N: int, T: int, D: float, L_D: float, beta_D: float, R: float) -> HullBound:
    """Return the bound of Theorem 2 on the regret of Algorithm 2 against the convex hull.

    - ``smoothness``: the cost of curvature that N steps leave;
    - ``learner``: the base learner's own regret, at the scale of the gradients.

    The first term falls with N, the second does not:

    >>> theorem_2(N=100, T=1000, D=1.0, L_D=4.0, beta_D=2.0, R=10.0)
    HullBound(smoothness=160.0, learner=40.0)
    """
    check(N=count(N), T=count(T), D=positive(D))
    check(L_D=not_negative(L_D), beta_D=not_negative(beta_D), R=not_negative(R))
    return HullBound(smoothness=8 * beta_D * D**2 * T / N, learner=L_D * R)


def corollary_1(
    *,
    eta: float,
    N: int,
    T: int,
    f_norm: float,
    Delta_0: float,
    L_B: float,
    B: float,
    R: float,
) -> SpanBound:
    """Return the bound of Corollary 1: Theorem 1 for convex losses, linearised at the prediction.

    The terms are those of `theorem_1`; ``smoothness`` is 0, because linear losses have no
    curvature. The base learner must be deterministic, and the caller must pass B = eta N D.
    """
    return theorem_1(
        eta=eta, N=N, T=T, f_norm=f_norm, Delta_0=Delta_0, L_B=L_B, beta_B=0.0, B=B, R=R
    )


def scaling_corollary(
    *,
    lam: float,
    eta: float,
    N: int,
    T: int,
    f_norm: float,
    Delta_0: float,
    L_B: float,
    beta_B: float,
    B: float,
    R: float,
) -> SpanBound:
    """Return the bound of the scaling corollary: base predictions multiplied by lambda >= 1.

    The terms are those of `theorem_1`. ``f_norm`` is the norm over F and ``R`` the regret of A
    without scaling; this function turns them into ||f||'_1 = max{1, ||f||_1 / lambda} and lambda R.
    ``B`` is the radius B' computed with lambda D in place of D, and L_B and beta_B belong to it.

    A larger lambda compensates for a large norm, until lambda reaches the norm:

    >>> settings = dict(eta=0.1, N=100, T=1, f_norm=8.0, Delta_0=1.0, L_B=0.0, beta_B=0.0, B=1.0,
    ...                 R=0.0)
    >>> [round(scaling_corollary(lam=lam, **settings).initial, 5) for lam in (1, 2, 4, 8, 16)]
    [0.28426, 0.07952, 0.00592, 3e-05, 3e-05]
    """
    check(lam=positive(lam), f_norm=norm(f_norm))
    return theorem_1(
        eta=eta,
        N=N,
        T=T,
        f_norm=max(1.0, f_norm / lam),
        Delta_0=Delta_0,
        L_B=L_B,
        beta_B=beta_B,
        B=B,
        R=lam * R,
    )


def greedy_regret(*, R: float, beta: float, D: float, T: int) -> GreedyRegret:
    """Return the regret of greedy fitting as a linear learner ("Fitting to actual loss functions").

    A base learner that fits l(y' + alpha g) with regret R is a linear learner whose regret is
    R / alpha plus the cost of curvature, beta D^2 T alpha / 2. This alpha minimises the sum.

    - ``alpha``: the step size to fit with;
    - ``regret``: the regret on the gradients themselves, not divided by L_B. It replaces L_B R(T)
      in the theorems.

    >>> greedy_regret(R=50.0, beta=1.0, D=1.0, T=10_000)
    GreedyRegret(alpha=0.1, regret=1000.0)
    """
    check(R=not_negative(R), beta=positive(beta), D=positive(D), T=count(T))
    return GreedyRegret(
        alpha=math.sqrt(2 * R / (beta * D**2 * T)), regret=math.sqrt(2 * beta * D**2 * T * R)
    )


def greedy_regret_scaling(*, R: float, beta: float, D: float, T: int) -> GreedyRegret:
    """Return the regret of greedy fitting for a learner with R(T) = alpha R'(T).

    Pass R'(T) as ``R``. At the largest alpha for which curvature costs no more than the learner,
    both parts equal R'. The terms are those of `greedy_regret`.

    >>> greedy_regret_scaling(R=50.0, beta=1.0, D=1.0, T=10_000)
    GreedyRegret(alpha=0.01, regret=100.0)
    """
    check(R=not_negative(R), beta=positive(beta), D=positive(D), T=count(T))
    return GreedyRegret(alpha=2 * R / (beta * D**2 * T), regret=2 * R)


def zhang_yu(*, Delta_0: float, f_norm: float, beta: float, steps: ArrayLike) -> BatchBound:
    """Return the bounds on the errors Delta_i of Zhang and Yu's greedy boosting, i = 1..N.

    - ``initial``: the rest of Delta_0; it falls like 1 / s_i, where s_i = 1 + eta_1 + .. + eta_i;
    - ``smoothness``: the cost of curvature over the steps so far, discounted at the same slow rate.

    Steps that add up to 98 leave 1/50 of Delta_0, where `batch_boosting` leaves exp(-98) of it:

    >>> float(zhang_yu(Delta_0=1.0, f_norm=1.0, beta=0.0, steps=[1.0] * 98).initial[-1])
    0.02
    """
    eta = _check_batch(Delta_0, f_norm, beta, steps)
    reach = 1 + np.cumsum(eta) + f_norm
    return BatchBound(
        initial=(1 + f_norm) / reach * Delta_0,
        smoothness=np.cumsum(reach * beta / 2 * eta**2) / reach,
    )


def batch_boosting(*, Delta_0: float, f_norm: float, beta: float, steps: ArrayLike) -> BatchBound:
    """Return the bounds on the errors Delta_i of boosting with the paper's shrinkage, i = 1..N.

    - ``initial``: the rest of Delta_0; it falls exponentially in s_i = 1 + eta_1 + .. + eta_i;
    - ``smoothness``: the cost of curvature over the steps so far, discounted exponentially too, but
      multiplied by s_i^2 + 1 for the size that the combination may have grown to.

    The steps must not exceed 1. The second term vanishes only if eta_i s_i^2 does: steps like 1/i
    are short enough, steps like 1/sqrt(i) are not.

    >>> import numpy as np
    >>> i = np.arange(1, 10_001)
    >>> batch_boosting(Delta_0=1.0, f_norm=1.0, beta=2.0, steps=1 / i).total[[99, -1]].round(3)
    array([0.938, 0.044])
    >>> batch_boosting(Delta_0=1.0, f_norm=1.0, beta=2.0, steps=i**-0.5).total[[99, -1]].round()
    array([ 39., 398.])
    """
    eta = _check_batch(Delta_0, f_norm, beta, steps)
    longest = float(eta.max(initial=0.0))
    check(steps=(longest, "numbers of at most 1", longest <= 1))
    s = 1 + np.cumsum(eta)
    with np.errstate(divide="ignore"):  # log(0) = -inf is right for a term that is 0
        charge = np.log(beta / 2 * eta**2 * (s**2 + 1))
    # in logarithms, because exp(s_i / ||f||_1) alone overflows in a long run
    smoothness = np.exp(np.logaddexp.accumulate(s / f_norm + charge) - s / f_norm)
    return BatchBound(initial=np.exp(-(s - 1) / f_norm) * Delta_0, smoothness=smoothness)


def _check_batch(Delta_0: float, f_norm: float, beta: float, steps: ArrayLike) -> Array:
    """Check the arguments of a bound on batch boosting; return the steps."""
    check(Delta_0=finite(Delta_0), f_norm=norm(f_norm), beta=not_negative(beta))
    eta = np.asarray(steps, dtype=float)
    bad = eta[~((eta >= 0) & (eta < math.inf))]
    if len(bad):
        raise ValueError(f"steps must be numbers of at least 0 (got {bad[0]:g})")
    return eta
