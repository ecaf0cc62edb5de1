"""From the command line's words to streams, schemas and models."""

import os
from argparse import Namespace
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from spanboost.data.schema import Schema
from spanboost.data.stream import Stream
from spanboost.data.target import BinaryTarget, ClassTarget, NumberTarget, Target
from spanboost.errors import UsageError
from spanboost.models.files import load
from spanboost.models.model import Model
from spanboost.models.model_spec import AUTO, LEARNERS, ModelSpec, model_options
from spanboost.models.spec import BOOSTERS, parameter_names

OPTIONS = model_options()
OF_MODELS = tuple(OPTIONS)
OF_BOOSTERS = tuple(name for name, option in OPTIONS.items() if option.boosts)
OF_DATA = ("label", "weight", "ignore", "categorical", "positive", "classes")
OF_EVALUATE = ("baseline", "compare")


def stream_from_args(args: Namespace) -> Stream:
    """The rows of DATA."""
    paths = [*args.data, *(args.more_data or [])]
    if not paths:
        raise UsageError("no data: name a file, or - for standard input")
    return Stream(
        paths,
        args.format,
        skip_bad=args.on_error == "skip",
        delimiter=args.delimiter,
        header=not args.no_header,
    )


def check_apart(read: Iterable[str], written: Iterable[str | None]) -> None:
    """Refuse to write where something is read from, or two things to one file."""
    taken = {os.path.realpath(place) for place in read}
    for place in written:
        if place in (None, "-") or (os.path.exists(place) and not os.path.isfile(place)):
            continue
        real = os.path.realpath(place)
        if real in taken:
            raise UsageError(f"{place}: this command reads it, or writes something else there")
        taken.add(real)


def spec_from_args(args: Namespace, form: str) -> ModelSpec:
    """The model that was asked for; VW text is hashed, as Vowpal Wabbit hashes it."""
    given = {name: getattr(args, name) for name in (*OF_MODELS, "classes")}
    asked = [name for name in OF_BOOSTERS if given[name] is not None]
    if asked and given["learner"] is None:
        given["learner"] = "trees"
    with usage_errors():
        spec = ModelSpec(**{name: value for name, value in given.items() if value is not None})
    if spec.learner == AUTO and asked:
        raise UsageError(f"--learner auto chooses for itself: no {_spell(asked[0])} with it")
    others = (getattr(args, "compare", None) or "").split(",")
    if args.budget is not None and AUTO not in (spec.learner, *others):
        raise UsageError("--budget is for --learner auto")
    if args.memory is not None and not spec.replay:
        raise UsageError("--memory is for --replay")
    if spec.loss == "softmax" and spec.classes is None:
        raise UsageError("--loss softmax needs --classes K, how many classes there are")
    if spec.loss != "softmax" and spec.classes is not None:
        raise UsageError("--classes is for --loss softmax")
    if spec.predicts_scores and args.label_range is not None:
        raise UsageError(f"--label-range is for numbers, and --loss {spec.loss} has classes")
    if spec.loss == "softmax" and args.positive is not None:
        raise UsageError("--positive is for two labels, and --loss softmax has classes")
    return spec.replace(bits=18) if form == "vw" and spec.bits is None else spec


def build_model(spec: ModelSpec, form: str) -> Model:
    """A fresh model, for data of this form."""
    if spec.learner == "ball" and form != "table":
        raise UsageError("--learner ball reads tables of numbers: CSV, TSV, Parquet or Arrow")
    with usage_errors():
        return spec.build()


@contextmanager
def usage_errors() -> Iterator[None]:
    """Raise errors about parameters as usage errors, under the names of options."""
    try:
        with parameter_names(_SPELLED):
            yield
    except ValueError as error:
        raise UsageError(str(error)) from None


def load_with_schema(path: str) -> Model:
    """The model of a file, which knows how data are to be read for it."""
    model = load(path)
    if model.schema is None:
        raise UsageError(f"{path}: the model was not made from files, so nothing says how")
    return model


def models_to_compare(args: Namespace, spec: ModelSpec) -> dict[str, ModelSpec]:
    """The models of `evaluate`: one, or those of --compare; with --baseline each learner alone."""
    specs = [spec]
    if args.compare is not None:
        if args.learner is not None or args.booster is not None:
            raise UsageError("--compare names learners and boosters: no --learner or --booster")
        specs = [_of(spec, entry) for entry in args.compare.split(",")]
        if len(set(specs)) < len(specs):
            raise UsageError(f"--compare {args.compare} names the same model twice")
    if not args.baseline:
        return {one.name: one for one in specs}
    # of one copy, too, there is a baseline: itself
    named = {AUTO if one.learner == AUTO else f"{one.learner}:{one.booster}": one for one in specs}
    return named | {one.alone.name: one.alone for one in specs}


def schema_from_args(args: Namespace, form: str, spec: ModelSpec) -> Schema:
    """How the rows are to be read, as far as options say."""
    if form in ("vw", "svmlight"):
        for name in ("label", "weight", "ignore", "categorical"):
            if getattr(args, name):
                raise UsageError(f"--{name} is for columns with names, which {form} has not")
    return Schema(
        form=form,
        target=_target(args, spec),
        label=args.label,
        weight=args.weight,
        ignore=tuple(args.ignore or ()),
        categorical=tuple(args.categorical or ()),
        bits=spec.bits,
    )


def identity(args: Namespace, stream: Stream, spec: ModelSpec | None) -> dict[str, Any]:
    """What must be the same for a run to be resumed, beside its data."""
    how = ("label", "weight", "ignore", "categorical", "positive", "delimiter", "no_header")
    reading = {name: getattr(args, name) for name in (*how, "on_error")}
    return {
        "recipe": None if spec is None else spec.identity(),
        "reading": reading | {"formats": stream.formats},
    }


def refuse_with_model(args: Namespace, option: str) -> None:
    """A model that is loaded brings its own parameters."""
    for name in (*OF_MODELS, *OF_DATA, *OF_EVALUATE):
        given = getattr(args, name, None)
        if given is not None and given is not False:
            raise UsageError(f"the model of {option} brings its own: no {_spell(name)} with it")


def _spell(name: str) -> str:
    return f"-{name}" if name == "n" else f"--{name.replace('_', '-')}"


_DEFAULTS = {one.name: one.default for one in fields(ModelSpec)}
_SPELLED = {name: _spell(name) for name in (*OPTIONS, "split", "threads")} | {"eta": "--step"}


def _of(spec: ModelSpec, entry: str) -> ModelSpec:
    if entry == AUTO:
        plain = {name: _DEFAULTS[name] for name in (*OF_BOOSTERS, "memory", "x_norm")}
        return spec.replace(learner=AUTO, **plain)
    learner, _, booster = entry.partition(":")
    booster = booster or spec.booster
    if learner not in LEARNERS or booster not in BOOSTERS:
        raise UsageError(
            f"--compare: {entry!r} is not known; it is auto, LEARNER or LEARNER:BOOSTER, of "
            f"{', '.join(LEARNERS)} and span, hull"
        )
    return spec.replace(
        learner=learner,
        booster=booster,
        step=spec.step if booster == "span" else None,
        x_norm=spec.x_norm if learner == "ball" else None,
    )


def _target(args: Namespace, spec: ModelSpec) -> Target:
    if spec.classes is not None:
        return ClassTarget(spec.classes)
    if spec.predicts_scores or args.positive is not None:
        return BinaryTarget(args.positive)
    limits = spec.label_range
    return NumberTarget(None if isinstance(limits, str) else list(limits))
