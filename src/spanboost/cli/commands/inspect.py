"""`spanboost inspect`: print what a model is, what it has learned, and its size."""

import json
import os
import re
from argparse import Namespace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from spanboost.analysis.importances import feature_importances
from spanboost.checks import finite_or_none
from spanboost.cli.admin_client import is_address, open_admin_client
from spanboost.cli.output.inspection import describe
from spanboost.core.coefficients import coefficients
from spanboost.errors import UsageError
from spanboost.losses import predicts_scores
from spanboost.models.booster import Booster
from spanboost.models.choice import Choosing
from spanboost.models.files import from_bytes, load
from spanboost.models.model import Model
from spanboost.models.predictions import known_classes
from spanboost.models.sample_loss import has_sample, sample_loss
from spanboost.rows.block import origin_of

_ADDRESS = re.compile(r"[\w.-]+:\d+")  # of a service, without http://


def inspect(args: Namespace) -> int:
    """Print a report of a model."""
    model, size, folder = _read(args)
    facts = report(model, args.top) | {"bytes": size} | folder
    print(as_json(facts) if args.json else describe(facts, everything=args.all))
    return 0


def _read(args: Namespace) -> tuple[Model, int, dict[str, Any]]:
    """Return the model of a file, a state folder or a running service, its size and more facts."""
    if is_address(args.model):
        with open_admin_client(args.model, args.certificate) as client:
            data = client.model()
        return from_bytes(data, trusted=False), len(data), {}
    path, model, folder = args.model, None, dict[str, Any]()
    if (Path(path) / "snapshots").is_dir():
        path, model, folder = _read_folder(path)
    if not os.path.exists(path) and _ADDRESS.fullmatch(path):
        raise UsageError(f"{path}: file not found; for a service, give its address: http://{path}")
    return model or load(path), os.path.getsize(path), folder


def _read_folder(name: str) -> tuple[Path, Model, dict[str, Any]]:
    """Return the snapshot of a state folder, its model, and what the folder has learned."""
    from spanboost.service.storage.folder_summary import summarise_folder

    found = summarise_folder(Path(name))
    service = {"record": found.record, "rows_learned": found.learned, "rows_queued": found.queued}
    return found.path, found.model, {"service": service}


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
        "log_link": labels.log_link,
        "label_ends": None if model.label_ends is None else [*model.label_ends],
        "health": model.health.to_json(),
        "schema": None if model.schema is None else _schema(model.schema),
        "classes": _classes(model),
        "rows": _rows(model),
        "facts": model.own_facts(),
        "memory_bytes": _memory_bytes(model),
    }
    facts |= model.details() | _importances(model, top)
    return facts if model.parts else facts | _effects(model.as_booster(), top)


def _importances(model: Model, top: int) -> dict[str, Any]:
    """Return the most important features and the loss on the rows that the model keeps.

    It is {} if the model has kept no rows.
    """
    if not has_sample(model):
        return {}
    found = feature_importances(model).items()
    shares = dict(islice(((name, share) for name, share in found if share > 0), top))
    rows, loss = sample_loss(model)
    return {
        "importances": {str(name): share for name, share in shares.items()},
        "kept_rows": rows,
        "kept_loss": loss,
    }


def _classes(model: Model) -> list[str] | None:
    """Return the names of the classes; None for numbers, and for labels without names."""
    if model.schema is None or not predicts_scores(model.loss_):
        return None
    return known_classes(model)


def _rows(model: Model) -> dict[str, Any] | None:
    """Return the kind of the rows, their number of features and the names; None if unknown."""
    kind, names = model.encoder.kind, model.encoder.names
    if kind is None:
        return None
    if not kind.named or names is None or names.bits is not None:
        return {"named": kind.named, "features": kind.shape[0] if kind.shape else 0, "names": []}
    return {"named": True, "features": len(names.columns), "names": [*names.columns]}


def _memory_bytes(model: Model) -> int:
    return sum(array.nbytes for _, array in model.tensors()) if model.started else 0


def _effects(model: Booster, top: int) -> dict[str, Any]:
    """Return the features and stages with the largest effect, for sums over features."""
    bank, labels = model.core.state.bank, model.labels
    if isinstance(model, Choosing) or not hasattr(bank, "effects"):
        return {}
    features, sizes = bank.effects()
    weights = (
        model.scale
        * coefficients(model.steps_, model.sigma_)
        * (1.0 if labels.scores or labels.log_link else labels.half)
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


def _schema(schema: Any) -> dict[str, Any]:
    """Return the schema with the number of categories instead of their values; None if hashed.

    There may be millions of values.
    """
    state = schema.state()
    columns = state.pop("columns")
    if columns is not None:
        state["numbers"] = [column.name for column in schema.numbers]
        state["times"] = [column.name for column in schema.times]
        state["categories"] = {
            column.name: None if schema.is_hashed(column) else len(column.codes)
            for column in schema.categories
        }
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
