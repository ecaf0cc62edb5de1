"""`python -m benchmarks.compare`: how often comparisons are wrong, and how soon they are right."""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import common
from spanboost import Comparison
from spanboost.compiling.kernels import jit

ABOUT = """\
Simulate the losses of a champion and a challenger on many streams, and compare them with a look
after every row. First the two are equal: count the streams in which the challenger is ever called
better (a false promotion), and in which any interval misses 0. Then the challenger's expected loss
is 2 % lower: print the rows until it is called better, in the median and the slowest tenth of the
streams, and the share of the streams in which this happens at all.
"""
ENDS = "example:\n  python -m benchmarks.compare --streams 1000\n"
GAIN = 0.02  # by which the better challenger's loss is lower

Draw = np.random.Generator
Losses = tuple[Any, Any]  # of the champion and the challenger, [rows] each


def independent(rng: Draw, rows: int, gain: float) -> Losses:
    """Return squared normal errors, independent of each other."""
    first, second = rng.normal(0, 1, (2, rows)) ** 2
    return first, (1 - gain) * second


def same_noise(rng: Draw, rows: int, gain: float) -> Losses:
    """Return squared errors that share the noise of the labels, as those of two models do."""
    noise = rng.normal(0, 1, rows)
    errors = rng.normal(0, 1, (2, rows)) * np.sqrt([[0.1], [0.1 - 1.1 * gain]])
    first, second = (noise + errors) ** 2
    return first, second


def skewed(rng: Draw, rows: int, gain: float) -> Losses:
    """Return exponential losses, and losses with the same mean that are mostly lower."""
    return rng.exponential(1, rows), (1 - gain) * 0.6 * (1 + rng.pareto(2.5, rows))


def heavy(rng: Draw, rows: int, gain: float) -> Losses:
    """Return losses with a mean but no variance; the difference of two models is smaller."""
    common_part = 1 + rng.pareto(1.5, rows)
    first, second = common_part * rng.uniform(0.5, 1.5, (2, rows))
    return first, (1 - gain) * second


def drifting(rng: Draw, rows: int, gain: float) -> Losses:
    """Return losses whose scale rises a thousandfold and falls again."""
    scale = 1000 ** np.sin(np.linspace(0, np.pi, rows))
    first, second = same_noise(rng, rows, gain)
    return scale * first, scale * second


def clustered(rng: Draw, rows: int, gain: float) -> Losses:
    """Return losses whose scale is a random walk that returns to 1 within some 1,000 rows."""
    scale = rng.normal(0, 0.05, rows)
    _walk(scale)
    first, second = same_noise(rng, rows, gain)
    return np.exp(scale) * first, np.exp(scale) * second


@jit
def _walk(steps: Any) -> None:
    for t in range(1, len(steps)):
        steps[t] += 0.999 * steps[t - 1]


def adversarial(rng: Draw, rows: int, gain: float) -> Losses:
    """Return losses whose scale falls to almost 0 once the challenger looks better, and rises else.

    The usual interval for one look misses 0 at the end of about half of such streams.
    """
    first, second = same_noise(rng, rows, gain)
    _flatter(first, second)
    return first, second


@jit
def _flatter(first: Any, second: Any) -> None:
    lead, squares, scale = 0.0, 0.0, 1.0
    for t in range(len(first)):
        part = 1e-9 * scale if lead > 2 * np.sqrt(squares) else scale
        first[t] *= part
        second[t] *= part
        lead += first[t] - second[t]
        squares += (first[t] - second[t]) ** 2
        scale = min(1.05 * scale, 1e9)


KINDS: dict[str, Callable[[Draw, int, float], Losses]] = {
    "independent": independent,
    "same noise": same_noise,
    "skewed": skewed,
    "heavy tails": heavy,
    "drifting scale": drifting,
    "clustered scale": clustered,
    "adversarial scale": adversarial,
}


def watch(first: Any, second: Any, level: float = 0.05) -> tuple[int | None, bool]:
    """Return the row at which the second model is first called better, and if 0 is ever outside."""
    after_each_row = Comparison(level).add(first, second)
    promoted = np.flatnonzero(after_each_row[:, 1] > 0)
    outside = len(promoted) > 0 or bool((after_each_row[:, 2] < 0).any())
    return int(promoted[0]) + 1 if len(promoted) else None, outside


def run(kind: str, gain: float, streams: int, rows: int) -> tuple[list[int | None], int]:
    """Return the row of each promotion, and the number of streams in which 0 is ever outside."""
    found = [
        watch(*KINDS[kind](np.random.default_rng([seed, 17]), rows, gain))
        for seed in range(streams)
    ]
    return [row for row, _ in found], sum(outside for _, outside in found)


def main() -> None:
    """Simulate, and print the table."""
    parser: argparse.ArgumentParser = common.parser("compare", ABOUT, ENDS)
    for option, default, what in (
        (
            "--streams",
            1000,
            "Streams of each kind with equal models; a fifth as many with better ones",
        ),
        ("--rows", 100_000, "Rows of a stream"),
    ):
        parser.add_argument(
            option,
            type=common.at_least_one,
            default=default,
            metavar="N",
            help=f"{what} (default: {default:,})",
        )
    common.add_choice(parser, "--only", KINDS, "Kinds of losses")
    args = parser.parse_args()
    streams, rows = (20, 2000) if args.quick else (args.streams, args.rows)
    better = max(1, streams // 5)
    table, content = [], []
    for kind in args.only:
        common.say(f"{kind}: {streams:,} + {better:,} streams of {rows:,} rows")
        false, outside = run(kind, 0.0, streams, rows)
        found, _ = run(kind, GAIN, better, rows)
        times = sorted(row or rows + 1 for row in found)
        half, most = times[better // 2], times[better * 9 // 10]
        result = {
            "kind": kind,
            "false_promotions": sum(row is not None for row in false) / streams,
            "outside": outside / streams,
            "found": sum(row is not None for row in found) / better,
            "median_rows": half if half <= rows else None,
            "rows_of_nine_in_ten": most if most <= rows else None,
        }
        content.append(result)
        shares = [f"{result[key]:.1%}" for key in ("false_promotions", "outside", "found")]
        needed = [f"{row:,}" if row <= rows else "-" for row in (half, most)]
        table.append((kind, *shares, *needed))
    common.show(
        ["losses", "false promotions", "0 ever outside", "found", "half by row", "90% by row"],
        table,
    )
    common.save(args.json, content, streams=streams, stream_rows=rows)


if __name__ == "__main__":
    main()
