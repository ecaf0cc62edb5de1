"""The experts of AutoBoost that are refitted: two by default, and those that users add."""

from collections.abc import Iterable
from typing import Any

from spanboost.errors import ParameterError
from spanboost.losses import resolve
from spanboost.models.refitted import Refitted, can_refit
from spanboost.models.refitting.libraries import DEFAULT, SHALLOW, is_installed
from spanboost.models.spec import AutoSpec

BUDGETS = "thorough", "exhaustive"  # with refitted experts by default
GROW = 1.5  # of the default experts: fits are recent, for three times the time of the last one


def new_refits(spec: AutoSpec, given: Iterable[Any], label_range: Any) -> dict[str, Refitted]:
    """Return the refitted experts of a model, by name.

    given: `Refitted` models that the user adds. The experts are new ones with their parameters, and
        with the loss of the model.
    """
    shared = {"loss": spec.loss, "label_range": label_range, "bits": spec.bits, "seed": spec.seed}
    names = (DEFAULT, SHALLOW) if _has_default(spec) else ()
    found = {name: Refitted(name, grow=GROW, **shared) for name in names}
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
