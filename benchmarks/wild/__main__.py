"""`python -m benchmarks.wild`: streams that could ruin a model."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from benchmarks import common
from benchmarks.accuracy.markdown import markdown
from benchmarks.accuracy.worker import stamp
from benchmarks.results_files import drop, read, record
from benchmarks.wild import results, runs, tables
from benchmarks.wild.cases import BUDGETS, MODELS, Case, Group, groups
from benchmarks.wild.results import Key

ABOUT = """\
Run AutoBoost and boosted trees on generated streams: wild labels, trends, changes of scale, units,
heavy tails and wild features. Each figure compares the error with the error without the trouble.

Each run is one line in the results file, under the label of the code. Runs that have a line are
skipped, so you can stop the command and start it again. At the end the command prints a Markdown
table. Each line shows the worst case of a stream, its target, and the figure of other code.
"""
ENDS = """\
examples:
  python -m benchmarks.wild                                    run what is missing, print the table
  python -m benchmarks.wild --only trends --budgets fast       one part, with one budget
  python -m benchmarks.wild --label now --table                only print the table of a label
  PYTHONPATH=DIR/src python -m benchmarks.wild --label before  measure other code
"""
PARTS = ("outliers", "trends", "scale", "units", "tails", "features")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.wild",
        description=ABOUT,
        epilog=ENDS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    common.add_choice(made, "--only", PARTS, "Parts of the table")
    common.add_choice(made, "--budgets", BUDGETS, "Budgets of AutoBoost")
    made.add_argument(
        "--label", help="Name of the code in the results file (default: a hash of its source)"
    )
    made.add_argument(
        "--before",
        default="before",
        metavar="LABEL",
        help="Label of the code to compare with (default: before)",
    )
    made.add_argument(
        "--results",
        type=Path,
        default=results.FILE,
        metavar="FILE",
        help="Results file (default: benchmarks/results/wild.jsonl)",
    )
    made.add_argument(
        "--full", action="store_true", help="Also run Huber loss and the median on wild labels"
    )
    made.add_argument("--again", action="store_true", help="Repeat runs that have a result")
    made.add_argument("--each", action="store_true", help="Print a line for every case")
    made.add_argument("--failed", action="store_true", help="Print only lines that miss the target")
    made.add_argument("--table", action="store_true", help="Run nothing; print the table")
    made.add_argument(
        "--quick", action="store_true", help="Use short streams, to check that the command works"
    )
    return made


def wanted(chosen: list[Group], models: list[str], label: str) -> Iterator[tuple[Key, Case]]:
    """Yield the chosen runs, those of fast models first; some occur more than once."""
    for group in chosen:
        if group.peers and runs.has_peer():
            for seed in range(max(group.many, group.few)):
                for case in group.cases:
                    yield Key(runs.PEER, case.name, runs.PEER, "squared", seed), case
    for model in models:
        for group in chosen:
            for loss in group.losses if model in group.models else ():
                for case in _with_references(group.cases):
                    for seed in group.seeds(model):
                        yield Key(label, case.name, model, loss, seed), case


def _with_references(cases: list[Case]) -> Iterator[Case]:
    for case in cases:
        if case.reference:
            yield case.reference
        yield case


def _single(chosen: list[Group]) -> list[Group]:
    """Return a group for every case."""
    return [
        group._replace(name=case.name, cases=[case]) for group in chosen for case in group.cases
    ]


def main() -> None:
    """Run what is missing and print the table."""
    args = parser().parse_args()
    models = [name for name in MODELS if name == "trees" or name in args.budgets]
    suffix = ", quick" if args.quick else ""  # short streams have figures of their own
    label, before = (args.label or stamp()) + suffix, args.before + suffix
    chosen = [group for group in groups(args.quick, args.full) if group.part in args.only]
    if not args.table:
        todo = dict(wanted(chosen, models, label))
        if args.again:
            drop(args.results, Key, {key for key in todo if key.label == label})
        done = read(args.results, Key)
        todo = {key: case for key, case in todo.items() if key not in done}
        for i, (key, case) in enumerate(todo.items(), 1):
            row = runs.measure(case, key)
            record(args.results, key, row)
            found = row.get("error") or row["mse"]
            name = f"{key.stream}, {key.model}, {key.loss}, seed {key.seed}"
            common.say(f"{i}/{len(todo)} {name}: {found}")
    reader = tables.Reader(read(args.results, Key), label, before)
    lines = list(reader.lines(_single(chosen) if args.each else chosen, models))
    shown = [line.cells for line in lines if not args.failed or line.met is False]
    print(markdown(tables.HEAD, shown))
    targets = [line for line in lines if line.measure.must]
    met, missing = (sum(line.met is one for line in targets) for one in (True, None))
    print(f"{met} of {len(targets)} targets met, {missing} not measured.")


if __name__ == "__main__":
    main()
