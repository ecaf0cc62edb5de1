"""The options of every command."""

from typing import Any

from spanboost.cli import option_groups
from spanboost.cli.arguments import (
    add_columns,
    add_data,
    add_model,
    add_run,
    at_least,
    between,
    days,
)
from spanboost.service.limits import RequestLimits, StateLimits, limit_options


def add_demo_options(demo: Any) -> None:
    """Add the options of `spanboost demo`."""
    demo.add_argument(
        "--rows",
        type=at_least(2),
        default=20_000,
        metavar="N",
        help="Number of rows in the stream (default: 20,000)",
    )
    demo.add_argument(
        "-n",
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
        *option_groups.MODEL_FILE, metavar="MODEL", required=True, help="Model file to write (.sb)"
    )
    add_data(train)
    add_model(train)
    add_run(train)
    option_groups.add_checkpoints(train)
    option_groups.add_workers(train)


def add_evaluate_options(evaluate: Any) -> None:
    """Add the options of `spanboost evaluate`."""
    add_data(evaluate)
    add_model(evaluate)
    add_run(evaluate)
    option_groups.add_comparison(evaluate)


def add_tune_options(tune: Any) -> None:
    """Add the options of `spanboost tune`."""
    add_data(tune)
    option_groups.add_grid(tune)
    option_groups.add_tune_output(tune)


def add_predict_options(predict: Any) -> None:
    """Add the options of `spanboost predict`."""
    _add_model_file(predict)
    predict.add_argument(
        *("-o", "-p", "--output"),
        default="-",
        metavar="FILE",
        help="File for the predictions: Parquet if the name ends in .parquet, otherwise CSV "
        "(default: -, standard output, as CSV)",
    )
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
    inspect.add_argument("model", metavar="MODEL", help="Model file (.sb) or checkpoint")
    _add_top(inspect)
    inspect.add_argument("--json", action="store_true", help="Print one JSON object")


def add_reproduce_options(reproduce: Any) -> None:
    """Add the options of `spanboost reproduce`."""
    option_groups.add_experiments(reproduce)
    reproduce.add_argument(
        "--json", metavar="FILE", help="Write all results to a file, as a JSON object"
    )
    reproduce.add_argument(
        "--report", metavar="FILE", help="Write an HTML report with tables and plots (.html)"
    )
    reproduce.add_argument("--quiet", action="store_true", help="Print the tables, but no progress")


def add_serve_options(serve: Any) -> None:
    """Add the options of `spanboost serve`."""
    serve.add_argument("--dir", required=True, metavar="STATE", help="State folder")
    serve.add_argument(
        "--host", default="127.0.0.1", help="Address to listen on (default: 127.0.0.1)"
    )
    serve.add_argument(
        "--port",
        type=between(0, 65535),
        default=8000,
        help="Port to listen on; 0 chooses a free one (default: 8000)",
    )
    serve.add_argument(
        "--quiet", action="store_true", help="Show no progress bar while the journal is replayed"
    )
    columns = serve.add_argument_group("rows")
    columns.add_argument(
        "--id", default="id", metavar="NAME", help="Key of the id in a row (default: id)"
    )
    add_columns(columns, "`label`")
    add_model(serve, ("-m", "-i", "--model"))
    _add_limits(serve.add_argument_group("state folder"), StateLimits)
    _add_limits(serve.add_argument_group("request limits"), RequestLimits)


def _add_limits(group: Any, limits: type) -> None:
    """Add the options that set the limits of the service."""
    for option in limit_options(limits):
        group.add_argument(
            option.flag,
            type=at_least(1) if isinstance(option.default, int) else days,
            default=option.default,
            metavar="N",
            help=f"{option.help} (default: {option.default:,.0f})",
        )


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
