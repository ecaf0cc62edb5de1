"""A certificate as numbers for --json, and as lines of text."""

import math
from collections.abc import Iterator
from typing import Any

from spanboost.analysis.regret_picture import Regret
from spanboost.checks import finite_or_none
from spanboost.theory.certificate import Certificate, Comparison
from spanboost.theory.hindsight import LIMIT

_SUMS = ("loss", "comparator_loss", "regret", "measured_bound", "bound", "slack")
_KEYS = (
    *("comparator", *_SUMS, *(f"{name}_per_row" for name in _SUMS), "gap"),
    *("theorem", "terms", "measured"),
)
FIXED = "fixed shrinkage"
CAUSES = {
    "initial": "what the copies leave of the excess loss of the first partial sum",
    "copies": "regret of the copies",
    "sigma": "regret of the learned shrinkage sigma",
    "curvature": "curvature of the loss along the steps",
    "projection": "projection of the partial sums onto the ball",
    FIXED: "the shrinkage, which is always 1 in Algorithm 2, and rounding errors",
    "aggregation": "regret of the weights against this expert",
}


def as_json(certificate: Certificate) -> dict[str, Any]:
    """Return sums over all rows, and averages per unit of weight, as JSON types."""
    figures = [_figures(one, certificate.weight) for one in certificate.comparisons]
    return {
        "features": certificate.features,
        **(figures[0] if figures else dict.fromkeys(_KEYS)),
        "unproved": certificate.unproved,
        "unmeasured": certificate.unmeasured,
        "others": figures[1:],
        "words": list(describe(certificate)),
    }


def describe(certificate: Certificate) -> Iterator[str]:
    """Yield a certificate as lines of text."""
    yield "certificate: the loss compared with that of the best fixed functions in hindsight"
    if certificate.too_many:
        yield (
            f"no linear functions: the stream has more than {LIMIT:,} features, the most for which "
            "the best ones are computed"
        )
    weight = certificate.weight
    if certificate.comparisons and not math.isfinite(certificate.comparisons[0].loss):
        yield "no comparison: the loss of the model overflowed; check the labels"
        return
    if certificate.comparisons:
        yield f"the model: {_both(certificate.comparisons[0].loss, weight)}"
    for one in certificate.comparisons:
        yield from _compared(one, weight)
    if certificate.unmeasured is not None:
        yield f"no measured bound: {certificate.unmeasured}"
    if certificate.unproved is not None:
        yield f"no bound for every stream: {certificate.unproved}"


def pictured(certificate: Certificate) -> Regret | None:
    """Return the measured bound of the first comparison as a plot shows it, if there is one."""
    one = certificate.comparisons[0] if certificate.comparisons else None
    if one is None or one.measured is None or not math.isfinite(one.measured.total):
        return None
    recursion, terms = one.measured.recursion, _shown_terms(one)
    attributes = {name: name for name in recursion.terms} | {FIXED: "sigma"}
    stages = {
        name: getattr(recursion, attributes[name])
        for name in terms
        if name in attributes and name != "initial"
    }
    return Regret(one.comparator, one.regret, terms, stages)


def _compared(one: Comparison, weight: float) -> Iterator[str]:
    yield f"{one.comparator}: {_both(one.comparator_loss, weight)}{_exactness(one)}"
    if one.regret > 0:
        meaning = "the cost of not knowing the labels in advance"
    else:
        meaning = "no such function loses less than the model, even with all labels known"
    yield f"  regret = {_both(one.regret, weight)}: {meaning}"
    yield from _measured(one, weight)
    yield from _promised(one, weight)


def _measured(one: Comparison, weight: float) -> Iterator[str]:
    if one.measured is None:
        return
    through = "" if one.measured.part is None else f", through the expert {one.measured.part!r}"
    yield f"  measured bound = {_both(one.measured.total, weight)}: proved for this pass{through}"
    for name, value in _shown_terms(one).items():
        yield f"    {value:+z.6g}  {CAUSES[name]}"


def _shown_terms(one: Comparison) -> dict[str, float]:
    """Return the measured bound by cause; a shrinkage that is not learned has no regret."""
    assert one.measured is not None
    terms = dict(one.measured.terms)
    if one.measured.recursion.learns_sigma:
        return terms
    return {
        FIXED if name == "sigma" else name: value
        for name, value in terms.items()
        if name != "sigma" or value != 0
    }


def _promised(one: Comparison, weight: float) -> Iterator[str]:
    if one.promise is None or one.slack is None:
        return
    bound, middle = one.promise.bound, one.promise.middle_regret
    yield f"  {one.promise.theorem}'s bound = {_both(bound, weight)}: proved for every stream"
    if bound >= middle:
        yield (
            f"    (the bound is still weak: always predicting the middle of the label range has "
            f"a regret of {middle:z.6g})"
        )
    verdict = "the bound holds" if one.slack >= 0 else "the bound is violated, which is a bug"
    yield f"  slack = {_both(one.slack, weight)}: {verdict}"


def _exactness(one: Comparison) -> str:
    if one.gap <= 1e-8 * one.comparator_loss:
        return ""
    return f" (at most {one.gap:.3g} above the optimum)"


def _figures(one: Comparison, weight: float) -> dict[str, Any]:
    promise = one.promise
    bound = None if promise is None else promise.bound
    measured = None if one.measured is None else one.measured.total
    sums = (one.loss, one.comparator_loss, one.regret, measured, bound, one.slack)
    each = (_per_row(value, weight) for value in sums)
    theorem = (None, None) if promise is None else (promise.theorem, promise.terms._asdict())
    numbers = map(finite_or_none, (*sums, *each, one.gap))
    parts = (one.comparator, *numbers, *theorem, _causes(one))
    return dict(zip(_KEYS, parts, strict=True))


def _causes(one: Comparison) -> dict[str, Any] | None:
    """Return the measured bound by cause, and its stages."""
    if one.measured is None:
        return None
    terms = {name: finite_or_none(value) for name, value in one.measured.terms.items()}
    stages = [finite_or_none(value) for value in one.measured.recursion.stages.tolist()]
    norm = one.measured.recursion.f_norm
    return {"expert": one.measured.part, "f_norm": norm, "terms": terms, "stages": stages}


def _per_row(value: float | None, weight: float) -> float | None:
    return None if value is None or weight == 0 else value / weight


def _both(value: float, weight: float) -> str:
    each = _per_row(value, weight)
    return f"{value:z.6g}" if each is None else f"{value:z.6g}, {each:z.6g} a row"
