"""Run the `shell-session` blocks of a page, and compare their output with the page."""

import os
import re
import subprocess
import sys
from pathlib import Path

from golden import lines_match, printed_lines


def blocks(page, kind):
    """Return the blocks of one kind on a page."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def examples(page):
    """Yield (command, expected output) for every command of the tour."""
    for block in blocks(page, "shell-session"):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, printed = example.split("\n", 1)
            while command.endswith("\\"):
                more, printed = printed.split("\n", 1)
                command = command[:-1] + more
            yield command, printed.rstrip("\n")


def run_tour(page, folder, replacements):
    """Run the commands in a folder; `replacements` has other ports for those of the page."""
    program = folder / "spanboost"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m spanboost "$@"\n')
    program.chmod(0o755)
    path = f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    for command, shown in examples(page):
        # a background command must not keep the pipe of its output open
        behind = " > /dev/null" if command.endswith("&") else ""
        words = f"{command.removesuffix('&')}{behind}{'&' if behind else ''}"
        for old, new in replacements.items():
            words = words.replace(old, new)
        done = subprocess.run(
            words,
            shell=True,
            cwd=folder,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert lines_match(printed_lines(shown), printed_lines(done.stdout)), (
            f"$ {command}\n{done.stdout}{done.stderr}"
        )
    return command
