"""The bounds against values computed by hand."""

import math

import numpy as np
import pytest

from spanboost.theory import bounds

# eta / ||f||_1 = 1/4, and three steps of it leave (3/4)^3 = 27/64
SPAN = {
    "eta": 0.5,
    "N": 3,
    "T": 16,
    "f_norm": 2.0,
    "Delta_0": 0.0,
    "L_B": 0.0,
    "beta_B": 0.0,
    "B": 0.0,
    "R": 0.0,
}


@pytest.mark.parametrize(
    ("changes", "terms"),
    [
        ({"Delta_0": 16.0}, (6.75, 0, 0, 0)),  # 16 * 27/64
        ({"beta_B": 2.0, "B": 3.0}, (0, 864, 0, 0)),  # 3 * 1/2 = 1.5; * 2 = 3; * 9 = 27; * 2 * 16
        ({"L_B": 3.0, "R": 5.0}, (0, 0, 30, 0)),  # 3 * 2 * 5
        ({"L_B": 3.0, "B": 0.5}, (0, 0, 0, 24)),  # 2 * 3 = 6; * 1/2 = 3; * 2 = 6; * 4
    ],
)
def test_theorem_1_term_by_term(changes, terms):
    bound = bounds.theorem_1(**SPAN | changes)
    assert bound == pytest.approx(terms, rel=1e-15)
    assert bound.total == pytest.approx(max(terms), rel=1e-15)


def test_theorem_1_total_adds_all_four_terms():
    bound = bounds.theorem_1(
        **SPAN | {"Delta_0": 16.0, "beta_B": 2.0, "L_B": 3.0, "B": 0.5, "R": 5.0}
    )
    # the smoothness term at B = 1/2: 1.5 * 2 * 1/4 = 0.75; * 2 * 16 = 24
    assert bound == pytest.approx((6.75, 24, 30, 24), rel=1e-15)
    assert bound.total == pytest.approx(84.75, rel=1e-15)


@pytest.mark.parametrize(
    ("changes", "terms"),
    [
        ({"beta_D": 2.0}, (216, 0)),  # 8 * 2 = 16; * 9 = 144; * 6 / 4
        ({"L_D": 3.0}, (0, 15)),  # 3 * 5
        ({"beta_D": 2.0, "L_D": 3.0}, (216, 15)),
    ],
)
def test_theorem_2_term_by_term(changes, terms):
    bound = bounds.theorem_2(
        **{"N": 4, "T": 6, "D": 3.0, "L_D": 0.0, "beta_D": 0.0, "R": 5.0} | changes
    )
    assert bound == pytest.approx(terms, rel=1e-15)
    assert bound.total == pytest.approx(sum(terms), rel=1e-15)


def test_corollary_1_has_no_smoothness_term():
    bound = bounds.corollary_1(eta=0.5, N=3, T=16, f_norm=2.0, Delta_0=16.0, L_B=3.0, B=0.5, R=5.0)
    assert bound == pytest.approx((6.75, 0, 30, 24), rel=1e-15)  # as for Theorem 1 above


@pytest.mark.parametrize(
    ("lam", "terms"),
    [
        # 8 / 4 = 2, as for Theorem 1 above, but the learner's regret is 4 * 5 = 20: 3 * 2 * 20
        (4.0, (6.75, 24, 120, 24)),
        # 8 / 16 counts as 1: 16 / 2^3, half of 24, 3 * 1 * 16 * 5, half of 24
        (16.0, (2, 12, 240, 12)),
    ],
)
def test_scaling_divides_the_norm_down_to_1_and_multiplies_the_regret(lam, terms):
    changes = {"f_norm": 8.0, "Delta_0": 16.0, "beta_B": 2.0, "L_B": 3.0, "B": 0.5, "R": 5.0}
    assert bounds.scaling_corollary(lam=lam, **SPAN | changes) == pytest.approx(terms, rel=1e-15)


def test_scaling_by_1_is_theorem_1():
    settings = SPAN | {"f_norm": 3.0, "Delta_0": 7.0, "beta_B": 2.0, "L_B": 3.0, "B": 0.5, "R": 5.0}
    assert bounds.scaling_corollary(lam=1.0, **settings) == bounds.theorem_1(**settings)


def test_greedy_conversions_by_hand():
    # sqrt(36 / 3600) = 1/10; the learner's part is 18 * 10, curvature's 4 * 9 * 100 / 20
    assert bounds.greedy_regret(R=18.0, beta=4.0, D=3.0, T=100) == pytest.approx((0.1, 360))
    # 36 / 3600 = 1/100; the learner's part is 18, curvature's 4 * 9 * 100 / 200 = 18
    assert bounds.greedy_regret_scaling(R=18.0, beta=4.0, D=3.0, T=100) == pytest.approx((0.01, 36))


@pytest.mark.parametrize(("R", "beta", "D", "T"), [(18, 4, 3, 100), (7, 0.25, 1, 50), (3, 2, 2, 9)])
def test_greedy_step_is_the_best_one(R, beta, D, T):
    alphas = np.geomspace(1e-3, 1e2, 200_001)
    regrets = R / alphas + T * (beta / 2) * alphas * D * D
    alpha, regret = bounds.greedy_regret(R=R, beta=beta, D=D, T=T)
    assert regret == pytest.approx(regrets.min(), rel=1e-8)
    assert alpha == pytest.approx(alphas[regrets.argmin()], rel=1e-4)


@pytest.mark.parametrize(("R", "beta", "D", "T"), [(18, 4, 3, 100), (7, 0.25, 1, 50), (3, 2, 2, 9)])
def test_greedy_step_under_scaling_is_the_longest_that_doubles_the_regret(R, beta, D, T):
    alphas = np.geomspace(1e-3, 1e2, 200_001)
    regrets = R + T * (beta / 2) * alphas * D * D
    alpha, regret = bounds.greedy_regret_scaling(R=R, beta=beta, D=D, T=T)
    assert regret == 2 * R
    assert alpha == pytest.approx(alphas[regrets <= 2 * R].max(), rel=1e-4)


def test_zhang_yu_term_by_term():
    # s_1 = 2, s_2 = 3 and ||f||_1 = 1: factors 2/3 and 2/4
    bound = bounds.zhang_yu(Delta_0=12.0, f_norm=1.0, beta=0.0, steps=[1.0, 1.0])
    assert bound.initial == pytest.approx([8, 6])
    assert bound.smoothness == pytest.approx([0, 0])
    # beta / 2 = 1: first 1, then 3/4 of it and 1 more
    bound = bounds.zhang_yu(Delta_0=0.0, f_norm=1.0, beta=2.0, steps=[1.0, 1.0])
    assert bound.initial == pytest.approx([0, 0])
    assert bound.smoothness == pytest.approx([1, 1.75])
    # unequal steps 1 and 2, so s_2 = 4: 3/5 * 1 + 5/5 * 4
    bound = bounds.zhang_yu(Delta_0=12.0, f_norm=1.0, beta=2.0, steps=[1.0, 2.0])
    assert bound.total == pytest.approx([8 + 1, 4.8 + 4.6])


def test_a_step_may_be_below_1_over_N_by_rounding():
    """Boosters accept such a step, so audits of them need a bound."""
    assert bounds.theorem_1(**SPAN | {"eta": 1 / 3 - 1e-14}).total == 0
    with pytest.raises(ValueError, match="eta must be between"):
        bounds.theorem_1(**SPAN | {"eta": 1 / 3 - 1e-6})


HALVING = 1 / math.log(2)  # with this ||f||_1, exp(-s / ||f||_1) = 2^-s


def test_batch_boosting_term_by_term():
    bound = bounds.batch_boosting(Delta_0=12.0, f_norm=HALVING, beta=0.0, steps=[1.0, 1.0])
    assert bound.initial == pytest.approx([6, 3])
    assert bound.smoothness == pytest.approx([0, 0], abs=0)
    # beta / 2 = 1 and s_1 = 2, s_2 = 3: first 4 + 1, then half of that and 9 + 1
    bound = bounds.batch_boosting(Delta_0=0.0, f_norm=HALVING, beta=2.0, steps=[1.0, 1.0])
    assert bound.initial == pytest.approx([0, 0])
    assert bound.smoothness == pytest.approx([5, 12.5])
    # unequal steps 1/2 and 1, so s_1 = 1.5, s_2 = 2.5 and factors 2^-1/2, 2^-3/2: first
    # (2.25 + 1) / 4, then half of that and 6.25 + 1
    bound = bounds.batch_boosting(Delta_0=12.0, f_norm=HALVING, beta=2.0, steps=[0.5, 1.0])
    assert bound.initial == pytest.approx([12 * 2**-0.5, 12 * 2**-1.5])
    assert bound.smoothness == pytest.approx([0.8125, 0.40625 + 7.25])


def test_batch_boosting_survives_long_runs():
    # With unit steps the k-th term from the end is 2^-k ((M - k)^2 + 1), where M = s_N = 5001. The
    # sums of 2^-k, k 2^-k and k^2 2^-k are 2, 2 and 6, so all come to 2 (M^2 + 1) - 4 M + 6.
    bound = bounds.batch_boosting(Delta_0=1.0, f_norm=HALVING, beta=2.0, steps=np.ones(5000))
    assert bound.smoothness[-1] == pytest.approx(50_000_006, rel=1e-11)
    assert bound.initial[-1] == 0


def test_steps_of_length_zero_change_nothing():
    steps = [0.0, 1.0, 0.0, 1.0]
    for function in (bounds.zhang_yu, bounds.batch_boosting):
        bound = function(Delta_0=3.0, f_norm=2.0, beta=2.0, steps=steps)
        without = function(Delta_0=3.0, f_norm=2.0, beta=2.0, steps=[1.0, 1.0])
        assert bound.total[0] == 3.0
        assert bound.total[[1, 3]] == pytest.approx(without.total)


@pytest.mark.parametrize(
    ("function", "changes", "message"),
    [
        ("theorem_1", {"eta": 2.0}, "eta must be between 1/N = 0.333333 and 1 .got 2."),
        ("theorem_1", {"eta": 0.1}, "eta must be between"),
        ("theorem_1", {"eta": math.nan}, "eta must be between"),
        ("theorem_1", {"N": 0}, "N must be a whole number of at least 1 .got 0."),
        ("theorem_1", {"T": 1.5}, "T must be a whole number"),
        ("theorem_1", {"T": math.inf}, "T must be a whole number of at least 1 .got inf."),
        ("theorem_1", {"f_norm": 0.5}, "f_norm must be a number of at least 1"),
        ("theorem_1", {"L_B": -1.0}, "L_B must be a number of at least 0"),
        ("theorem_1", {"beta_B": math.inf}, "beta_B must be"),
        ("theorem_1", {"B": math.nan}, "B must be"),
        ("theorem_1", {"R": -1.0}, "R must be"),
        ("theorem_1", {"Delta_0": math.inf}, "Delta_0 must be a finite number"),
        ("scaling_corollary", {"lam": -1.0}, "lam must be a number above 0 .got -1."),
        ("theorem_2", {"N": 0}, "N must be"),
        ("theorem_2", {"D": 0.0}, "D must be a number above 0"),
        ("greedy_regret", {"beta": 0.0}, "beta must be a number above 0 .got 0."),
        ("greedy_regret_scaling", {"beta": 0.0}, "beta must be a number above 0"),
        ("zhang_yu", {"steps": [0.5, -1.0]}, "steps must be numbers of at least 0 .got -1."),
        ("batch_boosting", {"f_norm": 0.0}, "f_norm must be a number of at least 1"),
        ("batch_boosting", {"steps": [0.5, 2.0]}, "steps must be numbers of at most 1 .got 2."),
    ],
)
def test_arguments_without_a_meaning_are_refused(function, changes, message):
    valid = {
        "theorem_1": SPAN,
        "scaling_corollary": SPAN | {"lam": 2.0},
        "theorem_2": {"N": 4, "T": 6, "D": 3.0, "L_D": 0.0, "beta_D": 0.0, "R": 5.0},
        "greedy_regret": {"R": 50.0, "beta": 1.0, "D": 1.0, "T": 100},
        "zhang_yu": {"Delta_0": 1.0, "f_norm": 1.0, "beta": 0.0, "steps": [0.5]},
    }
    valid["greedy_regret_scaling"] = valid["greedy_regret"]
    valid["batch_boosting"] = valid["zhang_yu"]
    getattr(bounds, function)(**valid[function])
    with pytest.raises(ValueError, match=message):
        getattr(bounds, function)(**valid[function] | changes)
