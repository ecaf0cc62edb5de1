"""Options that commands share, and how their words are read."""

import argparse
import math
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from spanboost.models.model_spec import model_options

OPTIONS = model_options()
FORMATS = ("vw", "svmlight", "csv", "tsv", "parquet", "arrow", "jsonl")
LOSSES = ("squared", "absolute", "quantile:TAU", "logistic", "hinge", "softmax")
PICTURES = {
    "predictions": "predictions against the truth; of classes, what they were taken for",
    "residuals": "label minus prediction, over time",
    "stages": "what each stage contributes: its movement, and the loss if it were the last",
    "sigma": "Algorithm 1's shrinkage of each stage, over time",
    "importance": "the features that matter most",
}
_ADDRESS = re.compile(r"local|auto|(ray://)?[^/\s]+:\d+")  # of a Ray cluster


def add_data(parser: Any, learning: bool = True) -> None:
    """What is read, and how."""
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
        add_columns(data, "`label`, else the last column")


def add_columns(data: Any, label: str) -> None:
    """Which columns are what."""
    data.add_argument("--label", metavar="NAME", help=f"default: {label}")
    data.add_argument("--weight", metavar="NAME", help="the column of importance weights")
    data.add_argument("--ignore", type=names, metavar="NAMES", help="columns to leave out")
    data.add_argument(
        "--categorical", type=names, metavar="NAMES", help="numbers that are categories"
    )
    data.add_argument(
        "--positive", metavar="VALUE", help="this label is +1, every other one -1 (two labels)"
    )
    data.add_argument("--classes", type=at_least(2), metavar="K", help="of --loss softmax")


def add_model(parser: Any, initial: tuple[str, ...] = ("-i", "--initial")) -> None:
    """Add the parameters of a model."""
    model = parser.add_argument_group("model")
    for name in OPTIONS:
        _add_parameter(model, name)
    model.add_argument(*initial, metavar="MODEL", help="Start from this model file")


def add_loss(model: Any) -> None:
    """Add the parameters that do not depend on the learner."""
    for name in ("loss", "label_range", "bits", "seed"):
        _add_parameter(model, name)


def _add_parameter(group: Any, name: str) -> None:
    """Add a parameter of `ModelSpec` as it describes itself."""
    option = OPTIONS[name]
    flags = option.flags or (f"--{name.replace('_', '-')}",)
    kinds = {
        "count": between(option.least, option.most or sys.maxsize),
        "number": float,
        "loss": _loss,
        "range": _range,
        "text": str,
    }
    group.add_argument(
        *flags,
        dest=name,
        type=kinds[option.kind],
        choices=option.choices,
        metavar=option.metavar,
        help=option.help,
    )


def add_run(parser: Any) -> None:
    """What is printed, drawn and written on the way."""
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


def add_ray(group: Any) -> None:
    """Where the work is done."""
    group.add_argument(
        "--ray",
        nargs="?",
        metavar="ADDRESS",
        help="do the work on a Ray cluster: HOST:PORT, ray://HOST:PORT or auto; without an address "
        "that of RAY_ADDRESS, or one that starts here (extra `ray`; docs/cluster.md)",
    )


def joined(argv: Sequence[str]) -> list[str]:
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


def at_least(least: int) -> "type[int]":
    """A whole number."""
    return between(least, sys.maxsize)


def between(least: int, most: int) -> "type[int]":
    """A whole number within limits."""

    def parse(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is below {least}")
        if value > most:
            raise argparse.ArgumentTypeError(f"{value} is above {most}")
        return value

    parse.__name__ = "whole number"
    return parse  # type: ignore[return-value]


def days(text: str) -> float:
    """A time in days."""
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no time in days")
    return value


days.__name__ = "number"


def names(text: str) -> list[str]:
    """Names with commas between them."""
    return [name for name in text.split(",") if name]


def numbers(text: str) -> list[float]:
    """Numbers with commas between them."""
    return [float(word) for word in text.split(",")]


def whole_numbers(text: str) -> list[int]:
    """Whole numbers with commas between them."""
    return [int(word) for word in text.split(",")]


numbers.__name__ = whole_numbers.__name__ = "list of numbers"


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
