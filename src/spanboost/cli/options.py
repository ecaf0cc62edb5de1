"""From the command line's words to streams, schemas and models."""

import os
from argparse import Namespace
from collections.abc import Iterable
from typing import Any

from spanboost.data.schema import Schema
from spanboost.data.stream import Stream
from spanboost.data.target import BinaryTarget, ClassTarget, NumberTarget, Target
from spanboost.errors import UsageError
from spanboost.models.auto import AnyModel
from spanboost.models.files import load
from spanboost.models.recipe import AUTO, LEARNERS, Recipe

OF_BOOSTERS = (
    "booster",
    "n",
    "step",
    "feedback",
    "rate",
    "replay",
)  # to give one is to ask for a booster
OF_MODELS = ("learner", *OF_BOOSTERS, "memory", "loss", "label_range", "x_norm", "budget")
OF_DATA = ("label", "weight", "ignore", "categorical", "positive", "classes", "bits")
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


def spec_from_args(args: Namespace, form: str) -> Recipe:
    """The model that was asked for; VW text is hashed, as Vowpal Wabbit hashes it."""
    given = {name: getattr(args, name) for name in (*OF_MODELS, "bits", "seed", "classes")}
    asked = [name for name in OF_BOOSTERS if given[name] is not None]
    if asked and given["learner"] is None:
        given["learner"] = "trees"
    recipe = Recipe(**{name: value for name, value in given.items() if value is not None})
    if recipe.learner == AUTO and asked:
        raise UsageError(f"--learner auto chooses for itself: no {_spelt(asked[0])} with it")
    others = (getattr(args, "compare", None) or "").split(",")
    if args.budget is not None and AUTO not in (recipe.learner, *others):
        raise UsageError("--budget is for --learner auto")
    if args.memory is not None and not recipe.replay:
        raise UsageError("--memory is for --replay")
    if recipe.loss == "softmax" and recipe.classes is None:
        raise UsageError("--loss softmax needs --classes K, how many classes there are")
    if recipe.loss != "softmax" and recipe.classes is not None:
        raise UsageError("--classes is for --loss softmax")
    if recipe.scores and args.label_range is not None:
        raise UsageError(f"--label-range is for numbers, and --loss {recipe.loss} has classes")
    if recipe.loss == "softmax" and args.positive is not None:
        raise UsageError("--positive is for two labels, and --loss softmax has classes")
    return recipe._replace(bits=18) if form == "vw" and recipe.bits is None else recipe


def build_model(recipe: Recipe, form: str) -> AnyModel:
    """A fresh model, for data of this form."""
    if recipe.learner == "ball" and form != "table":
        raise UsageError("--learner ball reads tables of numbers: CSV, TSV, Parquet or Arrow")
    try:
        return recipe.model()
    except ValueError as error:  # a parameter out of range, said in one sentence
        raise UsageError(str(error)) from None


def load_with_schema(path: str) -> AnyModel:
    """The model of a file, which knows how data are to be read for it."""
    model = load(path)
    if model.schema is None:
        raise UsageError(f"{path}: the model was not made from files, so nothing says how")
    return model


def models_to_compare(args: Namespace, recipe: Recipe) -> dict[str, Recipe]:
    """The models of `evaluate`: one, or those of --compare; with --baseline each learner alone."""
    recipes = [recipe]
    if args.compare is not None:
        if args.learner is not None or args.booster is not None:
            raise UsageError("--compare names learners and boosters: no --learner or --booster")
        recipes = [_of(recipe, entry) for entry in args.compare.split(",")]
        if len(set(recipes)) < len(recipes):
            raise UsageError(f"--compare {args.compare} names the same model twice")
    if not args.baseline:
        return {one.name: one for one in recipes}
    # of one copy, too, there is a baseline: itself
    named = {
        AUTO if one.learner == AUTO else f"{one.learner}:{one.booster}": one for one in recipes
    }
    return named | {one.alone.name: one.alone for one in recipes}


def schema_from_args(args: Namespace, form: str, recipe: Recipe) -> Schema:
    """How the rows are to be read, as far as options say."""
    if form in ("vw", "svmlight"):
        for name in ("label", "weight", "ignore", "categorical"):
            if getattr(args, name):
                raise UsageError(f"--{name} is for columns with names, which {form} has not")
    return Schema(
        form=form,
        target=_target(args, recipe),
        label=args.label,
        weight=args.weight,
        ignore=tuple(args.ignore or ()),
        categorical=tuple(args.categorical or ()),
        bits=recipe.bits,
    )


def identity(args: Namespace, stream: Stream, recipe: Recipe | None) -> dict[str, Any]:
    """What must be the same for a run to be resumed, beside its data."""
    how = ("label", "weight", "ignore", "categorical", "positive", "delimiter", "no_header")
    reading = {name: getattr(args, name) for name in (*how, "on_error")}
    return {
        "recipe": None if recipe is None else list(recipe),
        "reading": reading | {"formats": stream.formats},
    }


def refuse_with_model(args: Namespace, option: str) -> None:
    """A model that is loaded brings its own parameters."""
    for name in (*OF_MODELS, *OF_DATA, *OF_EVALUATE, "seed"):
        given = getattr(args, name, None)
        if given is not None and given is not False:
            raise UsageError(f"the model of {option} brings its own: no {_spelt(name)} with it")


def _spelt(name: str) -> str:
    return f"-{name}" if name == "n" else f"--{name.replace('_', '-')}"


def _of(recipe: Recipe, entry: str) -> Recipe:
    if entry == AUTO:
        plain = {name: Recipe._field_defaults[name] for name in (*OF_BOOSTERS, "memory", "x_norm")}
        return recipe._replace(learner=AUTO, **plain)
    learner, _, booster = entry.partition(":")
    booster = booster or recipe.booster
    if learner not in LEARNERS or booster not in ("span", "hull"):
        raise UsageError(
            f"--compare: {entry!r} is not known; it is auto, LEARNER or LEARNER:BOOSTER, of "
            f"{', '.join(LEARNERS)} and span, hull"
        )
    return recipe._replace(
        learner=learner,
        booster=booster,
        step=recipe.step if booster == "span" else None,
        x_norm=recipe.x_norm if learner == "ball" else None,
    )


def _target(args: Namespace, recipe: Recipe) -> Target:
    if recipe.classes is not None:
        return ClassTarget(recipe.classes)
    if recipe.scores or args.positive is not None:
        return BinaryTarget(args.positive)
    limits = recipe.label_range
    return NumberTarget(None if isinstance(limits, str) else list(limits))
