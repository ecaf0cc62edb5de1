"""The figure in the README: `python website/picture.py` draws docs/stream.svg in some minutes.

It needs the extras `river` and `plot`.

The stream is Friedman's first function of ten features (1991) with noise 1, over 20,000 rows. After
half of the rows the order of the features is reversed. Every model predicts each row before it
learns from it, with default settings.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from river import forest, linear_model, preprocessing, tree

from spanboost import AutoBoost
from spanboost.analysis.figures import COLOURS, Panels, Plot, present

FILE = Path(__file__).parents[1] / "docs" / "stream.svg"
ROWS, WINDOW = 20_000, 500


def stream(seed: int = 0) -> tuple[Any, Any]:
    """Return rows and labels."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(ROWS, 10))
    place = np.where(np.arange(ROWS)[:, None] < ROWS // 2, np.arange(10), np.arange(10)[::-1])
    a, b, c, d, e = np.take_along_axis(X, place, axis=1).T[:5]
    y = 10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e
    return X, y + rng.normal(size=ROWS)


def row_by_row(model: Any) -> Callable[[Any, Any], Any]:
    """Return a function that runs a River model and returns its predictions."""

    def run(X: Any, y: Any) -> Any:
        answers = []
        for x, label in zip(X.tolist(), y.tolist(), strict=True):
            features = dict(enumerate(x))
            answers.append(model.predict_one(features))
            model.learn_one(features, label)
        return np.array(answers)

    return run


MODELS: dict[str, Callable[[Any, Any], Any]] = {
    "linear regression (River)": row_by_row(
        preprocessing.StandardScaler() | linear_model.LinearRegression()
    ),
    "Hoeffding adaptive tree (River)": row_by_row(tree.HoeffdingAdaptiveTreeRegressor(seed=0)),
    "adaptive random forest (River)": row_by_row(forest.ARFRegressor(seed=0)),
    "AutoBoost": lambda X, y: AutoBoost().learn_many(X, y),
}


def draw(losses: dict[str, Any], variance: float, panels: Panels) -> None:
    """Draw the average losses of windows of rows, in units of the variance."""
    (axes,) = panels.axes
    colours = (*COLOURS[1:4], COLOURS[0])
    for (name, loss), colour in zip(losses.items(), colours, strict=True):
        windows = loss.reshape(-1, WINDOW).mean(axis=1) / variance
        width = 2.5 if name == "AutoBoost" else 1.3
        places = WINDOW * (np.arange(len(windows)) + 0.5)
        axes.plot(places, windows, color=colour, linewidth=width)
        _note(axes, name, (places[-1], windows[-1]), (6, -3), color=colour)
    axes.axhline(1 / variance, color="grey", linewidth=0.8, linestyle="--")
    _note(axes, "noise: the lower limit", (0, 1 / variance), (4, -11), color="grey")
    axes.axvline(ROWS // 2, color="grey", linewidth=0.8, linestyle=":")
    _note(axes, "the rule changes", (ROWS // 2, 1), (-86, 0), color="grey")
    axes.set(yscale="log", xlim=(0, ROWS), ylim=(0.028, 1.6))
    axes.set(xlabel="rows", ylabel="squared error / variance")
    axes.set_yticks(ticks := [0.05, 0.1, 0.2, 0.5, 1], map(str, ticks))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.minorticks_off()


def _note(axes: Any, text: str, at: tuple[float, float], off: tuple[int, int], color: str) -> None:
    look = {"color": color, "fontsize": 9, "annotation_clip": False}
    axes.annotate(text, at, off, textcoords="offset points", **look)


if __name__ == "__main__":
    X, y = stream()
    losses = {}
    for name, run in MODELS.items():
        losses[name] = (run(X, y) - y) ** 2
        print(f"{name}: {losses[name].mean() / y.var():.3f} of the variance", flush=True)
    present(Plot(partial(draw, losses, float(y.var())), (8, 3.6)), FILE)
