"""The command line."""

import argparse
import os
import sys
from collections.abc import Sequence

from spanboost import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. Exit status: 0 for good, 2 for bad usage, 130 for Ctrl-C, 1 for the rest."""
    args = _parser().parse_args(argv)
    try:
        return int(args.command(args))
    except KeyboardInterrupt:
        print("spanboost: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, `head` for one, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a full disk behind standard output, say
        print(f"spanboost: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="spanboost",
        description="Online gradient boosting: any weak online learner made strong, in one pass "
        "over a stream.",
        epilog="Start with: spanboost demo",
    )
    parser.add_argument("--version", action="version", version=f"spanboost {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
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
    demo.set_defaults(command=_demo)
    return parser


def _at_least(least: int) -> "type[int]":
    def parse(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is below {least}")
        return value

    parse.__name__ = "whole number"
    return parse  # type: ignore[return-value]


def _demo(args: argparse.Namespace) -> int:
    from spanboost import demo

    demo.run(args.rows, args.n, args.seed, sys.stdout)
    return 0
