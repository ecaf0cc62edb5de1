"""The task of a booster's learner, the feedback of its copies, and a check of its constants."""

from typing import TYPE_CHECKING, Any

import numpy as np

from spanboost import losses
from spanboost.compiling.arrays import Array
from spanboost.core.feedback import GreedyMode, LinearMode, ScaledMode
from spanboost.learners.protocol import Learner, Task
from spanboost.losses import constant

if TYPE_CHECKING:
    from spanboost.models.booster import Booster


def task_and_mode(
    booster: "Booster", learner: Learner, dtype: Any
) -> tuple[Task, LinearMode | GreedyMode | ScaledMode]:
    """Return the task of the learner, and the mode in which copies receive their losses."""
    linear, n = booster.feedback == "linear", booster.n
    lipschitz, smoothness = np.ones(n), np.zeros(n)
    mode: LinearMode | GreedyMode | ScaledMode = LinearMode()
    if not linear:
        fixed = booster.greedy_step(learner) if booster.alpha is None else booster.alpha
        step = booster.steps_ if fixed is None else np.full(n, float(fixed))
        alpha = booster.scale * step  # the copy's h is scaled by lambda before it is added
        farthest = booster.reach_ + alpha * booster.D  # the supplement's B' = B + alpha D
        lipschitz = alpha * [constant(booster.loss_, "L", b) for b in farthest]
        smoothness = alpha**2 * constant(booster.loss_, "beta", booster.reach_)
        mode = GreedyMode(alpha.astype(dtype), booster.offset_ == "shrunk")
        if losses.has_log_link(booster.loss_) and getattr(learner, "weighted", True):
            mode, smoothness = ScaledMode(*mode), alpha**2
    task = Task(
        n=n,
        d=int(losses.on_vectors(booster.loss_).d),
        rows=None,
        D=float(booster.D),
        linear=linear,
        lipschitz=lipschitz,
        smoothness=smoothness,
        seed=int(booster.seed),
        copy=np.arange(n),
        rounds=1 + int(booster.replay),
    )
    return task, mode


def check_constants(booster: "Booster", dtype: Any, smoothness: Array) -> None:
    """Raise a ValueError for a constant that the learner's dtype cannot represent."""
    limits = np.finfo(dtype)
    L = booster.lipschitz()
    curvature = float(np.max(smoothness, initial=0, where=smoothness < np.inf))
    values = {
        "D": booster.D,
        "scale": booster.scale,
        "alpha": booster.alpha or 1.0,
        "B" if hasattr(booster, "B_") else "scale * D": booster.reach_,
        "the loss's Lipschitz constant": L,
        "the Lipschitz constant times B": L * booster.reach_,
        "the curvature of the copies, (scale * alpha)^2 beta,": curvature or 1.0,
    }
    for name, value in values.items():
        if not float(limits.tiny) <= value <= float(limits.max):
            raise ValueError(
                f"{name} = {value:g} does not fit into a {limits.dtype}: use a learner with "
                "another dtype"
            )
