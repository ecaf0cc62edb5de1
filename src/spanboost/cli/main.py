"""The entry point of the command line: runs a command, prints errors, sets the exit status."""

import gc
import os
import re
import sys
import warnings
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

from spanboost.cli.parser import parser
from spanboost.cli.usage import fitting_hints
from spanboost.compiling.compile_time import announce_once
from spanboost.data.messages.addresses import hide_password
from spanboost.errors import ClusterError, UserError

_RAY_ADDRESS = re.compile(r"local|auto|(ray://)?[^/\s]+:\d+")
_MISSING = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status.

    The exit status is 0 on success; 2 for bad usage, invalid data, or a file that is missing,
    unreadable or not a model; 130 for Ctrl-C; and 1 for any other error.
    """
    words = list(sys.argv[1:] if argv is None else argv) or ["help"]
    if words[0] == "help":
        words = [*words[1:], "--help"]
    args = parser(words[0] if words else "").parse_args(attach_values(words))
    args.words = [*map(hide_password, words)]  # for reports
    try:
        with warnings.catch_warnings(), announce_once():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            return int(args.command(args))
    except KeyboardInterrupt:
        print("spanboost: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of the pipe, such as `head`, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        hint = "; use fewer copies (-n) or fewer bits (-b)" if "-n" in _usable_flags(args) else ""
        print(f"spanboost: not enough memory{hint}", file=sys.stderr)
        return 1
    except (UserError, ClusterError) as error:
        print(f"spanboost: {fitting_hints(str(error), _usable_flags(args))}", file=sys.stderr)
        return 2 if isinstance(error, UserError) else 1
    except OSError as error:  # for example a missing file or a full disk
        where = "" if error.filename is None else f"{error.filename}: "
        missing = isinstance(error, FileNotFoundError)  # said as for data files
        what = "file not found" if missing else error.strerror or error
        print(f"spanboost: {where}{what}", file=sys.stderr)
        return 2 if isinstance(error, _MISSING) else 1


def _usable_flags(args: Namespace) -> frozenset[str]:
    """Return the options of a command; with a loaded model, those of new models are refused."""
    if getattr(args, "initial", None) is None:
        return frozenset(args.flags)
    from spanboost.cli.from_args import OF_DATA, OF_MODELS, option_name  # heavy, for errors only

    refused = {option_name(name) for name in (*OF_MODELS, *OF_DATA)} | {"-b"}
    return frozenset(args.flags - refused)


def program() -> NoReturn:
    """Run the command line as a process, tuned to start and exit quickly."""
    gc.set_threshold(200_000, 20, 20)  # collecting cycles takes a tenth of the start-up time
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # idle threads cost start-up time too
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
    os._exit(status)  # tearing down Numba takes longer than learning a small file


def _show_warning(message: Any, *_: Any) -> None:
    print(f"spanboost: warning: {_with_options(str(message))}", file=sys.stderr)


def _with_options(text: str) -> str:
    """Replace the arguments that a message of the library names by options of the command line."""
    text = text.replace("label_range=(low, high)", "--label-range LOW,HIGH")
    return re.sub(r"label_range='([a-z-]+)'", r"--label-range \1", text)


def attach_values(argv: Sequence[str]) -> list[str]:
    """Rewrite `--label-range -5,5` and `--ray ADDRESS` to the form `--option=value`.

    argparse would take a range that begins with a minus sign for an option, and a data file that
    follows --ray for its address.
    """
    words: list[str] = []
    for word in argv:
        is_range = words and words[-1] == "--label-range"
        is_address = words and words[-1] == "--ray" and _RAY_ADDRESS.fullmatch(word)
        if is_range or is_address:
            words[-1] += f"={word}"
        else:
            words.append(word)
    return [f"{word}={_default_ray_address()}" if word == "--ray" else word for word in words]


def _default_ray_address() -> str:
    """Return the address for --ray without a value: Ray's own variable, or a local cluster."""
    return os.environ.get("RAY_ADDRESS") or "local"
