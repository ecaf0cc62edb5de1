"""The `serve` command: run the HTTP service."""

import json
import os
import sys
import zlib
from argparse import Namespace
from collections.abc import Callable
from logging import INFO, WARNING
from pathlib import Path
from typing import Any

from spanboost.cli import from_args
from spanboost.cli.folder_options import WRAPPERS, describe_differences
from spanboost.cli.following import check_follow_options, copy_leader
from spanboost.cli.output.byte_bar import ByteBar
from spanboost.cli.own_options import accept_own_options
from spanboost.cli.worker_processes import add_workers, check_worker_options, share_memory
from spanboost.data.schema import Schema
from spanboost.errors import UsageError, install_hint
from spanboost.learners.ball import LinearBall
from spanboost.models.files import from_bytes, load, to_bytes
from spanboost.models.memory import fixed_bytes
from spanboost.models.model import Model
from spanboost.service.learning.warm_up import warm_up, warm_up_challenger
from spanboost.service.limits import RequestLimits, StateLimits, limit_values
from spanboost.service.log import log_to_stderr, write_log
from spanboost.service.memory import plan_memory
from spanboost.service.storage.backup import snapshot_paths
from spanboost.service.storage.leader_copy import LeaderCopy
from spanboost.service.storage.row_past import uses_past
from spanboost.service.storage.state import State

_SCHEMA_OPTIONS = ("label", "weight", "ignore", "categorical", "positive")


def serve(args: Namespace) -> int:
    """Open the state folder and answer requests until the process is stopped."""
    check_packages("serve")
    from spanboost.service.http.server import bind_socket, check_exposure

    check_worker_options(args)
    if args.config is not None:
        from spanboost.cli.several_models import serve_models

        return serve_models(args)
    tokens = read_tokens()
    check_exposure(args.host, tokens)
    with bind_socket(args.host, args.port) as sock, log_to_stderr(args.log):
        return _serve(args, tokens, sock)


def check_packages(command: str) -> None:
    """Raise UsageError if this system or its packages do not suffice for a server."""
    if sys.platform == "win32":
        raise UsageError(
            f"{command} needs Linux or macOS; on Windows, run it in a container or in WSL"
        )
    try:
        import httptools  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise UsageError(
            f"{command} needs packages that are not installed: {install_hint('serve')}"
        ) from None


def read_tokens() -> dict[str, str]:
    """Return the tokens by scope, from the usual environment variables."""
    from spanboost.service.http.middleware import SCOPES
    from spanboost.service.http.server import check_tokens, token_variable

    tokens = {
        scope: token
        for scope in SCOPES
        if (token := os.environ.get(token_variable(scope), "").strip())
    }
    check_tokens(tokens)
    return tokens


def request_limits(args: Namespace) -> RequestLimits:
    """Return the limits of requests that the options set."""
    return RequestLimits(**limit_values(RequestLimits, vars(args)))


def _serve(args: Namespace, tokens: dict[str, str], sock: Any) -> int:
    """Start the server, and open the state folder while it answers health checks."""
    from spanboost.service.http.app import build_app
    from spanboost.service.http.server import build_server, run

    check_follow_options(args)
    tls = read_tls(args)
    app = build_app(None, tokens, args.id, share_memory(request_limits(args), args.workers))
    server = build_server(app, tls)
    address = describe_address(sock, tls)

    def start() -> None:
        start_model(app, args, server.fail, address)
        if app.health.workers is not None:
            app.health.workers.start()

    with add_workers(server, app, args, tokens, sock, tls):
        return run(server, sock, start)


def start_model(app: Any, args: Namespace, on_failure: Callable[[str], None], address: str) -> Any:
    """Open the state folder, and let the application answer requests with its model.

    on_failure: receives the reason if the model can no longer predict or learn.
    Returns the engine.
    """
    from spanboost.service.learning.engine import Engine
    from spanboost.service.learning.follower import Follower

    progress, state_limits = app.health.progress, limit_values(StateLimits, vars(args))
    leader = copy_leader(args, progress.begin_copying)
    if leader is None:
        _check_new(args, app.limits)
    state = open_state(args, StateLimits(**state_limits), progress.update)
    try:
        _log_opening(state, args.accept_upgrade)
        progress.begin_compiling()
        warm_up(load(state.snapshot_path, trusted=True))
        if state.challenger is not None:
            warm_up_challenger(from_bytes(to_bytes(state.challenger.model)))
        engine = Engine(state, app.limits, on_failure)
    except BaseException:
        state.close()
        raise
    if leader is None:
        app.begin(engine)
    else:
        app.begin(engine, Follower(engine, leader, LeaderCopy(Path(args.dir)), on_failure))
    name, rows = type(state.model).__name__, state.progress.rows
    _log(f"serving {name} on {address}, rows learned: {rows:,}, state in {args.dir}")
    return engine


def describe_address(sock: Any, tls: Any) -> str:
    """Return the URL at which a server listens."""
    host, port = sock.getsockname()[:2]
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def read_tls(args: Namespace) -> Any:
    """Return the files for TLS that the options name; None without these options."""
    from spanboost.service.http.server import Tls

    if args.tls_cert is None and args.tls_key is None:
        return None
    if args.tls_cert is None or args.tls_key is None:
        raise UsageError("--tls-cert and --tls-key must be given together")
    tls = Tls(Path(args.tls_cert), Path(args.tls_key))
    tls.check()
    return tls


def _log_opening(state: State, accepted: bool) -> None:
    """Log what was unusual about the folder: damage, or records of another version."""
    if state.upgraded_from:
        versions = " and ".join(state.upgraded_from)
        if accepted:
            _log(f"learned records of version {versions} without a comparison", WARNING)
        else:
            _log(f"learned records of version {versions}; the replay reproduced its snapshot")
    for error in state.damaged:
        _log(f"a snapshot is damaged, so the previous one was loaded: {error}", WARNING)
    if state.journal.removed_bytes:
        size = state.journal.removed_bytes
        _log(f"removed an interrupted write from the end of the journal ({size} bytes)", WARNING)


def open_state(
    args: Namespace,
    limits: StateLimits,
    on_progress: Callable[[int, int], None] = lambda done, size: None,
) -> State:
    """Open the state folder; a new one starts with the model that the options define.

    on_progress: receives the bytes of the journal read so far, and its size.
    """

    def update(done: int, size: int) -> None:
        on_progress(done, size)
        bar.update(done, size)

    def check(identity: Any) -> None:
        differences = describe_differences(identity, _given_options(args))
        if differences:
            raise UsageError(
                f"{args.dir} was created with a different model or different options: "
                f"{differences}; omit the options of the model, or give another --dir"
            )
        id = identity.get("id", args.id)  # folders of earlier versions do not have it
        if id != args.id:
            raise UsageError(
                f"{args.dir} was created with --id {id} (got {args.id}); give --id {id}, or "
                "another --dir"
            )

    with ByteBar(args.quiet, "replaying the journal") as bar:
        state = State(
            Path(args.dir),
            lambda: _new_folder(args),
            limits,
            check,
            update,
            accept_upgrade=args.accept_upgrade,
        )
    try:
        _check_id(args.id, state.model.schema)
    except UsageError:
        state.close()
        raise
    return state


def _check_new(args: Namespace, limits: RequestLimits) -> None:
    """Raise UsageError for options with which a new folder could not be served.

    This comes first, because a folder that was created cannot change its options.
    """
    if any(snapshot_paths(Path(args.dir))):
        return
    model, _ = _new_model(args)
    _check_id(args.id, model.schema)
    plan_memory(limits.memory_bytes, fixed_bytes(model), limits.memory_share)


def _check_id(name: str, schema: Schema) -> None:
    if name in (schema.label or "label", schema.weight, *(c.name for c in schema.columns or ())):
        raise UsageError(
            f"--id {name}: the rows already have a label, weight or column with this name; choose "
            "another name"
        )


def _given_options(args: Namespace) -> dict[str, Any]:
    """Return the options of the model or its schema that were given, as JSON values."""
    # options that repeat those of the file given with -m are forgotten here
    initial = {} if args.model is None else {"initial": _new_model(args)[1]["initial"]}
    names = (*from_args.OF_MODELS, *from_args.OF_DATA)
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    given |= {name: True for name in WRAPPERS if getattr(args, name)} | initial
    return dict(json.loads(json.dumps(given)))


def _new_folder(args: Namespace) -> tuple[Model, Any]:
    """Return the model of a new state folder, and what a restart must have in common with it."""
    model, identity = _new_model(args)
    return model, identity | {"id": args.id}


def _new_model(args: Namespace) -> tuple[Model, Any]:
    """Return the model that the options define, and its identity as JSON values."""
    if args.model is not None:
        model = from_args.load_to_learn(args.model)
        accept_own_options(args, "-m", model, allowed=["past"])
        if model.schema.form not in ("json", "table"):
            raise UsageError(f"{args.model} reads {model.schema.form} data and cannot be served")
        if isinstance(getattr(model, "learner", None), LinearBall):
            raise UsageError(f"{args.model} uses --learner ball and cannot be served")
        initial = {"initial": zlib.crc32(Path(args.model).read_bytes())}
        if args.past != "on":
            return model.without_past(), initial
        if not uses_past(model):
            raise UsageError(
                f"{args.model} does not use past labels, so it cannot be served with --past on; "
                "train it with --past on"
            )
        return model, initial | {"past": True}
    spec = from_args.spec_from_args(args, "json")
    model = from_args.build_model(spec, "json")
    if args.intervals and uses_past(model):
        raise UsageError("--intervals cannot be combined with --past or --key in the service")
    if args.intervals:
        model = from_args.with_intervals(model, "--intervals")
    if args.calibrate:
        model = from_args.with_calibration(model)
    model.schema = from_args.schema_from_args(args, "json", spec)
    reading = {name: getattr(args, name) for name in _SCHEMA_OPTIONS}
    identity: dict[str, Any] = {"recipe": spec.identity(), "reading": reading}
    identity |= {name: True for name in WRAPPERS if getattr(args, name)}
    return model, json.loads(json.dumps(identity))


def _log(text: str, level: int = INFO) -> None:
    write_log(level, text)
