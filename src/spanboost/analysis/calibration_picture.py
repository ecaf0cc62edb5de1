"""A plot of the calibration: how often events happened, against their predicted probability."""

from collections.abc import Mapping, Sequence
from typing import Any

from spanboost.analysis.figures import COLOURS, INK, inline
from spanboost.analysis.metrics.calibration import BINS


def inline_calibration(curve: Sequence[Mapping[str, float]], *, only_shares: bool = False) -> str:
    """Return the plot as an <svg> element.

    curve: for each bin, the mean `probability`, the `frequency` of the event, and the `weight`.
    only_shares: how many rows have these probabilities, without the frequencies.
    """
    return inline(lambda: _figure(curve, only_shares))


def _figure(curve: Sequence[Mapping[str, float]], only_shares: bool) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5 if only_shares else 10, 4.4), layout="constrained")
    *calibration, shares = figure.subplots(1, 1 if only_shares else 2, squeeze=False)[0]
    for axes in calibration:
        _draw_frequencies(axes, curve)
    probabilities, weights = ([point[key] for point in curve] for key in ("probability", "weight"))
    middles = [(min(int(p * BINS), BINS - 1) + 0.5) / BINS for p in probabilities]
    total = sum(weights)
    heights = [100 * weight / total for weight in weights]
    shares.bar(middles, heights, width=0.9 / BINS, color=COLOURS[0])
    shares.set_ylabel("% of rows")
    shares.set_title("predicted probabilities")
    for axes in (*calibration, shares):
        axes.set_xlim(-0.03, 1.03)
        axes.set_xlabel("predicted probability")
    return figure


def _draw_frequencies(axes: Any, curve: Sequence[Mapping[str, float]]) -> None:
    """Draw how often the event happened."""
    probabilities, frequencies = (
        [point[key] for point in curve] for key in ("probability", "frequency")
    )
    axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=(0, (6, 3)), alpha=0.7)
    axes.plot(probabilities, frequencies, "o-", color=COLOURS[0], markersize=5)
    axes.set_aspect("equal")
    axes.set_ylim(-0.03, 1.03)
    axes.set_ylabel("observed frequency")
    axes.set_title("calibration")
