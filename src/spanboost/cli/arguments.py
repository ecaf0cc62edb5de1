"""The options that several commands share, and the functions that parse option values.

The names of formats and losses are repeated here so that --help imports nothing heavy.
"""

import argparse
import math
import sys
from typing import Any

from spanboost.checks import LABEL_RANGES
from spanboost.errors import did_you_mean, suggest_loss
from spanboost.models.model_spec import model_options
from spanboost.models.spec import Option

OPTIONS = model_options()
FREQUENT = ("loss", "budget", "learner")  # parameters that help texts list first
FORMATS = ("vw", "svmlight", "csv", "tsv", "parquet", "arrow", "jsonl")
LOSSES = (
    *("squared", "absolute", "quantile:TAU", "poisson", "gamma", "tweedie:POWER"),
    *("logistic", "hinge", "softmax"),
)
LOSS_NUMBERS = {"quantile": (0, 1, 0.9), "tweedie": (1, 2, 1.5)}  # limits and an example
PLOTS = {
    "predictions": "Plot predictions against labels (for classes: confusion and calibration)",
    "residuals": "Plot label minus prediction over time",
    "stages": "Plot how far each stage moves the prediction, and the loss after each stage",
    "sigma": "Plot the shrinkage sigma of each stage of Algorithm 1 over time",
    "importance": "Plot the most important features",
}


def add_data(parser: Any, learning: bool = True) -> None:
    """Add the options that say which data to read and how."""
    data = parser.add_argument_group("data")
    data.add_argument(
        *("data",),
        nargs="*",
        metavar="DATA",
        help="Files, glob patterns, URLs (https://, s3://, ...), or - for standard input; files "
        "compressed with gzip, zstd, bzip2 or xz are decompressed. Or one topic, stream or "
        "database: kafka://HOST:PORT/TOPIC, redis://HOST:PORT/STREAM, or sqlite:///FILE with "
        "--query (docs/streams.md)",
    )
    if learning:
        add_columns(data, "`label`, else the last column")
    _add_reading(parser)
    add_query(parser.add_argument_group("reading databases"))


def _add_reading(parser: Any) -> None:
    """Add the options that say how files are read."""
    data = parser.add_argument_group("reading files")
    data.add_argument(
        "-d",
        "--data",
        dest="more_data",
        action="extend",
        nargs="+",
        metavar="DATA",
        help="Further files, read after DATA",
    )
    data.add_argument(
        "--format",
        choices=FORMATS,
        help="File format (default: from the file name, or else from the first line)",
    )
    data.add_argument(
        "--delimiter",
        type=_delimiter,
        metavar="CHAR",
        help="Character between CSV fields, \\t for a tab (default: found in the first lines)",
    )
    data.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="Whether line 1 of CSV files contains column names; without, columns are named 1, 2, "
        "3, ... (default: found in the first lines)",
    )
    data.add_argument(
        "--decimal",
        choices=(".", ","),
        metavar="MARK",
        help="Decimal mark of the numbers in CSV files: a point '.' or a comma ',' (default: found "
        "in the first lines; a point if commas separate the fields)",
    )
    data.add_argument(
        "--on-error",
        choices=("stop", "skip"),
        default="stop",
        help="What to do with an invalid row: `stop` ends the run (default); `skip` skips the row "
        "and counts it",
    )


def add_query(data: Any) -> None:
    """Add the options that say which rows of a database to read."""
    data.add_argument(
        "--query",
        metavar="SQL",
        help="Query whose rows are read, if DATA is the address of a database: "
        "--query 'SELECT id, size, city, price FROM houses'",
    )
    data.add_argument(
        "--resume-column",
        metavar="NAME",
        help="Column of the query with a different value in each row that increases with new rows, "
        "such as an id. Rows are read in its order, and a later run continues after the last one",
    )


def add_rows(data: Any) -> None:
    """Add the option that limits the number of rows."""
    data.add_argument(
        "--rows",
        dest="limit",
        type=at_least(1),
        metavar="N",
        help="Stop after N rows; a topic or stream with fewer rows is waited for (default: read to "
        "the end; of a topic or stream, the end at the start of the command)",
    )


def add_columns(data: Any, label: str) -> None:
    """Add the options that say what each column means."""
    data.add_argument("--label", metavar="NAME", help=f"Label column (default: {label})")
    data.add_argument("--weight", metavar="NAME", help="Column of importance weights")
    data.add_argument(
        "--ignore",
        type=names,
        action="extend",
        metavar="NAMES",
        help="Columns to ignore, separated by commas; can be repeated. Write a name that contains "
        "a comma in double quotes: '\"height, cm\",id'",
    )
    data.add_argument(
        "--categorical",
        type=names,
        action="extend",
        metavar="NAMES",
        help="Columns to treat as categories, separated by commas; can be repeated",
    )
    data.add_argument(
        "--positive",
        metavar="VALUE",
        help="Label to treat as +1; every other label becomes -1 (two-class problems)",
    )
    data.add_argument(
        "--classes",
        type=at_least(2),
        metavar="K",
        help="Number of classes for --loss softmax (default: classes are added as they appear)",
    )


def add_model(parser: Any, initial: tuple[str, ...] = ("-i", "--initial")) -> None:
    """Add the options of the model to train."""
    model = parser.add_argument_group("model")
    for name in dict.fromkeys((*FREQUENT, *OPTIONS)):
        _add_parameter(model, name)
    model.add_argument(*initial, metavar="MODEL", help="Model file to start from")


def add_loss(model: Any) -> None:
    """Add the options of the loss, the label range, feature hashing and the random seed."""
    for name in ("loss", "label_range", "bits", "seed"):
        _add_parameter(model, name)


def _add_parameter(group: Any, name: str) -> None:
    """Add a parameter of `ModelSpec` as an option, as its field describes it."""
    option = OPTIONS[name]
    flags = option.flags or (f"--{name.replace('_', '-')}",)
    group.add_argument(
        *flags,
        dest=name,
        type=_parser_of(option),
        choices=option.choices,
        metavar=option.metavar,
        help=option.help,
    )


def parse_parameter(name: str, text: str) -> Any:
    """Parse the value of a parameter of `ModelSpec`; raise ArgumentTypeError if it is invalid."""
    option = OPTIONS[name]
    parse = _parser_of(option)
    try:
        value = parse(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid {parse.__name__} value: {text!r}") from None
    if option.choices is not None and value not in option.choices:
        raise argparse.ArgumentTypeError(
            f"invalid choice: {text!r} (choose from {', '.join(option.choices)})"
            f"{'' if ',' in text else did_you_mean(text, option.choices)}"
        )
    return value


def _key(text: str) -> str | tuple[str, ...]:
    """Parse the names of one or more columns."""
    names = tuple(text.split(","))
    return names if len(names) > 1 else text


def _on_or_off(text: str) -> bool:
    """Parse "on" or "off"."""
    if text not in ("on", "off"):
        raise argparse.ArgumentTypeError(f"invalid choice: {text!r} (choose from on, off)")
    return text == "on"


def _parser_of(option: Option) -> Any:
    """Return the function that parses the value of an option."""
    kinds = {
        "count": between(option.least, option.most or sys.maxsize),
        "number": float,
        "loss": loss_name,
        "range": _range,
        "key": _key,
        "switch": _on_or_off,
        "text": str,
    }
    parse = kinds[option.kind]
    return auto_or(parse) if option.auto else parse


def auto_or(parse: Any) -> Any:
    """Return a parser that also accepts the text "auto"."""

    def parse_auto(text: str) -> Any:
        return text if text == "auto" else parse(text)

    parse_auto.__name__ = parse.__name__
    return parse_auto


def add_run(parser: Any) -> None:
    """Add the options of what a run prints, plots and writes."""
    run = parser.add_argument_group("output")
    run.add_argument(
        "-p",
        "--predictions",
        metavar="FILE",
        help="Write the predictions, each made before its label is seen: Parquet if the name ends "
        "in .parquet, otherwise CSV; - is standard output. The columns are those of `predict`; if "
        "labels are classes, they are written after the last row, with the probability of each "
        "class (p_NAME)",
    )
    run.add_argument(
        "--report",
        metavar="FILE",
        help="Write an HTML report with the loss curves, the metrics and the command (.html)",
    )
    run.add_argument(
        "--json", action="store_true", help="Print the result as a JSON object on standard output"
    )
    quiet = "Print only notes on how DATA is read and, for `evaluate`, the result"
    run.add_argument("--quiet", action="store_true", help=quiet)
    plots = parser.add_argument_group("plots (.png or .svg)")
    plots.add_argument("--plot", metavar="FILE", help="Plot the loss curves")
    for kind, help in PLOTS.items():
        plots.add_argument(f"--plot-{kind}", metavar="FILE", help=help)


def add_ray(group: Any, workers: str | None = None) -> None:
    """Add --ray, which moves the work to a Ray cluster, and --workers, described by `workers`."""
    group.add_argument(
        "--ray",
        nargs="?",
        metavar="ADDRESS",
        help="Run on the Ray cluster at ADDRESS: HOST:PORT, ray://HOST:PORT or auto. Without "
        "ADDRESS, use $RAY_ADDRESS, or start a cluster on this machine. Needs the extra `ray`; see "
        "docs/cluster.md",
    )
    if workers is not None:
        text = f"Number of workers with --ray (default: one for each processor). {workers}"
        group.add_argument("--workers", type=at_least(1), metavar="W", help=text)


def add_certificate(command: Any) -> None:
    """Add --certificate, for commands that take the address of a service."""
    command.add_argument(
        "--certificate",
        metavar="FILE",
        help="Certificate that an https:// address must have (default: any that the system trusts)",
    )


def at_least(least: int) -> "type[int]":
    """Return a parser of integers that are at least `least`."""
    return between(least, sys.maxsize)


def between(least: int, most: int) -> "type[int]":
    """Return a parser of integers from `least` to `most`."""

    def parse(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"must be at least {least} (got {value})")
        if value > most:
            raise argparse.ArgumentTypeError(f"must be at most {most} (got {value})")
        return value

    parse.__name__ = "integer"  # argparse prints it: "invalid integer value"
    return parse  # type: ignore[return-value]


def days(text: str) -> float:
    """Parse a positive number of days."""
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a positive number of days (got {text})")
    return value


days.__name__ = "number"


def share(text: str) -> float:
    """Parse a number between 0 and 1."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"expected a number between 0 and 1 (got {text!r})")
    return value


def names(text: str) -> list[str]:
    """Parse names separated by commas; a name in double quotes may contain commas, as in CSV."""
    import csv

    try:
        parts = [name for line in csv.reader([text], strict=True) for name in line]
    except csv.Error:
        raise argparse.ArgumentTypeError(f"unclosed double quote in {text!r}") from None
    return [name for name in parts if name]


def numbers(text: str) -> list[float]:
    """Parse numbers separated by commas."""
    return [float(word) for word in text.split(",")]


def integers(text: str) -> list[int]:
    """Parse integers separated by commas."""
    return [int(word) for word in text.split(",")]


numbers.__name__ = integers.__name__ = "list of numbers"


def _delimiter(text: str) -> str:
    character = "\t" if text == r"\t" else text
    if len(character) != 1 or not character.isascii() or character in '"\r\n\0':
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a single ASCII character that can separate fields"
        )
    return character


def loss_name(text: str) -> str:
    """Return the name of a loss, with its number if it has one."""
    name, _, number = text.partition(":")
    forms = {one.partition(":")[0]: one for one in LOSSES}
    if name in LOSS_NUMBERS:
        low, high, example = LOSS_NUMBERS[name]
        try:
            valid = low < float(number) < high
        except ValueError:
            valid = False
        if not valid:
            letter = forms[name].partition(":")[2]
            raise argparse.ArgumentTypeError(
                f"expected {forms[name]} with {letter} between {low} and {high}, such as "
                f"{name}:{example} (got {text!r})"
            )
    elif text not in LOSSES:
        raise argparse.ArgumentTypeError(
            f"unknown loss {text!r}; choose from {', '.join(LOSSES)}{suggest_loss(name, forms)}"
        )
    return text


def _range(text: str) -> Any:
    if text in LABEL_RANGES:
        return text
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        low = high = 0.0
    if not low < high < float("inf") or low == float("-inf"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a range; give LO,HI with LO < HI, or one of {', '.join(LABEL_RANGES)}"
            f"{did_you_mean(text, LABEL_RANGES)}"
        )
    return low, high
