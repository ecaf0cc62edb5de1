"""The website: notebooks that run, a reference of every option, and an index of all pages."""

import re
from pathlib import Path

import notebooks
import pytest
import reference
from golden import lines_match

ROOT = Path(__file__).parents[2]
PATHS = sorted(notebooks.FOLDER.glob("*.ipynb"))


def test_there_are_notebooks():
    assert len(PATHS) >= 4


def _words(text):
    """Return the lines with single blanks: versions of pandas align columns differently."""
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
@pytest.mark.slow
def test_notebooks_show_their_outputs(path):
    kept = notebooks.read(path)
    again = notebooks.run(kept)
    for shown, printed in zip(notebooks.texts(kept), notebooks.texts(again), strict=True):
        assert lines_match(_words(shown), _words(printed)), printed
    pictures = [name for name in notebooks.pages(path) if name.endswith(".png")]
    assert pictures


def test_notebooks_run_as_in_jupyter():
    def code(source):
        return {"cell_type": "code", "source": source}

    cells = [code(["a = 2\n", "print('said')\n", "a + 1"]), code(["a = a * 3"]), code(["None"])]
    found = notebooks.run({"cells": [*cells, code(["a"])]})
    assert notebooks.texts(found) == ["said\n3", "", "", "6"]


def test_pages_show_tables_as_jupyter_does(tmp_path):
    source = ["from spanboost import LinearSGD, SpanBoost\n", "SpanBoost(LinearSGD(), 2)"]
    found = notebooks.run({"cells": [{"cell_type": "code", "source": source}]})
    assert notebooks.texts(found) == ["SpanBoost(LinearSGD(), n=2)"]
    notebooks.write(tmp_path / "a.ipynb", found)
    page = notebooks.pages(tmp_path / "a.ipynb")["notebooks/a.md"]
    assert "<strong>SpanBoost(LinearSGD(), n=2)</strong><table>" in page
    assert "```text" not in page


def test_the_reference_has_every_command_and_every_option():
    page = reference.page()
    parsers = list(reference.commands())
    assert {"train", "evaluate", "predict"} <= {parser.prog.split()[1] for parser in parsers}
    for parser in parsers:
        section = page.split(f"## {parser.prog}\n")[1].split("\n## ")[0]
        for action in parser._actions:
            assert all(f"`{option}`" in section for option in action.option_strings)
            assert all(f"`{choice}`" in section for choice in action.choices or ())


def test_the_index_for_language_models_has_every_page():
    links = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): ", (ROOT / "llms.txt").read_text(), re.MULTILINE)
    assert len(links) == len(set(links))
    assert all((ROOT / link).is_file() for link in links)
    pages = {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}
    assert pages <= set(links)


def test_the_menu_has_every_page():
    menu = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert {page.name for page in (ROOT / "docs").glob("*.md")} <= set(menu)
    assert len(menu) == len(set(menu))
