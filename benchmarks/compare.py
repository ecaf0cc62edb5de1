"""`python -m benchmarks.compare`: how often comparisons are wrong, and how soon they are right."""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import common
from spanboost import Comparison

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
    """Return losses whose scale is a random walk, reverting to its mean over some 1,000 rows."""
    steps = rng.normal(0, 0.05, rows)
    scale, log_scale = np.empty(rows), 0.0
    for t in range(rows):
        log_scale = 0.999 * log_scale + steps[t]
        scale[t] = log_scale
    first, second = same_noise(rng, rows, gain)
    return np.exp(scale) * first, np.exp(scale) * second


def adversarial(rng: Draw, rows: int, gain: float) -> Losses:
    """Return losses whose scale falls to almost 0 once the challenger looks better, and rises else.

    The usual interval for one look misses 0 at the end of nearly all such streams.
    """
    first, second = same_noise(rng, rows, gain)
    lead, squares, scale = 0.0, 0.0, 1.0
    for t in range(rows):
        ahead = lead > 2 * np.sqrt(squares)
        scale = 1.0 if squares == 0 else min(1.05 * scale, 1e9)
        part = scale * 1e-9 if ahead else scale
        first[t], second[t] = part * first[t], part * second[t]
        difference = first[t] - second[t]
        lead, squares = lead + difference, squares + difference**2
    return first, second


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
    """Simulate, and print both tables."""
    parser: argparse.ArgumentParser = common.parser("compare", ABOUT, ENDS)
    parser.add_argument(
        "--streams",
        type=common.at_least_one,
        default=1000,
        help="Streams of a kind (default: 1,000)",
    )
    parser.add_argument(
        "--rows",
        type=common.at_least_one,
        default=100_000,
        help="Rows of a stream (default: 100,000)",
    )
    common.add_choice(parser, "--only", KINDS, "Kinds of streams")
    args = parser.parse_args()
    streams, rows = (20, 2000) if args.quick else (args.streams, args.rows)
    table, content = [], []
    for kind in args.only:
        common.say(f"{kind}: {streams:,} streams of {rows:,} rows, twice")
        false, outside = run(kind, 0.0, streams, rows)
        found, _ = run(kind, GAIN, streams, rows)
        wrong = sum(row is not None for row in false)
        right = sorted(row for row in found if row is not None)
        share = len(right) / streams
        times = [
            right[k] if (k := int(q * (streams - 1))) < len(right) else None for q in (0.5, 0.9)
        ]
        content.append(
            {
                "kind": kind,
                "promoted_if_equal": wrong / streams,
                "outside": outside / streams,
                "found": share,
                "rows": times,
            }
        )
        table.append(
            (
                kind,
                f"{wrong / streams:.1%}",
                f"{outside / streams:.1%}",
                f"{share:.0%}",
                *("-" if row is None else f"{row:,}" for row in times),
            )
        )
    common.show(
        [
            "losses",
            "false promotions",
            "0 outside",
            "2 % better: found",
            "median rows",
            "90 % by row",
        ],
        table,
    )
    common.save(args.json, content, streams=streams, stream_rows=rows)


if __name__ == "__main__":
    main()
