"""The paper's protocol: one pass, tuned on the first half, reported on the second.

Tuned parameters are the rate of the base learner alone; the rate, the number of copies n and the
step eta of Algorithm 1; and the rate and n of Algorithm 2. All three choose from the same rates.
Boosting means at least two copies: an algorithm that does worse than the learner alone is shown as
it is. Among equal losses the first one is chosen.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.data.batch import Batch
from spanboost.learners.linear import LinearSGD
from spanboost.learners.network import Network
from spanboost.learners.stumps import Stumps
from spanboost.paper.cells import ADVANTAGE, Cell, Chosen
from spanboost.parallel.executor import Executor
from spanboost.tuning.grid import Configuration, configurations
from spanboost.tuning.search import new_sweep, split_batches

LEARNERS: dict[str, Any] = {
    "linear": LinearSGD(),
    "stumps": Stumps(ranking="loss"),  # one weight for each feature and no intercepts
    "network": Network(hidden=10),
}
RATES = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
ETAS = (0.05, 0.1, 0.2)
COPIES = 64
FEWEST = {"baseline": 1, "span": 2, "hull": 2}  # copies
WINDOWS = 100  # points of a learning curve


class Grid(NamedTuple):
    """The values to choose from in every cell."""

    rates: tuple[float, ...] = RATES
    etas: tuple[float, ...] = ETAS
    copies: int = COPIES

    def ways(self, learner: str, feedback: str, largest: float) -> dict[str, list[Configuration]]:
        """Return the configurations of each way to learn, for |label| <= largest."""
        base, rates = LEARNERS[learner], {"rate": self.rates}
        labels = {"label_range": (-largest, largest)}  # scaled, not shifted
        copy = base
        if feedback == ADVANTAGE:
            copy, feedback = replace(base, ranking="advantage"), "greedy"
        boosted = {"feedback": feedback, **labels}
        return {
            "baseline": configurations(base, rates, "hull", 1, **labels),
            "span": configurations(
                copy, {**rates, "eta": self.etas}, "span", self.copies, **boosted
            ),
            "hull": configurations(copy, rates, "hull", self.copies, **boosted),
        }


def run(
    named: tuple[str, str, str, str],
    examples: Batch,
    largest: float,
    grid: Grid,
    report: Callable[[int], None],
    executor: Executor | None = None,
) -> Cell:
    """Run a cell.

    named: its data set, order, learner and feedback. largest: the largest |label|.
    report: called after each block of rows, with the number of rows of the first half that were
        tuned on since the last call.
    executor: where the work is done; None is this thread.
    """
    started, half = time.perf_counter(), examples.rows // 2
    ways = grid.ways(*named[2:], largest)
    every = [one for configured in ways.values() for one in configured]
    sweeping = new_sweep(every, threads=1, executor=executor)
    for batch in split_batches([examples.part(0, half)], half, sweeping.block_rows(half)):
        sweeping.learn(batch)
        report(batch.rows)
    losses, choices, first = sweeping.result().loss_first, [], 0
    for way, configured in ways.items():
        last = first + len(configured)
        choices.append(choose(configured, losses[first:last], FEWEST[way]))
        first = last
    if executor is None:
        runs = [squared_losses(one.model, one.n, examples, report) for one in choices]
    else:
        rows = executor.put(examples)
        runs = executor.results(
            [executor.call(squared_losses, one.model, one.n, rows) for one in choices]
        )
    described = map(describe_choice, choices, runs)
    models = dict(zip(ways, described, strict=True))
    return Cell(*named, examples.rows, time.perf_counter() - started, models)


class Choice(NamedTuple):
    """The best configuration on the first half."""

    model: Configuration
    n: int
    loss: float
    against_n: list[float | None]


def choose(configured: list[Configuration], losses: Array, fewest: int) -> Choice:
    """Return the best configuration with at least `fewest` copies on the first half."""
    k, n = find_least(losses[:, fewest - 1 :])
    n += fewest - 1
    one = configured[k]
    against_n = [float(loss) if np.isfinite(loss) else None for loss in losses[k, : one.n]]
    return Choice(one, n, float(losses[k, n - 1]), against_n)


def describe_choice(choice: Choice, losses: Array) -> Chosen:
    """Return a choice with its results; `losses` are those of all rows."""
    settings = choice.model.settings
    ends = np.linspace(0, len(losses), WINDOWS + 1).astype(int)[1:-1]
    return Chosen(
        rate=settings["rate"],
        n=choice.n,
        eta=settings.get("eta"),
        first_half=choice.loss,
        second_half=float(losses[len(losses) // 2 :].mean()),
        against_n=choice.against_n,
        curve=[float(part.mean()) for part in np.split(losses, ends) if len(part)],
    )


def find_least(losses: Array) -> tuple[int, int]:
    """Return the configuration and the number of copies with the least loss."""
    finite = np.where(np.isfinite(losses), losses, np.inf)
    k, i = divmod(int(finite.argmin()), finite.shape[1])
    return k, i + 1


def squared_losses(
    one: Configuration, n: int, examples: Batch, report: Callable[[int], None] | None = None
) -> Array:
    """Return the squared loss of every row; n copies predict each row before they learn it.

    report: called after each block of rows with 0, the number of rows tuned on.
    """
    model = one.model(n)
    answers = []
    for batch in split_batches([examples], 0):
        answers.append(model.learn_many(batch.X, batch.labels))
        if report is not None:
            report(0)
    return (np.concatenate(answers) - examples.y) ** 2
