"""Speed relative to the machine: cost of copies, memory access, start-up time."""

import os
import subprocess
import sys
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.common import LEARNERS, Stream, learner, race
from benchmarks.measure import Row, Setting, learn
from spanboost import SpanBoost

FIRST_CALL = """
import time
start = time.perf_counter()
import numpy as np
import spanboost
X = np.linspace(-1, 1, 10_000).reshape(1000, 10)
spanboost.SpanBoost(spanboost.{kind}(), n=32).learn_many(X, X[:, 0])
print(time.perf_counter() - start)
"""


def copies(setting: Setting) -> Iterator[Row]:
    """Compare 32 copies with one."""
    for name in ("covtype", "a9a"):
        stream = setting.stream(name)
        for base in setting.learners:
            jobs = [lambda n=n, b=base, s=stream: learn(learner(b), n, s) for n in (32, 1)]
            many, one = race(setting.repeats, *jobs)
            us = 1e6 / len(stream.y)
            measure = f"{base} n=32, {name}, against n=1"
            must = None if base == "linear" else "<= 12"
            yield Row(measure, "us/row", us * many.seconds, us * one.seconds, must)


def limit(setting: Setting) -> Iterator[Row]:
    """Compare 128 copies with a loop that only reads and writes the same weights."""
    import numba

    touch = numba.njit(touch_weights)
    for name in ("covtype", "a9a", "wide"):
        stream = wide(setting.quick) if name == "wide" else setting.stream(name)
        model = SpanBoost(learner("linear"), n=128)
        feature = with_constant(stream.X)
        U, G = np.zeros((2, feature.shape[1], 128), np.float32)
        starts, numbers = feature.indptr.astype(np.int64), feature.indices.astype(np.uint64)
        ours, bare = race(
            setting.repeats,
            lambda m=model, s=stream: m.learn_many(s.X, s.y),
            lambda a=(starts, numbers, U, G): touch(*a),
        )
        us = 1e6 / len(stream.y)
        note = f"weights {2 * U.nbytes / 2**20:.3g} MiB, {starts[-1] / len(stream.y):.0f} active"
        measure = f"linear n=128, {name}, against memory access alone"
        yield Row(measure, "us/row", us * ours.seconds, us * bare.seconds, "<= 2", note)


def touch_weights(starts: Any, numbers: Any, U: Any, G: Any) -> None:
    """Read and write the weights and the accumulators of the active features of every row."""
    one = np.float32(1)
    for t in range(starts.shape[0] - 1):
        for e in range(starts[t], starts[t + 1]):
            u, g = U[numbers[e]], G[numbers[e]]
            for i in range(u.shape[0]):
                u[i] += one
                g[i] += one


def with_constant(X: Any) -> Any:
    """Return the features that a learner sees, the constant first, as a CSR matrix."""
    from scipy.sparse import csr_matrix, hstack

    return hstack([csr_matrix(np.ones((X.shape[0], 1))), csr_matrix(X)], format="csr")


def wide(quick: bool) -> Stream:
    """Generate rows of 32 features, out of too many for their weights to fit in a cache."""
    from scipy.sparse import csr_matrix

    rows, features = (1000, 10_000) if quick else (20_000, 200_000)
    rng = np.random.default_rng(0)
    indices = rng.integers(0, features, rows * 32)
    parts = np.ones(rows * 32, np.float32), indices, np.arange(rows + 1) * 32
    return Stream(csr_matrix(parts, (rows, features)), rng.choice([-1.0, 1.0], rows))


def start(setting: Setting) -> Iterator[Row]:
    """Measure the first block of rows in a new process."""
    for name in setting.learners:
        times = []
        for _ in range(min(setting.repeats, 3)):
            with TemporaryDirectory() as cache:
                times.append([first_call(name, cache, compiles) for compiles in (True, False)])
        cold, warm = np.min(times, axis=0)
        musts = ("<= 3", "<= 0.6") if name == "linear" else (None, None)
        note = "includes the import and compiling; Numba's cache is empty"
        yield Row(
            f"{name} n=32, first call, empty compilation cache", "s", cold, None, musts[0], note
        )
        note = "includes the import; compiled code comes from Numba's cache"
        yield Row(
            f"{name} n=32, first call, compiled code on disk", "s", warm, None, musts[1], note
        )


def first_call(name: str, cache: str, compiles: bool) -> float:
    """Return the seconds from the first line of a new process to its first predictions."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CALL.format(kind=LEARNERS[name][0])],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or ("compiling" in done.stderr) != compiles:
        raise RuntimeError(done.stderr or "nothing was compiled, although the cache was empty")
    return float(done.stdout)
