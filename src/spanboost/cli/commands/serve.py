"""`spanboost serve`."""

import json
import os
import sys
import zlib
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np

from spanboost.cli import options
from spanboost.data.target import NumberTarget, Target
from spanboost.errors import UsageError
from spanboost.learners.ball import LinearBall
from spanboost.models.files import load
from spanboost.models.model import Model
from spanboost.service.request_rows import batches, to_predict
from spanboost.service.running_loss import RunningLoss
from spanboost.service.state import Bounds, State

_READING = ("label", "weight", "ignore", "categorical", "positive")
DAY = 24 * 3600.0


def serve(args: Namespace) -> int:
    """Open the state folder, and answer requests until told to stop."""
    try:
        import httptools  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise UsageError("serving needs more packages: pip install 'spanboost[serve]'") from None
    from spanboost.service.middleware import ADMIN, LEARN, PREDICT
    from spanboost.service.server import bind_socket, check_exposure, token_variable

    scopes = (PREDICT, LEARN, ADMIN)
    tokens = {
        scope: token
        for scope in scopes
        if (token := os.environ.get(token_variable(scope), "").strip())
    }
    check_exposure(args.host, tokens)
    with bind_socket(args.host, args.port) as sock:
        _serve(args, tokens, sock)
    return 0


def _serve(args: Namespace, tokens: dict[str, str], sock: Any) -> None:
    from spanboost.service.app import application
    from spanboost.service.engine import Engine
    from spanboost.service.middleware import Limits
    from spanboost.service.server import run

    bounds = Bounds(args.pending, args.pending_days * DAY, args.ids, args.snapshot_every)
    state = open_state(args, bounds)
    warm_up(state)
    for what in state.damaged:
        _say(f"a snapshot could not be read, the one before it was taken: {what}")
    if state.journal.cut:
        _say(f"the journal ended in {state.journal.cut} bytes of a write cut off: removed")
    limits = Limits(args.max_body << 20, args.max_rows, args.max_width, args.max_open)
    app = application(Engine(state, args.max_waiting), tokens, args.id, limits)
    host, port = sock.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    _say(f"serving {state.model!r} on http://{shown}:{port}, state in {args.dir}")
    run(app, sock)


def open_state(args: Namespace, bounds: Bounds) -> State:
    """The state folder; a fresh one begins with the model that was asked for."""

    def check(identity: Any) -> None:
        if _asks(args) and _asked(args)[1] != identity:
            raise UsageError(
                f"{args.dir} was begun with another model, or other options: leave them out, or "
                "name another --dir"
            )

    with _Bar(args.quiet) as bar:
        state = State(Path(args.dir), lambda: _asked(args), bounds, check, bar.show)
    schema = state.model.schema
    if args.id in (schema.label or "label", schema.weight, *(c.name for c in schema.columns or ())):
        state.close()
        raise UsageError(f"--id {args.id}: rows have something else of that name; choose another")
    return state


def warm_up(state: State) -> None:
    """Have everything compiled, or loaded, that the first requests would have to wait for."""
    copy = load(state.snapshot_path)
    for batch in batches(copy.schema, [{}], [_any_label(copy.schema.target)], None):
        answers = copy.learn_many(batch.X, batch.y, batch.weights)
        RunningLoss().add(copy, np.asarray(batch.y), np.ones(1), answers, 0.0)
    for batch in to_predict(copy.schema, [{}]):
        copy.predict_many(batch.X)


def _any_label(target: Target) -> float | str:
    if isinstance(target, NumberTarget):
        return float(target.limits[0]) if target.limits else 0.0
    return target.values[0] if target.values else "1"


def _asks(args: Namespace) -> bool:
    """Whether options say which model it is to be."""
    names = (*options.OF_MODELS, *options.OF_DATA)
    return args.model is not None or any(getattr(args, name) is not None for name in names)


def _asked(args: Namespace) -> tuple[Model, Any]:
    """The model to begin with, and what tells it from others, as JSON has it."""
    if args.model is not None:
        options.refuse_with_model(args, "-m")
        model = options.load_with_schema(args.model)
        if model.schema.form not in ("json", "table"):
            raise UsageError(f"{args.model}: it reads {model.schema.form}, which cannot be served")
        if isinstance(getattr(model, "learner", None), LinearBall):
            raise UsageError(f"{args.model}: --learner ball cannot be served")
        return model, {"initial": zlib.crc32(Path(args.model).read_bytes())}
    spec = options.spec_from_args(args, "json")
    model = options.build_model(spec, "json")
    model.schema = options.schema_from_args(args, "json", spec)
    reading = {name: getattr(args, name) for name in _READING}
    return model, json.loads(json.dumps({"recipe": spec.identity(), "reading": reading}))


class _Bar:
    """How far the journal has been replayed, on a terminal."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet or not sys.stderr.isatty()
        self._bar: Any = None

    def __enter__(self) -> "_Bar":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def show(self, done: int, size: int) -> None:
        """So many bytes of so many."""
        if self._quiet:
            return
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(total=size, unit="B", unit_scale=True, leave=False, desc="replaying")
        self._bar.update(done - self._bar.n)


def _say(text: str) -> None:
    print(f"spanboost: {text}", file=sys.stderr, flush=True)
