"""The experts of AutoBoost that are refitted: the default one, and those that users add."""

from collections.abc import Iterable
from typing import Any

from spanboost.errors import ParameterError
from spanboost.losses import resolve
from spanboost.models.refitted import Refitted, can_refit
from spanboost.models.refitting.libraries import DEFAULT, is_installed
from spanboost.models.spec import AutoSpec

BUDGETS = "thorough", "exhaustive"  # with a refitted expert by default
GROW = 1.5  # of the default expert: fits are recent, for three times the time of the last one


def new_refits(spec: AutoSpec, given: Iterable[Any], label_range: Any) -> dict[str, Refitted]:
    """Return the refitted experts of a model, by name.

    given: `Refitted` models that the user adds. The experts are new ones with their parameters, and
        with the loss of the model.
    """
    shared = {"loss": spec.loss, "label_range": label_range, "bits": spec.bits, "seed": spec.seed}
    found = {DEFAULT: Refitted(grow=GROW, **shared)} if _has_default(spec) else {}
    for one in given:
        if not isinstance(one, Refitted):
            raise ParameterError("experts", f"must be Refitted models (got {one!r:.60})")
        name = one.title
        while name in found:
            name += "'"
        found[name] = one.renew(**shared)
    return found


def _has_default(spec: AutoSpec) -> bool:
    if spec.refit is None:
        usual = spec.budget in BUDGETS and is_installed(DEFAULT)
        return usual and can_refit(resolve(spec.loss))
    return spec.refit
