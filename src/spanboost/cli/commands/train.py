"""`spanboost train` and `spanboost evaluate`."""

import json
import zlib
from argparse import Namespace
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np

from spanboost.analysis.label_sums import LabelSums
from spanboost.analysis.metrics.interval_tape import IntervalTape
from spanboost.analysis.metrics.tape import OutcomeTape
from spanboost.analysis.mlflow import SilentRun, TrainingRun
from spanboost.analysis.progressive import LossTape
from spanboost.cli import from_args
from spanboost.cli.checkpoints import Checkpoints, resume_hints
from spanboost.cli.compared_models import calibrated_levels, models_to_evaluate
from spanboost.cli.finished_run import check_finished
from spanboost.cli.output.plots import check_model
from spanboost.cli.output.progress import log
from spanboost.cli.own_options import accept_own_options
from spanboost.cli.ray_options import (
    check_evaluation,
    check_team,
    cluster_of,
    collect_experts,
    distribute_experts,
    team_of,
)
from spanboost.cli.run import ProgressivePass, check_outputs
from spanboost.cli.sharded_training import check_sharded, train_sharded
from spanboost.cli.stream_positions import begin_after, model_positions
from spanboost.data.stream import Stream
from spanboost.errors import UsageError
from spanboost.models.compact import check_compact
from spanboost.models.files import save
from spanboost.models.model import Model
from spanboost.models.quantiles.asked_levels import levels_within
from spanboost.models.quantiles.curves import LEVELS
from spanboost.theory.certificate import LOSSES, Witness
from spanboost.theory.measured_pass import BLOCK


@np.errstate(over="ignore", invalid="ignore")  # labels like 1e300 have no average loss
def evaluate(args: Namespace) -> int:
    """Print the progressive loss of one model, or of several over the same rows."""
    if args.test and args.initial is None:
        raise UsageError("-t needs a model to test; name it with -i MODEL")
    stream = from_args.stream_from_args(args)
    check_outputs(args, stream)
    models = models_to_evaluate(args, stream.form)
    check_model(args, next(iter(models.values())))
    check_evaluation(args, models)
    witness = _make_witness(args, next(iter(models.values()))) if args.certificate else None
    loss = next(iter(models.values())).loss_
    with cluster_of(args) as cluster, ExitStack() as stack:
        together = distribute_experts(args, models, cluster)
        tape = stack.enter_context(closing(LossTape(1 + len(models))))
        outcomes = stack.enter_context(closing(OutcomeTape(loss, len(models))))
        intervals = None
        if args.interval is not None:
            levels = levels_within(LEVELS, calibrated_levels(models))
            kept = IntervalTape(args.interval, len(models), levels)
            intervals = stack.enter_context(closing(kept))
        run = ProgressivePass(args, stream, models, tape, outcomes, intervals=intervals)
        # small batches, because a witness needs the stages of all rows in a batch
        for step in run.steps(None if witness is None else BLOCK, together):
            if witness is not None and step.batch.y is not None:
                answers = step.answers[run.names[0]]
                witness.add(step.batch.X, step.batch.y, step.batch.weights, answers)
        collect_experts(models)
        # the numbers are what the command is for: with --quiet it prints nothing else
        run.finish(witness, silent=args.quiet and args.json)
    return 0


@np.errstate(over="ignore", invalid="ignore")
def train(args: Namespace) -> int:
    """Learn a stream and write the model; with checkpoints, the run can be resumed."""
    stream = from_args.stream_from_args(args)
    check_outputs(args, stream, args.output)
    name, model, identity = _model_to_train(args, stream)
    check_model(args, model)
    check_team(args, model)
    if args.compact:
        check_compact(model)
    if args.sharded:
        check_sharded(args, stream, model)
        with cluster_of(args) as cluster:
            return train_sharded(args, stream, cluster, name, model, identity)
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
    positions = model_positions(args.initial)
    saved = checkpoints.find() if args.resume else None
    if saved is not None:
        model, rows, every = saved.model, saved.rows, every or saved.every
        labels, positions = LabelSums(model.loss_, saved.labels), saved.positions
        log(args, f"resuming after {rows:,} rows")
    elif args.resume and output.exists():
        return _report_complete(args, output, model, stream)
    elif args.resume:
        log(args, f"checkpoint {checkpoints.path} not found; starting from the beginning")
    else:
        checkpoints.clear()
    begin_after(args, stream, positions, every, in_checkpoint=saved is not None)
    team = None if cluster is None else team_of(args, model, cluster, rows)
    rounds = None if team is None else team.round if team.averages else every or team.round
    with ExitStack() as stack:
        tape = stack.enter_context(closing(checkpoints.tape(2, rows) if every else LossTape(2)))
        outcomes = (
            checkpoints.outcome_tape(model.loss_, rows) if every else OutcomeTape(model.loss_, 1)
        )
        if outcomes is None:
            log(args, "no metrics: the checkpoint of an earlier version does not have them")
        else:
            stack.enter_context(closing(outcomes))
        models: dict[str, Any] = {name: team or model}
        run = ProgressivePass(args, stream, models, tape, outcomes, labels)
        run.positions |= positions
        logged = stack.enter_context(_mlflow_run(args, model, rows))
        with resume_hints(every):
            if every and not rows:  # --resume works from now on
                checkpoints.save(model, tape, outcomes, run.labels.state(), every, run.positions)
            for step in run.steps(every, rounds):
                logged.add_losses(step.losses[:, 0], step.batch.weights)
                if every and tape.rows % every == 0:
                    current = model if team is None else team.model()
                    state = run.labels.state()
                    checkpoints.save(current, tape, outcomes, state, every, run.positions)
            if team is not None:
                model = models[name] = team.model()
            save(model, output, run=_positions(run), compact=args.compact)
        checkpoints.clear()
        logged.finish(_finish(args, run), model, compact=args.compact)
    return 0


def _positions(run: ProgressivePass) -> dict[str, Any] | None:
    """Return the positions in the streams that were read, as a model file has them."""
    return {"positions": run.positions} if run.positions else None


def _mlflow_run(args: Namespace, model: Model, rows: int) -> SilentRun:
    """Return the run of MLflow that --mlflow asks for, or one that logs nothing."""
    if args.mlflow is None:
        return SilentRun()
    return TrainingRun(model, args.mlflow or None, rows=rows)


def _finish(args: Namespace, run: ProgressivePass) -> dict[str, Any]:
    if run.tape.rows:
        return run.finish(silent=args.quiet)
    # the topic, the stream or the query has not grown
    log(args, "there are no new rows")
    return {}


def _model_to_train(args: Namespace, stream: Stream) -> tuple[str, Model, dict[str, Any]]:
    """Return the name of the model to train, the model, and the identity of the run."""
    if args.initial is not None:
        model = _load_initial(args)
        start = zlib.crc32(Path(args.initial).read_bytes())
        return "model", model, _identity(args, stream, None, model) | {"initial": start}
    spec = from_args.spec_from_args(args, stream.form)
    model = from_args.build_model(spec, stream.form)
    if args.intervals:
        model = from_args.with_intervals(model, "--intervals")
    if args.sets:
        model = from_args.with_sets(model)
    if args.calibrate:
        model = from_args.with_calibration(model)
    model.schema = from_args.schema_from_args(args, stream.form, spec)
    return spec.name, model, _identity(args, stream, spec, model)


def _identity(args: Namespace, stream: Stream, spec: Any, model: Model) -> dict[str, Any]:
    """Return what a checkpoint must match for this run to resume from it."""
    alone = args.ray is None or model.has_experts  # workers do not change the result
    team = {} if alone else {"team": [args.workers, args.average_every]}
    wrapped = {name: True for name in ("intervals", "sets", "calibrate") if getattr(args, name)}
    sharded = {"sharded": True} if args.sharded else {}
    return from_args.identity(args, stream, spec) | team | wrapped | sharded


def _load_initial(args: Namespace) -> Model:
    """Load the model that -i names."""
    model = from_args.load_to_learn(args.initial)
    accept_own_options(args, "-i", model)
    return model


def _make_witness(args: Namespace, model: Model) -> Witness:
    """Return a witness of the pass that the model is about to make."""
    if args.compare is not None:
        raise UsageError("--certificate cannot be combined with --compare")
    if not isinstance(model.loss_, LOSSES):
        raise UsageError("--certificate requires --loss squared, logistic or hinge")
    return Witness(model, learn=not args.test)


def _report_complete(args: Namespace, output: Path, model: Model, stream: Stream) -> int:
    """Report that the run is complete: its model has learned DATA, and there is no checkpoint."""
    check_finished(args, output, model, stream)
    log(args, f"{output} is complete; nothing to do")
    if args.json:
        print(json.dumps({"finished": True}))
    return 0
