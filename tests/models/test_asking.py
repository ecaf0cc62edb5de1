"""When corrections of a forecast are asked."""

import numpy as np
import pytest

from spanboost.models.asking import EVERY, PERIOD, TRIAL, new_asking


def run(errors, corrections, asking=None):
    """Learn rows; return the state, and for each row whether the correction was asked."""
    asking, asked = new_asking(1) if asking is None else asking, []
    for error, correction in zip(errors, corrections, strict=True):
        asked.append(bool(asking.asks(0)))
        if asked[-1]:
            asking.add_products(0, error**2, error * correction, correction**2)
        asking.count_label(error**2)
    return asking, np.array(asked)


def noise(rows, seed=0, size=1.0):
    return size * np.random.default_rng(seed).normal(size=rows)


def test_a_useless_correction_is_asked_for_one_row_in_eight():
    errors = noise(TRIAL + 4 * PERIOD)
    asking, asked = run(errors, noise(len(errors), seed=1))
    assert asked[:TRIAL].all()
    late = asked[TRIAL + PERIOD :]
    assert not asking.awake[0]
    assert late.sum() == len(late) // EVERY


def test_a_useful_correction_stays_awake():
    errors = noise(TRIAL + 4 * PERIOD)
    corrections = 0.2 * errors + noise(len(errors), seed=1)
    assert run(errors, corrections)[1].all()


def test_a_correction_that_becomes_useful_wakes_up():
    asking, _ = run(noise(TRIAL), noise(TRIAL, seed=1))
    assert not asking.awake[0]
    errors = noise(16 * PERIOD, seed=2)
    asking, asked = run(errors, 0.5 * errors, asking)
    assert asking.awake[0]
    assert asked[4 * PERIOD :].mean() > 0.5


def test_all_wake_up_when_the_error_rises():
    asking, _ = run(noise(TRIAL), noise(TRIAL, seed=1))
    _, asked = run(noise(PERIOD, seed=2, size=3.0), noise(PERIOD, seed=3), asking)
    assert asked[64:].all()


@pytest.mark.parametrize(("name", "value"), [("seen", -1), ("until", 2**62), ("awake", 2)])
def test_invalid_counts_are_not_sound(name, value):
    asking = new_asking(2)
    assert asking.sound
    getattr(asking, name)[0] = value
    assert not asking.sound
