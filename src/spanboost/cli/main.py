"""The command line: how a process begins and ends, and what it says of errors."""

import gc
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

from spanboost.cli.arguments import attach_values
from spanboost.cli.parser import parser
from spanboost.errors import ClusterError, UserError

_MISSING = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Exit status: 0 for good; 2 for bad usage, bad data, a file that is missing, unreadable or no
    model; 130 for Ctrl-C; 1 for the rest.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    args = parser().parse_args(attach_values(words))
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


def _show_warning(message: Any, *_: Any) -> None:
    print(f"spanboost: warning: {message}", file=sys.stderr)
