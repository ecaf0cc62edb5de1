"""`spanboost inspect`: print the parameters and size of a model, and what it has learned."""

import json
import os
from argparse import Namespace
from dataclasses import fields
from itertools import islice
from typing import Any

import numpy as np

from spanboost.analysis.importances import feature_importances
from spanboost.checks import finite_or_none
from spanboost.core.coefficients import coefficients
from spanboost.learners.trees import Trees
from spanboost.models.booster import Booster
from spanboost.models.choice import Choosing
from spanboost.models.files import load
from spanboost.models.model import Model
from spanboost.models.spec import SharedParameters
from spanboost.rows.block import origin_of


def inspect(args: Namespace) -> int:
    """Print a report of a model."""
    model = load(args.model)
    facts = report(model, args.top) | {"bytes": os.path.getsize(args.model)}
    print(as_json(facts) if args.json else describe(facts))
    return 0


def as_json(facts: dict[str, Any]) -> str:
    """Return a report as JSON text, with null for numbers that are not finite."""

    def finite(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: finite(part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [finite(part) for part in value]
        return finite_or_none(value) if isinstance(value, float) else value

    return json.dumps(finite(facts), indent=2, allow_nan=False)


def report(model: Model, top: int) -> dict[str, Any]:
    """Return everything that is known of a model, as JSON types; at most `top` features."""
    labels = model.labels
    facts = model.parameters() | {
        "examples": labels.rows,
        "label_centre": labels.centre.tolist(),
        "label_half_width": labels.half,
        "label_ends": None if model.label_ends is None else [*model.label_ends],
        "health": model.health.to_json(),
        "schema": None if model.schema is None else _schema(model.schema),
    }
    facts |= model.details() | _gains(model, top)
    return facts if model.parts else facts | _effects(model.as_booster(), top)


def _gains(model: Model, top: int) -> dict[str, Any]:
    """Return the features with the largest gains in the splits of trees; {} for other learners."""
    trees = isinstance(model.boosters_for_importances()[0].learner, Trees)
    if not (model.started and trees):
        return {}
    shares = feature_importances(model)
    gains = _rename_features(model, dict(islice(shares.items(), top)))
    return {"features": len(shares), "largest_gains": gains}


def _effects(model: Booster, top: int) -> dict[str, Any]:
    """Return the features and stages with the largest effect, for sums over features."""
    bank, labels = model.core.state.bank, model.labels
    if isinstance(model, Choosing) or not hasattr(bank, "effects"):
        return {}
    features, sizes = bank.effects()
    weights = (
        model.scale
        * coefficients(model.steps_, model.sigma_)
        * (1.0 if labels.scores else labels.half)
    )
    moved = sizes * weights  # [features, N] how far each moves the prediction, in label units
    each, total = moved.sum(axis=1), float(moved.sum())
    order = np.argsort(-each, kind="stable")[:top]
    name = _feature_namer(model)
    stages = moved.sum(axis=0) / total if 0 < total < np.inf else np.zeros(model.n)
    return {
        "features": len(features),
        "largest_effects": {name(int(features[k])): float(each[k]) for k in order},
        "stage_contributions": stages.tolist(),
    }


def _rename_features(model: Model, shares: dict[str | int, float]) -> dict[str, float]:
    """Replace the numbers of a tree's features by the column names of the table."""
    names: dict[str | int, str] = {}
    if model.schema is not None and model.schema.columns is not None:
        names |= dict(enumerate(model.schema.number_names))
        names |= {f"code {j}": column.name for j, column in enumerate(model.schema.categories)}
    return {names.get(key, str(key)): share for key, share in shares.items()}


def describe(facts: dict[str, Any]) -> str:
    """Return a report as lines of text."""
    parameters = facts["parameters"]
    hidden = {"learner", "n"}
    if not parameters.get("replay"):
        hidden |= {one.name for one in fields(SharedParameters)}  # they are about replay
    lines = [
        *(_describe_experts(facts) if "experts" in facts else _describe_booster(facts)),
        *(f"  {k} = {v}" for k, v in parameters.items() if v and k not in hidden),
        f"{facts['examples']:,} examples seen, {facts['bytes']:,} bytes",
    ]
    lines += _describe_labels(facts)
    lines += _describe_health(facts["health"])
    if facts["schema"] is not None:
        lines += ["input:", *(f"  {k} = {v}" for k, v in facts["schema"].items())]
    if "largest_gains" in facts:
        trees = f" of {facts['best_trees']}" if "best_trees" in facts else ""
        lines.append(f"{facts['features']:,} features in the splits{trees}; share of the gain:")
        lines += [f"  {share:<8.2%} {name}" for name, share in facts["largest_gains"].items()]
    if "largest_effects" in facts:
        features = f"{facts['features']:,} features"
        lines.append(f"{features}; largest effects on the prediction:")
        lines += [f"  {size:<12.6g} {name}" for name, size in facts["largest_effects"].items()]
        lines += ["stage  effect share   sigma" if "sigma" in facts else "stage  effect share"]
        sigmas = facts.get("sigma", [None] * len(facts["stage_contributions"]))
        for i, (share, sigma) in enumerate(zip(facts["stage_contributions"], sigmas, strict=True)):
            bar = "#" * round(40 * share / max(facts["stage_contributions"] or [1]) if share else 0)
            tail = "" if sigma is None else f"  {sigma:<9.4g}"
            lines.append(f"{i + 1:>5}  {share:>8.2%}     {tail} {bar}")
    return "\n".join(lines)


def _describe_labels(facts: dict[str, Any]) -> list[str]:
    """Return the ends of the labels and of the label range as lines of text."""
    lines = []
    if facts["label_ends"] is not None:
        low, high = facts["label_ends"]
        lines.append(f"labels from {low:z.10g} to {high:z.10g}")
    if facts["label_half_width"] and len(facts["label_centre"]) == 1:
        centre, half = facts["label_centre"][0], facts["label_half_width"]
        lines.append(f"label range of the model: {centre - half:z.10g} to {centre + half:z.10g}")
    return lines


def _describe_health(health: dict[str, Any]) -> list[str]:
    """Return the health of a model as lines of text."""
    labels = health["labels"]
    changes = {"widened": "widened", "shrunk": "shrunk", "new_units": "moved to new units"}
    rows = [
        f"{what} at row {labels[name]:,}"
        for name, what in changes.items()
        if labels[name] is not None
    ]
    return [
        f"health: {', '.join(health['problems']) or 'good'}",
        *([f"  label range last {', '.join(rows)}"] if rows else []),
    ]


def _describe_booster(facts: dict[str, Any]) -> list[str]:
    parameters, booster = facts["parameters"], facts["booster"]
    learner = parameters["learner"]
    if "members" in facts:
        booster += f" of {facts['members']}"
    fields = ", ".join(f"{k}={v}" for k, v in learner["fields"].items())
    if "most_copies" not in facts:
        return [f"{booster}, {_copies(parameters['n'], learner['class'])}({fields})"]
    copies = _copies(facts["most_copies"], learner["class"])
    weights = [f"  {weight:>7.2%} {name}" for name, weight in facts["weights"].items()]
    return [f"{booster}, up to {copies}({fields}); weights of the candidates:", *weights]


def _copies(n: int, learner: str) -> str:
    return f"1 copy of {learner}" if n == 1 else f"{n} copies of {learner}"


def _describe_experts(facts: dict[str, Any]) -> list[str]:
    """Return the experts and their weights as lines of text."""
    lines = [f"AutoBoost, {len(facts['experts'])} experts; their weights:"]
    for name, weight in facts["weights"].items():
        expert = facts["experts"].get(name)
        copies = "" if expert is None else _copies(expert["n"], expert["learner"]["class"])
        lines.append(f"  {weight:>7.2%} {name:<20} {copies}".rstrip())
    return lines


def _schema(schema: Any) -> dict[str, Any]:
    """Return the schema without the values of categories, as there may be millions of them."""
    state = schema.state()
    columns = state.pop("columns")
    if columns is not None:
        state["numbers"] = [column.name for column in schema.numbers]
        state["times"] = [column.name for column in schema.times]
        state["categories"] = {column.name: len(column.codes) for column in schema.categories}
    return {name: value for name, value in state.items() if value not in (None, [], {})}


def _feature_namer(model: Booster) -> Any:
    """Return a function from the number of a feature to its name."""
    schema, names = model.schema, model.encoder.names
    hashed = getattr(model.learner, "bits", None) is not None
    known = list(names.columns) if names is not None else []
    numbers = schema.number_names if schema is not None else []
    categories = schema.categories if schema is not None else []
    texts = [list(column.codes) for column in categories]

    def name(feature: int) -> str:
        if feature == 0:
            return "(constant)"
        if hashed:
            return f"slot {feature}"
        column, code = origin_of(feature, len(categories))
        if code is not None:
            known_codes = texts[column]
            text = known_codes[code] if code < len(known_codes) else f"code {code}"
            return f"{categories[column].name}={text}"
        for given in (numbers, known):
            if column < len(given):
                return given[column]
        return f"column {column}"

    return name
