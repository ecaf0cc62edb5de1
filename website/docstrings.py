"""The Python reference: names on its pages, and docstrings as Markdown.

Docstrings are plain text with lines such as `seed: random seed.` and doctests; they become lists
and code blocks.
"""

import inspect
import re
from pathlib import Path

API = Path(__file__).parents[1] / "docs" / "api"
NAME = re.compile(r"^::: (\S+)$", re.MULTILINE)
PARAMETER = re.compile(r"(\*{0,2}[A-Za-z_]\w*(?:, [A-Za-z_]\w*)*) ?: (\S.*)")
PAGE = re.compile(r"docs/([a-z-]+)\.md")
STAR = re.compile(r"\*(?=[^`]*(?:`[^`]*`[^`]*)*$)")  # not in code
SECTION = re.compile(r"^-{4,}$", re.MULTILINE)
CHOICES = re.compile(r'^(\w+ : )(?=.*")', re.MULTILINE)  # a parameter whose type names values


def names() -> list[str]:
    """Return the paths of all objects on the pages of the reference."""
    return [name for page in sorted(API.glob("*.md")) for name in NAME.findall(page.read_text())]


def markdown(text: str) -> str:
    """Return a docstring with its parameters as a list and its doctests as code blocks."""
    text = PAGE.sub(r"[\1](../\1.md)", inspect.cleandoc(text))
    if SECTION.search(text):  # already in the style of scikit-learn
        # mkdocstrings would read `"span" or "hull"` as Python, without the quotes
        return CHOICES.sub(r"\1one of ", text)
    parts = []
    for paragraph in re.split(r"\n[ \t]*\n", text):
        lines = paragraph.splitlines()
        if lines[0].startswith(">>>"):
            parts.append(f"```pycon\n{paragraph}\n```")
        elif PARAMETER.fullmatch(lines[0]):
            parts.append(_escape("\n".join(map(_item, lines))))
        else:
            parts.append(_escape(paragraph))
    return "\n\n".join(parts)


def _escape(text: str) -> str:
    """Escape asterisks, as in y*, so that Markdown shows them."""
    return STAR.sub(r"\\*", text)


def _item(line: str) -> str:
    """Return a line of a list of parameters; others continue the line above."""
    found = PARAMETER.fullmatch(line)
    return f"- `{found[1]}`: {found[2]}" if found else f"    {line.strip()}"
