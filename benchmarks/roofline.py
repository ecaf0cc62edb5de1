"""`python -m benchmarks.roofline`: what limits 128 linear copies, one ingredient at a time."""

from typing import Any

import numpy as np

from benchmarks import common
from benchmarks.limits import touch_weights, with_constant
from benchmarks.measure import Setting
from spanboost import SpanBoost

ABOUT = """\
Compare 128 copies of linear SGD with bare loops over the same rows. The first loop reads and writes
the weights and the sums of squared gradients of the active features. Each of the next ones adds an
ingredient of Algorithm 1 with adaptive steps. Ingredients that are left out: the scales of
features, the curvature of the loss, projections, and everything outside the loop.
"""
ENDS = """\
examples:
  python -m benchmarks.roofline --data DIR
"""
N = 128
LOOPS = (
    "memory access alone",
    "with predictions and gradients",
    "with a square root and a division for each weight",
    "with the chain of partial sums and sigma",
)
Arrays = tuple[Any, ...]


def predict_and_step(
    starts: Any, numbers: Any, x: Any, U: Any, G: Any, labels: Any, rooted: bool, chained: bool
) -> None:
    """Predict every row with all copies, and take a gradient step in each copy."""
    one, eta, rate = np.float32(1), np.float32(0.04), np.float32(0.1)
    copies = U.shape[1]
    scratch = np.zeros((3, copies), np.float32)
    h, slope, sigma = scratch[0], scratch[1], scratch[2]
    for t in range(starts.shape[0] - 1):
        for i in range(copies):
            h[i] = np.float32(0)
        for e in range(starts[t], starts[t + 1]):
            u, value = U[numbers[e]], x[e]
            for i in range(copies):
                h[i] += u[i] * value
        y = np.float32(0)
        for i in range(copies):
            slope[i] = h[i] - labels[t]
            if chained:
                slope[i] = y - labels[t]
                before = y
                y = (one - sigma[i] * eta) * y + eta * h[i]
                sigma[i] = max(min(sigma[i] + rate * slope[i] * before, one), np.float32(0))
        for e in range(starts[t], starts[t + 1]):
            u, g, value = U[numbers[e]], G[numbers[e]], x[e]
            if rooted:
                for i in range(copies):
                    g[i] += slope[i] * slope[i] * (value * value)
                    u[i] -= rate * slope[i] * value / np.sqrt(g[i])
            else:
                for i in range(copies):
                    g[i] += slope[i] * slope[i] * (value * value)
                    u[i] -= rate * slope[i] * value


def main() -> None:
    """Measure and print the table."""
    import numba

    parser = common.parser("roofline", ABOUT, ENDS)
    common.add_data(parser)
    parser.add_argument("--repeats", type=common.at_least_one, default=5, metavar="N")
    args = parser.parse_args()
    setting = Setting(args.data, (), args.repeats, args.quick)
    touch = numba.njit(touch_weights)
    step = numba.njit(error_model="numpy")(predict_and_step)
    lines, rows = [], []
    for name in ("covtype", "a9a"):
        stream = setting.stream(name)
        loops = bare_loops(touch, step, with_constant(stream.X), stream.y.astype(np.float32))
        model = SpanBoost(common.learner("linear"), n=N)
        jobs = [*loops, lambda m=model, s=stream: m.learn_many(s.X, s.y)]
        for title, timed in zip(
            [*LOOPS, "spanboost"], common.race(args.repeats, *jobs), strict=True
        ):
            us = 1e6 * timed.seconds / len(stream.y)
            rows.append({"data": name, "loop": title, "us": us})
            lines.append((name, title, f"{us:.3f}"))
    common.show(["data", f"loop over {N} copies", "us/row"], lines)
    common.save(args.json, rows, repeats=args.repeats)


def bare_loops(touch: Any, step: Any, feature: Any, labels: Any) -> list[Any]:
    """Return the loops over the rows of a CSR matrix, with weights of their own."""
    starts, numbers = feature.indptr.astype(np.int64), feature.indices.astype(np.uint64)
    x = feature.data.astype(np.float32)
    U, G = np.zeros((2, feature.shape[1], N), np.float32)
    G += np.float32(1)

    def stepping(rooted: bool, chained: bool) -> Any:
        return lambda: step(starts, numbers, x, U, G, labels, rooted, chained)

    jobs = [lambda: touch(starts, numbers, U, G)]
    return [*jobs, stepping(False, False), stepping(True, False), stepping(True, True)]


if __name__ == "__main__":
    main()
