"""The time spent compiling, measured from the first compiled function on."""

import time

import numpy as np

from spanboost.compiling.compile_time import compile_seconds
from spanboost.compiling.dispatchers import get_dispatcher


def add_squares(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * x[i]
    return total


def test_only_the_first_call_compiles():
    began, before = time.perf_counter(), compile_seconds()
    function = get_dispatcher(add_squares, keep=False, counted=False)
    assert function(np.ones(3)) == 3
    compiled = compile_seconds()
    assert 0 < compiled - before <= time.perf_counter() - began
    assert function(np.ones(4)) == 4
    assert compile_seconds() == compiled
