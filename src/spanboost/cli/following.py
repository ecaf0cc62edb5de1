"""The part of `serve --follow` before the state folder is opened: copy the folder of the leader."""

import os
import time
from argparse import Namespace
from collections.abc import Callable
from logging import WARNING
from pathlib import Path

from spanboost.cli import from_args
from spanboost.errors import UsageError
from spanboost.service.learning.leaders import find_leader
from spanboost.service.log import write_log
from spanboost.service.storage.journal_tail import DivergedError
from spanboost.service.storage.leader_copy import Leader, LeaderCopy, LeaderError

LEADER_TOKEN = "SPANBOOST_LEADER_TOKEN"
RETRY_SECONDS = 1.0  # time between two attempts to copy the folder


def check_follow_options(args: Namespace) -> None:
    """Raise UsageError for options that a follower takes from its leader."""
    names = (*from_args.OF_MODELS, *from_args.OF_DATA, "model")
    if args.follow is not None and any(getattr(args, name) is not None for name in names):
        raise UsageError(
            "--follow takes the model and the meaning of columns from the leader; omit these "
            "options"
        )


def copy_leader(args: Namespace, on_attempt: Callable[[], None]) -> Leader | None:
    """Copy the folder of the leader that the options name, unless there is a copy; return it.

    on_attempt: called before each attempt; it may raise an error to end them.
    """
    if args.follow is None:
        return None
    folder = Path(args.dir)
    leader = find_leader(args.follow, folder, os.environ.get(LEADER_TOKEN, "").strip() or None)
    waiting = False
    while True:
        on_attempt()
        try:
            LeaderCopy(folder).prepare(leader)
            return leader
        except (LeaderError, DivergedError) as error:
            if not waiting:
                why = f"cannot copy the leader {leader.address} yet: {error}; retrying"
                write_log(WARNING, why)
            waiting = True
            time.sleep(RETRY_SECONDS)
