"""`python -m benchmarks.intervals`: prediction intervals compared with those of other libraries."""

import argparse

from benchmarks import common, results_files
from benchmarks.accuracy import datasets
from benchmarks.intervals import results, tables
from benchmarks.intervals.methods import METHODS
from benchmarks.intervals.results import Key

ABOUT = """\
Predict intervals for 80, 90 and 95 % of the labels, and measure them on the second half of each
data set: coverage, coverage in windows of 1,000 rows, mean width and pinball loss.

- spanboost: Intervals(AutoBoost()), which predicts each row before it learns from it.
- lightgbm: two quantile regressions for each coverage, fitted to the first half without its last
  tenth and conformalised on that tenth (CQR). They do not learn from the second half.
- river: conf.RegressionJackknife with a window of 1,000 residuals around an adaptive random forest,
  which predicts each row before it learns from it.
- capymoa-mve, capymoa-adapi: MVE and AdaPI around their default, an adaptive random forest, which
  predict each row before they learn from it. They need a Java runtime.

Widths are compared at equal coverage: the intervals of every method are scaled, or moved by a
margin, until they cover exactly the share that was asked for.

Each run is one line of the results file. Runs that have a line are skipped, so you can stop the
command and start it again. `python -m benchmarks.headline` writes the tables of the page.
"""
ENDS = """\
examples:
  python -m benchmarks.intervals --data DIR                            run what is missing
  python -m benchmarks.intervals --data DIR --sets abalone --methods spanboost   two lines
  python -m benchmarks.intervals --data DIR --methods spanboost --again          measure again
  python -m benchmarks.intervals --table                               only print the tables
"""
ROWS = 20_000


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    made = common.resumable_parser("intervals", ABOUT, ENDS, results.FILE)
    common.add_choice(made, "--sets", tables.SETS, "Data sets")
    common.add_choice(made, "--orders", datasets.ORDERS, "Orders of the rows")
    common.add_choice(made, "--methods", METHODS, "Methods")
    common.add_rows(made, ROWS, "Use only the first N rows of a set")
    made.add_argument("--again", action="store_true", help="Repeat runs that have a result")
    return made


def main() -> None:
    """Run what is missing, and print the tables."""
    args = parser().parse_args()
    chosen = [
        Key(data, order, method)
        for method in args.methods
        for data in args.sets
        for order in args.orders
    ]
    known = {} if args.again else results.read(args.results)
    for key in chosen if not args.table else []:
        if key not in known:
            row = results.run(key, args.data, args.rows)
            results_files.record(args.results, key, row)
            common.say(f"{' '.join(key)}: {row['cpu_seconds']} s, {row['0.9']}")
    found = results.read(args.results)
    for table in (tables.coverages, tables.widths, tables.counts):
        print(table(found))
    common.show(["target", "met in", "must", "met"], tables.targets(found))


if __name__ == "__main__":
    main()
