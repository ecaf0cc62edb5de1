"""`spanboost train` and `spanboost evaluate`."""

import json
import sys
import zlib
from argparse import Namespace
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np

from spanboost.analysis.label_sums import LabelSums
from spanboost.analysis.progressive import LossTape
from spanboost.cli import options
from spanboost.cli.checkpoints import Checkpoints
from spanboost.cli.output.plots import check_model
from spanboost.cli.ray_options import check_team, cluster_of, team_of
from spanboost.cli.run import ProgressivePass, check_outputs
from spanboost.data.stream import Stream
from spanboost.errors import UsageError
from spanboost.losses import Squared
from spanboost.models.files import load, save
from spanboost.models.model import Model
from spanboost.theory.certificate import Witness


@np.errstate(over="ignore", invalid="ignore")  # of labels like 1e300 there is no average loss
def evaluate(args: Namespace) -> int:
    """Progressive validation, of one model or of several over the same rows."""
    if args.test and args.initial is None:
        raise UsageError("-t tests a model as it is: name it with -i MODEL")
    stream = options.stream_from_args(args)
    check_outputs(args, stream)
    if args.initial is not None:
        models = {"model": _continued(args)}
    else:
        spec = options.spec_from_args(args, stream.form)
        schema = options.schema_from_args(args, stream.form, spec)
        specs = options.models_to_compare(args, spec)
        models = {name: options.build_model(one, stream.form) for name, one in specs.items()}
        for model in models.values():
            model.schema = schema
    check_model(args, next(iter(models.values())))
    witness = _witness(args, next(iter(models.values()))) if args.certificate else None
    with closing(LossTape(1 + len(models))) as tape:
        run = ProgressivePass(args, stream, models, tape)
        for step in run.steps():
            if witness is not None and step.batch.y is not None:
                witness.add(step.batch.X, step.batch.y, step.batch.weights)
        run.finish(witness)
    return 0


@np.errstate(over="ignore", invalid="ignore")
def train(args: Namespace) -> int:
    """Learn a stream and write the model; resumable where checkpoints are asked for."""
    stream = options.stream_from_args(args)
    check_outputs(args, stream, args.output)
    name, model, identity = _asked(args, stream)
    check_model(args, model)
    check_team(args, model)
    with cluster_of(args) as cluster:
        return _train(args, stream, cluster, name, model, identity)


def _train(
    args: Namespace,
    stream: Stream,
    cluster: Any,
    name: str,
    model: Model,
    identity: dict[str, Any],
) -> int:
    output = Path(args.output)
    checkpoints = Checkpoints(output, identity, stream)
    rows, labels, every = 0, None, args.checkpoint_every
    found = checkpoints.find() if args.resume else None
    if found is not None:
        model, rows, every = found.model, found.rows, every or found.every
        labels = LabelSums(model.loss_, found.labels)
        log(args, f"resuming after {rows:,} rows")
    elif args.resume and output.exists():
        return _already(args, output, model)
    elif args.resume:
        log(args, f"there is no checkpoint {checkpoints.path}: starting from the beginning")
    else:
        checkpoints.clear()
    team = None if cluster is None else team_of(args, model, cluster, rows)
    rounds = None if team is None else team.round if team.averages else every or team.round
    with closing(checkpoints.tape(2, rows) if every else LossTape(2)) as tape:
        models: dict[str, Any] = {name: team or model}
        run = ProgressivePass(args, stream, models, tape, labels)
        if every and not rows:  # from now on a run is under way
            checkpoints.save(model, tape, run.labels.state(), every)
        try:
            for _ in run.steps(every, rounds):
                if every and tape.rows % every == 0:
                    so_far = model if team is None else team.model()
                    checkpoints.save(so_far, tape, run.labels.state(), every)
        except KeyboardInterrupt:
            log(args, _how_to_go_on(every))
            raise
        if team is not None:
            model = models[name] = team.model()
        save(model, output)
        checkpoints.clear()
        run.finish()
    return 0


def log(args: Namespace, text: str) -> None:
    """A line for people."""
    if not args.quiet:
        with suppress(OSError):  # nobody listens
            print(text, file=sys.stderr, flush=True)


def _asked(args: Namespace, stream: Stream) -> tuple[str, Model, dict[str, Any]]:
    """The model to train, and what tells this training from others."""
    if args.initial is not None:
        model = _continued(args)
        start = zlib.crc32(Path(args.initial).read_bytes())
        return "model", model, _identity(args, stream, None) | {"initial": start}
    spec = options.spec_from_args(args, stream.form)
    model = options.build_model(spec, stream.form)
    model.schema = options.schema_from_args(args, stream.form, spec)
    return spec.name, model, _identity(args, stream, spec)


def _identity(args: Namespace, stream: Stream, spec: Any) -> dict[str, Any]:
    """What tells this training from others."""
    team = {} if args.ray is None else {"team": [args.workers, args.average_every]}
    return options.identity(args, stream, spec) | team


def _continued(args: Namespace) -> Model:
    """The model that -i names."""
    options.refuse_with_model(args, "-i")
    return options.load_with_schema(args.initial)


def _witness(args: Namespace, model: Model) -> Witness:
    """Of the pass that the model is about to make."""
    if args.compare is not None:
        raise UsageError("--certificate is about one model: no --compare with it")
    if not isinstance(model.loss_, Squared):
        raise UsageError("--certificate is for --loss squared: only its best functions are known")
    return Witness(model, learn=not args.test)


def _already(args: Namespace, output: Path, model: Model) -> int:
    """There is no checkpoint, but a model: the run is finished, as far as a model can tell.

    Of which data it was made it does not say.
    """
    done = load(output)
    parameters = [one.parameters()["parameters"] for one in (done, model)]  # also of a committee
    same = parameters[0] == parameters[1] and _read_alike(done.schema, model.schema)
    if args.initial is not None or not same:
        raise UsageError(f"{output} is a finished model of another run: leave out --resume")
    log(args, f"{output} is finished: nothing to do")
    if args.json:
        print(json.dumps({"finished": True}))
    return 0


def _read_alike(done: Any, asked: Any) -> bool:
    """Whether a schema that has read files is what became of one that has not."""
    if done is None or asked.label not in (None, done.label):
        return False
    names = ("form", "weight", "ignore", "categorical", "bits")
    return all(getattr(done, name) == getattr(asked, name) for name in names)


def _how_to_go_on(every: int | None) -> str:
    if every:
        return "the last checkpoint is kept: the same command with --resume goes on from there"
    return "nothing was written; --checkpoint-every ROWS makes a run that --resume can go on with"
