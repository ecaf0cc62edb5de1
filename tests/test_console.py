"""Every command shown in the README and the docs is run, and says what they say it says.

A block of ```console holds commands after `$ `, each followed by what it prints: standard output and
standard error together. Words that are numbers may differ a little; `...` stands for anything.
All commands of one page run in one folder, in order.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?%?")
TOLERANCE = 0.02


def examples(page):
    """(command, what it prints) of a page."""
    text = (ROOT / page).read_text()
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, printed = example.split("\n", 1)
            while command.endswith("\\"):
                more, printed = printed.split("\n", 1)
                command = command[:-1] + more
            yield command, printed.rstrip("\n")


def pages():
    return [
        str(path.relative_to(ROOT))
        for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
        if "```console" in path.read_text()
    ]


def fits(shown, printed):
    """Whether a line says the same, numbers to within a tolerance."""
    parts = [re.escape(part) for part in re.split(r"\.\.\.", shown)]
    if len(parts) > 1:
        return re.fullmatch(".*".join(parts), printed) is not None
    if NUMBER.sub("#", shown).split() != NUMBER.sub("#", printed).split():
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    return all(near(*map(number, pair)) for pair in pairs)


def number(text):
    return float(text.replace(",", "").rstrip("%"))


def near(a, b):
    return abs(a - b) <= TOLERANCE * max(abs(a), abs(b)) + 1e-4


def lines_fit(shown, printed):
    """All lines in order; a line of nothing but `...` stands for any number of lines."""
    if not shown:
        return not printed
    if shown[0].strip() == "...":
        return any(lines_fit(shown[1:], printed[k:]) for k in range(len(printed) + 1))
    return bool(printed) and fits(shown[0], printed[0]) and lines_fit(shown[1:], printed[1:])


@pytest.mark.parametrize("page", pages())
def test_commands_print_what_the_page_says(page, tmp_path):
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for command, shown in examples(page):
        done = subprocess.run(
            command,
            shell=True,
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        printed = [
            line.rstrip()
            for line in done.stdout.splitlines()
            if "spanboost: compiling for this kind of model" not in line
        ]
        expected = [line.rstrip() for line in shown.splitlines()]
        assert lines_fit(expected, printed), f"$ {command}\n{done.stdout}"


def test_a_page_is_found_and_a_wrong_number_is_too():
    assert pages()
    assert fits("loss 0.100 after 1,000 rows", "loss 0.101 after 1,000 rows")
    assert not fits("loss 0.100", "loss 0.110")
    assert not fits("loss 0.100", "gain 0.100")
    assert lines_fit(["a", "...", "z"], ["a", "b", "c", "z"])
    assert not lines_fit(["a", "..."], ["b"])
