"""Chains of steps in threads: the same results in any number of threads."""

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanboost.compiling.step_schedule import StepSchedule


def running_sums(seed, steps, log):
    total = seed
    for step in range(steps):
        total = 7 * total + step
        log.append((seed, step))
        yield total


@settings(max_examples=30, deadline=None)
@given(
    chains=st.integers(1, 6),
    steps=st.integers(1, 9),
    threads=st.integers(1, 4),
)
def test_threads_do_not_matter(chains, steps, threads):
    log, order, state = [], [], [0]

    def join(step, results):
        assert all((chain, step) in log for chain in range(chains))  # every chain has done it
        order.append(step)
        state[0] = 3 * state[0] + sum(results)
        return state[0]

    parts = [running_sums(chain, steps, log) for chain in range(chains)]
    joined = StepSchedule(parts, join, steps).run(threads)
    assert order == list(range(steps))
    expected, total = [], 0
    for results in zip(*(running_sums(chain, steps, []) for chain in range(chains)), strict=True):
        total = 3 * total + sum(results)
        expected.append(total)
    assert joined == expected


def test_chains_continue_while_results_are_joined():
    ahead = threading.Event()

    def chain():
        yield 0
        ahead.set()
        yield 1

    def join(step, results):
        assert ahead.wait(60)  # or else the second step waits for the join of the first one
        return results

    assert StepSchedule([chain()], join, 2).run(2) == [[0], [1]]


@pytest.mark.parametrize("place", ["chain", "join"])
def test_an_error_ends_all_threads(place):
    def chain(number):
        for step in range(1000):
            if place == "chain" and (number, step) == (1, 3):
                raise ValueError("no more")
            yield step

    def join(step, results):
        if place == "join" and step == 3:
            raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        StepSchedule([chain(number) for number in range(3)], join, 1000).run(2)
