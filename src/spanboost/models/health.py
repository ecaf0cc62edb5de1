"""The health of a model: clipped labels, changes of the label range, and NaN in its state."""

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.errors import ModelFileError
from spanboost.models.kept_rows import FITTED, MEMORY, SAMPLE
from spanboost.rows.label_history import CHUNK
from spanboost.rows.labels import LabelHealth

if TYPE_CHECKING:
    from spanboost.models.model import Model

# Rows that a model keeps contain NaN where a value is missing. Parts have prefixes: "0.", "model.".
_ROWS = re.compile(rf"(\w+\.)*({'|'.join(map(re.escape, (MEMORY, SAMPLE, FITTED)))})")

_NUMBERS = (".labels", ".weights")  # of these rows


class Health(NamedTuple):
    """What a model has gone through, and the soundness of its state.

    >>> import numpy as np
    >>> from spanboost import LinearSGD, SpanBoost
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 2))
    >>> model = SpanBoost(LinearSGD(), n=4, label_range="auto")
    >>> predictions = model.learn_many(X, 3 * X[:, 0])
    >>> model.health
    <Health: good, 1,000 rows learned>
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     prediction = model.learn_one(X[0], 1e9)
    >>> model.health
    <Health: 1 of 1,001 labels clipped>
    >>> model.health.labels.clipped_share < 0.001, model.health.nans
    (True, 0)
    """

    labels: LabelHealth
    weights: dict[str, float]  # weights of the experts; empty if the model has no experts
    nans: int | None  # NaN in the state; None if the learner is code, so that its state is unknown

    @property
    def good(self) -> bool:
        """Whether no label was clipped, the labels kept their units and the state has no NaN."""
        return not self.problems()

    def problems(self) -> list[str]:
        """Return one phrase for each problem."""
        nans = [f"{self.nans:,} NaN in the state"] if self.nans else []
        return label_problems(self.labels) + nans

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON."""
        return {
            "good": self.good,
            "problems": self.problems(),
            "labels": self.labels._asdict() | {"clipped_share": self.labels.clipped_share},
            "weights": self.weights,
            "nans": self.nans,
        }

    def __repr__(self) -> str:
        good = f"good, {self.labels.learned:,} rows learned"
        if self.labels.unchecked:
            good += f"; wild labels are recognised after {CHUNK} rows"
        return f"<Health: {', '.join(self.problems()) or good}>"


def health_of(model: "Model") -> Health:
    """Return the health of a model. This reads its whole state."""
    return Health(model.label_health, model.weights_, count_nans(model))


def label_problems(labels: LabelHealth) -> list[str]:
    """Return one phrase for each problem with the labels."""
    problems = []
    if labels.clipped:
        problems.append(f"{labels.clipped:,} of {labels.learned:,} labels clipped")
    if labels.new_units == CHUNK:
        problems.append(f"a few of the first {CHUNK} labels are far outside the others")
    elif labels.new_units is not None:
        problems.append(f"new units of the labels at row {labels.new_units:,}")
    return problems


def describe(model: "Model") -> str:
    """Return the call that made a model, how many rows it has learned, and problems with labels.

    An untrained model is the call itself, which can be copied.
    """
    learned, call = model.label_health.learned, model.call_text()
    if not learned:
        return call
    rows = f"{learned:,} {'row' if learned == 1 else 'rows'} learned"
    return f"<{call}: {', '.join([rows, *label_problems(model.label_health)])}>"


def count_nans(model: "Model") -> int | None:
    """Return the number of NaN in the state; None if a learner is code, so that it is unknown.

    Infinities do not count: they are the initial values of smallest and largest values.
    """
    if not model.started:
        return 0
    if not all(booster.core.is_data for booster in model.boosters()):
        return None
    return sum(
        int(np.count_nonzero(np.isnan(array)))
        for name, array in model.tensors()
        if array.dtype.kind == "f" and not _ROWS.match(name)
    )


def check_saved(tensors: dict[str, Array]) -> None:
    """Raise a ModelFileError for NaN in an array that `load` would refuse for it."""
    for name, array in tensors.items():
        features = _ROWS.match(name) and not name.endswith(_NUMBERS)
        if array.dtype.kind == "f" and not features and np.isnan(array).any():
            raise ModelFileError(
                f"the model cannot be saved because {name} contains NaN; continue with a model "
                "that was saved earlier"
            )
