"""The option --json of commands whose result is a large object: to a file or standard output."""

import json
from typing import Any

from spanboost.atomic_files import atomic_write

STANDARD_OUTPUT = "-"


def add_json_file(group: Any, what: str) -> None:
    """Add --json; `what` names the content."""
    group.add_argument(
        "--json",
        nargs="?",
        const=STANDARD_OUTPUT,
        metavar="FILE",
        help=f"Write {what} to FILE, as a JSON object; without FILE, or with -, to standard output "
        "instead of the tables",
    )


def write_json(path: str, content: Any) -> None:
    """Write a result to a file, or to standard output."""
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    if path == STANDARD_OUTPUT:
        print(text, end="")
    else:
        with atomic_write(path) as file:
            file.write(text.encode())
