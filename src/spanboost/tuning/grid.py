"""Configurations to choose from: all combinations of the values of some parameters."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from spanboost.checks import STEP_TOLERANCE, is_integer
from spanboost.compiling.arrays import Array
from spanboost.errors import ParameterError
from spanboost.losses import radius
from spanboost.models.booster import Booster, HullBoost, SpanBoost
from spanboost.models.spec import default_step

GRID: dict[str, tuple[Any, ...]] = {
    "rate": (0.1, 0.2, 0.5, 1.0, 2.0),
    "eta": (0.05, 0.1, 0.2, 0.5, 1.0),
}
BOOSTERS: dict[str, type[Booster]] = {"span": SpanBoost, "hull": HullBoost}
OF_BOOSTERS = ("eta", "scale", "feedback", "alpha", "offset")
_MANY = 2.0**60  # copies: more than anybody has


class Configuration(NamedTuple):
    """Parameters of a booster of up to n copies."""

    settings: dict[str, Any]  # the booster's name, and what the grid says
    learner: Any
    parameters: dict[str, Any]  # of the booster
    n: int
    prefixes: bool  # its first copies are the booster of so many copies

    def model(self, n: int) -> Booster:
        """Fresh, of n copies."""
        return BOOSTERS[self.settings["booster"]](self.learner, n, **self.parameters)

    def allowed(self) -> Array:
        """[n] whether it tells the loss of 1, 2, ... copies; Algorithm 1 has at least 1/eta."""
        sizes = np.arange(1, self.n + 1)
        if not self.prefixes:
            return sizes == self.n
        return np.asarray(sizes * self.parameters.get("eta", 1.0) >= 1 - STEP_TOLERANCE)


def configurations(
    learner: Any, grid: Mapping[str, Sequence[Any]] | None, booster: str, n: int, **fixed: Any
) -> list[Configuration]:
    """One for every combination that makes a difference.

    Where a booster's first copies are no booster of their own, there is one for every power of two
    up to n, and one for n.
    """
    if booster not in (*BOOSTERS, "both"):
        raise ParameterError("booster", f"must be 'span', 'hull' or 'both' (got {booster!r})")
    if not (is_integer(n) and n >= 1):
        raise ParameterError("n", f"must be a positive integer (got {n!r})")
    own = _parameters(learner)
    grid = dict(default_grid(learner, n) if grid is None else grid)
    for name, values in grid.items():
        _check(name, values, own - {"dtype", "bits"}, learner)
    found: list[Configuration] = []
    for name in BOOSTERS if booster == "both" else (booster,):
        for settings in _settings(grid, name, n):
            one = _configuration(settings, learner, own, n, fixed)
            found += [one] if one.prefixes else _sizes(one)
    return [one for k, one in enumerate(found) if one not in found[:k]]


def default_grid(learner: Any, n: int) -> dict[str, Sequence[Any]]:
    """Rates, if the learner has one, and those steps that n copies may take."""
    grid: dict[str, Sequence[Any]] = {"eta": [eta for eta in GRID["eta"] if eta * n >= 1]}
    return grid | ({"rate": GRID["rate"]} if "rate" in _parameters(learner) else {})


def _parameters(learner: Any) -> set[str]:
    return {field.name for field in fields(learner)} if is_dataclass(learner) else set()


def _check(name: str, values: Any, own: set[str], learner: Any) -> None:
    if name not in own and name not in OF_BOOSTERS:
        raise ValueError(
            f"grid: {name!r} is no parameter to choose; {type(learner).__name__} and its boosters "
            f"have {', '.join([*OF_BOOSTERS, *sorted(own)])}"
        )
    if isinstance(values, str) or not hasattr(values, "__len__") or len(values) == 0:
        raise ValueError(f"grid: {name!r} needs a list of values, not {values!r}")


def _settings(grid: dict[str, Any], booster: str, n: int) -> Iterator[dict[str, Any]]:
    """Combinations, without what has no meaning in them."""
    if booster == "span":
        grid = {"eta": (None,), **grid}
    for values in product(*grid.values()):
        settings = {"booster": booster, **dict(zip(grid, values, strict=True))}
        if booster == "hull":
            settings.pop("eta", None)
        elif settings["eta"] is None:  # a number of its own: it must not change with n
            settings["eta"] = default_step(n)
        if settings.get("feedback") == "linear":
            settings.pop("alpha", None)
            settings.pop("offset", None)
        yield settings


def _configuration(
    settings: dict[str, Any], learner: Any, own: set[str], n: int, fixed: dict[str, Any]
) -> Configuration:
    learner_s = {name: value for name, value in settings.items() if name in own}
    parameters = fixed | {name: value for name, value in settings.items() if name in OF_BOOSTERS}
    if learner_s:
        learner = replace(learner, **learner_s)
    one = Configuration(settings, learner, parameters, n, prefixes=False)
    model: Any = one.model(n)
    kinked = not model.smooth_ and model.feedback == "linear"
    if settings["booster"] == "hull":  # Algorithm 2 has no radius B that depends on n
        return one._replace(prefixes=not kinked)
    B = _common_radius(model)
    if kinked or B is None:
        return one
    if model.scale * model.D < B:  # the paper's differs where there are few copies
        one = one._replace(parameters=parameters | {"B": B})
    return one._replace(prefixes=True)


def _common_radius(model: SpanBoost) -> float | None:
    """A B that serves any number of copies: Theorem 1 holds with it; None if there is none."""
    if model.B is not None:
        return model.B_
    reach = model.scale * model.D
    B = radius(model.loss_, model.eta_, int(_MANY), reach)
    most = model.eta_ * _MANY * reach
    return None if most == B else B


def _sizes(one: Configuration) -> Iterator[Configuration]:
    """The same with other numbers of copies."""
    sizes = {2**k for k in range(one.n.bit_length())} | {one.n}
    for n in sorted(sizes):
        if n * one.settings.get("eta", 1.0) >= 1 - STEP_TOLERANCE:
            yield one._replace(n=n)
