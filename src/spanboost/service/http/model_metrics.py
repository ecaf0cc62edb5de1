"""The metrics of the model's predictions, for Prometheus and for the dashboard."""

from collections.abc import Sequence
from typing import Any

from spanboost.analysis.metrics.titles import TITLES
from spanboost.service.storage.running_metrics import RunningMetrics

SHOWN_CLASSES = 10  # most classes with confusion counts: their number grows quadratically
HELP = {
    "accuracy": "Share of rows whose class was predicted.",
    "log_loss": "Mean of -ln(predicted probability of the label).",
    "roc_auc": "Area under the ROC curve.",
    "f1": "Harmonic mean of precision and recall of the positive label.",
    "macro_f1": "Mean F1 of the classes.",
    "kappa": "Cohen's kappa.",
    "calibration_error": "Expected calibration error.",
    "deviance": "Mean deviance: Poisson, Gamma or Tweedie, as the loss.",
    "rmse": "Root of the mean squared error.",
    "mae": "Mean absolute error.",
    "at_or_below": "Share of labels at or below the prediction.",
    "r2": "1 - squared error / variance of the labels.",
}


def collect_model_metrics(metrics: RunningMetrics, classes: Sequence[str]) -> dict[str, Any]:
    """Return the metrics of all rows and of the recent ones, as JSON values.

    classes: the names of the classes; empty if the model predicts numbers.
    """
    every, recent = metrics.all_rows(), metrics.recent_rows()
    values, lately = every.results(), recent.results()
    confusion = every.confusion() if len(classes) <= SHOWN_CLASSES else None
    return {
        "rows": every.rows,
        "recent_rows": recent.rows,
        "values": [
            {"name": name, "title": TITLES[name], "all": values[name], "recent": lately[name]}
            for name in values
            if name in TITLES
        ],
        "confusion": None if confusion is None else confusion.tolist(),
    }


def confusion_series(counts: Sequence[Sequence[float]], classes: Sequence[str]) -> dict[str, float]:
    """Return the confusion counts by the labels that Prometheus gives them."""
    return {
        f'label="{_escape(label)}",prediction="{_escape(prediction)}"': count
        for label, row in zip(classes, counts, strict=True)
        for prediction, count in zip(classes, row, strict=True)
    }


def _escape(text: str) -> str:
    """Return a text as the value of a label of Prometheus."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
