"""The grid of configurations: all combinations of the values of some parameters."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from spanboost.checks import STEP_TOLERANCE, is_integer
from spanboost.compiling.arrays import Array
from spanboost.errors import ParameterError, did_you_mean
from spanboost.losses import radius, require_fixed_classes
from spanboost.models.booster import Booster, HullBoost, SpanBoost
from spanboost.models.spec import default_step

GRID: dict[str, tuple[Any, ...]] = {
    "rate": (0.1, 0.2, 0.5, 1.0, 2.0),
    "eta": (0.05, 0.1, 0.2, 0.5, 1.0),
}
BOOSTERS: dict[str, type[Booster]] = {"span": SpanBoost, "hull": HullBoost}
BOOSTER_PARAMETERS = ("eta", "scale", "feedback", "alpha", "offset")
_MANY = 2.0**60  # stands for any number of copies


class Configuration(NamedTuple):
    """The parameters of a booster with up to n copies."""

    settings: dict[str, Any]  # the booster's name, and the values from the grid
    learner: Any
    parameters: dict[str, Any]  # keyword arguments of the booster
    n: int
    prefixes: bool  # whether its first k copies equal the booster of k copies

    def model(self, n: int) -> Booster:
        """Return a fresh booster with n copies."""
        return BOOSTERS[self.settings["booster"]](self.learner, n, **self.parameters)

    def allowed(self) -> Array:
        """Return which of 1, ..., n copies have a loss; Algorithm 1 needs at least 1/eta copies."""
        sizes = np.arange(1, self.n + 1)
        if not self.prefixes:
            return sizes == self.n
        return np.asarray(sizes * self.parameters.get("eta", 1.0) >= 1 - STEP_TOLERANCE)


def configurations(
    learner: Any, grid: Mapping[str, Sequence[Any]] | None, booster: str, n: int, **fixed: Any
) -> list[Configuration]:
    """Return the distinct configurations of a grid.

    If the first copies of a booster do not equal a booster with fewer copies, there is one
    configuration for each power of two up to n, and one for n.

    learner: the learner; the grid replaces some of its parameters.
    grid: values for each parameter; None is `default_grid`.
    booster: "span", "hull" or "both".
    fixed: parameters that all boosters share.
    """
    if booster not in (*BOOSTERS, "both"):
        hint = did_you_mean(booster, (*BOOSTERS, "both"))
        raise ParameterError("booster", f"must be 'span', 'hull' or 'both' (got {booster!r}){hint}")
    if not (is_integer(n) and n >= 1):
        raise ParameterError("n", f"must be a positive integer (got {n!r})")
    require_fixed_classes(fixed.get("loss"), "tuning")
    own = _parameter_names(learner)
    grid = dict(default_grid(learner, n) if grid is None else grid)
    for name, values in grid.items():
        _check_values(name, values, own - {"dtype", "bits"}, learner)
    found: list[Configuration] = []
    for name in BOOSTERS if booster == "both" else (booster,):
        for settings in _combinations(grid, name, n):
            one = _configuration(settings, learner, own, n, fixed)
            found += [one] if one.prefixes else _with_sizes(one)
    return [one for k, one in enumerate(found) if one not in found[:k]]


def default_grid(learner: Any, n: int) -> dict[str, Sequence[Any]]:
    """Return a grid of rates, if the learner has a rate, and of steps of at least 1/n."""
    grid: dict[str, Sequence[Any]] = {"eta": [eta for eta in GRID["eta"] if eta * n >= 1]}
    return grid | ({"rate": GRID["rate"]} if "rate" in _parameter_names(learner) else {})


def _parameter_names(learner: Any) -> set[str]:
    return {field.name for field in fields(learner)} if is_dataclass(learner) else set()


def _check_values(name: str, values: Any, own: set[str], learner: Any) -> None:
    if name not in own and name not in BOOSTER_PARAMETERS:
        raise ValueError(
            f"grid: {name!r} cannot be tuned; for {type(learner).__name__}, choose from "
            f"{', '.join([*BOOSTER_PARAMETERS, *sorted(own)])}"
            f"{did_you_mean(name, [*BOOSTER_PARAMETERS, *own])}"
        )
    if isinstance(values, str) or not hasattr(values, "__len__") or len(values) == 0:
        raise ValueError(f"grid: {name!r} must be a non-empty list of values (got {values!r})")


def _combinations(grid: dict[str, Any], booster: str, n: int) -> Iterator[dict[str, Any]]:
    """Yield the combinations of values, without parameters that have no effect in them."""
    if booster == "span":
        grid = {"eta": (None,), **grid}
    for values in product(*grid.values()):
        settings = {"booster": booster, **dict(zip(grid, values, strict=True))}
        if booster == "hull":
            settings.pop("eta", None)
        elif settings["eta"] is None:  # fix it: the default depends on n
            settings["eta"] = default_step(n)
        if settings.get("feedback") == "linear":
            settings.pop("alpha", None)
            settings.pop("offset", None)
        yield settings


def _configuration(
    settings: dict[str, Any], learner: Any, own: set[str], n: int, fixed: dict[str, Any]
) -> Configuration:
    learner_settings = {name: value for name, value in settings.items() if name in own}
    parameters = fixed | {
        name: value for name, value in settings.items() if name in BOOSTER_PARAMETERS
    }
    if learner_settings:
        learner = replace(learner, **learner_settings)
    one = Configuration(settings, learner, parameters, n, prefixes=False)
    model: Any = one.model(n)
    kinked = not model.smooth_ and model.feedback == "linear"
    if settings["booster"] == "hull":  # Algorithm 2 has no radius B that depends on n
        return one._replace(prefixes=not kinked)
    B = _common_radius(model)
    if kinked or B is None:
        return one
    if model.scale * model.D < B:  # the paper's B depends on n if there are few copies
        one = one._replace(parameters=parameters | {"B": B})
    return one._replace(prefixes=True)


def _common_radius(model: SpanBoost) -> float | None:
    """Return a B for which Theorem 1 holds with any number of copies; None if no B does."""
    if model.B is not None:
        return model.B_
    reach = model.scale * model.D
    B = radius(model.loss_, model.eta_, int(_MANY), reach)
    most = model.eta_ * _MANY * reach
    return None if most == B else B


def _with_sizes(one: Configuration) -> Iterator[Configuration]:
    """Yield the configuration with each number of copies to try."""
    sizes = {2**k for k in range(one.n.bit_length())} | {one.n}
    for n in sorted(sizes):
        if n * one.settings.get("eta", 1.0) >= 1 - STEP_TOLERANCE:
            yield one._replace(n=n)
