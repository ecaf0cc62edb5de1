"""Python files that pages, docstrings and comments name exist."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "spanboost"
MODULES = sorted(PACKAGE.rglob("*.py"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PYTHON_FILE = re.compile(r"(?<![\w./*-])[\w./-]*\w\.py\b")
LINK = re.compile(r"\[`([^`\]]*\.py)`\]\(([^)#]*)[^)]*\)")
EXAMPLES: set[str] = set()  # files that a reader creates, such as my_learner.py


def exists(name, folder):
    """Return whether a file exists: next to the text, in the repository, or in the package.

    A name may leave out the first folders of a module: `block.py` is src/spanboost/rows/block.py.
    """
    parts = Path(name).parts
    return (
        name in EXAMPLES
        or (folder / name).is_file()
        or (ROOT / name).is_file()
        or any(module.parts[-len(parts) :] == parts for module in MODULES)
    )


def missing(text, folder):
    return sorted({name for name in PYTHON_FILE.findall(text) if not exists(name, folder)})


def prose(source):
    """Return the docstrings and comments of a module."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    return "\n".join([*(ast.get_docstring(node) or "" for node in nodes), *comments])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_named_in_a_page_exist(page):
    assert not missing(page.read_text(), page.parent)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_text_of_a_link_is_the_file_it_leads_to(page):
    links = LINK.findall(page.read_text())
    wrong = [(text, file) for text, file in links if not f"/{file}".endswith(f"/{text}")]
    assert not wrong


def test_files_named_in_docstrings_and_comments_exist():
    stale = {
        module.relative_to(ROOT).as_posix(): names
        for module in MODULES
        if (names := missing(prose(module.read_text()), module.parent))
    }
    assert not stale


def test_a_missing_file_is_found():
    text = "Features are numbered in rows/block.py, not in block.py or old/rows/block.py."
    assert missing(text, PACKAGE) == ["old/rows/block.py"]
    assert missing(prose('"""See gone.py."""\nname = "data.py"  # as lost.py'), PACKAGE) == [
        "gone.py",
        "lost.py",
    ]
    assert LINK.findall("[`a.py`](../b.py#top)") == [("a.py", "../b.py")]
