"""Boosted stumps with other details than those of `spanboost reproduce`, next to the paper's gains.

The paper leaves open how copies of stumps rank features, which loss they fit and where they are
clipped. Every variant tunes the rate and the number of copies as the reproduction does. The gains
are those over stumps alone, ranked by loss:

    python -m benchmarks.paper_variants --data DIR
"""

import argparse
from pathlib import Path
from statistics import mean
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


def loss(examples: Batch, largest: float, ranking: str, way: str, more: dict[str, Any]) -> float:
    """Return the loss on the second half with the parameters chosen on the first."""
    grid = {"rate": RATES} | ({"eta": (ETA,)} if way == "span" else {})
    tuned = tune(
        examples.X,
        examples.y,
        learner=Stumps(ranking=ranking),
        grid=grid,
        booster="span" if way == "span" else "hull",
        n=1 if way == "baseline" else COPIES,
        label_range=(-largest, largest),
        **more,
    )
    chosen = choose(tuned.configurations, tuned.loss_first, FEWEST[way])
    k = tuned.configurations.index(chosen.model)
    return float(tuned.loss_rest[k, chosen.n - 1])


def gains(name: str, folder: Path) -> dict[str, list[float]]:
    """Return the gains of each algorithm: the paper's, then those of all variants."""
    one = SETS[name]
    examples = examples_of(one, read(one, folder))
    examples = in_order(examples, headline_order(examples.y))
    alone = loss(examples, one.largest, "loss", "baseline", {})
    return {
        way: [TABLE_2[name]["stumps"].improvement(way)]
        + [1 - loss(examples, one.largest, v.ranking, way, v.more) / alone for v in VARIANTS]
        for way in ALGORITHMS
    }


def main() -> None:
    """Print a table for each algorithm."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="Folder of the data sets")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SMALLER, help="Data sets")
    args = parser.parse_args()
    found = {name: gains(name, args.data) for name in args.sets}
    for way, words in ALGORITHMS.items():
        rows = [[name, *(f"{gain:+.1%}" for gain in each[way])] for name, each in found.items()]
        distances = [
            100 * mean(abs(each[way][k] - each[way][0]) for each in found.values())
            for k in range(1, len(VARIANTS) + 1)
        ]
        rows.append(["**distance**", "", *(f"{one:.1f}" for one in distances)])
        head = ["data", "the paper", *(one.words for one in VARIANTS)]
        print("\n".join(Table(f"{words}: gains over stumps", head, rows).as_lines()), "\n")


if __name__ == "__main__":
    main()
