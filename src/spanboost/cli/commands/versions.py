"""The command `versions`: list, pin and roll back the versions of a service's model."""

import math
from argparse import Namespace
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spanboost.cli.admin_client import is_address, open_admin_client, suggest_address
from spanboost.cli.offline import existing_folder
from spanboost.errors import UsageError
from spanboost.models.model import Model
from spanboost.service.limits import StateLimits
from spanboost.service.storage.folder_lock import lock_folder
from spanboost.service.storage.state import State
from spanboost.service.storage.versions import (
    Version,
    list_versions,
    pin_version,
    roll_back_to,
    unpin_version,
)


def versions(args: Namespace) -> int:
    """Print the versions of a folder or a running service, or change one of them."""
    if (args.action is None) != (args.number is None):
        raise UsageError("pin, unpin and rollback need the number of a version")
    if is_address(args.target):
        _use_service(args)
    else:
        with suggest_address(args.target):
            _use_folder(args)
    return 0


def open_existing(folder: Path) -> State:
    """Open a state folder that no server uses; UsageError if it is not one.

    Only the server knows how much of the past it keeps, so nothing is deleted here.
    """
    _existing(str(folder))
    return State(folder, _refuse_new, StateLimits(keep_seconds=math.inf))


def _existing(name: str) -> Path:
    """Return a state folder; UsageError if it is not one."""
    advice = "; to ask a running service, give its address, such as http://127.0.0.1:8000"
    return existing_folder(name, advice)


def _use_service(args: Namespace) -> None:
    with open_admin_client(args.target, args.certificate) as client:
        if args.action is not None:
            result = client.administer("POST", f"/versions/{args.number}/{args.action}")
            if args.action == "rollback":
                _print_rollback(result["version"], result["record"])
                return
        found = client.administer("GET", "/versions")["versions"]
    _print_table([Version(**{name: one[name] for name in Version._fields}) for one in found])


def _use_folder(args: Namespace) -> None:
    folder = _existing(args.target) / "snapshots"
    if args.action == "rollback":
        _print_rollback(args.number, _roll_back(Path(args.target), args.number))
        return
    if args.action is not None:
        with lock_folder(Path(args.target)):
            (pin_version if args.action == "pin" else unpin_version)(folder, args.number)
    _print_table(list_versions(folder))


def _roll_back(folder: Path, number: int) -> int:
    """Roll back a folder that no server uses; return the number of the new record."""
    state = open_existing(folder)
    try:
        control = roll_back_to(state.snapshots, number)
        state.apply_control(control)
        return state.learned_record
    finally:
        state.close()


def _refuse_new() -> tuple[Model, Any]:
    raise UsageError("the state folder is empty; start it with `spanboost serve` first")


def _print_rollback(number: int, record: int) -> None:
    print(f"Rolled back to version {number}, in record {record} of the journal.")


def _print_table(found: Sequence[Version]) -> None:
    print(f"{'version':>8}  {'written (UTC)':19}  {'rows':>10}  {'loss':>10}  {'since last':>10}")
    for one in found:
        when = f"{datetime.fromtimestamp(one.time, UTC):%Y-%m-%d %H:%M:%S}"
        losses = "  ".join(f"{_format(loss):>10}" for loss in (one.loss, one.recent_loss))
        pinned = "  pinned" if one.pinned else ""
        print(f"{one.version:>8}  {when}  {one.rows:>10,}  {losses}{pinned}")


def _format(loss: float | None) -> str:
    return "-" if loss is None else f"{loss:z.6g}"
