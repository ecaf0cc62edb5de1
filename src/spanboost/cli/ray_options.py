"""The option --ray: the cluster that a command runs on, and the team that trains there."""

from argparse import Namespace
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from spanboost.cli.from_args import usage_errors
from spanboost.errors import UsageError
from spanboost.models.model import Model
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
    if args.ray is not None and args.intervals:
        raise UsageError("--ray cannot be combined with --intervals")
    if args.ray is not None and model.weights_:
        raise UsageError("--ray cannot train --learner auto; choose another --learner")


def team_of(args: Namespace, model: Model, cluster: Any, rows: int) -> Team:
    """Return the workers that continue a model; it has learned `rows` rows of the stream."""
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
