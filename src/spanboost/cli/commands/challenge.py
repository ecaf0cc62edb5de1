"""The command `challenge`: let another model compete with the one of a service."""

from argparse import Namespace
from pathlib import Path
from typing import Any

from spanboost.cli import from_args
from spanboost.cli.admin_client import is_address, open_admin_client, suggest_address
from spanboost.cli.commands.versions import open_existing
from spanboost.errors import UsageError
from spanboost.models.files import load
from spanboost.service.storage.challenger import challenge_with, model_from_options
from spanboost.service.storage.control import PROMOTE, WITHDRAW, Control
from spanboost.service.storage.state import State

PATHS = {  # what each action sends to a running service
    "begin": ("POST", "/challenger"),
    "promote": ("POST", "/challenger/promote"),
    "withdraw": ("DELETE", "/challenger"),
}
DONE = {
    "begin": "The challenger learns all rows from now on.",
    "promote": "The challenger is the model of the service now.",
    "withdraw": "The challenge has ended. The model of the service is the same as before.",
}


def challenge(args: Namespace) -> int:
    """Begin, show or end a challenge, in a folder or a running service."""
    options = _options(args)
    if args.action != "begin" and (options or args.model is not None):
        raise UsageError(f"the options of a model need the action begin (got {args.action})")
    use = _use_service if is_address(args.target) else _use_folder
    with suggest_address(args.target):
        found = use(args, options)
    print(DONE[args.action] if args.action in DONE else _describe(found))
    return 0


def _options(args: Namespace) -> dict[str, Any]:
    """Return the options of a new model; they are checked in the same way as those of `train`."""
    names = (*from_args.OF_MODELS, "classes")
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    if args.model is not None and given:
        raise UsageError("options of a new model cannot be combined with -m")
    if given:
        spec = from_args.spec_from_args(args, "json")
        given["learner"] = spec.learner
    return given


def _use_service(args: Namespace, options: dict[str, Any]) -> Any:
    with open_admin_client(args.target, args.certificate) as client:
        if args.action not in PATHS:
            return client.administer("GET", "/challenger")["challenger"]
        method, path = PATHS[args.action]
        body: Any = None
        if args.action == "begin":
            body = options if args.model is None else Path(args.model).read_bytes()
        query = {"promote": args.promote} if args.action == "begin" else {}
        return client.administer(method, path, body, query)


def _use_folder(args: Namespace, options: dict[str, Any]) -> Any:
    """Work on a folder that no server uses."""
    state = open_existing(Path(args.target))
    try:
        if args.action in PATHS:
            state.apply_control(_control(args, state, options))
        return None if state.challenger is None else state.challenger.describe()
    finally:
        state.close()


def _control(args: Namespace, state: State, options: dict[str, Any]) -> Control:
    if args.action != "begin":
        return Control({"promote": PROMOTE, "withdraw": WITHDRAW}[args.action], {})
    model = model_from_options(state.model, options) if args.model is None else load(args.model)
    return challenge_with(state.model, model, args.promote)


def _describe(found: dict[str, Any] | None) -> str:
    if found is None:
        return "There is no challenger."
    low, high = found["interval"]
    interval = "unknown" if low is None or high is None else f"{low:z.6g} to {high:z.6g}"
    lines = [f"challenger: {found['model']}", f"rows compared: {found['rows']:,}"]
    if found["difference"] is not None:
        lines += [
            f"loss of the model: {found['champion_loss']:z.6g}",
            f"loss of the challenger: {found['challenger_loss']:z.6g}",
            f"difference: {found['difference']:z.6g} (95% interval at every row: {interval})",
        ]
    verdicts = {"challenger": "The challenger is better.", "champion": "The challenger is worse."}
    return "\n".join([*lines, verdicts.get(found["better"], "It is not certain which is better.")])
