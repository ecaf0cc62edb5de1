"""Batch boosting over an explicit dictionary of functions ("Improvements for batch boosting").

A dictionary is a matrix G: one row for each function, one column for each point, entries in
[-1, 1]. The functional to minimise over its span is l(f) = mean over points of loss(label, f).
Under the norm ||f|| = sqrt(mean of f^2) every row has norm at most 1, and l is as smooth as the
scalar loss. The base learner A(f, eta) = argmin over g in F of l(f + eta g) tries every row, so it
is exact.

Zhang and Yu's algorithm and the paper's differ in one number per stage:

    f_i = (1 - sigma_i eta_i) f_{i-1} + eta_i A(f_{i-1}, eta_i).

Zhang and Yu have sigma_i = 0 throughout. The paper shrinks, sigma_i = 1, when that does not raise
the loss to first order: when grad l(f_{i-1}) . f_{i-1} >= 0.

The bounds on the errors Delta_i = l(f_i) - l(f) are in `spanboost.theory.bounds`. They need a
symmetric dictionary (see `symmetric`) and steps of at most 1. The derivations also need a
comparator f with Delta_0 >= 0, because (1 - x) Delta <= exp(-x) Delta holds only then. For a
comparator that does worse than the zero function, the bounds follow from those for the zero
function.

``python -m spanboost.theory.batch --plot FILE`` compares the two on one problem.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import jit, kernel
from spanboost.errors import install_hint
from spanboost.losses import Loss, Squared
from spanboost.theory import bounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SQUARED = Squared()


class Shrinkage(NamedTuple):
    """The shrinkage sigma before a step, by the sign of the slope grad l(f) . f."""

    falling: float
    rising: float


ZHANG_YU = Shrinkage(falling=0.0, rising=0.0)
PAPER = Shrinkage(falling=0.0, rising=1.0)


class Run(NamedTuple):
    """The results of a run; index 0 of `values` and `s` is the start f_0 = 0, s_0 = 1."""

    values: Array  # l(f_i) for i = 0..N
    s: Array  # s_i for i = 0..N
    sigmas: Array  # sigma_i for i = 1..N
    chosen: Array  # the row that A picked, for i = 1..N
    coefficients: Array  # f_N = coefficients @ G


def symmetric(G: ArrayLike) -> Array:
    """Return a dictionary's functions, their negations, and the zero function.

    >>> symmetric([[1.0, -0.5]])
    array([[ 1. , -0.5],
           [-1. ,  0.5],
           [ 0. ,  0. ]])
    """
    rows = np.asarray(G, dtype=float)
    return np.vstack([rows, 0 - rows, np.zeros_like(rows[:1])])  # 0 - rows avoids -0.0


@kernel
def functional(loss: Loss, labels: Array, f: Array) -> float:
    """Return l(f), the mean loss over the points."""
    total = 0.0
    for j in range(len(f)):
        total += loss.value(labels[j], f[j])
    return total / len(f)


@kernel
def slope(loss: Loss, labels: Array, f: Array) -> float:
    """Return grad l(f) . f, the rate at which l rises as f is scaled up."""
    total = 0.0
    for j in range(len(f)):
        total += loss.gradient(labels[j], f[j]) * f[j]
    return total / len(f)


@kernel
def base_learner(loss: Loss, labels: Array, G: Array, f: Array, eta: float) -> int:
    """Return A(f, eta), the index of the first row g of G with the least l(f + eta g)."""
    best, least = 0, np.inf
    for k in range(G.shape[0]):
        value = functional(loss, labels, f + eta * G[k])
        if value < least:
            best, least = k, value
    return best


@jit(counted=True)  # type: ignore[untyped-decorator]
def _stages(
    loss: Loss, labels: Array, G: Array, steps: Array, shrinkage: Shrinkage
) -> tuple[Array, Array, Array, Array]:
    N = len(steps)
    values, sigmas, chosen = np.empty(N + 1), np.empty(N), np.empty(N, np.int64)
    coefficients = np.zeros(len(G))
    f = np.zeros(len(labels))
    values[0] = functional(loss, labels, f)
    for i in range(N):
        eta = steps[i]
        k = base_learner(loss, labels, G, f, eta)
        sigma = shrinkage.rising if slope(loss, labels, f) >= 0 else shrinkage.falling
        f = (1 - sigma * eta) * f + eta * G[k]
        coefficients *= 1 - sigma * eta
        coefficients[k] += eta
        values[i + 1], sigmas[i], chosen[i] = functional(loss, labels, f), sigma, k
    return values, sigmas, chosen, coefficients


def boost(
    G: ArrayLike,
    labels: ArrayLike,
    steps: ArrayLike,
    shrinkage: Shrinkage = PAPER,
    loss: Loss = SQUARED,
) -> Run:
    """Run N = len(steps) stages of greedy boosting over the rows of G, from f_0 = 0.

    With one function to choose, the steps add up until the label is reached; then the zero function
    is the best choice. The last stage still shrinks, because the slope is exactly 0 there:

    >>> run = boost(symmetric([[1.0]]), labels=[0.5], steps=[0.25, 0.25, 0.25])
    >>> run.values
    array([0.25    , 0.0625  , 0.      , 0.015625])
    >>> run.sigmas
    array([1., 0., 1.])
    """
    G, labels, steps = (np.ascontiguousarray(a, dtype=float) for a in (G, labels, steps))
    values, sigmas, chosen, coefficients = _stages(loss, labels, G, steps, shrinkage)
    s = np.concatenate([[1.0], 1 + np.cumsum(steps)])
    return Run(values, s, sigmas, chosen, coefficients)


class Curve(NamedTuple):
    """The errors Delta_1..Delta_N of one algorithm, and their bounds."""

    errors: Array
    bound: bounds.BatchBound


class Comparison(NamedTuple):
    """The results of both algorithms on one problem, for the stages i = 1..N."""

    Delta_0: float
    s: Array
    zhang_yu: Curve
    paper: Curve


def thresholds(K: int) -> Array:
    """Return K functions on 2K points of [0, 1]: the sign of x - k/K for k = 0..K-1.

    They are linearly independent, so a function in their span is sum_k w_k g_k in one way only,
    and its norm ||f||_1 is max{1, sum_k |w_k|} exactly.
    """
    x = (np.arange(2 * K) + 0.5) / (2 * K)
    return np.where(x > np.arange(K)[:, None] / K, 1.0, -1.0)


def harmonic_steps(f_norm: float, N: int = 100_000, delay: int = 500) -> Array:
    """Return eta_i = 1.5 ||f||_1 / (i + delay) for i = 1..N.

    Then exp(-s_i / ||f||_1) falls like i^(-3/2), faster than the terms that curvature adds, and the
    paper's bound as a whole falls like log(i)^2 / i. The delay keeps the first steps short.
    """
    return 1.5 * f_norm / (np.arange(1, N + 1) + delay)


def experiment(*, K: int = 20, f_norm: float = 1.5, steps: ArrayLike | None = None) -> Comparison:
    """Run both algorithms, under squared loss, towards a wave in the span of K thresholds.

    The wave has the norm ||f||_1 = f_norm >= 1 and is the label of every point, so its own loss is
    0 and an error is a loss. The errors of the two algorithms differ much less than their bounds,
    which are for the worst dictionary and the worst target.
    """
    steps = harmonic_steps(f_norm) if steps is None else np.asarray(steps, dtype=float)
    G = thresholds(K)
    weights = np.cos(2 * np.pi * np.arange(K) / K)
    target = weights * (f_norm / np.abs(weights).sum()) @ G
    Delta_0 = functional(SQUARED, target, np.zeros_like(target))
    beta = SQUARED.beta(steps.sum())  # |f_i| is at most the sum of the steps

    curves = []
    for rule, bound in ((ZHANG_YU, bounds.zhang_yu), (PAPER, bounds.batch_boosting)):
        run = boost(symmetric(G), target, steps, rule)
        bounds_on_errors = bound(Delta_0=Delta_0, f_norm=f_norm, beta=beta, steps=steps)
        curves.append(Curve(run.values[1:], bounds_on_errors))
    return Comparison(Delta_0, 1 + np.cumsum(steps), *curves)


def table(result: Comparison) -> str:
    """Return the comparison at i = 1, 10, 100, .. and N as lines of text."""
    N = len(result.s)
    stages = [*(10**p for p in range(len(str(N))) if 10**p < N), N]
    lines = [
        f"{'':>7} {'':>7}   {'Zhang-Yu':^19}   {'with sigma':^19}",
        f"{'i':>7} {'s_i':>7}   {'error':>9} {'bound':>9}   {'error':>9} {'bound':>9}",
    ]
    for i in stages:
        pairs = (
            f"{curve.errors[i - 1]:9.2e} {curve.bound.total[i - 1]:9.2e}"
            for curve in (result.zhang_yu, result.paper)
        )
        lines.append(f"{i:>7} {result.s[i - 1]:>7.3f}   {'   '.join(pairs)}")
    return "\n".join(lines)


def plot(result: Comparison, path: str | Path) -> "Axes":
    """Plot errors and bounds against s_N; the suffix of the file name chooses the format."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        message = f"plotting needs matplotlib: {install_hint('plot')}"
        raise ImportError(message) from error

    # a few hundred points, evenly spaced along the axis, draw the same lines as all N
    ticks = np.linspace(result.s[0], result.s[-1], 400)
    at = np.unique(np.searchsorted(result.s, ticks).clip(max=len(result.s) - 1))

    figure = Figure(figsize=(8, 5.2), layout="constrained")
    axes = figure.add_subplot()
    for curve, name, color, wide in (  # the wide line stays visible under the other one
        (result.zhang_yu, "Zhang-Yu", "#e08a3c", 3.2),
        (result.paper, "with shrinkage $\\sigma$", "#1f4e8c", 1.4),
    ):
        for style, width, what, y in (
            ("-", wide, "error", curve.errors),
            ("--", 1.8, "bound", curve.bound.total),
            (":", 1.8, "first term of the bound", curve.bound.initial),
        ):
            label = f"{name}: {what}"
            axes.plot(result.s[at], y[at], style, color=color, linewidth=width, label=label)
    axes.set_yscale("log")
    axes.set_xlim(1, result.s[-1])
    axes.set_xlabel("$s_N = 1 + \\eta_1 + \\cdots + \\eta_N$")
    axes.set_ylabel("$\\Delta_N = \\ell(f_N) - \\ell(f)$")
    axes.set_title("Batch boosting: errors and their bounds")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    # the same numbers give the same file, byte for byte
    metadata = {"Date": None} if Path(path).suffix == ".svg" else None
    with rc_context({"svg.hashsalt": "spanboost"}):
        figure.savefig(path, metadata=metadata, dpi=150)
    return axes


def main(argv: Sequence[str] | None = None) -> None:
    """Print the comparison, and plot it if --plot is given."""
    parser = argparse.ArgumentParser(
        prog="python -m spanboost.theory.batch",
        description="Compare the errors of two batch boosting algorithms with their bounds.",
    )
    parser.add_argument("--plot", metavar="FILE", help="Plot the comparison (.svg, .png or .pdf)")
    arguments = parser.parse_args(argv)
    result = experiment()
    print(table(result))
    if arguments.plot:
        try:
            plot(result, arguments.plot)
        except ImportError as error:
            parser.error(str(error))


if __name__ == "__main__":
    main()
