"""The option --ray: the cluster that a command runs on, and the teams that learn there."""

from argparse import Namespace
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from spanboost.cli.from_args import usage_errors
from spanboost.errors import UsageError
from spanboost.models.model import Model
from spanboost.models.wrapper import WrappedModel
from spanboost.parallel.expert_team import ExpertTeam
from spanboost.parallel.team import EVERY, Team


def cluster_of(args: Namespace) -> AbstractContextManager[Any]:
    """Return a context with the cluster that --ray asks for, or with None."""
    if args.ray is None:
        return nullcontext()
    from spanboost.parallel.cluster import Cluster

    return Cluster(args.ray)


def check_team(args: Namespace, model: Model) -> None:
    """Check the options of a team before the cluster starts."""
    for name in ("workers", "average_every"):
        if args.ray is None and getattr(args, name) is not None:
            raise UsageError(f"--{name.replace('_', '-')} requires --ray")
    if args.ray is None:
        return
    for name in ("intervals", "sets", "calibrate"):
        if getattr(args, name):
            raise UsageError(f"--ray cannot be combined with --{name}")
    if isinstance(model, WrappedModel):
        raise UsageError(
            f"--ray cannot train {type(model).__name__} ({args.initial}); leave out --ray"
        )
    if model.has_experts:
        if args.average_every is not None:
            raise UsageError("--average-every cannot be combined with --learner auto")
    elif model.weights_:
        raise UsageError("--ray cannot train a model that chooses its size; give -n and --step")


def check_evaluation(args: Namespace, models: Mapping[str, Model]) -> None:
    """Check the options of an evaluation on a cluster before the cluster starts."""
    if args.ray is None:
        if args.workers is not None:
            raise UsageError("--workers requires --ray")
        return
    for name in ("certificate", "interval"):
        if getattr(args, name):
            raise UsageError(f"--ray cannot be combined with --{name}")
    if not any(model.has_experts for model in models.values()):
        raise UsageError("--ray needs a model with experts to distribute: --learner auto")


def team_of(args: Namespace, model: Model, cluster: Any, rows: int) -> Team | ExpertTeam:
    """Return the workers that continue a model; it has learned `rows` rows of the stream."""
    if model.has_experts:
        return expert_team(args, model, cluster)
    workers = args.workers or max(1, cluster.processors)
    with usage_errors():
        team = Team(model, workers, args.average_every or EVERY, cluster, rows)
    every = args.checkpoint_every
    if every and team.averages and every % team.round:
        raise UsageError(
            f"--checkpoint-every must be a multiple of {team.round} (workers times rows between "
            f"averages) with --ray (got {every})"
        )
    return team


def expert_team(args: Namespace, model: Any, cluster: Any) -> ExpertTeam:
    """Return AutoBoost with its experts on the workers of a cluster."""
    workers = getattr(args, "workers", None) or max(1, cluster.processors)
    with usage_errors():
        return ExpertTeam(model, workers, cluster)


def distribute_experts(args: Namespace, models: dict[str, Model], cluster: Any) -> int | None:
    """Move the experts of all models to a cluster; return how many rows to send at a time."""
    for name, model in models.items():
        if cluster is not None and model.has_experts:
            models[name] = expert_team(args, model, cluster)
    return None if cluster is None else ExpertTeam.round


def collect_experts(models: dict[str, Model]) -> None:
    """Replace each team of experts by its model."""
    for name, model in models.items():
        if isinstance(model, ExpertTeam):
            models[name] = model.model()
