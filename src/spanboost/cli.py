"""The command line. Nothing heavy is imported before a command runs."""

import argparse
import gc
import os
import re
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

from spanboost import __version__
from spanboost.errors import ClusterError, UserError
from spanboost.paper import figures

FORMATS = ("vw", "svmlight", "csv", "tsv", "parquet", "arrow", "jsonl")
LEARNERS = ("auto", "linear", "stumps", "stumps-intercept", "network", "trees", "ball")
LOSSES = ("squared", "absolute", "quantile:TAU", "logistic", "hinge", "softmax")
DETECTORS = ("adwin", "page-hinkley")
PICTURES = {
    "predictions": "predictions against the truth; of classes, what they were taken for",
    "residuals": "label minus prediction, over time",
    "stages": "what each stage contributes: its movement, and the loss if it were the last",
    "sigma": "Algorithm 1's shrinkage of each stage, over time",
    "importance": "the features that matter most",
}
_ADDRESS = re.compile(r"local|auto|(ray://)?[^/\s]+:\d+")  # of a Ray cluster
_MISSING = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Exit status: 0 for good; 2 for bad usage, bad data, a file that is missing, unreadable or no
    model; 130 for Ctrl-C; 1 for the rest.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    args = _parser().parse_args(_joined(words))
    args.words = words
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            return int(args.command(args))
    except KeyboardInterrupt:
        print("spanboost: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, `head` for one, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        print("spanboost: there is not enough memory: fewer copies, or fewer bits", file=sys.stderr)
        return 1
    except (UserError, ClusterError) as error:
        print(f"spanboost: {error}", file=sys.stderr)
        return 2 if isinstance(error, UserError) else 1
    except OSError as error:  # a missing file; or a full disk, say
        where = "" if error.filename is None else f"{error.filename}: "
        print(f"spanboost: {where}{error.strerror or error}", file=sys.stderr)
        return 2 if isinstance(error, _MISSING) else 1


def program() -> NoReturn:
    """The command line as a process of its own, which begins and ends without ado."""
    gc.set_threshold(200_000, 20, 20)  # to look for cycles would be a tenth of its start
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # to start threads that nobody uses, too
    status = main()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        pass
    except OSError as error:
        status = 1
        print(f"spanboost: standard output: {error.strerror}", file=sys.stderr)
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(status)  # to take Numba apart takes longer than to learn a small file


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
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
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    demo.add_argument("--rows", type=_at_least(2), default=20_000, help="length of the stream")
    demo.add_argument("-n", type=_at_least(1), default=32, help="copies of the weak learner")
    demo.add_argument("--seed", type=_at_least(0), default=0, help="of the stream")
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
    _add_data(train)
    _add_model(train)
    _add_run(train)
    safety = train.add_argument_group("stop and go on")
    safety.add_argument(
        "--checkpoint-every",
        type=_at_least(1),
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
    _add_ray(team)
    team.add_argument(
        "--workers",
        type=_at_least(1),
        metavar="W",
        help="with --ray: row t is learned by worker t mod W (default: as many as processors)",
    )
    team.add_argument(
        "--average-every",
        type=_at_least(1),
        metavar="K",
        help="with --ray: workers average what they have learned after K rows each (10,000); "
        "trees are not averaged, but answer together",
    )
    train.set_defaults(command=_train)


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
    _add_data(evaluate)
    _add_model(evaluate)
    _add_run(evaluate)
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
    evaluate.set_defaults(command=_evaluate)


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
    _add_data(tune)
    model = tune.add_argument_group("model")
    model.add_argument(
        "--learner", choices=LEARNERS[1:-1], default="linear", help="what is boosted (linear)"
    )
    _add_loss(model)
    grid = tune.add_argument_group("what is tried: one value or several, with commas between them")
    grid.add_argument(
        "--booster",
        choices=("span", "hull", "both"),
        default="both",
        help="Algorithm 1, Algorithm 2, or both (default)",
    )
    grid.add_argument(
        "-n", type=_at_least(1), metavar="MAX", help="copies, up to so many (32; trees: 100)"
    )
    grid.add_argument(
        "-l", "--rate", type=_numbers, metavar="LIST", help="learning rates (0.1,0.2,0.5,1,2)"
    )
    grid.add_argument(
        "--step", type=_numbers, metavar="LIST", help="of Algorithm 1 (0.05,0.1,0.2,0.5,1)"
    )
    grid.add_argument("--scale", type=_numbers, metavar="LIST", help="lambda of the class (1)")
    grid.add_argument("--feedback", type=_names, metavar="LIST", help="greedy, linear (greedy)")
    grid.add_argument(
        "--hidden", type=_whole_numbers, metavar="LIST", help="units of --learner network (10)"
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
    run.add_argument("--threads", type=_at_least(1), help="default: one for each processor")
    _add_ray(run)
    run.add_argument("--quiet", action="store_true", help="no bar; the table alone")
    tune.set_defaults(command=_tune)


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
    _add_data(predict, learning=False)
    predict.set_defaults(command=_predict)


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
    explain.add_argument("--rows", type=_at_least(1), default=1, help="so many of the first (1)")
    explain.add_argument("--top", type=_at_least(0), default=10, help="how many features (10)")
    explain.add_argument("--json", action="store_true", help="one JSON object a row, all features")
    _add_data(explain, learning=False)
    explain.set_defaults(command=_explain)


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
    inspect.add_argument("--top", type=_at_least(0), default=10, help="how many features (10)")
    inspect.add_argument("--json", action="store_true", help="as one JSON object")
    inspect.set_defaults(command=_inspect)


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
        ("sets", figures.DESCRIPTIONS, "data sets"),
        ("learners", figures.LEARNERS, "base learners"),
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
    _add_ray(reproduce)
    reproduce.add_argument("--json", metavar="FILE", help="everything, as one JSON object")
    reproduce.add_argument("--report", metavar="FILE", help="tables and plots as one page: .html")
    reproduce.add_argument("--quiet", action="store_true", help="no bar, nothing but the tables")
    reproduce.set_defaults(command=_reproduce)


def _add_serve(commands: Any) -> None:
    serve = _command(
        commands,
        "serve",
        "a learning service: predict now, label later, lose nothing",
        "Answers POST /predict and learns from POST /learn, over HTTP, from a state folder that "
        "outlives it. A label is acknowledged when it is in the journal; after any crash the "
        "model is the one it would have been, bit for bit. There is a live page at /. Rows are "
        "JSON objects, JSON lines or Arrow.",
        """examples:
  spanboost serve --dir state                                 (AutoBoost; rows have a `label`)
  spanboost serve --dir state --label price --port 8080
  spanboost serve --dir state -m houses.sb                    (go on from a trained model)
  curl -d '{"size": 3, "city": "Ulm"}' -H 'Content-Type: application/json' localhost:8000/predict

An address other than this machine's is refused unless there are tokens, in the environment:
SPANBOOST_PREDICT_TOKEN, SPANBOOST_LEARN_TOKEN and SPANBOOST_ADMIN_TOKEN.""",
    )
    serve.add_argument("--dir", required=True, metavar="STATE", help="the state folder")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    serve.add_argument(
        "--port", type=_between(0, 65535), default=8000, help="port (8000); 0 is any free one"
    )
    serve.add_argument("--quiet", action="store_true", help="no bar while the journal is replayed")
    columns = serve.add_argument_group("rows")
    columns.add_argument(
        "--id", default="id", metavar="NAME", help="what ids are called in rows (id)"
    )
    _add_columns(columns, "`label`")
    _add_model(serve, ("-m", "-i", "--model"))
    _add_bounds(serve)
    serve.set_defaults(command=_serve)


def _add_bounds(serve: Any) -> None:
    """What a service keeps, and how much it lets itself be asked for."""
    keeps = serve.add_argument_group("what is kept")
    limits = serve.add_argument_group("limits")
    for group, name, kind, default, words in (
        (keeps, "--pending", _at_least(1), 100_000, "predicted rows that wait for a label"),
        (keeps, "--pending-days", float, 7.0, "for how many days"),
        (keeps, "--ids", _at_least(1), 500_000, "ids of labels, not to learn one twice"),
        (keeps, "--snapshot-every", _at_least(1), 100_000, "rows from snapshot to snapshot"),
        (limits, "--max-body", _at_least(1), 16, "MiB of a request"),
        (limits, "--max-rows", _at_least(1), 10_000, "rows of a request"),
        (limits, "--max-width", _at_least(1), 10_000, "names in a row"),
        (limits, "--max-open", _at_least(1), 256, "requests at once"),
        (limits, "--max-waiting", _at_least(1), 50_000, "rows that wait to be learned"),
    ):
        help = f"{words} ({default:,})"
        group.add_argument(name, type=kind, default=default, metavar="N", help=help)


def _command(commands: Any, name: str, help: str, description: str, epilog: str) -> Any:
    return commands.add_parser(
        name,
        help=help,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_data(parser: Any, learning: bool = True) -> None:
    data = parser.add_argument_group("data")
    data.add_argument(
        *("data",),
        nargs="*",
        metavar="DATA",
        help="files, globs of them, addresses (https://, s3://, ...), or - for standard input; "
        ".gz and .zst are unpacked",
    )
    data.add_argument(
        "-d",
        "--data",
        dest="more_data",
        action="extend",
        nargs="+",
        metavar="DATA",
        help="the same",
    )
    data.add_argument("--format", choices=FORMATS, help="default: what the names end in")
    data.add_argument(
        "--delimiter",
        type=_delimiter,
        metavar="CHAR",
        help=r"of CSV fields (default: a comma); \t is a tab",
    )
    data.add_argument(
        "--no-header", action="store_true", help="CSV without names: columns are 1, 2, 3, ..."
    )
    data.add_argument(
        "--on-error",
        choices=("stop", "skip"),
        default="stop",
        help="a bad row ends the run (default), or is left out and counted",
    )
    if learning:
        _add_columns(data, "`label`, else the last column")


def _add_columns(data: Any, label: str) -> None:
    data.add_argument("--label", metavar="NAME", help=f"default: {label}")
    data.add_argument("--weight", metavar="NAME", help="the column of importance weights")
    data.add_argument("--ignore", type=_names, metavar="NAMES", help="columns to leave out")
    data.add_argument(
        "--categorical", type=_names, metavar="NAMES", help="numbers that are categories"
    )
    data.add_argument(
        "--positive", metavar="VALUE", help="this label is +1, every other one -1 (two labels)"
    )
    data.add_argument("--classes", type=_at_least(2), metavar="K", help="of --loss softmax")


def _add_model(parser: Any, initial: tuple[str, ...] = ("-i", "--initial")) -> None:
    model = parser.add_argument_group("model")
    model.add_argument(
        "--learner",
        choices=LEARNERS,
        help="auto (default): many boosters at once, nothing to tune; else what one booster "
        "boosts: trees, where one of --booster -n --step --feedback --rate --replay is given",
    )
    model.add_argument(
        "--budget",
        choices=("fast", "default", "thorough"),
        help="of auto: more experts, less error, more time",
    )
    model.add_argument(
        "--x-norm",
        type=float,
        metavar="R",
        help="of --learner ball, linear functions with a proved regret: no row is longer",
    )
    model.add_argument(
        "--booster", choices=("span", "hull"), help="Algorithm 1 (default) or Algorithm 2"
    )
    model.add_argument(
        "-n", type=_at_least(1), metavar="N", help="copies of the learner (32; trees: 100)"
    )
    model.add_argument(
        "--step", type=float, metavar="ETA", help="of Algorithm 1 (max of 1/n and ln n / n)"
    )
    model.add_argument(
        "--feedback",
        choices=("greedy", "linear"),
        help="what copies learn from: the losses themselves (greedy), or their printed slopes",
    )
    model.add_argument(
        "--replay",
        type=_between(0, 1000),
        metavar="R",
        help="learn R of the last rows, drawn at random, again after each new one (0)",
    )
    model.add_argument(
        "--memory", type=_at_least(1), metavar="K", help="rows that --replay draws from (50,000)"
    )
    model.add_argument("-l", "--rate", type=float, metavar="R", help="learning rate (0.5)")
    _add_loss(model)
    model.add_argument(*initial, metavar="MODEL", help="start from this model")


def _add_loss(model: Any) -> None:
    model.add_argument(
        "--loss",
        type=_loss,
        metavar="LOSS",
        help=f"{', '.join(LOSSES)} (squared); never guessed from the labels",
    )
    model.add_argument(
        "--label-range",
        type=_range,
        metavar="LO,HI",
        help="where labels lie; `auto` (default) finds out, `auto-zero` does so around 0",
    )
    model.add_argument(
        "-b",
        "--bits",
        type=_between(1, 30),
        metavar="B",
        help="hash features into 2^B places (VW text: 18; else a place each)",
    )
    model.add_argument("--seed", type=_at_least(0), help="of learners that start at random (0)")


def _add_run(parser: Any) -> None:
    run = parser.add_argument_group("what is said")
    run.add_argument(
        "-p",
        "--predictions",
        metavar="FILE",
        help="also write each prediction, made before its label was seen: CSV, Parquet or -",
    )
    run.add_argument(
        "--report", metavar="FILE", help="curves, tables and the command as one page: .html"
    )
    run.add_argument("--json", action="store_true", help="the result as one JSON object on stdout")
    run.add_argument("--quiet", action="store_true", help="no table, no bar")
    pictures = parser.add_argument_group("pictures, .png or .svg; any number in one pass")
    pictures.add_argument("--plot", metavar="FILE", help="loss curves")
    for kind, help in PICTURES.items():
        pictures.add_argument(f"--plot-{kind}", metavar="FILE", help=help)


def _add_ray(group: Any) -> None:
    group.add_argument(
        "--ray",
        nargs="?",
        metavar="ADDRESS",
        help="do the work on a Ray cluster: HOST:PORT, ray://HOST:PORT or auto; without an address "
        "that of RAY_ADDRESS, or one that starts here (extra `ray`; docs/cluster.md)",
    )


def _joined(argv: Sequence[str]) -> list[str]:
    """Ranges that begin with a minus are no options; only an address belongs to --ray, no file."""
    words: list[str] = []
    for word in argv:
        range_of_labels = words and words[-1] == "--label-range"
        address = words and words[-1] == "--ray" and _ADDRESS.fullmatch(word)
        if range_of_labels or address:
            words[-1] += f"={word}"
        else:
            words.append(word)
    return [f"{word}={_cluster()}" if word == "--ray" else word for word in words]


def _cluster() -> str:
    """The one of --ray without an address: Ray's own variable may name it."""
    return os.environ.get("RAY_ADDRESS") or "local"


def _at_least(least: int) -> "type[int]":
    return _between(least, sys.maxsize)


def _between(least: int, most: int) -> "type[int]":
    def parse(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is below {least}")
        if value > most:
            raise argparse.ArgumentTypeError(f"{value} is above {most}")
        return value

    parse.__name__ = "whole number"
    return parse  # type: ignore[return-value]


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _numbers(text: str) -> list[float]:
    return [float(word) for word in text.split(",")]


def _whole_numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


_numbers.__name__ = _whole_numbers.__name__ = "list of numbers"


def _delimiter(text: str) -> str:
    character = "\t" if text == r"\t" else text
    if len(character) != 1 or not character.isascii() or character in '"\r\n\0':
        raise argparse.ArgumentTypeError(f"{text!r} is no character that can be between fields")
    return character


def _loss(text: str) -> str:
    name, _, tau = text.partition(":")
    try:
        known = name == "quantile" and 0 < float(tau) < 1
    except ValueError:
        known = False
    if not known and text not in LOSSES:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not known: {', '.join(LOSSES)}, with TAU between 0 and 1"
        )
    return text


def _range(text: str) -> Any:
    if text in ("auto", "auto-zero"):
        return text
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        low = high = 0.0
    if not low < high < float("inf") or low == float("-inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no range: LO,HI or auto or auto-zero")
    return low, high


def _show_warning(message: Any, *_: Any) -> None:
    print(f"spanboost: warning: {message}", file=sys.stderr)


def _demo(args: argparse.Namespace) -> int:
    from spanboost import demo

    if args.save is not None:
        demo.save(args.rows, args.seed, args.save)
    demo.run(args.rows, args.n, args.seed, sys.stdout)
    return 0


def _train(args: argparse.Namespace) -> int:
    from spanboost.commands.learning import train

    return train(args)


def _evaluate(args: argparse.Namespace) -> int:
    from spanboost.commands.learning import evaluate

    return evaluate(args)


def _tune(args: argparse.Namespace) -> int:
    from spanboost.commands.tuning import tune

    return tune(args)


def _predict(args: argparse.Namespace) -> int:
    from spanboost.commands.predicting import predict

    return predict(args)


def _explain(args: argparse.Namespace) -> int:
    from spanboost.commands.explaining import explain

    return explain(args)


def _reproduce(args: argparse.Namespace) -> int:
    from spanboost.commands.reproducing import run

    return run(args)


def _inspect(args: argparse.Namespace) -> int:
    from spanboost.commands.inspecting import inspect

    return inspect(args)


def _serve(args: argparse.Namespace) -> int:
    from spanboost.service.command import serve

    return serve(args)
