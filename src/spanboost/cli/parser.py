"""The commands, and what each has to say for itself. Nothing heavy is imported before one runs."""

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

from spanboost import __version__
from spanboost.cli.arguments import (
    add_columns,
    add_data,
    add_loss,
    add_model,
    add_ray,
    add_run,
    at_least,
    between,
    days,
    names,
    numbers,
    whole_numbers,
)
from spanboost.models.model_spec import LEARNERS
from spanboost.paper import published
from spanboost.service.limits import RequestLimits, StateLimits, limit_options

TUNABLE = tuple(name for name in LEARNERS if name != "ball")  # it has a proved step, no rate
DETECTORS = ("adwin", "page-hinkley")


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def parser() -> argparse.ArgumentParser:
    """Of all commands."""
    parser = _Parser(
        prog="spanboost",
        description="Online gradient boosting: any weak online learner made strong, in one pass "
        "over a stream.",
        epilog="Start with: spanboost demo. Each command has a --help of its own.",
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
    demo = commands.add_parser(
        "demo",
        help="boost each base learner on a generated stream and print how much it helps",
        description="Runs each base learner alone and under both of the paper's algorithms over a "
        "generated stream whose rule changes half-way, and prints the average squared loss at 1, "
        "2, 4, 8, ... rows. The first run compiles, once; later ones take a second or two.",
    )
    demo.add_argument("--rows", type=at_least(2), default=20_000, help="in the stream (20,000)")
    demo.add_argument("-n", type=at_least(1), default=32, help="copies of the weak learner (32)")
    demo.add_argument("--seed", type=at_least(0), default=0, help="of the stream (0)")
    demo.add_argument("--save", metavar="FILE", help="also write the stream, as CSV, to play with")
    demo.set_defaults(command=_demo)


def _add_train(commands: Any) -> None:
    train = _command(
        commands,
        "train",
        "learn a stream in one pass and write the model",
        "Learns DATA in one pass and writes the model. Every row is predicted before it is "
        "learned, so the loss that is printed is an honest one.",
        """examples:
  spanboost train houses.csv -o houses.sb --label price
  spanboost train 'clicks-*.vw.gz' -o clicks.sb --loss logistic --learner stumps -n 64
  spanboost train big.parquet -o big.sb --checkpoint-every 1000000     (and again with --resume)
  zcat log.vw.gz | spanboost train - --format vw -f log.sb
  spanboost train huge.vw.zst -o huge.sb --learner linear -n 64 --ray --workers 8""",
    )
    train.add_argument(
        *("-o", "-f", "--output"), metavar="MODEL", required=True, help="where the model goes (.sb)"
    )
    add_data(train)
    add_model(train)
    add_run(train)
    safety = train.add_argument_group("stop and go on")
    safety.add_argument(
        "--checkpoint-every",
        type=at_least(1),
        metavar="ROWS",
        help="keep a checkpoint beside the output, renewed every so many rows",
    )
    safety.add_argument(
        "--resume",
        action="store_true",
        help="go on from the checkpoint of the same command; the model is the same, byte for byte",
    )
    team = train.add_argument_group(
        "more than one machine, or processor (docs/cluster.md: when it pays)"
    )
    add_ray(team)
    team.add_argument(
        "--workers",
        type=at_least(1),
        metavar="W",
        help="with --ray: row t is learned by worker t mod W (default: as many as processors)",
    )
    team.add_argument(
        "--average-every",
        type=at_least(1),
        metavar="K",
        help="with --ray: workers average what they have learned after K rows each (10,000); "
        "trees are not averaged, but answer together",
    )
    train.set_defaults(command=_later("spanboost.cli.commands.train", "train"))


def _add_evaluate(commands: Any) -> None:
    evaluate = _command(
        commands,
        "evaluate",
        "progressive validation: how well would it have predicted this stream?",
        "Predicts every row of DATA, then learns it, and prints the average loss. Nothing is "
        "written. Models that are compared see the same rows in the same pass.",
        """examples:
  spanboost evaluate houses.csv --label price --baseline
  spanboost evaluate houses.csv --compare linear,stumps:hull,network:span --plot curves.png
  spanboost evaluate houses.csv --drift adwin --report page.html
  spanboost evaluate held-out.csv -i houses.sb -t           (test a model as it is)
  spanboost evaluate unit-rows.csv --learner ball --x-norm 1 --label-range 0,10 --certificate""",
    )
    add_data(evaluate)
    add_model(evaluate)
    add_run(evaluate)
    more = evaluate.add_argument_group("comparing")
    more.add_argument(
        "--baseline",
        action="store_true",
        help="also the learner alone, without boosting (of auto: a linear one)",
    )
    more.add_argument(
        "--compare", metavar="LIST", help="several: linear,stumps:hull,network:span for example"
    )
    more.add_argument(
        "-t", "--test", action="store_true", help="learn nothing: test the model of -i as it is"
    )
    more.add_argument(
        "--certificate",
        action="store_true",
        help="also the regret against the best fixed function in hindsight, and the theorem's "
        "bound where there is one (squared loss)",
    )
    more.add_argument(
        "--drift",
        choices=DETECTORS,
        help="look for moments at which errors rise, with a detector of River",
    )
    evaluate.set_defaults(command=_later("spanboost.cli.commands.train", "evaluate"))


def _add_tune(commands: Any) -> None:
    tune = _command(
        commands,
        "tune",
        "choose a booster's parameters in one pass",
        "Runs every combination of the values given over DATA, all in the same pass, every number "
        "of copies up to -n among them. Parameters are chosen by the progressive loss of the first "
        "part of the rows; the loss of the chosen ones on the rest is an honest one. DATA is read "
        "once and kept in memory. Ctrl-C shows what is known by then.",
        """examples:
  spanboost tune houses.csv --label price -o houses.sb
  spanboost tune houses.csv --learner stumps -l 0.1,0.5,2 --step 0.05,0.1,1 -n 64 --plot tuned.png
  spanboost tune clicks.vw --learner network --hidden 5,10,20 --booster hull --json tuned.json
  spanboost train more.csv -i houses.sb -o more.sb          (the chosen model goes on learning)""",
    )
    add_data(tune)
    model = tune.add_argument_group("model")
    model.add_argument(
        "--learner", choices=TUNABLE, default="linear", help="what is boosted (linear)"
    )
    add_loss(model)
    grid = tune.add_argument_group("what is tried: one value or several, with commas between them")
    grid.add_argument(
        "--booster",
        choices=("span", "hull", "both"),
        default="both",
        help="Algorithm 1, Algorithm 2, or both (default)",
    )
    grid.add_argument(
        "-n", type=at_least(1), metavar="MAX", help="copies, up to so many (32; trees: 100)"
    )
    grid.add_argument(
        "-l", "--rate", type=numbers, metavar="LIST", help="learning rates (0.1,0.2,0.5,1,2)"
    )
    grid.add_argument(
        "--step", type=numbers, metavar="LIST", help="of Algorithm 1 (0.05,0.1,0.2,0.5,1)"
    )
    grid.add_argument("--scale", type=numbers, metavar="LIST", help="lambda of the class (1)")
    grid.add_argument("--feedback", type=names, metavar="LIST", help="greedy, linear (greedy)")
    grid.add_argument(
        "--hidden", type=whole_numbers, metavar="LIST", help="units of --learner network (10)"
    )
    grid.add_argument(
        "--split",
        type=float,
        default=0.5,
        metavar="SHARE",
        help="of the rows that parameters are chosen on (0.5)",
    )
    run = tune.add_argument_group("what is said")
    run.add_argument(
        *("-o", "-f", "--output"),
        metavar="MODEL",
        help="the chosen model, which has learned all rows (.sb)",
    )
    run.add_argument("--plot", metavar="FILE", help="losses over copies and parameters: .png, .svg")
    run.add_argument("--json", metavar="FILE", help="every loss as one JSON object; - is stdout")
    run.add_argument("--threads", type=at_least(1), help="default: one for each processor")
    add_ray(run)
    run.add_argument("--quiet", action="store_true", help="no bar; the table alone")
    tune.set_defaults(command=_later("spanboost.cli.commands.tune", "tune"))


def _add_predict(commands: Any) -> None:
    predict = _command(
        commands,
        "predict",
        "predictions of a model for every row",
        "Predicts every row of DATA and learns nothing. Columns are found by their names; a label "
        "that is there is ignored.",
        """examples:
  spanboost predict new-houses.csv -m houses.sb -o prices.csv
  spanboost predict new-houses.parquet -m houses.sb -o prices.parquet
  spanboost predict new.vw -t -i clicks.sb -p -             (the words of Vowpal Wabbit)""",
    )
    predict.add_argument("-m", "-i", "--model", required=True, help="the model (.sb)")
    predict.add_argument(
        *("-o", "-p", "--output"),
        default="-",
        metavar="FILE",
        help="CSV, or Parquet if it ends in .parquet; - (the default) is standard output, as CSV",
    )
    predict.add_argument("-t", "--test", action="store_true", help="accepted: predicting is this")
    add_data(predict, learning=False)
    predict.set_defaults(command=_later("spanboost.cli.commands.predict", "predict"))


def _add_explain(commands: Any) -> None:
    explain = _command(
        commands,
        "explain",
        "what each feature contributes to a prediction",
        "Predicts the first rows of DATA, and says of each what its features contribute, in the "
        "units of predictions (of classes: scores). It adds up to the prediction: exact for linear "
        "functions and stumps, along the path for trees, an approximation for networks; of auto, "
        "what its experts say, by what each counts for.",
        """examples:
  spanboost explain new-houses.csv -m houses.sb
  spanboost explain clicks.vw -m clicks.sb --top 20
  spanboost explain new-houses.parquet -m houses.sb --rows 1000 --json > explained.jsonl""",
    )
    explain.add_argument("-m", "-i", "--model", required=True, help="the model (.sb)")
    explain.add_argument("--rows", type=at_least(1), default=1, help="so many of the first (1)")
    explain.add_argument("--top", type=at_least(0), default=10, help="how many features (10)")
    explain.add_argument("--json", action="store_true", help="one JSON object a row, all features")
    add_data(explain, learning=False)
    explain.set_defaults(command=_later("spanboost.cli.commands.explain", "explain"))


def _add_inspect(commands: Any) -> None:
    inspect = _command(
        commands,
        "inspect",
        "what a model is made of, and what it has learned",
        "Prints the parameters of a model, its size, the features of largest effect, what each "
        "stage contributes, and Algorithm 1's shrinkage sigma.",
        "example:\n  spanboost inspect houses.sb --top 20",
    )
    inspect.add_argument("model", metavar="MODEL", help="a model (.sb), or a checkpoint")
    inspect.add_argument("--top", type=at_least(0), default=10, help="how many features (10)")
    inspect.add_argument("--json", action="store_true", help="as one JSON object")
    inspect.set_defaults(command=_later("spanboost.cli.commands.inspect", "inspect"))


def _add_reproduce(commands: Any) -> None:
    reproduce = _command(
        commands,
        "reproduce",
        "the paper's experiments, its figures beside ours",
        "Runs the experiments of the paper on its data sets: SGD, regression stumps and networks, "
        "alone and under both algorithms, tuned on the first half of each data set (rate, number "
        "of copies, and the step of Algorithm 1) and judged on the second. Prints its Table 2 and "
        "Table 1 with the paper's figures in brackets. What is known is kept: a run that was "
        "stopped goes on where it was.",
        """examples:
  spanboost reproduce --data DIR --json found.json --report found.html
  spanboost reproduce --download                          (into the usual folder, then run)
  spanboost reproduce --sets abalone casp --learners stumps

data sets are NAME.parquet, features first and `label` last: docs/reproduction.md says which, and
where they come from.""",
    )
    reproduce.add_argument(
        "--data",
        metavar="DIR",
        help="folder of the data sets (default: $SPANBOOST_DATA, else one in the user's cache)",
    )
    reproduce.add_argument(
        "--download",
        action="store_true",
        help="first fetch those that are missing from the public archives into the folder",
    )
    for name, known, what in (
        ("sets", published.DESCRIPTIONS, "data sets"),
        ("learners", published.LEARNERS, "base learners"),
        ("orders", ("file", "shuffled"), "orders of the rows"),
    ):
        reproduce.add_argument(
            f"--{name}",
            nargs="+",
            choices=known,
            metavar="NAME",
            help=f"{what}, of {', '.join(known)} (default: all)",
        )
    reproduce.add_argument(
        "--work",
        metavar="DIR",
        default="spanboost-reproduction",
        help="where what is known is kept (default: %(default)s)",
    )
    add_ray(reproduce)
    reproduce.add_argument("--json", metavar="FILE", help="everything, as one JSON object")
    reproduce.add_argument("--report", metavar="FILE", help="tables and plots as one page: .html")
    reproduce.add_argument("--quiet", action="store_true", help="no bar, nothing but the tables")
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


def _command(commands: Any, name: str, help: str, description: str, epilog: str) -> Any:
    return commands.add_parser(
        name,
        help=help,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _later(module: str, name: str) -> Callable[[argparse.Namespace], int]:
    """A function of a module that is imported when the command runs."""

    def run(args: argparse.Namespace) -> int:
        return int(getattr(import_module(module), name)(args))

    return run


def _demo(args: argparse.Namespace) -> int:
    from spanboost.cli.commands import demo

    if args.save is not None:
        demo.save(args.rows, args.seed, args.save)
    demo.run(args.rows, args.n, args.seed, sys.stdout)
    return 0
