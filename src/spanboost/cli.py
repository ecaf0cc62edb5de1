"""The command line. Nothing heavy is imported before a command runs."""

import argparse
import gc
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

from spanboost import __version__
from spanboost.errors import UserError

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
    except UserError as error:
        print(f"spanboost: {error}", file=sys.stderr)
        return 2
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
  zcat log.vw.gz | spanboost train - --format vw -f log.sb""",
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
    if not learning:
        return
    data.add_argument("--label", metavar="NAME", help="default: `label`, else the last column")
    data.add_argument("--weight", metavar="NAME", help="the column of importance weights")
    data.add_argument("--ignore", type=_names, metavar="NAMES", help="columns to leave out")
    data.add_argument(
        "--categorical", type=_names, metavar="NAMES", help="numbers that are categories"
    )
    data.add_argument(
        "--positive", metavar="VALUE", help="this label is +1, every other one -1 (two labels)"
    )
    data.add_argument("--classes", type=_at_least(2), metavar="K", help="of --loss softmax")


def _add_model(parser: Any) -> None:
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
    model.add_argument("-i", "--initial", metavar="MODEL", help="start from this model")


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


def _joined(argv: Sequence[str]) -> list[str]:
    """Ranges that begin with a minus are no options."""
    words: list[str] = []
    for word in argv:
        if words and words[-1] == "--label-range":
            words[-1] += f"={word}"
        else:
            words.append(word)
    return words


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


def _inspect(args: argparse.Namespace) -> int:
    from spanboost.commands.inspecting import inspect

    return inspect(args)
