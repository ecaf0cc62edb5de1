"""--ray: the cluster that a command works on, and the team that trains there."""

from argparse import Namespace
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from spanboost.cli.options import usage_errors
from spanboost.errors import UsageError
from spanboost.models.model import Model
from spanboost.parallel.team import EVERY, Team


def cluster_of(args: Namespace) -> AbstractContextManager[Any]:
    """The one that was asked for, while the command lasts; None where none was."""
    if args.ray is None:
        return nullcontext()
    from spanboost.parallel.cluster import Cluster

    return Cluster(args.ray)


def check_team(args: Namespace, model: Model) -> None:
    """Before a cluster starts: refuse what a team cannot learn, and what only teams use."""
    for name in ("workers", "average_every"):
        if args.ray is None and getattr(args, name) is not None:
            raise UsageError(f"--{name.replace('_', '-')} is for --ray")
    if args.ray is not None and model.weights_:
        raise UsageError("--ray trains one booster, and auto is many: name a --learner")


def team_of(args: Namespace, model: Model, cluster: Any, rows: int) -> Team:
    """The workers that go on with a model which has learned so many rows of the stream."""
    workers = args.workers or max(1, cluster.processors)
    with usage_errors():
        team = Team(model, workers, args.average_every or EVERY, cluster, rows)
    every = args.checkpoint_every
    if every and team.averages and every % team.round:
        raise UsageError(
            f"--checkpoint-every {every} falls between two averages: with --ray it is a multiple "
            f"of W times K, here of {team.round}"
        )
    return team
