"""The lower bound (Theorem 3): with N calls a round, regret of order beta D^2 T / N is unavoidable.

This is the stream of the proof, scaled by D. In every round, the label y* is D p_1 or D p_2, each
with probability 1/2, where p_1, p_2 = 1/2 +- eps and eps = 1 / (10 sqrt(N)). Each of M functions is
D with probability y* / D and 0 otherwise, independently of everything else. The loss is
(beta/2)(y - y*)^2. The mean f-bar of all functions lies in their convex hull and is close to the
label: its expected loss is beta D^2 p_1 p_2 / (2M). A booster that sees the values of only N
functions often confuses the two labels, so its loss exceeds that of f-bar by beta D^2 T / N times a
constant, at least c = 1/4000. The number of values matters, not the number of calls: Hedge may
predict with the mixture of all M functions, and one call to it then combines M values.

All regrets here are against f-bar and in the units of the theorem: regret x N / (beta D^2 T).

``python -m spanboost.theory.lower_bound`` measures them for Algorithm 2 and for the best possible
combination of N values.
"""

import argparse
import json
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel
from spanboost.learners.finite import FiniteClass
from spanboost.models.booster import HullBoost

C = 1 / 4000  # the constant c of the proof

_CELLS = 1 << 17  # values in a block of rows: 1 MB, so that a block stays in the cache


@kernel
class HalfSquared(NamedTuple):
    """l(y*, y) = (beta/2)(y - y*)^2, which is beta-smooth.

    It is a separate loss, and not the squared loss with weights, because Algorithm 2 divides the
    gradients by L_D, and L_D grows with beta.
    """

    smoothness: float

    def value(self, label: float, y: float) -> float:
        return self.smoothness / 2 * (label - y) * (label - y)

    def gradient(self, label: float, y: float) -> float:
        return self.smoothness * (y - label)

    def L(self, b: float) -> float:
        return self.smoothness * (b + 1)

    def beta(self, b: float) -> float:
        return self.smoothness

    def eps(self, b: float) -> float:
        return max(self.smoothness * (1 - b), 0.0)


class Block(NamedTuple):
    """Some rounds of the stream."""

    values: Array  # [rows, M] f_j(x_t), the rows for FiniteClass()
    labels: Array  # [rows] y*_t


@dataclass(frozen=True)
class Construction:
    """The setting of the proof, for boosters that make N calls a round."""

    N: int
    M: int  # functions
    T: int  # rounds
    beta: float = 1.0
    D: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not (1 <= self.N <= self.M and self.T >= 1 and self.beta > 0 and self.D > 0):
            raise ValueError(f"N, T, beta and D must be positive, and M at least N (got {self})")

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield the stream in blocks of `rows` rounds; the rounds do not depend on `rows`.

        One block is in memory at a time.
        """
        rows = rows or max(1, _CELLS // self.M)
        seeds = np.random.SeedSequence((self.seed, self.N)).spawn(2)
        for_labels, for_values = map(np.random.SFC64, seeds)
        for start in range(0, self.T, rows):
            n = min(rows, self.T - start)
            coins = for_labels.random_raw(n) & 1
            p = np.where(coins == 1, 0.5 + eps(self.N), 0.5 - eps(self.N))
            yield Block(self.D * _bernoulli(p, self.M, for_values), self.D * p)

    def loss(self, labels: Array, y: Array) -> Array:
        """Return the loss in every round."""
        losses: Array = self.beta / 2 * (y - labels) ** 2
        return losses

    def in_units(self, regret: float) -> float:
        """Convert a regret summed over the stream to units of beta D^2 T / N."""
        return regret * self.N / (self.beta * self.D**2 * self.T)


def eps(N: int) -> float:
    """Return half the distance between the two labels, for D = 1.

    >>> eps(4)
    0.05
    """
    return 1 / (10 * math.sqrt(N))


def _bernoulli(p: Array, M: int, bits: np.random.SFC64) -> Array:
    """Return a row of M random bits for every p; each row uses whole words of the generator."""
    words = bits.random_raw(len(p) * ((M + 1) // 2)).reshape(len(p), -1)
    below: Array = np.round(p * 2**32).astype(np.uint32)  # p to within 2^-33
    ones: Array = words.view(np.uint32)[:, :M] < below[:, None]
    return ones


# The best possible combination of N values


def posterior_mean(ones: Any, N: int) -> Array:
    """Return E[y* | `ones` of the values of N distinct functions are 1], for D = 1.

    The odds of p_1 against p_2 are (p_1 / p_2)^(ones - zeros), since p_2 = 1 - p_1.
    """
    p_1, p_2 = 0.5 + eps(N), 0.5 - eps(N)
    log_odds = (2 * np.asarray(ones) - N) * math.log(p_1 / p_2)
    mean: Array = 0.5 + eps(N) * np.tanh(log_odds / 2)
    return mean


def bayes_loss(N: int) -> float:
    """Return the expected loss of the posterior mean: half the posterior variance, beta = D = 1.

    No booster does better with N calls a round: it sees the values of at most N functions, and past
    rounds say nothing about the present label.

    >>> round(64 * bayes_loss(64), 5)
    0.00481
    """
    p_1, p_2 = 0.5 + eps(N), 0.5 - eps(N)
    total = 0.0
    for ones in range(N + 1):
        probability = (_binomial(ones, N, p_1) + _binomial(ones, N, p_2)) / 2
        variance = eps(N) ** 2 - (float(posterior_mean(ones, N)) - 0.5) ** 2
        total += probability * variance / 2
    return total


def comparator_loss(N: int, M: int) -> float:
    """Return the expected loss of f-bar, y*(1 - y*) / (2M), for beta = D = 1 and either label."""
    p_1, p_2 = 0.5 + eps(N), 0.5 - eps(N)
    return p_1 * p_2 / (2 * M)


def bayes_regret(N: int, M: int) -> float:
    """Return the least possible expected regret, that of the posterior mean, in our units."""
    return N * (bayes_loss(N) - comparator_loss(N, M))


def _binomial(k: int, n: int, p: float) -> float:
    return math.exp(math.log(math.comb(n, k)) + k * math.log(p) + (n - k) * math.log1p(-p))


# The experiment


class Result(NamedTuple):
    """The results of one run. Regrets are in units of beta D^2 T / N."""

    N: int
    M: int
    T: int
    randomised: bool  # a call returns the value of one function, else the mixture of all M
    algorithm_2: float
    bayes: float  # measured on the same stream
    bayes_exact: float  # expected
    seconds: float  # processor time


def booster(stream: Construction, randomised: bool = True) -> HullBoost:
    """Return Algorithm 2 over Hedge for a stream.

    Functions and labels of size D make a problem of size 1 (the remark after the theorem): the
    copies predict in units of D, `scale` takes them to [0, 1], and `label_range` the labels.
    """
    return HullBoost(
        FiniteClass(randomised=randomised),
        stream.N,
        loss=HalfSquared(stream.beta * stream.D**2),
        feedback="linear",
        scale=1 / stream.D,
        D=stream.D,
        label_range=(-stream.D, stream.D),
        seed=stream.seed,
    )


def run(
    stream: Construction,
    randomised: bool = True,
    progress: Callable[[int], None] = lambda rows: None,
) -> Result:
    """Run Algorithm 2 and the posterior mean on a stream; call `progress` with rows done."""
    start = time.process_time()
    model = booster(stream, randomised)
    algorithm_2 = bayes = 0.0
    for values, labels in stream.blocks():
        f_bar = stream.loss(labels, values.mean(axis=1)).sum()
        y = model.learn_many(values, labels)
        algorithm_2 += stream.loss(labels, y).sum() - f_bar
        ones = np.count_nonzero(values[:, : stream.N], axis=1)
        y = stream.D * posterior_mean(ones, stream.N)
        bayes += stream.loss(labels, y).sum() - f_bar
        progress(len(labels))
    return Result(
        stream.N,
        stream.M,
        stream.T,
        randomised=randomised,
        algorithm_2=float(stream.in_units(algorithm_2)),
        bayes=float(stream.in_units(bayes)),
        bayes_exact=bayes_regret(stream.N, stream.M),
        seconds=time.process_time() - start,
    )


class Job(NamedTuple):
    """One run to do."""

    stream: Construction
    randomised: bool = True

    @property
    def work(self) -> int:
        """Rough cost of a round: M N weights to update and M values to draw."""
        return self.stream.M * (self.stream.N + 8)


def jobs(seed: int = 0, quick: bool = False) -> list[Job]:
    """Return the runs of the experiment, or small ones of the same kind."""
    if quick:
        sizes = [(N, 100 * N, 20_000) for N in (1, 4)]
        mixture = (4, 400, 5_000)
    else:
        sizes = [(N, 4000 * N, 12 * 4000 * N) for N in (1, 2, 4)]  # the sizes of the proof
        sizes += [(N, 100 * N, 200_000) for N in (8, 16, 32, 64)]
        mixture = (8, 800, 100_000)
    return [
        *(Job(Construction(*size, seed=seed)) for size in sizes),
        Job(Construction(*mixture, seed=seed), randomised=False),
    ]


def experiment(plan: Sequence[Job], processes: int = 1) -> list[Result]:
    """Do all runs in the given number of processes; show progress if stderr is a terminal."""
    total = sum(job.work * job.stream.T for job in plan)
    context = multiprocessing.get_context("spawn")
    done = context.Value("d", 0.0)
    with ProcessPoolExecutor(processes, context, _start, (done,)) as pool:
        # the longest run first, so that no process is left with it at the end
        order = sorted(plan, key=lambda job: -job.work * job.stream.T)
        futures = {job: pool.submit(_work, job) for job in order}
        waiting = set(futures.values())
        while waiting:
            waiting = wait(waiting, timeout=0.5).not_done
            _show(done.value / total)
    return [futures[job].result() for job in plan]


_done: Any = None  # in a worker process: the work done by all workers so far


def _start(done: Any) -> None:
    global _done  # noqa: PLW0603
    _done = done
    run(Construction(1, 2, 1))  # compile now, not during a timed run


def _work(job: Job) -> Result:
    def progress(rows: int) -> None:
        with _done.get_lock():
            _done.value += rows * job.work

    return run(*job, progress)


def _show(fraction: float) -> None:
    if sys.stderr.isatty():
        print(f"\r{fraction:4.0%}", end="" if fraction < 1 else "\n", file=sys.stderr, flush=True)


def table(results: Sequence[Result]) -> str:
    """Return the results as a Markdown table."""
    heads = ("N", "M", "T", "a call returns", "Algorithm 2", "Bayes", "exact Bayes", "c", "s")
    widths = (2, 5, 6, 16, 11, 8, 11, 8, 5)

    def line(*cells: str) -> str:
        return f"| {' | '.join(map(str.rjust, cells, widths))} |"

    lines = [line(*heads), line(*("-" * (width - 1) + ":" for width in widths))]
    for r in results:
        returns = "one value" if r.randomised else f"a mixture of {r.M}"
        regrets = (r.algorithm_2, r.bayes, r.bayes_exact, C)
        lines.append(
            line(
                *map(str, (r.N, r.M, r.T)),
                returns,
                *(f"{regret:#.3g}" for regret in regrets),
                f"{r.seconds:.1f}",
            )
        )
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table, and write it as JSON if --json is given."""
    parser = argparse.ArgumentParser(
        prog="python -m spanboost.theory.lower_bound",
        description="Measure regret x N / (beta D^2 T) on the stream of the lower bound.",
    )
    parser.add_argument(
        "--json", metavar="FILE", type=Path, help="Write the results as JSON to FILE"
    )
    parser.add_argument(
        "--quick", action="store_true", help="Do small runs only; takes a few seconds"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="Random seed (default: 0)")
    arguments = parser.parse_args(argv)
    if arguments.seed < 0:
        parser.error(f"--seed must be at least 0 (got {arguments.seed})")
    if arguments.json:
        arguments.json.touch()  # fail now, not after the runs, if it cannot be written
    start = time.perf_counter()
    plan = jobs(arguments.seed, arguments.quick)
    results = experiment(plan, processes=min(len(plan), os.cpu_count() or 1))
    print(table(results))
    print(f"\n{time.perf_counter() - start:.0f} s in all, compilation included.")
    if arguments.json:
        report = {
            "c": C,
            "seed": arguments.seed,
            "results": [result._asdict() for result in results],
        }
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    # Run under the module's own name and not as __main__: worker processes import its functions by
    # that name, and compiled code is cached on disk only for classes of the package.
    from spanboost.theory import lower_bound  # noqa: PLW0406

    lower_bound.main()
