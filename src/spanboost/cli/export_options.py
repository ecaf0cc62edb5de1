"""The options of `spanboost export`, and those of `train` for models that leave spanboost."""

from typing import Any

EXPORTS = ("compact", "c", "onnx")


def add_export_options(export: Any) -> None:
    """Add the options of `spanboost export`."""
    export.add_argument("model", metavar="MODEL", help="Model file to read (.sb)")
    export.add_argument(
        "--to",
        required=True,
        choices=EXPORTS,
        help="Form to write: a compact model file (.sb), C source (.c), or ONNX (.onnx)",
    )
    export.add_argument("-o", "--output", required=True, metavar="FILE", help="File to write")
    export.add_argument(
        "--name",
        default="model",
        help="Name with which the functions of a C file begin (default: model)",
    )


def add_compact(train: Any) -> None:
    """Add the option that writes a model for prediction only."""
    train.add_argument(
        "--compact",
        action="store_true",
        help="Write a smaller model for prediction only: it contains no training rows and cannot "
        "continue to learn",
    )


def add_mlflow(train: Any) -> None:
    """Add the option that logs the run."""
    train.add_argument_group("MLflow").add_argument(
        "--mlflow",
        nargs="?",
        const="",
        metavar="EXPERIMENT",
        help="Log the parameters, the progressive losses and the model in MLflow, in this "
        "experiment; without EXPERIMENT, in that of $MLFLOW_EXPERIMENT_NAME. $MLFLOW_TRACKING_URI "
        "is the server. Needs the extra `mlflow`; see docs/mlflow.md",
    )
