"""A plot of the calibration: how often events happened, against their predicted probability."""

from collections.abc import Mapping, Sequence
from typing import Any

from spanboost.analysis.loss_curves import COLOURS, INK, inline

LARGEST = 160.0  # area of the point of the heaviest bin


def inline_calibration(curve: Sequence[Mapping[str, float]]) -> str:
    """Return the plot as an <svg> element.

    curve: for each bin, the mean `probability`, the `frequency` of the event, and the `weight`.
    """
    return inline(lambda: _figure(curve))


def _figure(curve: Sequence[Mapping[str, float]]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 4.4), layout="constrained")
    axes = figure.subplots()
    x, y, weights = (
        [point[key] for point in curve] for key in ("probability", "frequency", "weight")
    )
    axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=(0, (6, 3)), alpha=0.7)
    axes.plot(x, y, color=COLOURS[0], linewidth=1.5)
    sizes = [10 + LARGEST * weight / max(weights) for weight in weights]
    axes.scatter(x, y, s=sizes, color=COLOURS[0], alpha=0.6, linewidths=0)
    axes.set_aspect("equal")
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("predicted probability")
    axes.set_ylabel("observed frequency")
    axes.set_title("calibration")
    return figure
