"""The paper's protocol: one pass, tuned on the first half, reported on the second.

The base learner alone has its rate to be tuned; Algorithm 1 has the rate, the number of copies n
and the step eta; Algorithm 2 the rate and n. Nothing else is tuned, and all three choose from the
same rates. Both algorithms may also choose the learner alone, which is what one copy with step 1 is
under greedy feedback. Of equal losses the one listed first is taken, the learner alone before any.

Every n comes with the largest, in one pass (lanes.py). Configurations run side by side in threads,
always in the same groups, so that figures do not depend on how many threads there are.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any, NamedTuple

import numpy as np

from spanboost.arrays import Array
from spanboost.booster import Booster, HullBoost, SpanBoost
from spanboost.lanes import Lanes
from spanboost.learners.linear import LinearSGD
from spanboost.learners.network import Network
from spanboost.learners.stumps import Stumps
from spanboost.paper.cells import Cell, Tuned
from spanboost.paper.content import Examples

KINDS: dict[str, Callable[..., Any]] = {
    "linear": LinearSGD,
    "stumps": Stumps,  # one weight a feature, no intercepts: the paper's
    "network": Network,
}
COSTS = {"linear": 1, "stumps": 4, "network": 8}  # of a copy, roughly, for the progress bar
RATES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
ETAS = (0.05, 0.1, 0.2, 0.4)
COPIES = 64
GRID = (RATES, ETAS, COPIES)  # what a kept cell was made with
BLOCK = 8192  # rows between two looks at the clock
WINDOWS = 100  # of a learning curve


class Choice(NamedTuple):
    """Parameters to choose from, and what they lost on the first half."""

    first_half: float
    rate: float
    n: int
    eta: float | None  # None for Algorithm 2 and for the learner alone


class Stopped(Exception):
    """The user has asked for it."""


def work(learner: str) -> int:
    """The cost of a row's feature in one cell, in units of a progress bar."""
    return COSTS[learner] * len(RATES) * (1 + (1 + len(ETAS)) * COPIES)


def run(
    named: tuple[str, str, str, str],
    examples: Examples,
    largest: float,
    threads: int,
    tell: Callable[[float], None],
) -> Cell:
    """A cell; `named` are its set, order, learner and feedback, |label| <= largest.

    `tell` hears which part of the work is done, now and then, from several threads.
    """
    learner, feedback = named[2:]
    started, half, stop = time.process_time(), len(examples.y) // 2, Event()
    groups = list(grid(learner, feedback, largest))
    total = half * sum(lanes.n for _, lanes in groups)

    def learn(group: tuple[str, Lanes]) -> None:
        for first in range(0, half, BLOCK):
            if stop.is_set():
                raise Stopped
            last = min(first + BLOCK, half)
            group[1].learn(examples.rows(first, last), examples.y[first:last])
            tell((last - first) * group[1].n / total)

    with ThreadPoolExecutor(threads) as pool:
        try:
            list(pool.map(learn, groups))
        except BaseException:
            stop.set()
            raise
    alone = choices(groups, "baseline")
    models = {
        way: tuned(way, learner, feedback, alone, choices(groups, way), examples, largest)
        for way in ("baseline", "span", "hull")
    }
    return Cell(*named, len(examples.y), time.process_time() - started, models)


def grid(learner: str, feedback: str, largest: float) -> Iterator[tuple[str, Lanes]]:
    """All configurations in groups, each one pass; the large ones first."""
    limits = (-largest, largest)  # labels are scaled, not shifted
    kind = KINDS[learner]
    common = {"feedback": feedback, "label_range": limits}
    for rate in RATES:
        base = kind(rate=rate)
        yield "span", Lanes([SpanBoost(base, COPIES, eta, **common) for eta in ETAS])
        yield "hull", Lanes([HullBoost(base, COPIES, **common)])
    yield "baseline", Lanes([HullBoost(kind(rate=rate), 1, label_range=limits) for rate in RATES])


def choices(groups: Sequence[tuple[str, Lanes]], way: str) -> list[list[Choice]]:
    """Those of a way: a list for each configuration, with every n it may have."""
    found = []
    for kind, lanes in groups:
        if kind != way:
            continue
        losses = (lanes.sums / lanes.weight[0]).reshape(len(lanes.members), -1)
        for member, row in zip(lanes.members, losses, strict=True):
            eta = member.eta_ if isinstance(member, SpanBoost) else None
            least = 1 if eta is None else int(np.ceil(1 / eta - 1e-9))
            rate = float(member.learner.rate)
            found.append(
                [Choice(float(row[n - 1]), rate, n, eta) for n in range(least, len(row) + 1)]
            )
    return found


def tuned(
    way: str,
    learner: str,
    feedback: str,
    alone: list[list[Choice]],
    own: list[list[Choice]],
    examples: Examples,
    largest: float,
) -> Tuned:
    """The best on the first half, run from the first row to the last."""
    chosen = best([*sum(alone, []), *sum(own, [])])
    shown = min(own, key=lambda one: best(one).first_half)  # how n matters to the best of them
    losses = squared(model_of(way, chosen, learner, feedback, largest), examples)
    half, ends = len(losses) // 2, np.linspace(0, len(losses), WINDOWS + 1).astype(int)
    curve = [float(part.mean()) for part in np.split(losses, ends[1:-1]) if len(part)]
    return Tuned(
        chosen.rate,
        chosen.n,
        chosen.eta,
        chosen.first_half,
        float(losses[half:].mean()),
        [] if way == "baseline" else [None] * (shown[0].n - 1) + [c.first_half for c in shown],
        curve,
    )


def best(found: Sequence[Choice]) -> Choice:
    """The one of least loss."""
    return min(found, key=lambda one: one.first_half if np.isfinite(one.first_half) else np.inf)


def model_of(way: str, chosen: Choice, learner: str, feedback: str, largest: float) -> Booster:
    """The model of a choice, fresh; one copy chosen from the learner's own grid is that learner."""
    base, limits = KINDS[learner](rate=chosen.rate), (-largest, largest)
    if way == "span" and chosen.eta is not None:
        return SpanBoost(base, chosen.n, chosen.eta, feedback=feedback, label_range=limits)
    alone = way != "hull" or chosen.n == 1
    return HullBoost(base, chosen.n, feedback="greedy" if alone else feedback, label_range=limits)


def squared(model: Booster, examples: Examples) -> Array:
    """The squared loss of every row, predicted before it was learned."""
    y, answers = examples.y, []
    for first in range(0, len(y), BLOCK):
        last = min(first + BLOCK, len(y))
        answers.append(model.learn_many(examples.rows(first, last), y[first:last]))
    return (np.concatenate(answers) - y) ** 2
