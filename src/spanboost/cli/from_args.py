"""Build streams, schemas and models from the options of the command line."""

import os
from argparse import Namespace
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from spanboost.data.query_table import Query
from spanboost.data.schema import Schema
from spanboost.data.stream import Stream
from spanboost.data.target import BinaryTarget, ClassTarget, NumberTarget, Target
from spanboost.errors import UsageError
from spanboost.losses import Logistic, Softmax, predicts_scores
from spanboost.models.calibrated import Calibrated
from spanboost.models.compact import is_compact
from spanboost.models.files import is_model_file, load
from spanboost.models.intervals import Intervals
from spanboost.models.model import Model
from spanboost.models.model_spec import AUTO, ModelSpec, model_options
from spanboost.models.sets import PredictionSets
from spanboost.models.spec import parameter_names

OPTIONS = model_options()
OF_MODELS = tuple(OPTIONS)
OF_BOOSTERS = tuple(name for name, option in OPTIONS.items() if option.implies_booster)
OF_DATA = ("label", "weight", "ignore", "categorical", "positive", "classes")


def stream_from_args(args: Namespace) -> Stream:
    """Return the rows of the DATA files."""
    paths = [*args.data, *(args.more_data or [])]
    if not paths:
        raise UsageError("no data; give a file, or - for standard input")
    return Stream(
        paths,
        args.format,
        skip_bad=args.on_error == "skip",
        delimiter=args.delimiter,
        header=args.header,
        decimal=args.decimal,
        query=query_from_args(args),
        rows=getattr(args, "limit", None),
    )


def query_from_args(args: Namespace) -> Query | None:
    """Return the query that the options define; None without one."""
    if args.query is None and args.resume_column is not None:
        raise UsageError("--resume-column requires --query")
    return None if args.query is None else Query(args.query, args.resume_column)


def check_apart(read: Iterable[str], written: Iterable[str | None]) -> None:
    """Raise UsageError if an output is also an input, or if two outputs are the same file."""
    taken = {os.path.realpath(path) for path in read}
    for path in written:
        if path in (None, "-") or (os.path.exists(path) and not os.path.isfile(path)):
            continue
        real = os.path.realpath(path)
        if real in taken:
            raise UsageError(
                f"{path}: the command also reads this file, or writes another output to it"
            )
        taken.add(real)


def check_replaced(path: str, option: str, *, with_model: bool) -> None:
    """Raise UsageError if a model would replace another file, or another file a model."""
    if not os.path.isfile(path) or os.path.getsize(path) == 0 or is_model_file(path) == with_model:
        return
    kind = "not a model" if with_model else "a model"
    raise UsageError(
        f"{option}: {path} exists and is {kind}; remove it first, or name another file"
    )


def spec_from_args(args: Namespace, form: str) -> ModelSpec:
    """Return the spec of the model; features of VW text are hashed to 18 bits by default."""
    given = {name: getattr(args, name) for name in (*OF_MODELS, "classes")}
    chosen = [name for name in OF_BOOSTERS if given[name] is not None]
    if chosen and given["learner"] is None:
        given["learner"] = "trees"
    with usage_errors():
        spec = ModelSpec(**{name: value for name, value in given.items() if value is not None})
    if spec.learner == AUTO and chosen:
        raise UsageError(f"{option_name(chosen[0])} cannot be combined with --learner auto")
    others = (getattr(args, "compare", None) or "").split(",")
    learners = (spec.learner, *(entry.partition(":")[0] for entry in others))
    if args.budget is not None and AUTO not in learners:
        if args.learner is None:
            raise UsageError(
                f"--budget applies to --learner auto, but {option_name(chosen[0])} selects a "
                "single booster; leave one of them out"
            )
        raise UsageError(f"--budget requires --learner auto (got --learner {args.learner})")
    for name in ("memory", "replay_weight"):
        if given[name] is not None and not spec.replay:
            raise UsageError(f"{option_name(name)} requires --replay")
    if spec.loss != "softmax" and spec.classes is not None:
        raise UsageError("--classes requires --loss softmax")
    if spec.predicts_scores and args.label_range is not None:
        raise UsageError(f"--label-range requires numeric labels; --loss {spec.loss} has classes")
    if spec.loss == "softmax" and args.positive is not None:
        raise UsageError(
            "--positive requires a loss with two labels; --loss softmax has more classes"
        )
    return spec.replace(bits=18) if form == "vw" and spec.bits is None else spec


def build_model(spec: ModelSpec, form: str) -> Model:
    """Return a new model for data of this form."""
    if spec.learner == "ball" and form != "table":
        raise UsageError("--learner ball requires a table of numbers: CSV, TSV, Parquet or Arrow")
    with usage_errors():
        return spec.build()


def with_intervals(model: Model, option: str) -> Intervals:
    """Return a new model with intervals; `option` asks for them."""
    if predicts_scores(model.loss_):
        raise UsageError(
            f"{option} requires numeric labels; --loss {type(model.loss_).__name__.lower()} has "
            "classes"
        )
    wrapped = Intervals(model)
    wrapped.schema = model.schema
    return wrapped


def with_calibration(model: Model) -> Calibrated:
    """Return a new model with calibrated probabilities."""
    if isinstance(model, PredictionSets):
        raise UsageError("--calibrate cannot be combined with --sets, which calibrates the sets")
    if not isinstance(model.loss_, Logistic | Softmax):
        raise UsageError("--calibrate requires --loss logistic or softmax")
    wrapped = Calibrated(model)
    wrapped.schema = model.schema
    return wrapped


def with_sets(model: Model) -> PredictionSets:
    """Return a new model with prediction sets."""
    if not isinstance(model.loss_, Logistic | Softmax):
        raise UsageError("--sets requires --loss logistic or softmax")
    wrapped = PredictionSets(model)
    wrapped.schema = model.schema
    return wrapped


@contextmanager
def usage_errors(names: Mapping[str, str] | None = None) -> Iterator[None]:
    """Raise errors about parameters as usage errors, with the names of options."""
    try:
        with parameter_names(names or _OPTION_NAMES):
            yield
    except ValueError as error:
        raise UsageError(str(error)) from None


def load_with_schema(path: str) -> Model:
    """Load a model that has a schema, which says how to read data for it."""
    model = load(path)
    if model.schema is None:
        raise UsageError(
            f"{path}: the model was trained in Python and does not know the columns of files; "
            "train it with `spanboost train` or `serve`"
        )
    return model


def load_to_learn(path: str) -> Model:
    """Load a model that has a schema and can continue to learn."""
    model = load_with_schema(path)
    if is_compact(model):
        raise UsageError(
            f"{path}: a compact model cannot learn; give the full model, written without --compact"
        )
    return model


def schema_from_args(args: Namespace, form: str, spec: ModelSpec) -> Schema:
    """Return the schema that the options define; the data complete it."""
    if form in ("vw", "svmlight"):
        for name in ("label", "weight", "ignore", "categorical"):
            if getattr(args, name):
                raise UsageError(f"--{name} requires named columns; {form} files have none")
    ignore = [*(args.ignore or ())]
    label = args.label or ("label" if form == "json" else None)
    for option, columns in (("ignore", ignore), ("weight", (args.weight,))):
        if label is not None and label in columns:
            raise UsageError(
                f"the label column {label!r} is also in --{option}; remove it there, or name "
                "another label with --label"
            )
    column = getattr(args, "resume_column", None)  # it numbers the rows
    if column is not None and column not in (*ignore, args.label, args.weight):
        ignore.append(column)
    return Schema(
        form=form,
        target=_target(args, spec),
        label=args.label,
        weight=args.weight,
        ignore=tuple(ignore),
        categorical=tuple(args.categorical or ()),
        bits=spec.bits,
        iso_times=form == "json",
    )


def identity(args: Namespace, stream: Stream, spec: ModelSpec | None) -> dict[str, Any]:
    """Return what must be equal, besides the data, to resume a run."""
    how = ("label", "weight", "ignore", "categorical", "positive", "delimiter", "on_error")
    reading = {name: getattr(args, name) for name in how}
    reading["no_header"] = args.header is False  # as checkpoints of version 0.1.0 have it
    if args.decimal is not None:
        reading["decimal"] = args.decimal
    return {
        "recipe": None if spec is None else spec.identity(),
        "reading": reading | {"formats": stream.formats},
    }


def refuse_with_model(args: Namespace, option: str, allowed: Collection[str] = ()) -> None:
    """Raise UsageError if an option would change the parameters of a loaded model.

    allowed: options that may be given.
    """
    for name in (*OF_MODELS, *OF_DATA, "baseline", "intervals", "sets", "calibrate"):
        given = getattr(args, name, None)
        if given is not None and given is not False and name not in allowed:
            raise UsageError(
                f"{option_name(name)} cannot be combined with {option}, which loads a complete "
                "model"
            )


def option_name(name: str) -> str:
    """Return the option that sets a parameter."""
    return f"-{name}" if name == "n" else f"--{name.replace('_', '-')}"


_OPTION_NAMES = {name: option_name(name) for name in (*OPTIONS, "split", "threads", "workers")} | {
    "eta": "--step"
}


def _target(args: Namespace, spec: ModelSpec) -> Target:
    if spec.loss == "softmax":
        return ClassTarget(spec.classes)
    if spec.predicts_scores or args.positive is not None:
        return BinaryTarget(args.positive)
    limits = spec.label_range
    return NumberTarget(None if isinstance(limits, str) else list(limits), spec.label_domain)
