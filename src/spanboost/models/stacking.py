"""Stack fresh boosters of one kind: one core whose bank holds the copies of all of them."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spanboost.core.algorithms import Span
from spanboost.core.feedback import LinearMode
from spanboost.core.loop import BoosterState
from spanboost.core.stacked import Hulls, Spans, StackedAlgorithm, new_stacked_trace
from spanboost.learners.descent import Descent
from spanboost.learners.objects import as_learner
from spanboost.models.booster import Booster
from spanboost.models.booster_core import BoosterCore


def stack_cores(members: Sequence[Booster]) -> BoosterCore:
    """Return a core in which every booster is a lane.

    The members have the same number of copies, class, loss, feedback and learner. They may differ
    in their steps, their scales and the rate of the learner.
    """
    N, cores = members[0].n, [member.core for member in members]
    first = cores[0]
    learner = as_learner(_with_all_rates([member.learner for member in members], N))
    tasks = [core.task for core in cores]
    shared = _concatenate(tasks, "lipschitz", "smoothness", "copy")
    modes = [core.state.mode for core in cores]
    mode = modes[0]
    if not isinstance(mode, LinearMode):
        mode = mode._replace(**_concatenate(modes, "alpha"))
    state = BoosterState(
        algorithm=_stacked_algorithm([core.state.algorithm for core in cores], N),
        mode=mode,
        loss=first.state.loss,
        bank=None,
        D=first.state.D,
        trace=new_stacked_trace(first.d, len(members), N, first.dtype),
    )
    labels, memory = copy.deepcopy((first.labels, first.memory))
    task = tasks[0]._replace(n=N * len(members), **shared)
    return BoosterCore(learner, task, state, labels, memory)


def renew_trace(core: BoosterCore, N: int) -> None:
    """Allocate the trace again: its parts share memory, which copying does not preserve."""
    trace = new_stacked_trace(core.d, core.task.n // N, N, core.dtype)
    core.state = core.state._replace(trace=trace)


def _stacked_algorithm(each: Sequence[Any], N: int) -> StackedAlgorithm:
    first = each[0]
    if isinstance(first, Span):
        parts = _concatenate(each, "eta", "sigma", "t", "B", "L_B", "scale")
        return StackedAlgorithm(Spans(**parts, at_final=first.at_final), N)
    parts = _concatenate(each, "eta", "L_D", "scale")
    return StackedAlgorithm(Hulls(**parts, at_final=first.at_final, linear=first.linear), N)


def _with_all_rates(learners: Sequence[Any], N: int) -> Any:
    """Return one learner with the rates of all."""
    if not isinstance(learners[0], Descent):
        return learners[0]
    rates = [np.broadcast_to(learner.rate, N) for learner in learners]
    return replace(learners[0], rate=tuple(np.concatenate(rates).tolist()))


def _concatenate(parts: Sequence[Any], *names: str) -> dict[str, Any]:
    """Return the named fields of all parts, concatenated."""
    return {
        name: np.concatenate([np.atleast_1d(getattr(part, name)) for part in parts])
        for name in names
    }
