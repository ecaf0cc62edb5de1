"""Boosted stumps with other details than in `spanboost reproduce`, next to the paper's losses.

The paper leaves open how copies of stumps rank features, which loss they fit and where they are
clipped. Every variant tunes the rate and the number of copies on the first half, at step 0.1, and
reports the loss on the second half:

    python -m benchmarks.paper_variants --data DIR
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

from spanboost import Stumps, tune
from spanboost.data.batch import Batch
from spanboost.paper.dataset_folder import read
from spanboost.paper.datasets import SETS
from spanboost.paper.protocol import FEWEST, choose
from spanboost.paper.published import TABLE_2
from spanboost.paper.row_order import headline_order, in_order
from spanboost.paper.table_content import examples_of
from spanboost.paper.tables import Table

SMALLER = ("abalone", "cal_housing", "letter", "shuttle", "casp", "adult", "bank", "a9a")
RATES = (0.03, 0.125, 0.5, 2.0)
ETA = 0.1
COPIES = 64
ALGORITHMS = {"span": "Algorithm 1", "hull": "Algorithm 2"}


class Variant(NamedTuple):
    """Details that the paper leaves open."""

    words: str
    ranking: str
    more: dict[str, Any]  # parameters of the booster


GREEDY = {"feedback": "greedy"}
VARIANTS = (
    Variant("linear", "loss", {"feedback": "linear"}),
    Variant("linear, D = 10", "loss", {"feedback": "linear", "D": 10.0}),
    Variant("greedy, rank by loss", "loss", GREEDY),
    Variant("greedy, rank by advantage", "advantage", GREEDY),
    Variant("the same, D = 10", "advantage", GREEDY | {"D": 10.0}),
    Variant("the same, printed offset", "advantage", GREEDY | {"offset": "printed"}),
    Variant("the same, alpha = 1", "advantage", GREEDY | {"offset": "printed", "alpha": 1.0}),
)


def loss(examples: Batch, largest: float, variant: Variant, way: str) -> float:
    """Return the loss on the second half with the parameters chosen on the first."""
    grid = {"rate": RATES} | ({"eta": (ETA,)} if way == "span" else {})
    tuned = tune(
        examples.X,
        examples.y,
        learner=Stumps(ranking=variant.ranking),
        grid=grid,
        booster=way,
        n=COPIES,
        label_range=(-largest, largest),
        **variant.more,
    )
    chosen = choose(tuned.configurations, tuned.loss_first, FEWEST[way])
    k = tuned.configurations.index(chosen.model)
    return float(tuned.loss_rest[k, chosen.n - 1])


def losses(name: str, folder: Path) -> dict[str, list[float]]:
    """Return the losses of each algorithm: the paper's, then those of all variants."""
    one = SETS[name]
    examples = examples_of(one, read(one, folder))
    examples = in_order(examples, headline_order(examples.y))
    return {
        way: [getattr(TABLE_2[name]["stumps"], way)]
        + [loss(examples, one.largest, each, way) for each in VARIANTS]
        for way in ALGORITHMS
    }


def main() -> None:
    """Print a table for each algorithm."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="Folder of the data sets")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SMALLER, help="Data sets")
    args = parser.parse_args()
    found = {name: losses(name, args.data) for name in args.sets}
    head = ["data", "the paper", *(one.words for one in VARIANTS)]
    for way, words in ALGORITHMS.items():
        rows = [[name, *(f"{one:.4f}" for one in each[way])] for name, each in found.items()]
        print("\n".join(Table(f"{words}: losses of stumps", head, rows).as_lines()), "\n")


if __name__ == "__main__":
    main()
