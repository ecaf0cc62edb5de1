"""A certificate as numbers for --json, and as lines for people."""

from collections.abc import Iterator
from typing import Any

from spanboost.theory.certificate import Certificate, Comparison
from spanboost.theory.hindsight import LIMIT

_NOTHING: dict[str, Any] = {"comparator": None, "comparator_loss": None, "regret": None}


def as_json(certificate: Certificate) -> dict[str, Any]:
    """Sums over all rows, and per row: per unit of weight, as the average loss is."""
    figures = [_figures(one, certificate.weight) for one in certificate.comparisons]
    first, others = (figures[0], figures[1:]) if figures else (_NOTHING, [])
    return {
        "features": certificate.features,
        **first,
        "unproved": certificate.unproved,
        "others": others,
        "words": list(words(certificate)),
    }


def words(certificate: Certificate) -> Iterator[str]:
    """What it means, line by line."""
    yield ""
    yield "certificate: the loss against the best that was possible, had all labels been known"
    if not certificate.comparisons:
        yield (
            f"the stream has more than {LIMIT:,} features, and the best function is found for up "
            f"to {LIMIT:,} only: there is nothing to compare with"
        )
        return
    weight = certificate.weight
    yield f"the model lost {_both(certificate.comparisons[0].loss, weight)}"
    for one in certificate.comparisons:
        yield from _compared(one, weight)
    if certificate.unproved is not None:
        yield f"no bound is claimed: {certificate.unproved}"


def _compared(one: Comparison, weight: float) -> Iterator[str]:
    yield f"{one.comparator} lost {_both(one.comparator_loss, weight)}{_exactness(one)}"
    if one.regret > 0:
        meaning = "what it cost not to know the labels beforehand"
    else:
        meaning = "no such function, even if chosen with all labels known, loses as little"
    yield f"  regret = {_both(one.regret, weight)}: {meaning}"
    if one.promise is not None and one.slack is not None:
        yield (
            f"  {one.promise.theorem}'s bound = {_both(one.promise.bound, weight)}, "
            "proved beforehand, whatever the rows"
        )
        holds = "the theorem kept its word" if one.slack >= 0 else "the theorem is refuted"
        yield f"  slack = {_both(one.slack, weight)}: {holds}"


def _exactness(one: Comparison) -> str:
    if one.gap <= 1e-8 * one.comparator_loss:
        return ""
    return f" (and none of them {one.gap:.3g} less; it was not found more exactly)"


def _figures(one: Comparison, weight: float) -> dict[str, Any]:
    promise = one.promise
    sums = {
        "loss": one.loss,
        "comparator_loss": one.comparator_loss,
        "regret": one.regret,
        "bound": None if promise is None else promise.bound,
        "slack": one.slack,
    }
    return {
        "comparator": one.comparator,
        **sums,
        **{f"{name}_per_row": _per_row(value, weight) for name, value in sums.items()},
        "gap": one.gap,
        "theorem": None if promise is None else promise.theorem,
        "terms": None if promise is None else promise.terms._asdict(),
    }


def _per_row(value: float | None, weight: float) -> float | None:
    return None if value is None or weight == 0 else value / weight


def _both(value: float, weight: float) -> str:
    each = _per_row(value, weight)
    return f"{value:.6g}" if each is None else f"{value:.6g}, {each:.6g} a row"
