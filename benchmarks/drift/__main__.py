"""`python -m benchmarks.drift`: streams whose concept changes, and short streams."""

from importlib import metadata
from typing import Any, NamedTuple

import numpy as np

from benchmarks import common, results_files
from benchmarks.drift import methods, streams
from spanboost import __version__

FILE = results_files.FOLDER / "drift.jsonl"
ROWS = 20_000
SEEDS = 3
ABOUT = """\
Run AutoBoost, River and CapyMOA on streams of River: generators with abrupt, gradual and
incremental drift, with several seeds, and the data sets that come with River. Each row is predicted
before it is learned. The score is the accuracy over the whole stream, in percent; for numbers, the
mean absolute error (TrumpApproval) or the root of the mean squared error (ChickWeights).

Each run is one line in the results file. Runs that have a line are skipped, so you can stop the
command and start it again. At the end the command prints a table.
"""
ENDS = """\
examples:
  python -m benchmarks.drift                                   run what is missing, print the table
  python -m benchmarks.drift --methods default --seeds 1       AutoBoost on one seed of each stream
  python -m benchmarks.drift --table                           only print the table
"""
PUBLISHED = {  # the best result in River's own benchmark tables (riverml.xyz, "Benchmarks")
    "bananas": 88.94,
    "phishing": 91.35,
    "image segments": 90.17,
    "trump approval": 0.2685,
    "chick weights": 36.63,
}


class Key(NamedTuple):
    """One run."""

    stream: str
    rows: int
    seed: int
    method: str


def measure(key: Key) -> dict[str, Any]:
    """Run a method on a stream; return its score and its time."""
    stream = streams.load(key.stream, key.rows, key.seed)
    versions = {"spanboost": __version__} if key.method in methods.OURS else _version(key.method)
    done = methods.run(key.method, stream, key.seed)
    if done is None:
        return {"score": None} | versions
    wrong = done.predictions != stream.y
    half = len(stream.y) // 2
    if stream.classes:
        scores = [100 * (1 - float(part.mean())) for part in (wrong, wrong[half:])]
    else:
        away = np.abs(done.predictions - stream.y)
        power = 1 if key.stream == "trump approval" else 2
        scores = [float((part**power).mean() ** (1 / power)) for part in (away, away[half:])]
    return {"score": scores[0], "second_half": scores[1], "cpu": done.cpu} | versions


def _version(method: str) -> dict[str, str]:
    package = method.split(maxsplit=1)[0]
    return {package: metadata.version(package)}


def wanted(names: list[str], asked: list[str], rows: int, seeds: int) -> list[Key]:
    """Return the runs, those of the first seed first."""
    return [
        Key(name, 0 if name in streams.BUNDLED else rows, seed, method)
        for seed in range(seeds)
        for name in names
        for method in asked
        if seed == 0 or name not in streams.BUNDLED
    ]


def table(found: dict[Key, dict[str, Any]], asked: list[str]) -> list[list[str]]:
    """Return the mean score of each method on each stream, with the number of seeds."""
    lines = []
    for name in dict.fromkeys(key.stream for key in found):
        digits, line = (1 if name not in PUBLISHED else 2 if PUBLISHED[name] > 1 else 4), [name]
        for method in asked:
            scores = [
                row["score"]
                for key, row in found.items()
                if (key.stream, key.method) == (name, method) and row["score"] is not None
            ]
            line.append(f"{np.mean(scores):.{digits}f} ({len(scores)})" if scores else "-")
        lines.append([*line, f"{PUBLISHED[name]:g}" if name in PUBLISHED else "-"])
    return lines


def main() -> None:
    """Run what was not run before, and print the table."""
    parser = common.resumable_parser("drift", ABOUT, ENDS, FILE)
    common.add_rows(parser, ROWS, "Rows of each generated stream")
    parser.add_argument(
        "--seeds",
        type=common.at_least_one,
        default=SEEDS,
        metavar="N",
        help=f"Seeds of each generated stream (default: {SEEDS})",
    )
    common.add_choice(parser, "--streams", (*streams.DRIFTING, *streams.BUNDLED), "streams")
    common.add_choice(parser, "--methods", methods.METHODS, "methods")
    args = parser.parse_args()
    keys = wanted(args.streams, args.methods, args.rows, args.seeds)
    for key in keys:
        if not args.table and key not in results_files.read(args.results, Key):
            row = measure(key)
            results_files.record(args.results, key, row)
            common.say(f"{key.method} on {key.stream}, seed {key.seed}: {row['score']}")
    found = results_files.read(args.results, Key)
    chosen = {key: found[key] for key in keys if key in found}
    common.show(["stream", *args.methods, "published"], table(chosen, args.methods))


if __name__ == "__main__":
    main()
