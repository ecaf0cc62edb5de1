"""Numba code that is not ours stays intact when one of our loops compiles it."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

BANK = """
from typing import NamedTuple

import numba
import numpy as np
from numba import njit, prange, types
from numba.extending import overload, overload_method, register_jitable

from spanboost import FromBank, SpanBoost
from spanboost.compiling.kernels import kernel

X, y = np.linspace(-1, 1, 40).reshape(20, 2), np.linspace(-0.5, 0.5, 20)

{helpers}

class Mean(NamedTuple):
    mean: np.ndarray
    slope: np.ndarray

    def predict(self, x, h):
        h[:, :] = self.mean

    def update(self, x, h, feedback):
        feedback.slopes(h, self.slope)
        for k in range(h.shape[0]):
            for i in range(h.shape[1]):
                self.mean[k, i] -= {step}


def make_bank(task):
    return Mean(np.zeros((task.d, task.n)), np.zeros((task.d, task.n)))


def learn():
    return float(SpanBoost(FromBank(make_bank), n=3).learn_many(X, y)[-1])
"""

HELPERS = {
    "direct": (
        "@njit\ndef half(v):\n    return 0.5 * v",
        "half(self.slope[k, i])",
        "theirs.half(3.0)",
        "1.5",
    ),
    "cached": (
        "@njit(cache=True)\ndef half(v):\n    return 0.5 * v",
        "half(self.slope[k, i])",
        "theirs.half(3.0)",
        "1.5",
    ),
    "nested": (
        "@njit(cache=True)\ndef quarter(v):\n    return 0.25 * v\n"
        "@njit\ndef half(v):\n    return 2 * quarter(v)",
        "half(self.slope[k, i])",
        "theirs.quarter(4.0), theirs.half(3.0)",
        "1.0 1.5",
    ),
    "compiled before": (
        "@njit\ndef half(v):\n    return 0.5 * v\nhalf(1.0)",
        "half(self.slope[k, i])",
        "theirs.half(3.0)",
        "1.5",
    ),
    "called by a kernel": (
        "@njit\ndef quarter(v):\n    return 0.25 * v\n"
        "@kernel\ndef half(v):\n    return 2 * quarter(v)\n"
        "@njit\ndef both(v):\n    return half(v) + quarter(v)",
        "half(self.slope[k, i])",
        "theirs.quarter(4.0), theirs.half(3.0), theirs.both(4.0)",
        "1.0 1.5 3.0",
    ),
    "parallel": (
        "@njit(parallel=True)\ndef half(v):\n    total = 0.0\n    for j in prange(4):\n"
        "        total += 0.125 * v\n    return total",
        "half(self.slope[k, i])",
        "theirs.half(3.0)",
        "1.5",
    ),
    "overload": (
        "def half(v):\n    return 0.5 * v\n"
        "@njit\ndef exact(v):\n    return 0.5 * v\n"
        "@overload(half)\ndef typed_half(v):\n    return lambda v: exact(v)\n"
        "@njit\ndef caller(v):\n    return half(v)",
        "half(self.slope[k, i])",
        "theirs.exact(3.0), theirs.caller(3.0)",
        "1.5 1.5",
    ),
    "recursive": (
        "@njit\ndef power(v, n):\n    if n == 0:\n        return v\n"
        "    return 0.5 * power(v, n - 1)",
        "power(self.slope[k, i], 1)",
        "theirs.power(4.0, 2)",
        "1.0",
    ),
    "first-class": (
        "@njit\ndef half(v):\n    return 0.5 * v\n"
        "@njit('float64(float64)')\ndef quarter(v):\n    return 0.5 * half(v)",
        "half(self.slope[k, i])",
        "theirs.quarter(4.0), theirs.half(3.0)",
        "1.0 1.5",
    ),
    "bank of theirs": (
        "@njit\ndef half(v):\n    return 0.5 * v\n"
        "@kernel\nclass Pair(NamedTuple):\n    a: float\n    b: float\n\n"
        "    def total(self):\n        return half(self.a) + half(self.b)\n"
        "@njit\ndef total(a):\n    return Pair(a, a).total()",
        "0.5 * Pair(self.slope[k, i], self.slope[k, i]).total()",
        "theirs.half(3.0), theirs.total(2.0)",
        "1.5 2.0",
    ),
}


def run(folder, script, **environment):
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", script],
        env={**os.environ, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def write_module(folder, helpers, step):
    (folder / "theirs.py").write_text(BANK.format(helpers=helpers, step=step))


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The prediction of the same bank without any helper."""
    folder = tmp_path_factory.mktemp("expected")
    write_module(folder, "", "0.5 * self.slope[k, i]")
    done = run(folder, "import theirs; print(theirs.learn())")
    assert done.returncode == 0, done.stderr
    return done.stdout


SLOW = [pytest.param(case, marks=pytest.mark.slow) for case in [*HELPERS][2:]]


@pytest.mark.parametrize("case", ["direct", "cached", *SLOW])
def test_a_helper_compiled_by_our_loop_runs_on_its_own(tmp_path, expected, case):
    helpers, step, call, value = HELPERS[case]
    write_module(tmp_path, helpers, step)
    done = run(tmp_path, f"import theirs; print(theirs.learn()); print({call})")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{expected}{value}\n"


@pytest.mark.slow
def test_a_cached_helper_is_loaded_by_the_next_process(tmp_path, expected):
    helpers, step, call, value = HELPERS["cached"]
    write_module(tmp_path, helpers, step)
    hits = "; print(sum(theirs.half.stats.cache_hits.values()))"
    script = f"import theirs; print(theirs.learn()); print({call})" + hits
    first, second = run(tmp_path, script), run(tmp_path, script)
    assert first.stdout == f"{expected}{value}\n0\n", first.stderr
    assert second.stdout == f"{expected}{value}\n1\n", second.stderr


@pytest.mark.slow
def test_a_method_may_print_and_raise(tmp_path):
    helpers = "@kernel\ndef half(v):\n    print('slope', v)\n    return 0.5 * v"
    write_module(tmp_path, helpers, "half(self.slope[k, i])")
    done = run(tmp_path, "import theirs; theirs.learn()")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) == 20 * 3
    assert all(float(line.removeprefix("slope ")) <= 2 for line in lines)

    helpers = "@kernel\ndef half(v):\n    if v != 0:\n        raise ValueError('no slopes', v)"
    write_module(tmp_path, helpers + "\n    return v", "half(self.slope[k, i])")
    done = run(tmp_path, "import theirs; theirs.learn()")
    assert "ValueError: ('no slopes', " in done.stderr


THREADS = """
import threading
import theirs

@theirs.njit
def unrelated(v, depth):
    total = 0.0
    for i in range(depth):
        total += v * theirs.half(i)
    return total

started, results, failures = threading.Barrier({threads} + 1), [], []

def together(task):
    started.wait()
    try:
        results.append(task())
    except BaseException as error:
        failures.append(error)

def compile_many():
    for v in (1, 1.0, 1j, theirs.np.float32(1), theirs.np.int8(1)):
        unrelated(v, 3)
    return unrelated(2.0, 3)

tasks = [theirs.learn] * {threads} + [compile_many]
threads = [threading.Thread(target=together, args=(task,)) for task in tasks]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures
print(sorted(map(float, results)), theirs.half(3.0), unrelated(2.0, 3))
"""


def test_threads_that_compile_at_once(tmp_path, expected):
    helpers, step, _, _ = HELPERS["direct"]
    write_module(tmp_path, helpers, step)
    done = run(tmp_path, THREADS.format(threads=2))
    assert (done.returncode, done.stderr) == (0, "")
    value = float(expected)
    assert done.stdout == f"{sorted([value, value, 3.0])} 1.5 3.0\n"


def test_types_of_other_named_tuples_are_unchanged(tmp_path):
    write_module(tmp_path, "class Empty(NamedTuple):\n    pass", "0.5 * self.slope[k, i]")
    script = (
        "import theirs\n"
        "from numba import typeof\n"
        "before = bool(typeof(theirs.Empty())), bool(typeof(()))\n"
        "theirs.learn()\n"
        "assert (bool(typeof(theirs.Empty())), bool(typeof(()))) == before == (False, False)\n"
        "from spanboost.losses import Squared\n"
        "print(bool(typeof(Squared())))\n"
    )
    done = run(tmp_path, script)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "True\n"
