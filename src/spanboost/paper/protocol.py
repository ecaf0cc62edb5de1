"""The paper's protocol: one pass, tuned on the first half, reported on the second.

The base learner alone has its rate to be tuned; Algorithm 1 has the rate, the number of copies n
and the step eta; Algorithm 2 the rate and n. Nothing else is tuned, and all three choose from the
same rates. Both algorithms may also choose the learner alone, which is what one copy with step 1 is
under greedy feedback. Of equal losses the one listed first is taken, the learner alone before any.
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
    "stumps": Stumps(),  # one weight a feature, no intercepts: the paper's
    "network": Network(hidden=10),
}
RATES = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
ETAS = (0.05, 0.1, 0.2)
COPIES = 64
# lambda of Algorithm 2: functions of one feature each, cut to the range of the labels, leave a
# convex combination of them little room; functions of all features need no more
SCALES = {"linear": 1.0, "stumps": 2.0, "network": 1.0}
WINDOWS = 100  # of a learning curve


class Grid(NamedTuple):
    """What there is to choose from, in every cell."""

    rates: tuple[float, ...] = RATES
    etas: tuple[float, ...] = ETAS
    copies: int = COPIES

    def ways(self, learner: str, feedback: str, largest: float) -> dict[str, list[Configuration]]:
        """The configurations of the learner alone and of both algorithms; |label| <= largest."""
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
    tell: Callable[[int], None],
    executor: Executor | None = None,
) -> Cell:
    """A cell; `named` are its set, order, learner and feedback, |label| <= largest.

    `tell` hears how many rows more of the first half have been tuned on. The work is done at the
    executor, or here.
    """
    clock = time.process_time if executor is None else time.perf_counter
    started, half = clock(), examples.rows // 2
    ways = grid.ways(*named[2:], largest)
    sweeping = new_sweep(
        [one for configured in ways.values() for one in configured], executor=executor
    )
    for batch in split_batches([examples.part(0, half)], half, sweeping.block_rows(half)):
        sweeping.learn(batch)
        tell(batch.rows)
    tuned, choices, first = sweeping.result(), [], 0
    alone = tuned.loss_first[: len(ways["baseline"])]
    for configured in ways.values():
        losses = tuned.loss_first[first : first + len(configured)]
        first += len(configured)
        choices.append(choice_of(ways["baseline"], alone, configured, losses))
    where: Executor = executor or LocalExecutor()
    rows = where.put(examples)
    runs = where.results([where.call(squared, one.model, one.n, rows) for one in choices])
    models = {way: chosen(*both) for way, *both in zip(ways, choices, runs, strict=True)}
    return Cell(*named, examples.rows, clock() - started, models)


class Choice(NamedTuple):
    """A model that is best on the first half."""

    model: Configuration
    n: int
    loss: float
    against_n: list[float | None]


def choice_of(
    alone: list[Configuration],
    alone_losses: Array,
    own: list[Configuration],
    own_losses: Array,
) -> Choice:
    """The best on the first half, of these and of the learner alone."""
    k, n = least(own_losses)
    against_n = [float(loss) if np.isfinite(loss) else None for loss in own_losses[k, : own[k].n]]
    one, loss = own[k], own_losses[k, n - 1]
    j, _ = least(alone_losses)
    if not alone_losses[j, 0] > loss:
        one, loss, n = alone[j], alone_losses[j, 0], 1
    return Choice(one, n, float(loss), against_n)


def chosen(choice: Choice, losses: Array) -> Chosen:
    """What became of it: its losses of all rows."""
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


def least(losses: Array) -> tuple[int, int]:
    """The configuration, and the number of copies, of the least loss."""
    finite = np.where(np.isfinite(losses), losses, np.inf)
    k, i = divmod(int(finite.argmin()), finite.shape[1])
    return k, i + 1


def squared(one: Configuration, n: int, examples: Batch) -> Array:
    """The squared loss of every row, predicted before it was learned by n copies."""
    model = one.model(n)
    answers = [model.learn_many(batch.X, batch.y) for batch in split_batches([examples], 0)]
    return (np.concatenate(answers) - examples.y) ** 2
