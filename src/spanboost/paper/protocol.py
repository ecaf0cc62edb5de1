"""The paper's protocol: one pass, tuned on the first half, reported on the second.

Tuned parameters are the rate of the base learner alone; the rate, the number of copies n and the
step eta of Algorithm 1; and the rate and n of Algorithm 2. All three choose from the same rates.
Both algorithms may also choose the learner alone, which equals one copy with step 1 under greedy
feedback. Among equal losses the first one is chosen, and the learner alone comes first.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.data.batch import Batch
from spanboost.learners.linear import LinearSGD
from spanboost.learners.network import Network
from spanboost.learners.stumps import Stumps
from spanboost.paper.cells import Cell, Chosen
from spanboost.parallel.executor import Executor, LocalExecutor
from spanboost.tuning.grid import Configuration, configurations
from spanboost.tuning.search import new_sweep, split_batches

LEARNERS: dict[str, Any] = {
    "linear": LinearSGD(),
    "stumps": Stumps(),  # one weight for each feature and no intercepts, as in the paper
    "network": Network(hidden=10),
}
RATES = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
ETAS = (0.05, 0.1, 0.2)
COPIES = 64
# lambda of Algorithm 2: a convex combination of functions of one feature each, clipped to the label
# range, has little room, so stumps are scaled up; functions of all features need no scaling
SCALES = {"linear": 1.0, "stumps": 2.0, "network": 1.0}
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
        span = {"feedback": feedback, **labels}
        hull = {**span, "scale": SCALES[learner]}
        return {
            "baseline": configurations(base, rates, "hull", 1, **labels),
            "span": configurations(base, {**rates, "eta": self.etas}, "span", self.copies, **span),
            "hull": configurations(base, rates, "hull", self.copies, **hull),
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
    report: called with the number of rows of the first half that were tuned on since the last call.
    executor: where the work is done; None is this process.
    """
    clock = time.process_time if executor is None else time.perf_counter
    started, half = clock(), examples.rows // 2
    ways = grid.ways(*named[2:], largest)
    sweeping = new_sweep(
        [one for configured in ways.values() for one in configured], executor=executor
    )
    for batch in split_batches([examples.part(0, half)], half, sweeping.block_rows(half)):
        sweeping.learn(batch)
        report(batch.rows)
    tuned, choices, first = sweeping.result(), [], 0
    alone = tuned.loss_first[: len(ways["baseline"])]
    for configured in ways.values():
        losses = tuned.loss_first[first : first + len(configured)]
        first += len(configured)
        choices.append(choose(ways["baseline"], alone, configured, losses))
    where: Executor = executor or LocalExecutor()
    rows = where.put(examples)
    runs = where.results([where.call(squared_losses, one.model, one.n, rows) for one in choices])
    models = {way: describe_choice(*both) for way, *both in zip(ways, choices, runs, strict=True)}
    return Cell(*named, examples.rows, clock() - started, models)


class Choice(NamedTuple):
    """The best configuration on the first half."""

    model: Configuration
    n: int
    loss: float
    against_n: list[float | None]


def choose(
    alone: list[Configuration],
    alone_losses: Array,
    own: list[Configuration],
    own_losses: Array,
) -> Choice:
    """Return the best choice on the first half, among `own` and the learner alone."""
    k, n = find_least(own_losses)
    against_n = [float(loss) if np.isfinite(loss) else None for loss in own_losses[k, : own[k].n]]
    one, loss = own[k], own_losses[k, n - 1]
    j, _ = find_least(alone_losses)
    if not alone_losses[j, 0] > loss:
        one, loss, n = alone[j], alone_losses[j, 0], 1
    return Choice(one, n, float(loss), against_n)


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


def squared_losses(one: Configuration, n: int, examples: Batch) -> Array:
    """Return the squared loss of every row; n copies predict each row before they learn it."""
    model = one.model(n)
    answers = [model.learn_many(batch.X, batch.y) for batch in split_batches([examples], 0)]
    return (np.concatenate(answers) - examples.y) ** 2
