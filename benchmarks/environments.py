"""Run the same measurement with this Python and with that of another environment."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("one_model.py")


def add_old(parser: argparse.ArgumentParser) -> None:
    """Add the option for the other environment."""
    parser.add_argument(
        "--old",
        metavar="PYTHON",
        help="Python of another environment, with another version of spanboost, to compare with",
    )


def pythons(old: str | None) -> dict[str, str]:
    """Return the environments by name."""
    return {"new": sys.executable} | ({} if old is None else {"old": old})


def measure(python: str, *words: str, **environment: str) -> dict[str, Any]:
    """Return what `one_model.py` prints in an environment."""
    done = subprocess.run(
        [python, str(SCRIPT), *words],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found
