"""`spanboost inspect`: parameters, size, and what was learned."""

import json
import os
from argparse import Namespace
from itertools import islice
from typing import Any

import numpy as np

from spanboost.analysis.explanations import coefficients
from spanboost.analysis.importances import feature_importances
from spanboost.learners.trees import Trees
from spanboost.models.booster import Booster
from spanboost.models.files import load
from spanboost.models.model import Model
from spanboost.rows.block import origin_of


def inspect(args: Namespace) -> int:
    """Print what a model is."""
    model = load(args.model)
    found = report(model, args.top) | {"bytes": os.path.getsize(args.model)}
    print(json.dumps(found, indent=2, allow_nan=False) if args.json else shown(found))
    return 0


def report(model: Model, top: int) -> dict[str, Any]:
    """Return everything there is to say about a model, as JSON."""
    labels = model.labels
    found = model.parameters() | {
        "examples": labels.rows,
        "label_centre": labels.centre.tolist(),
        "label_half_width": labels.half,
        "schema": None if model.schema is None else _schema(model.schema),
    }
    found |= model.details() | _gains(model, top)
    return found if model.parts else found | _effects(model.as_booster(), top)


def _gains(model: Model, top: int) -> dict[str, Any]:
    """Return the features that trees split by; nothing for other learners."""
    trees = isinstance(model.boosters_for_importances()[0].learner, Trees)
    if not (model.started and trees):
        return {}
    shares = feature_importances(model)
    gains = _named(model, dict(islice(shares.items(), top)))
    return {"features": len(shares), "largest_gains": gains}


def _effects(model: Booster, top: int) -> dict[str, Any]:
    """Return which features and stages matter most, for learners that sum over features."""
    bank, labels = model.core.state.bank, model.labels
    if not hasattr(bank, "effects"):
        return {}
    features, sizes = bank.effects()
    weights = coefficients(model) * (1.0 if labels.scores else labels.half)
    moved = sizes * weights  # [features, N] how far each moves the answer, in the user's units
    each, total = moved.sum(axis=1), float(moved.sum())
    order = np.argsort(-each, kind="stable")[:top]
    names = _names(model)
    stages = moved.sum(axis=0) / total if total > 0 else np.zeros(model.n)
    return {
        "features": len(features),
        "largest_effects": {names(int(features[k])): float(each[k]) for k in order},
        "stage_contributions": stages.tolist(),
    }


def _named(model: Model, shares: dict[str | int, float]) -> dict[str, float]:
    """Features of trees under the names of the table they were read from."""
    names: dict[str | int, str] = {}
    if model.schema is not None and model.schema.columns is not None:
        names |= {j: column.name for j, column in enumerate(model.schema.numbers)}
        names |= {f"code {j}": column.name for j, column in enumerate(model.schema.categories)}
    return {names.get(key, str(key)): share for key, share in shares.items()}


def shown(found: dict[str, Any]) -> str:
    """For people."""
    parameters = found["parameters"]
    hidden = {"learner", "n"} if parameters.get("replay") else {"learner", "n", "memory"}
    lines = [
        *(_shown_experts(found) if "experts" in found else [_copies(found, parameters)]),
        *(f"  {k} = {v}" for k, v in parameters.items() if v and k not in hidden),
        f"{found['examples']:,} examples seen, {found['bytes']:,} bytes",
    ]
    if found["label_half_width"] and len(found["label_centre"]) == 1:
        centre, half = found["label_centre"][0], found["label_half_width"]
        lines.append(f"labels from {centre - half:.10g} to {centre + half:.10g}")
    if found["schema"] is not None:
        lines += ["read from:", *(f"  {k} = {v}" for k, v in found["schema"].items())]
    if "largest_gains" in found:
        whose = f" of {found['best_trees']}" if "best_trees" in found else ""
        lines.append(
            f"splits{whose} are by {found['features']:,} features; their shares of the gain:"
        )
        lines += [f"  {share:<8.2%} {name}" for name, share in found["largest_gains"].items()]
    if "largest_effects" in found:
        features = f"{found['features']:,} features"
        lines.append(f"{features}; how far the largest can move the prediction:")
        lines += [f"  {size:<12.6g} {name}" for name, size in found["largest_effects"].items()]
        lines += ["stage  share of that  sigma" if "sigma" in found else "stage  share of that"]
        sigmas = found.get("sigma", [None] * len(found["stage_contributions"]))
        for i, (share, sigma) in enumerate(zip(found["stage_contributions"], sigmas, strict=True)):
            bar = "#" * round(40 * share / max(found["stage_contributions"] or [1]) if share else 0)
            tail = "" if sigma is None else f"  {sigma:<9.4g}"
            lines.append(f"{i + 1:>5}  {share:>8.2%}     {tail} {bar}")
    return "\n".join(lines)


def _copies(found: dict[str, Any], parameters: dict[str, Any]) -> str:
    learner, booster = parameters["learner"], found["booster"]
    if "members" in found:
        booster += f" of {found['members']}"
    fields = ", ".join(f"{k}={v}" for k, v in learner["fields"].items())
    return f"{booster}, {parameters['n']} copies of {learner['class']}({fields})"


def _shown_experts(found: dict[str, Any]) -> list[str]:
    """Who is asked, and how much each counts."""
    lines = [f"AutoBoost, {len(found['experts'])} experts; their weights:"]
    for name, weight in found["weights"].items():
        expert = found["experts"].get(name)
        what = "" if expert is None else f"{expert['n']} of {expert['learner']['class']}"
        lines.append(f"  {weight:>7.2%} {name:<20} {what}".rstrip())
    return lines


def _schema(schema: Any) -> dict[str, Any]:
    """The schema without the values of its categories, of which there may be millions."""
    state = schema.state()
    columns = state.pop("columns")
    if columns is not None:
        state["numbers"] = [column["name"] for column in columns if not column["category"]]
        state["categories"] = {
            column["name"]: len(column["codes"]) for column in columns if column["category"]
        }
    return {name: value for name, value in state.items() if value not in (None, [], {})}


def _names(model: Booster) -> Any:
    """From a feature's number to its name."""
    schema, names = model.schema, model.encoder.names
    hashed = getattr(model.learner, "bits", None) is not None
    known = list(names.columns) if names is not None else []
    numbers = [column.name for column in schema.numbers] if schema is not None else []
    categories = schema.categories if schema is not None else []
    texts = [list(column.codes) for column in categories]

    def name(feature: int) -> str:
        if feature == 0:
            return "(constant)"
        if hashed:
            return f"place {feature}"
        column, code = origin_of(feature, len(categories))
        if code is not None:
            return f"{categories[column].name}={texts[column][code]}"
        for given in (numbers, known):
            if column < len(given):
                return given[column]
        return f"column {column}"

    return name
