"""One row of a mixture, in arrays that are used again."""

from functools import partial
from typing import cast

import numpy as np

from spanboost.models.aggregation import mix_one
from spanboost.models.mixture import Mixture, Units


class MixtureRow:
    """Combines numbers as `Mixture.combine` and `Mixture.learn` do, for one row of weight 1.

    forecasts: [K] of the candidates, in the units of the labels; set them before each call.
    """

    def __init__(self, mixture: Mixture) -> None:
        self.forecasts = np.zeros(mixture.K)
        self._label, self._out = np.zeros(1), np.zeros(1)
        scaled = np.zeros((1, mixture.K))
        arrays = mixture.aggregator, self.forecasts, scaled, self._label, self._out
        run = mixture.call.find(mix_one, *arrays, 0.0, 0.0, 1.0, 0.0, 0.0)
        self._mix = partial(run, *arrays)

    def combine(self, units: Units) -> float:
        """Return the combined forecast; learn nothing."""
        return self._run(units, 0.0)

    def learn(self, units: Units, label: float) -> float:
        """Learn a label, as the aggregator scores it; return the forecast made before it."""
        self._label[0] = label
        return self._run(units, 1.0 if units.half > 0 else 0.0)

    def _run(self, units: Units, weight: float) -> float:
        centre, half, _, (low, high) = units
        self._mix(weight, cast("float", centre), half or 1.0, low, high)
        return self._out.item()
