"""The parts of a prediction as lines of text, as River's `debug_one` shows them."""

from typing import Any

import numpy as np

from spanboost.analysis.explanation import Part
from spanboost.analysis.explanations import explain
from spanboost.errors import UserError

_SHOWN = 10  # features with a line of their own


def describe_prediction(estimator: Any, x: Any, decimals: int) -> str:
    """Return the parts of the prediction for one row, the largest first, as lines of text."""
    try:
        found = explain(estimator, x)
    except UserError as error:  # your own learner has no contributions
        return str(error)
    total = "(sum)" if found.sum_name == "prediction" else f"(sum: {found.sum_name})"
    if np.ndim(found.prediction):
        found = found.output(int(np.argmax(found.prediction)))
    parts = [*found.main_parts(_SHOWN), Part(total, found.prediction)]
    numbers = [f"{part.amount:+z.{decimals}f}" for part in parts]
    width = max(map(len, numbers))
    pairs = zip(numbers, parts, strict=True)
    return "\n".join(f"{number:>{width}}  {part.name}" for number, part in pairs)
