"""The options about prediction intervals, sets of classes and calibrated probabilities."""

from typing import Any

from spanboost.cli.arguments import share


def add_train_intervals(train: Any) -> None:
    """Add the options of `spanboost train`."""
    train.add_argument(
        "--intervals",
        action="store_true",
        help="Also learn how far labels are from predictions, for `predict --interval` "
        "(docs/intervals.md)",
    )
    train.add_argument(
        "--sets",
        action="store_true",
        help="Also learn sets of classes that contain the label, for `predict --set` "
        "(docs/intervals.md)",
    )
    add_calibrate(train)


def add_calibrate(command: Any) -> None:
    """Add the option of commands that create a model."""
    command.add_argument(
        "--calibrate",
        action="store_true",
        help="Calibrate the probabilities of the classes with the labels; for --loss logistic and "
        "softmax (docs/intervals.md)",
    )


def add_predict_intervals(predict: Any) -> None:
    """Add the options of `spanboost predict`."""
    predict.add_argument(
        "--interval",
        type=share,
        action="append",
        metavar="COVERAGE",
        help="Also write an interval, in the columns `low` and `high`, that covers this share of "
        "the labels, such as 0.9; can be repeated, with columns such as `low_0.5`. The model must "
        "be trained with --intervals",
    )
    for side, where in (("lower", "above"), ("upper", "below")):
        predict.add_argument(
            f"--{side}",
            type=share,
            action="append",
            metavar="COVERAGE",
            help=f"Also write a bound, in the column `{side}`: this share of the labels, such as "
            f"0.9, is at or {where} it; can be repeated, with columns such as `{side}_0.5`. The "
            "model must be trained with --intervals",
        )
    predict.add_argument(
        "--set",
        type=share,
        action="append",
        metavar="COVERAGE",
        help="Also write a set of classes, in the column `set`, separated by `|`, that contains at "
        "least this share of the labels, such as 0.9; can be repeated, with columns such as "
        "`set_0.5`. The model must be trained with --sets",
    )


def add_evaluate_intervals(evaluate: Any) -> None:
    """Add the options of `spanboost evaluate`."""
    add_calibrate(evaluate)
    group = evaluate.add_argument_group("prediction intervals (docs/intervals.md)")
    group.add_argument(
        "--interval",
        type=share,
        action="append",
        metavar="COVERAGE",
        help="Also learn intervals that cover this share of the labels, such as 0.9, and print "
        "their coverage, mean width and pinball loss; can be repeated. A model given by -i must be "
        "trained with --intervals",
    )
    group.add_argument(
        "--plot-intervals",
        metavar="FILE",
        help="Plot the intervals of the last rows and the coverage over time, with --interval "
        "(.png or .svg)",
    )
