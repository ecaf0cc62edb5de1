"""The experts of AutoBoost that are refitted: two or three by default, and those that users add."""

from collections.abc import Iterable
from typing import Any

from spanboost.errors import ParameterError
from spanboost.losses import Softmax, resolve
from spanboost.models.refitted import Refitted, can_refit
from spanboost.models.refitting.libraries import CATBOOST, DEFAULT, SHALLOW, is_installed
from spanboost.models.spec import AutoSpec

BUDGETS = "thorough", "exhaustive"  # with refitted experts by default
GROW = 1.5  # of the default experts: fits are recent, for three times the time of the last one


def new_refits(spec: AutoSpec, given: Iterable[Any], label_range: Any) -> dict[str, Refitted]:
    """Return the refitted experts of a model, by name.

    given: `Refitted` models that the user adds. The experts are new ones with their parameters, and
        with the loss of the model.
    """
    shared = {"loss": spec.loss, "label_range": label_range, "bits": spec.bits, "seed": spec.seed}
    found = {name: Refitted(name, grow=GROW, **shared) for name in _default_names(spec)}
    for one in given:
        if not isinstance(one, Refitted):
            raise ParameterError("experts", f"must be Refitted models (got {one!r:.60})")
        name = one.title
        while name in found:
            name += "'"
        found[name] = one.renew(**shared)
    return found


def _default_names(spec: AutoSpec) -> list[str]:
    """Return the names of the experts that a model has by default."""
    loss, wanted = resolve(spec.loss), spec.refit
    if wanted is None:
        wanted = spec.budget in BUDGETS and is_installed(DEFAULT) and can_refit(loss)
    if not wanted:
        return []
    # CatBoost takes very long for many classes
    also = is_installed(CATBOOST) and not isinstance(loss, Softmax)
    return [DEFAULT, SHALLOW, *([CATBOOST] if also else [])]
