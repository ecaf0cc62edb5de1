"""The options of every command, except those of the service (service_options.py)."""

from typing import Any

from spanboost.cli.arguments import (
    add_certificate,
    add_data,
    add_loss,
    add_model,
    add_ray,
    add_rows,
    add_run,
    at_least,
    integers,
    names,
    numbers,
)
from spanboost.cli.export_options import add_compact, add_mlflow
from spanboost.cli.interval_options import (
    add_evaluate_intervals,
    add_predict_intervals,
    add_train_intervals,
)
from spanboost.cli.output.json_file import add_json_file
from spanboost.models.model_spec import LEARNERS
from spanboost.paper import published

DETECTORS = ("adwin", "page-hinkley")
TUNABLE = tuple(name for name in LEARNERS if name != "ball")  # it has a proved step, no rate
MODEL_FILE = ("-o", "-f", "--output")


def add_demo_options(demo: Any) -> None:
    """Add the options of `spanboost demo`."""
    demo.add_argument(
        "--rows",
        type=at_least(10),
        default=20_000,
        metavar="N",
        help="Number of rows in the stream (default: 20,000)",
    )
    demo.add_argument(
        "-n",
        "--n-estimators",
        dest="n",
        type=at_least(1),
        default=32,
        metavar="N",
        help="Number of copies of the learner (default: 32)",
    )
    demo.add_argument(
        "--seed",
        type=at_least(0),
        default=0,
        metavar="N",
        help="Random seed of the stream (default: 0)",
    )
    demo.add_argument("--save", metavar="FILE", help="Also write the stream to a CSV file")


def add_train_options(train: Any) -> None:
    """Add the options of `spanboost train`."""
    train.add_argument(
        *MODEL_FILE, metavar="MODEL", required=True, help="Model file to write (.sb)"
    )
    add_compact(train)
    add_train_intervals(train)
    add_data(train)
    add_rows(train)
    add_model(train)
    add_run(train)
    add_mlflow(train)
    _add_checkpoints(train)
    _add_workers(train)


def add_evaluate_options(evaluate: Any) -> None:
    """Add the options of `spanboost evaluate`."""
    add_data(evaluate)
    add_rows(evaluate)
    add_model(evaluate)
    add_run(evaluate)
    _add_comparison(evaluate)
    add_ray(evaluate.add_argument_group("parallel work"), "They share the experts of auto")
    add_evaluate_intervals(evaluate)


def add_tune_options(tune: Any) -> None:
    """Add the options of `spanboost tune`."""
    add_data(tune)
    _add_grid(tune)
    _add_tune_output(tune)


def add_predict_options(predict: Any) -> None:
    """Add the options of `spanboost predict`."""
    _add_model_file(predict)
    predict.add_argument(
        *("-o", "-p", "--output"),
        default="-",
        metavar="FILE",
        help="File for the predictions: Parquet if the name ends in .parquet, otherwise CSV "
        "(default: -, standard output, as CSV). If labels are classes, they have the probability "
        "of each class (p_NAME)",
    )
    predict.add_argument(
        "--keep",
        type=names,
        action="extend",
        metavar="NAMES",
        help="Columns of DATA to copy into the output, such as an id, separated by commas; can be "
        "repeated",
    )
    add_predict_intervals(predict)
    predict.add_argument(
        "-t", "--test", action="store_true", help="Ignored; `predict` never learns"
    )
    add_data(predict, learning=False)


def add_explain_options(explain: Any) -> None:
    """Add the options of `spanboost explain`."""
    _add_model_file(explain)
    explain.add_argument(
        "--rows",
        type=at_least(1),
        default=1,
        metavar="N",
        help="Number of rows to explain, starting with the first (default: 1)",
    )
    _add_top(explain)
    explain.add_argument(
        "--json", action="store_true", help="Print one JSON object per row, with all features"
    )
    add_data(explain, learning=False)


def add_inspect_options(inspect: Any) -> None:
    """Add the options of `spanboost inspect`."""
    inspect.add_argument(
        "model",
        metavar="MODEL",
        help="Model file (.sb), checkpoint, state folder of a service, or address of a running one",
    )
    add_certificate(inspect)
    _add_top(inspect)
    inspect.add_argument(
        "--all",
        action="store_true",
        help="Print also all parameters, the effects of features and the stages of the booster",
    )
    inspect.add_argument("--json", action="store_true", help="Print everything as one JSON object")


def add_reproduce_options(reproduce: Any) -> None:
    """Add the options of `spanboost reproduce`."""
    _add_experiments(reproduce)
    add_json_file(reproduce, "all results")
    reproduce.add_argument(
        "--report", metavar="FILE", help="Write an HTML report with tables and plots (.html)"
    )
    reproduce.add_argument("--quiet", action="store_true", help="Print the tables, but no progress")


def _add_model_file(parser: Any) -> None:
    parser.add_argument(
        "-m", "-i", "--model", metavar="MODEL", required=True, help="Model file to load (.sb)"
    )


def _add_top(parser: Any) -> None:
    parser.add_argument(
        "--top",
        type=at_least(0),
        default=10,
        metavar="N",
        help="Number of features to print (default: 10)",
    )


def _add_checkpoints(train: Any) -> None:
    """Add the options that save checkpoints and resume from them."""
    group = train.add_argument_group("checkpoints")
    group.add_argument(
        "--checkpoint-every",
        type=at_least(1),
        metavar="ROWS",
        help="Save a checkpoint next to the output after every ROWS rows",
    )
    group.add_argument(
        "--resume",
        action="store_true",
        help="Resume the same command from its checkpoint; the model is identical, byte for byte",
    )


def _add_workers(train: Any) -> None:
    """Add the options of training with several workers."""
    group = train.add_argument_group(
        "parallel training (docs/cluster.md explains when it is faster)"
    )
    add_ray(
        group,
        "They share the experts of --learner auto; with other learners, row t goes to worker t "
        "mod W",
    )
    group.add_argument(
        "--average-every",
        type=at_least(1),
        metavar="K",
        help="Number of rows that each worker learns between two averages of their models, with "
        "--ray (default: 10,000). Models of trees are not averaged, only their predictions",
    )
    group.add_argument(
        "--sharded",
        action="store_true",
        help="With --ray, let the workers read DATA themselves, each its own files: worker f mod W "
        "reads file f. All machines must be able to open the files",
    )


def _add_comparison(evaluate: Any) -> None:
    """Add the options that test or compare models."""
    group = evaluate.add_argument_group("tests and comparisons")
    group.add_argument(
        "--baseline",
        action="store_true",
        help="Also evaluate the learner without boosting (for auto: a linear learner)",
    )
    group.add_argument(
        "--compare",
        metavar="LIST",
        help="Evaluate several models on the same rows, and say since which row the first is "
        "certainly better or worse than each other one. A model is auto or LEARNER[:BOOSTER], with "
        "options of its own if needed: auto:budget=fast,linear,stumps:hull,trees:n=50:seed=1. With "
        "-i MODEL, which is then the first, it can also be a model file: other.sb",
    )
    group.add_argument(
        "--plot-compare",
        metavar="FILE",
        help="Plot the differences of --compare over the rows, with their intervals (.png or .svg)",
    )
    group.add_argument(
        "-t", "--test", action="store_true", help="Test the model given by -i, without learning"
    )
    group.add_argument(
        "--certificate",
        action="store_true",
        help="Also print the regret against the best fixed functions in hindsight, a bound on it "
        "by cause, and the theorem's bound where one applies (squared, logistic or hinge loss)",
    )
    group.add_argument(
        "--plot-certificate",
        metavar="FILE",
        help="Plot the causes of the regret, with --certificate (.png or .svg)",
    )
    group.add_argument(
        "--drift",
        choices=DETECTORS,
        help="Report the rows at which errors rise, found by one of River's drift detectors",
    )


def _add_grid(tune: Any) -> None:
    """Add the options that say which model is tuned and which values are tried."""
    model = tune.add_argument_group("model")
    model.add_argument(
        "--learner",
        choices=TUNABLE,
        help="Learner to boost (default: trees, compared with AutoBoost in the same pass)",
    )
    add_loss(model)
    grid = tune.add_argument_group("values to try (LIST: one or more, separated by commas)")
    grid.add_argument(
        "--booster",
        choices=("span", "hull", "both"),
        default="both",
        help="Boosting algorithm: `span` is Algorithm 1, `hull` is Algorithm 2 (default: both)",
    )
    grid.add_argument(
        "-n",
        "--n-estimators",
        dest="n",
        type=at_least(1),
        metavar="MAX",
        help="Largest number of copies of the learner; all smaller numbers are tried too "
        "(default: 32; trees: 100)",
    )
    for option, kind, text in (
        (
            ("-l", "--rate"),
            numbers,
            "Learning rates of --learner linear, stumps or network, for labels scaled to [-1, 1] "
            "(default: 0.1,0.2,0.5,1,2)",
        ),
        (
            ("--step", "--learning-rate"),
            numbers,
            "Step sizes eta of Algorithm 1 (default: 0.05,0.1,0.2,0.5,1)",
        ),
        (("--scale",), numbers, "Factors lambda that scale the base predictions (default: 1)"),
        (("--feedback",), names, "Feedback modes, greedy or linear (default: greedy)"),
        (("--hidden",), integers, "Numbers of hidden units of --learner network (default: 10)"),
    ):
        grid.add_argument(*option, type=kind, metavar="LIST", help=text)
    grid.add_argument(
        "--split",
        type=float,
        default=0.5,
        metavar="SHARE",
        help="Share of the rows, from the start, used to choose parameters (default: 0.5)",
    )


def _add_tune_output(tune: Any) -> None:
    """Add the options for the output of `tune`, and for threads and clusters."""
    group = tune.add_argument_group("output")
    group.add_argument(
        *MODEL_FILE,
        metavar="MODEL",
        help="Write the chosen model, which has learned from all rows (.sb); without --learner, "
        "the better one of the tuned trees and AutoBoost",
    )
    group.add_argument(
        "--plot", metavar="FILE", help="Plot losses against copies and parameters (.png or .svg)"
    )
    add_json_file(group, "all losses")
    group.add_argument("--quiet", action="store_true", help="Print the table, but no progress bar")
    work = tune.add_argument_group("parallel work")
    work.add_argument(
        "--threads",
        type=at_least(1),
        metavar="N",
        help="Number of threads (default: one for each processor)",
    )
    add_ray(work, "They share the experts of AutoBoost; the grid uses all processors")


def _add_experiments(reproduce: Any) -> None:
    """Add the options that say which experiments of the paper to run, and on which data."""
    reproduce.add_argument(
        "--data",
        metavar="DIR",
        help="Folder of the data sets (default: $SPANBOOST_DATA, or a folder in the user's cache)",
    )
    reproduce.add_argument(
        "--download",
        action="store_true",
        help="Download missing data sets from the public archives into the folder first",
    )
    for name, known, what in (
        ("sets", published.DESCRIPTIONS, "Data sets"),
        ("learners", published.LEARNERS, "Base learners"),
    ):
        reproduce.add_argument(
            f"--{name}",
            nargs="+",
            choices=known,
            metavar="NAME",
            help=f"{what} to run: {', '.join(known)} (default: all)",
        )
    reproduce.add_argument(
        "--shuffles",
        type=at_least(0),
        default=0,
        metavar="K",
        help="Also run K shuffles of every data set, and print intervals (default: 0; 10 take ten "
        "times as long as the rest)",
    )
    reproduce.add_argument(
        "--work",
        metavar="DIR",
        default="spanboost-reproduction",
        help="Folder that keeps finished results, so that a run can resume (default: %(default)s)",
    )
    add_ray(reproduce)
