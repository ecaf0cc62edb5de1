"""--ray: the cluster that a command works on."""

from argparse import Namespace
from contextlib import AbstractContextManager, nullcontext
from typing import Any


def cluster_of(args: Namespace) -> AbstractContextManager[Any]:
    """The one that was asked for, while the command lasts; None where none was."""
    if args.ray is None:
        return nullcontext()
    from spanboost.cluster import Cluster

    return Cluster(args.ray)
