"""The names of metrics as people read them, and metrics as text."""

from collections.abc import Mapping

TITLES = {
    "accuracy": "accuracy",
    "log_loss": "log-loss",
    "roc_auc": "ROC AUC",
    "f1": "F1",
    "macro_f1": "F1, mean of classes",
    "kappa": "Cohen's kappa",
    "calibration_error": "calibration error",
    "deviance": "mean deviance",
    "at_or_below": "labels at or below the prediction",
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R^2",
}


def describe(metrics: Mapping[str, float | None]) -> str:
    """Return metrics as text; those that are undefined are left out."""
    known = {name: value for name, value in metrics.items() if value is not None}
    return ", ".join(f"{TITLES[name]} {known[name]:z.4g}" for name in known if name in TITLES)
