"""The result of tuning: the losses of every configuration, and the chosen booster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.models.booster import Booster
from spanboost.models.html import MOST_ROWS, rounded, section, table
from spanboost.tuning.grid import Configuration
from spanboost.tuning.stacked import StackedBoosters

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Choice(NamedTuple):
    """One booster of the grid, and its losses."""

    settings: dict[str, Any]
    n: int
    loss_first: float  # average over the first part; the least one is chosen
    loss_rest: float  # average over the rest; NaN if that has no rows
    configuration: int  # its index in `TuningResult.configurations`


class TuningResult:
    """The result of tuning.

    configurations: all configurations of the grid.
    loss_first: average losses over the first part of the rows, which chooses the parameters:
        [configuration, n - 1]; NaN if the configuration has no loss for n copies.
    loss_rest: average losses over the rest.
    """

    def __init__(
        self,
        configurations: Sequence[Configuration],
        groups: Sequence[StackedBoosters],
        order: Array,
    ) -> None:
        """`order` are the indices of the configurations in the order of the groups' members."""
        self.configurations = list(configurations)
        self._groups = list(groups)
        self._members: dict[int, tuple[StackedBoosters, int]] = {}
        shape = len(self.configurations), max(one.n for one in self.configurations)
        self.loss_first, self.loss_rest = np.full((2, *shape), np.nan)
        indices = iter(order.tolist())
        for group in groups:
            for c, member in enumerate(group.members):
                k = next(indices)
                self._members[k] = group, c
                allowed = self.configurations[k].allowed()
                for averages, losses in zip(
                    (self.loss_first, self.loss_rest), group.averages(), strict=True
                ):
                    averages[k, : member.n] = np.where(allowed, losses[c], np.nan)

    def plot(
        self, path: str | Path | None = None, ax: Sequence[Axes] | None = None
    ) -> tuple[Axes, ...]:
        """Plot the losses by number of copies and by each parameter, one axes for each plot.

        path: the file to write, PNG or SVG; None shows the plots in notebooks.
        ax: axes to draw into, as many as there are plots.
        """
        from spanboost.tuning.plots import plot

        return plot(self, path, ax)

    def best(self, **settings: Any) -> Choice:
        """Return the choice with the least loss on the first part, among those with these settings.

        For example, `best(booster="hull", n=1)` is the learner alone.
        """
        losses = self.loss_first.copy()
        n = settings.pop("n", None)
        if n is not None:
            losses[:, np.arange(1, losses.shape[1] + 1) != n] = np.nan
        for k, one in enumerate(self.configurations):
            if any(one.settings.get(name) != value for name, value in settings.items()):
                losses[k] = np.nan
        if not np.isfinite(self.loss_first).any():
            raise ValueError(
                "no booster has a finite loss on the first part: its rows have weight 0, or the "
                "loss overflowed; check the weights, the labels and the learning rate"
            )
        if not np.isfinite(losses).any():
            wanted = settings if n is None else {"n": n, **settings}
            text = ", ".join(f"{name}={value!r}" for name, value in wanted.items())
            raise ValueError(f"no booster with {text} has a finite loss on the first part")
        # transposed: among equal losses, the fewest copies come first
        i, k = divmod(int(np.nanargmin(losses.T)), len(losses))
        return self.choice(k, i + 1)

    def choice(self, configuration: int, n: int) -> Choice:
        """Return n copies of a configuration as a choice, with its losses."""
        settings, at = self.configurations[configuration].settings, (configuration, n - 1)
        losses = float(self.loss_first[at]), float(self.loss_rest[at])
        return Choice(settings, n, *losses, configuration)

    def best_of_each(self) -> list[Choice]:
        """Return every configuration with its best number of copies, the least loss first."""
        losses = np.where(np.isfinite(self.loss_first), self.loss_first, np.inf)
        found = [self.choice(k, int(row.argmin()) + 1) for k, row in enumerate(losses)]
        return sorted(found, key=lambda one: np.nan_to_num(one.loss_first, nan=np.inf))

    def model(self, choice: Choice | None = None) -> Booster:
        """Return the chosen booster; it has learned all rows and can continue to learn."""
        choice = self.best() if choice is None else choice
        group, c = self._members[choice.configuration]
        alone = self.configurations[choice.configuration].model(choice.n)
        return group.extract(c, alone, self._groups[0].core.labels)

    def __repr__(self) -> str:
        number = f"{len(self.configurations):,} configurations"
        try:
            best = self.best()
        except ValueError:
            return f"<TuningResult: {number}, none with a finite loss>"
        what = describe(best.settings, varied_names(self))
        copies = "1 copy" if best.n == 1 else f"{best.n} copies"
        losses = f"loss {best.loss_first:z.4g} on the first part, {best.loss_rest:z.4g} on the rest"
        return f"<TuningResult: {number}; best: {what + ', ' if what else ''}{copies}, {losses}>"

    def _repr_html_(self) -> str:
        names, each = varied_names(self), self.best_of_each()
        rows = [
            (
                *(str(one.settings.get(name, "")) for name in names),
                f"{one.n:,}",
                rounded(one.loss_first),
                rounded(one.loss_rest),
            )
            for one in each[:MOST_ROWS]
        ]
        title = f"{len(each):,} configurations, each with its best number of copies"
        title += f"; the best {MOST_ROWS}" if len(each) > MOST_ROWS else ""
        head = (*names, "copies", "loss on the first part", "loss on the rest")
        return section(title, table(rows, head))


def varied_names(tuned: TuningResult) -> list[str]:
    """Return the names of the parameters that have more than one value."""
    names = dict.fromkeys(name for one in tuned.configurations for name in one.settings)
    return [name for name in names if len(values_of(tuned, name)) > 1]


def values_of(tuned: TuningResult, name: str) -> list[Any]:
    """Return the values of a parameter, in order."""
    found = [one.settings[name] for one in tuned.configurations if name in one.settings]
    return sorted(set(found), key=lambda value: (isinstance(value, str), value))


def describe(settings: dict[str, Any], names: list[str]) -> str:
    """Return a configuration's values of the named parameters as text."""
    parts = [f"{name} {settings[name]}" for name in names if name in settings]
    return ", ".join(part.removeprefix("booster ").removeprefix("feedback ") for part in parts)
