"""The names of metrics as people read them."""

TITLES = {
    "accuracy": "accuracy",
    "log_loss": "log-loss",
    "roc_auc": "ROC AUC",
    "f1": "F1",
    "macro_f1": "F1, mean of classes",
    "kappa": "Cohen's kappa",
    "calibration_error": "calibration error",
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R^2",
}
