"""The models of `spanboost evaluate`: one, or several that see the same rows."""

import os
from argparse import ArgumentTypeError, Namespace
from collections.abc import Mapping, Sequence

from spanboost.analysis.comparison import same_loss
from spanboost.cli.arguments import parse_parameter
from spanboost.cli.from_args import (
    OPTIONS,
    build_model,
    load_with_schema,
    schema_from_args,
    spec_from_args,
    usage_errors,
    with_calibration,
    with_intervals,
)
from spanboost.cli.own_options import accept_own_options
from spanboost.data.schema import Schema
from spanboost.data.target import NumberTarget
from spanboost.errors import UsageError, did_you_mean
from spanboost.models.intervals import Intervals
from spanboost.models.model import Model
from spanboost.models.model_spec import AUTO, LEARNERS, ModelSpec, single_booster_parameters
from spanboost.models.quantiles.asked_levels import interval_levels
from spanboost.models.spec import BOOSTERS, BUDGETS

# options that an entry of --compare can set; the others are the same for all models
OWN = {
    name.replace("_", "-"): name
    for name in OPTIONS
    if name not in ("learner", "booster", "loss", "bits")
}
SPELLINGS = OWN | {
    flag.removeprefix("--"): name
    for name in OWN.values()
    for flag in OPTIONS[name].flags
    if flag.startswith("--")
}


def models_to_evaluate(args: Namespace, form: str) -> dict[str, Model]:
    """Return the models by name, in order. All read rows by the schema of the first."""
    if args.initial is not None:
        return _with_wrappers(args, _models_with_initial(args, form))
    spec = spec_from_args(args, form)
    schema = schema_from_args(args, form, spec)
    models = {name: build_model(one, form) for name, one in _specs(args, spec).items()}
    for model in models.values():
        model.schema = schema
    return _with_wrappers(args, models)


def _with_wrappers(args: Namespace, models: dict[str, Model]) -> dict[str, Model]:
    """Return the models with what --interval and --calibrate ask for."""
    if args.calibrate:
        new = {name: with_calibration(one) for name, one in models.items() if not one.started}
        models |= new
    if args.interval is None:
        return models
    for name, model in models.items():
        if isinstance(model, Intervals):
            continue
        if model.started:
            path = args.initial if name == "model" else name
            raise UsageError(
                f"--interval: {path} has no intervals; train it with `train --intervals`"
            )
        models[name] = with_intervals(model, "--interval")
    with usage_errors({"coverage": "--interval"}):
        for coverage in args.interval:
            for levels in calibrated_levels(models):
                interval_levels(coverage, levels)
    return models


def calibrated_levels(models: Mapping[str, Model]) -> list[Sequence[float]]:
    """Return the levels that each model with intervals calibrates."""
    return [model.levels for model in models.values() if isinstance(model, Intervals)]


def _specs(args: Namespace, spec: ModelSpec) -> dict[str, ModelSpec]:
    """Return the specs of new models by name: one, or those of --compare, and the baselines."""
    named = [(spec.name, spec)]
    if args.compare is not None:
        if args.learner is not None or args.booster is not None:
            raise UsageError("--compare cannot be combined with --learner or --booster")
        for entry in filter(_is_file, args.compare.split(",")):
            raise UsageError(
                f"--compare {entry}: to compare model files, name the first one with -i MODEL"
            )
        named = [_spec_of_entry(spec, entry) for entry in args.compare.split(",")]
        if len({one for _, one in named}) < len(named):
            raise UsageError(f"--compare {args.compare}: duplicate model")
    if not args.baseline:
        return dict(named)
    if any("=" in name for name, _ in named):
        raise UsageError("--baseline cannot be combined with options in --compare")
    # a model of one copy is its own baseline, under two names
    boosted = {
        AUTO if one.learner == AUTO else f"{one.learner}:{one.booster}": one for _, one in named
    }
    return boosted | {one.alone.name: one.alone for _, one in named}


def _models_with_initial(args: Namespace, form: str) -> dict[str, Model]:
    """Return the model of -i and those of --compare, each a model file or a new model."""
    first = load_with_schema(args.initial)
    accept_own_options(args, "-i", first)
    if args.compare is None:
        return {"model": first}
    models = {args.initial: first}
    for entry in args.compare.split(","):
        if _is_file(entry):
            name, model = entry, load_with_schema(entry)
            _share_schema(entry, first, model)
        elif args.test:
            raise UsageError(f"--compare {entry}: a new model needs to learn; leave out -t")
        else:
            name, spec = _spec_of_entry(_spec_like(first), entry)
            model = build_model(spec, form)
            model.schema = first.schema
        if name in models:
            raise UsageError(f"--compare {args.compare}: duplicate model")
        models[name] = model
    return models


def _is_file(entry: str) -> bool:
    learner = entry.partition(":")[0]
    known = learner == AUTO or learner in LEARNERS
    return not known and (entry.endswith(".sb") or os.path.exists(entry))


def _spec_like(model: Model) -> ModelSpec:
    """Return the spec of a new model for the rows and the loss of another one."""
    target = model.schema.target
    limits = target.limits if isinstance(target, NumberTarget) else None
    return ModelSpec(
        loss=model.loss_,
        bits=model.schema.bits,
        label_range="auto" if limits is None else (limits[0], limits[1]),
    )


def _spec_of_entry(spec: ModelSpec, entry: str) -> tuple[str, ModelSpec]:
    """Return the name and the spec of an entry LEARNER[:BOOSTER][:OPTION=VALUE...]."""
    learner, *rest = entry.split(":")
    boosters = [word for word in rest[:1] if "=" not in word]
    booster = boosters[0] if boosters else spec.booster
    learners = (AUTO, *LEARNERS)
    if learner not in learners or booster not in BOOSTERS:
        name, known = (booster, BOOSTERS) if learner in learners else (learner, learners)
        near = did_you_mean(name, known)
        if learner == AUTO:
            near = did_you_mean(entry, [f"{AUTO}:budget={size}" for size in BUDGETS])
        raise UsageError(
            f"--compare: unknown model {entry!r}; use auto, LEARNER or LEARNER:BOOSTER with "
            f"learners {', '.join(LEARNERS)} and boosters span, hull; or, with -i, a model file"
            f"{near}"
        )
    own = dict(_parse_option(entry, word) for word in rest[len(boosters) :])
    if learner == AUTO:
        changes = single_booster_parameters() | ({"booster": booster} if boosters else {})
    else:
        changes = {
            "booster": booster,
            "step": spec.step if booster == "span" else None,
            "x_norm": spec.x_norm if learner == "ball" else None,
        }
    with usage_errors():
        made = spec.replace(learner=learner, **(changes | own))
    if "budget" in own and learner != AUTO:
        raise UsageError(f"--compare {entry}: budget requires auto")
    for name in ("memory", "replay_weight"):
        if name in own and not made.replay:
            raise UsageError(f"--compare {entry}: {name.replace('_', '-')} requires replay")
    return entry if own else made.name, made


def _parse_option(entry: str, word: str) -> tuple[str, object]:
    """Return the parameter and the value of OPTION=VALUE."""
    option, equals, text = word.partition("=")
    name = SPELLINGS.get(option.replace("_", "-"))
    if not equals or name is None:
        raise UsageError(
            f"--compare {entry}: expected OPTION=VALUE, with an option of {', '.join(OWN)} "
            f"(got {word!r}){did_you_mean(option, SPELLINGS)}"
        )
    try:
        return name, parse_parameter(name, text)
    except ArgumentTypeError as error:
        raise UsageError(f"--compare {entry}: {option}: {error}") from None


def _share_schema(path: str, first: Model, other: Model) -> None:
    """Check that two models read the same rows; let the first know the categories of both.

    Rows are encoded once, by the schema of the first model, so both must number categories alike.
    """
    if not same_loss(first, other):
        raise UsageError(f"{path}: the model has another loss than the model of -i")
    ours, theirs = first.schema, other.schema
    for what in ("form", "label", "weight", "bits", "iso_times", "time_features"):
        if getattr(ours, what) != getattr(theirs, what):
            raise UsageError(
                f"{path}: the models read rows differently: {what} is {getattr(theirs, what)!r}, "
                f"not {getattr(ours, what)!r}"
            )
    if ours.target.state() != theirs.target.state():
        raise UsageError(f"{path}: the models encode labels differently")
    _share_categories(path, ours, theirs)


def _share_categories(path: str, ours: Schema, theirs: Schema) -> None:
    columns = [
        [
            (column.name, column.category, column.time, column.bits)
            for column in schema.columns or []
        ]
        for schema in (ours, theirs)
    ]
    if columns[0] != columns[1]:
        raise UsageError(f"{path}: the models have different feature columns")
    for mine, yours in zip(ours.columns or [], theirs.columns or [], strict=True):
        shorter, longer = sorted(([*mine.codes], [*yours.codes]), key=len)
        if shorter != longer[: len(shorter)]:
            raise UsageError(
                f"{path}: the models number the categories of column {mine.name!r:.40} "
                "differently; train both from the same model, on the same first file, or with -b"
            )
        mine.codes = {text: code for code, text in enumerate(longer)}
