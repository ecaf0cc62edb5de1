"""The report of `spanboost inspect` as lines of text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from math import isnan
from typing import Any

from spanboost.models.loss_record import AverageLoss
from spanboost.models.sample_loss import SampleLoss, describe_loss
from spanboost.models.spec import SharedParameters

_WIDTH = 14  # of the names of facts
_BAR_WIDTH = 20
_MOST_NAMES = 10  # of features of one kind, or of classes
_MOST_PARTS = 12  # experts or candidates


def describe(facts: dict[str, Any], *, everything: bool = False) -> str:
    """Return a report as text; `everything` adds the parameters and the stages."""
    lines = [
        _title(facts),
        *(f"  {name:<{_WIDTH}} {text}" for name, text in _facts(facts)),
        *_weights(facts, everything),
        *_importances(facts),
    ]
    if everything:
        lines += [*_parameters(facts), *_effects(facts)]
    return "\n".join(lines)


def _title(facts: dict[str, Any]) -> str:
    parameters, booster = facts["parameters"], facts["booster"]
    loss = f"{_name(parameters['loss'])} loss"
    if "experts" in facts:
        inside = "" if booster == "AutoBoost" else " of AutoBoost"
        return f"{booster}{inside}, {len(facts['experts'])} experts, {loss}"
    if "members" in facts:
        booster += f" of {facts['members']}"
    learner = parameters["learner"]["class"]
    if "most_copies" in facts:
        return f"{booster}, up to {_copies(facts['most_copies'], learner)}, {loss}"
    return f"{booster}, {_copies(parameters['n'], learner)}, {loss}"


def _name(part: Any) -> str:
    """Return the name of a loss: a word, or a class with fields."""
    return part["class"] if isinstance(part, Mapping) else str(part)


def _copies(n: int, learner: str) -> str:
    return f"1 copy of {learner}" if n == 1 else f"{n} copies of {learner}"


def _facts(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what the model has learned, by name."""
    yield "rows learned", f"{facts['examples']:,}"
    yield from _service(facts.get("service"))
    yield "label", _label(facts)
    for k, text in enumerate(_features(facts)):
        yield "" if k else "features", text
    calibrated = facts["booster"] == "Calibrated"
    if "average_loss" in facts:
        average = AverageLoss(facts["average_loss"], facts["average_loss_weight"])
        yield "loss so far", describe_loss(average, calibrated=calibrated)
    elif "kept_loss" in facts:
        sample = SampleLoss(facts["kept_rows"], facts["kept_loss"])
        yield "current loss", describe_loss(sample, calibrated=calibrated)
    yield from facts["facts"].items()
    yield from _health(facts["health"])
    yield "size", f"{_bytes(facts['memory_bytes'])} in memory, {_bytes(facts['bytes'])} in the file"


def _service(service: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Yield what a state folder has learned."""
    if service is not None:
        yield "snapshot", f"the newest one, up to record {service['record']:,}"
        queued = "which a running service has learned or is about to learn"
        yield "queued", f"{service['rows_queued']:,} rows in the journal after it, {queued}"
        if service["rows_queued"]:
            yield "", "give the address of the service to inspect its current model"


def _label(facts: dict[str, Any]) -> str:
    """Return the name of the label and its values."""
    name = (facts["schema"] or {}).get("label")
    if facts["classes"] is not None:
        values = f"{len(facts['classes']):,} classes: {_list(facts['classes']) or 'no labels yet'}"
    elif facts["label_ends"] is not None:
        low, high = facts["label_ends"]
        values = f"from {low:z.10g} to {high:z.10g}"
    else:
        values = "no range recorded" if facts["examples"] else _nothing(facts)
    return values if name is None else f"{name!r}, {values}"


def _nothing(facts: dict[str, Any]) -> str:
    return "none in the snapshot" if facts.get("service") else "none seen yet"


def _features(facts: dict[str, Any]) -> Iterator[str]:
    """Yield a text for each kind of feature, with the names."""
    schema, rows = facts["schema"] or {}, facts["rows"]
    kinds = {"numbers": "numeric", "times": "time", "categories": "categorical"}
    known = [kind for kind in kinds if kind in schema]
    for kind in known:
        names = schema[kind]
        shown = [*map(_count, names.items())] if kind == "categories" else names
        yield f"{len(names):,} {kinds[kind]}: {_list(shown)}"
    if known:
        return
    if rows is None:
        yield _nothing(facts)
    elif rows["names"]:
        yield f"{rows['features']:,} names: {_list(rows['names'])}"
    elif rows["named"]:
        yield "names, hashed"
    else:
        yield f"{rows['features']:,} columns of numbers" if rows["features"] else "sparse rows"


def _count(column: tuple[str, int | None]) -> str:
    """Return a column with the number of its categories, which are not known if they are hashed."""
    name, categories = column
    return f"{name} ({'hashed' if categories is None else f'{categories:,}'})"


def _list(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    shown = ", ".join(names[:_MOST_NAMES])
    return shown if more <= 0 else f"{shown} and {more:,} more"


def _health(health: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the health of a model, and when its label range changed."""
    labels = health["labels"]
    changes = {"widened": "widened", "shrunk": "shrunk", "new_units": "moved to new units"}
    rows = [
        f"{what} at row {labels[name]:,}"
        for name, what in changes.items()
        if labels[name] is not None
    ]
    yield "health", ", ".join(health["problems"]) or "good"
    if rows:
        yield "label range", f"follows the labels; last {', '.join(rows)}"


def _bytes(number: int) -> str:
    """Return a size as people read it."""
    for size, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} bytes"


def _weights(facts: dict[str, Any], everything: bool) -> Iterator[str]:
    """Yield the experts or candidates, with the largest weights first."""
    weights = facts.get("weights")
    if not weights:
        return
    experts = facts.get("experts", {})
    yield "weights of the experts" if experts else "weights of the candidates"
    order = sorted(weights, key=lambda name: -weights[name])
    shown = order if everything else order[:_MOST_PARTS]
    width = max(map(len, shown))
    losses = facts.get("losses", {})
    for name in shown:
        expert = experts.get(name)
        copies = "combines the experts" if experts else ""
        if expert is not None:
            copies = _copies(expert["n"], expert["learner"]["class"])
        if name in losses:
            copies = f"loss {losses[name]:<11.6g}  {copies}"
        elif losses:
            copies = f"{'':<16}  {copies}"
        yield _bar_line(weights[name], f"{name:<{width}}  {copies}")
    if len(order) > len(shown):
        rest = sum(weights[name] for name in order[len(shown) :])
        yield _bar_line(rest, f"{len(order) - len(shown):,} others")


def _importances(facts: dict[str, Any]) -> Iterator[str]:
    """Yield the most important features."""
    if facts.get("importances"):
        yield "most important features: share of the increase in loss if one is shuffled"
        for name, share in facts["importances"].items():
            yield _bar_line(share, name)


def _bar_line(share: float, text: str) -> str:
    bar = "" if isnan(share) else "#" * round(_BAR_WIDTH * min(max(share, 0.0), 1.0))
    return f"  {share:>6.1%}  {bar:<{_BAR_WIDTH}}  {text}".rstrip()


def _parameters(facts: dict[str, Any]) -> Iterator[str]:
    """Yield the parameters, the label range of the model and how it reads files."""
    parameters, hidden = facts["parameters"], set[str]()
    if not parameters.get("replay"):
        hidden |= {one.name for one in fields(SharedParameters)}  # they are about replay
    yield "parameters"
    for name, value in parameters.items():
        if name == "learner" and isinstance(value, Mapping):
            given = ", ".join(f"{key}={part}" for key, part in value["fields"].items())
            yield f"  learner = {value['class']}({given})"
        elif value and name not in hidden:
            yield f"  {name} = {value}"
    yield from _label_range(facts)
    if facts["schema"] is not None:
        yield "input"
        yield from (f"  {name} = {value}" for name, value in facts["schema"].items())


def _label_range(facts: dict[str, Any]) -> Iterator[str]:
    """Yield the range of labels that the model works with."""
    if facts["log_link"]:
        yield f"level of the labels in the model: {facts['label_half_width']:z.10g}"
    elif facts["label_half_width"] and len(facts["label_centre"]) == 1:
        centre, half = facts["label_centre"][0], facts["label_half_width"]
        yield f"label range of the model: {centre - half:z.10g} to {centre + half:z.10g}"


def _effects(facts: dict[str, Any]) -> Iterator[str]:
    """Yield the largest effects of features, and what each stage contributes."""
    if "largest_effects" not in facts:
        return
    yield f"{facts['features']:,} features; largest effects on the prediction:"
    yield from (f"  {size:<z12.6g} {name}" for name, size in facts["largest_effects"].items())
    shares = facts["stage_contributions"]
    yield "stage  effect share   sigma" if "sigma" in facts else "stage  effect share"
    sigmas = facts.get("sigma", [None] * len(shares))
    for i, (share, sigma) in enumerate(zip(shares, sigmas, strict=True)):
        bar = "#" * round(40 * share / max(shares or [1]) if share else 0)
        tail = "" if sigma is None else f"  {sigma:<9.4g}"
        yield f"{i + 1:>5}  {share:>8.2%}     {tail} {bar}"
