"""Run every command in the README and the docs, and compare its output with the page.

A ```console block contains commands after `$ `, each followed by its output: standard output and
standard error together. Numbers may differ a little, and `...` stands for any text. The commands of
a page run in order, in one folder.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from golden import line_matches, lines_match, printed_lines

pytestmark = [pytest.mark.slow, pytest.mark.process]
ROOT = Path(__file__).parents[2]


def examples(page):
    """Yield (command, expected output) for every command of a page."""
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


@pytest.mark.parametrize("page", pages())
def test_commands_print_what_the_page_shows(page, tmp_path):
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
        assert lines_match(printed_lines(shown), printed_lines(done.stdout)), (
            f"$ {command}\n{done.stdout}"
        )


def test_wrong_numbers_and_words_are_noticed():
    assert pages()
    assert line_matches("loss 0.100 after 1,000 rows", "loss 0.101 after 1,000 rows")
    assert not line_matches("loss 0.100", "loss 0.110")
    assert not line_matches("loss 0.100", "gain 0.100")
    assert lines_match(["a", "...", "z"], ["a", "b", "c", "z"])
    assert not lines_match(["a", "..."], ["b"])
