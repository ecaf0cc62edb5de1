"""The time spent compiling, measured from the first compiled function on."""

import math
import time

import numpy as np

from spanboost.compiling import compile_time, dispatchers
from spanboost.compiling.compile_time import compile_seconds
from spanboost.compiling.dispatchers import get_dispatcher


def add_squares(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * x[i]
    return total


def test_compiling_is_announced_again_after_a_pause(monkeypatch, capsys):
    now = 1000.0
    monkeypatch.setattr(compile_time.time, "perf_counter", lambda: now)
    monkeypatch.setattr(dispatchers, "compiling", watch := compile_time.Stopwatch())
    monkeypatch.setattr(dispatchers, "_announced", [-math.inf])
    announced = []
    for pause in (0.0, 1.0, 2 * compile_time.PAUSE, 1.0, 2 * compile_time.PAUSE):
        now += pause
        with watch:
            pass  # waiting for a helper that is almost ready
        with watch:
            for _ in range(2):  # the second one is in another thread
                dispatchers._before_compiling()
                announced.append(capsys.readouterr().err.count("compiling for this kind of model"))
                now += 10
    assert announced == [1, 0, 0, 0, 1, 0, 0, 0, 1, 0]
    now += 2 * compile_time.PAUSE
    dispatchers._before_compiling()
    assert "compiling" in capsys.readouterr().err


def test_a_command_announces_compiling_once(monkeypatch, capsys):
    now = 1000.0
    monkeypatch.setattr(compile_time.time, "perf_counter", lambda: now)
    monkeypatch.setattr(dispatchers, "compiling", watch := compile_time.Stopwatch())
    monkeypatch.setattr(dispatchers, "_announced", [-math.inf])
    for _ in range(2):  # two commands in one process
        announced = []
        with compile_time.announce_once():
            for _ in range(3):
                now += 2 * compile_time.PAUSE
                with watch:
                    dispatchers._before_compiling()
                announced.append("spanboost warmup" in capsys.readouterr().err)
        assert announced == [True, False, False]
    now += 2 * compile_time.PAUSE
    dispatchers._before_compiling()  # after the commands, as before
    assert "up to a minute or two on two cores" in capsys.readouterr().err


def test_only_the_first_call_compiles():
    began, before = time.perf_counter(), compile_seconds()
    function = get_dispatcher(add_squares, keep=False, counted=False)
    assert function(np.ones(3)) == 3
    compiled = compile_seconds()
    assert 0 < compiled - before <= time.perf_counter() - began
    assert function(np.ones(4)) == 4
    assert compile_seconds() == compiled
