"""The commands: their names, descriptions and examples.

A command's own module is imported when the command runs, so that --help imports nothing heavy.
"""

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from shutil import get_terminal_size
from textwrap import fill
from typing import Any, NoReturn

from spanboost import __version__
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


class _Parser(argparse.ArgumentParser):
    """An argument parser that reports an error in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = _Parser(
        prog="spanboost",
        description="Online gradient boosting: turn a weak online learner into a strong one, in "
        "one pass over a stream.",
        epilog="Start with `spanboost demo`. Run `spanboost COMMAND --help` for the options and "
        "examples of a command.",
    )
    parser.add_argument("--version", action="version", version=f"spanboost {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_demo(commands)
    _add_train(commands)
    _add_evaluate(commands)
    _add_tune(commands)
    _add_predict(commands)
    _add_explain(commands)
    _add_inspect(commands)
    _add_reproduce(commands)
    _add_serve(commands)
    return parser


def _add_demo(commands: Any) -> None:
    demo = _command(
        commands,
        "demo",
        "boost each base learner on a generated stream and print the improvement",
        """\
Run each base learner alone and with both of the paper's algorithms over a generated stream whose
rule changes half-way. Print the average squared loss after 1, 2, 4, 8, ... rows. The first run
compiles the code; later runs take a second or two.""",
        """examples:
  spanboost demo
  spanboost demo --rows 100000 -n 64
  spanboost demo --save stream.csv""",
    )
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
    demo.set_defaults(command=_demo)


def _add_train(commands: Any) -> None:
    train = _command(
        commands,
        "train",
        "learn a stream in one pass and write the model",
        """\
Learn DATA in one pass and write the model. Every row is predicted before it is learned, so the
printed loss measures predictions of unseen rows.""",
        """examples:
  spanboost train houses.csv -o houses.sb --label price
  spanboost train 'clicks-*.vw.gz' -o clicks.sb --loss logistic --learner stumps -n 64
  spanboost train big.parquet -o big.sb --checkpoint-every 1000000
  spanboost train big.parquet -o big.sb --checkpoint-every 1000000 --resume
  zcat log.vw.gz | spanboost train - --format vw -f log.sb
  spanboost train huge.vw.zst -o huge.sb --learner linear -n 64 --ray --workers 8""",
    )
    train.add_argument(
        *option_groups.MODEL_FILE, metavar="MODEL", required=True, help="Model file to write (.sb)"
    )
    add_data(train)
    add_model(train)
    add_run(train)
    option_groups.add_checkpoints(train)
    option_groups.add_workers(train)
    train.set_defaults(command=_later("spanboost.cli.commands.train", "train"))


def _add_evaluate(commands: Any) -> None:
    evaluate = _command(
        commands,
        "evaluate",
        "measure the loss of one or more models on a stream (progressive validation)",
        """\
Predict every row of DATA, then learn it, and print the average loss. No model is written. Models
that are compared see the same rows in the same pass.""",
        """examples:
  spanboost evaluate houses.csv --label price --baseline
  spanboost evaluate houses.csv --compare linear,stumps:hull,network:span --plot curves.png
  spanboost evaluate houses.csv --drift adwin --report page.html
  spanboost evaluate held-out.csv -i houses.sb -t
  spanboost evaluate unit-rows.csv --learner ball --x-norm 1 --label-range 0,10 --certificate""",
    )
    add_data(evaluate)
    add_model(evaluate)
    add_run(evaluate)
    option_groups.add_comparison(evaluate)
    evaluate.set_defaults(command=_later("spanboost.cli.commands.train", "evaluate"))


def _add_tune(commands: Any) -> None:
    tune = _command(
        commands,
        "tune",
        "choose the parameters of a booster in one pass",
        """\
Run every combination of the given values over DATA in one pass, with every number of copies up to
-n. Parameters are chosen by the progressive loss on the first part of the rows; the loss on the
rest measures the chosen model on rows that did not choose it. DATA is read once and kept in
memory. Ctrl-C prints the results so far.""",
        """examples:
  spanboost tune houses.csv --label price -o houses.sb
  spanboost tune houses.csv --learner stumps -l 0.1,0.5,2 --step 0.05,0.1,1 -n 64 --plot tuned.png
  spanboost tune clicks.vw --learner network --hidden 5,10,20 --booster hull --json tuned.json
  spanboost train more.csv -i houses.sb -o more.sb""",
    )
    add_data(tune)
    option_groups.add_grid(tune)
    option_groups.add_tune_output(tune)
    tune.set_defaults(command=_later("spanboost.cli.commands.tune", "tune"))


def _add_predict(commands: Any) -> None:
    predict = _command(
        commands,
        "predict",
        "predict every row with a model",
        """\
Predict every row of DATA; the model does not learn. Columns are matched by name, and a label column
is ignored. The option names of Vowpal Wabbit (-t -i -p) work too.""",
        """examples:
  spanboost predict new-houses.csv -m houses.sb -o prices.csv
  spanboost predict new-houses.parquet -m houses.sb -o prices.parquet
  spanboost predict new.vw -t -i clicks.sb -p -""",
    )
    _add_model_file(predict)
    predict.add_argument(
        *("-o", "-p", "--output"),
        default="-",
        metavar="FILE",
        help="File to write: Parquet if the name ends in .parquet, else CSV; - is standard output, "
        "as CSV (default: -)",
    )
    predict.add_argument(
        "-t", "--test", action="store_true", help="Ignored; `predict` never learns"
    )
    add_data(predict, learning=False)
    predict.set_defaults(command=_later("spanboost.cli.commands.predict", "predict"))


def _add_explain(commands: Any) -> None:
    explain = _command(
        commands,
        "explain",
        "print what each feature contributes to a prediction",
        """\
Predict the first rows of DATA and print what each feature contributes, in the units of the
prediction (scores for classes). The contributions add up to the prediction. They are exact for
linear functions and stumps, follow the path for trees, and are an approximation for networks; for
auto they are the weighted average over its experts.""",
        """examples:
  spanboost explain new-houses.csv -m houses.sb
  spanboost explain clicks.vw -m clicks.sb --top 20
  spanboost explain new-houses.parquet -m houses.sb --rows 1000 --json > explained.jsonl""",
    )
    _add_model_file(explain)
    explain.add_argument(
        "--rows",
        type=at_least(1),
        default=1,
        metavar="N",
        help="Number of rows to explain, from the first (default: 1)",
    )
    _add_top(explain)
    explain.add_argument(
        "--json", action="store_true", help="Print one JSON object a row, with all features"
    )
    add_data(explain, learning=False)
    explain.set_defaults(command=_later("spanboost.cli.commands.explain", "explain"))


def _add_inspect(commands: Any) -> None:
    inspect = _command(
        commands,
        "inspect",
        "print the parameters of a model and what it has learned",
        """\
Print the parameters and the size of a model, the features with the largest effect, what each stage
contributes, and the shrinkage sigma of Algorithm 1.""",
        """examples:
  spanboost inspect houses.sb --top 20
  spanboost inspect houses.sb --json""",
    )
    inspect.add_argument("model", metavar="MODEL", help="Model file (.sb) or checkpoint")
    _add_top(inspect)
    inspect.add_argument("--json", action="store_true", help="Print one JSON object")
    inspect.set_defaults(command=_later("spanboost.cli.commands.inspect", "inspect"))


def _add_reproduce(commands: Any) -> None:
    reproduce = _command(
        commands,
        "reproduce",
        "run the paper's experiments and print its figures next to ours",
        """\
Run the paper's experiments on its data sets: SGD, regression stumps and networks, alone and with
both algorithms. Parameters (rate, number of copies, and the step of Algorithm 1) are tuned on the
first half of each data set; losses are those of the second half. Print Tables 1 and 2, with the
paper's figures in brackets. An interrupted run resumes when it is started again. A data set is a
file NAME.parquet, features first and `label` last; docs/reproduction.md lists them.""",
        """examples:
  spanboost reproduce --data DIR --json found.json --report found.html
  spanboost reproduce --download
  spanboost reproduce --sets abalone casp --learners stumps""",
    )
    option_groups.add_experiments(reproduce)
    reproduce.add_argument(
        "--json", metavar="FILE", help="Write all results as a JSON object to a file"
    )
    reproduce.add_argument(
        "--report", metavar="FILE", help="Write an HTML report with tables and plots (.html)"
    )
    reproduce.add_argument("--quiet", action="store_true", help="Print the tables, but no progress")
    reproduce.set_defaults(command=_later("spanboost.cli.commands.reproduce", "run"))


def _add_serve(commands: Any) -> None:
    serve = _command(
        commands,
        "serve",
        "run an HTTP service that predicts rows and learns from labels that arrive later",
        """\
Run an HTTP service. POST /predict predicts rows, POST /learn learns from labels, and / shows a live
dashboard. Rows are JSON objects, JSON Lines or Arrow. The service keeps its state in a folder: a
label is acknowledged when it is in the journal (a write-ahead log), and after a crash the model is
the same, bit for bit, as without the crash.""",
        """examples:
  spanboost serve --dir state                           (AutoBoost; the label of a row is `label`)
  spanboost serve --dir state --label price --port 8080
  spanboost serve --dir state -m houses.sb              (continue with a trained model)
  curl -d '{"size": 3, "city": "Ulm"}' -H 'Content-Type: application/json' localhost:8000/predict

To listen on an address that other machines can reach, set three tokens as environment variables:
SPANBOOST_PREDICT_TOKEN, SPANBOOST_LEARN_TOKEN and SPANBOOST_ADMIN_TOKEN.""",
    )
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
    serve.set_defaults(command=_later("spanboost.cli.commands.serve", "serve"))


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


def _command(commands: Any, name: str, help: str, description: str, epilog: str) -> Any:
    """Add a command; its description is wrapped, the lines of its epilog are kept."""
    width = max(40, get_terminal_size().columns - 2)  # the width that argparse uses
    return commands.add_parser(
        name,
        help=help,
        description=fill(description, width),
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _later(module: str, name: str) -> Callable[[argparse.Namespace], int]:
    """Return a function that imports the module of a command and runs the command."""

    def run(args: argparse.Namespace) -> int:
        return int(getattr(import_module(module), name)(args))

    return run


def _demo(args: argparse.Namespace) -> int:
    from spanboost.cli.commands import demo

    if args.save is not None:
        demo.save(args.rows, args.seed, args.save)
    demo.run(args.rows, args.n, args.seed, sys.stdout)
    return 0
