"""Hooks that MkDocs calls while it builds the site (see mkdocs.yml).

They add generated pages: the README as the home page, the command-line reference from the parser,
the notebooks, the index for language models, and every file of the repository that a page links to,
so that all links stay on the site. They also adapt the search.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docstrings  # noqa: F401, the extension of mkdocstrings finds it among the loaded modules
import notebooks  # MkDocs finds modules next to its hooks
import reference
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
PAGES = {  # files of the repository that are pages of the site
    "README.md": "index.md",
    "benchmarks/README.md": "benchmarks.md",
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
SOURCES = {page: source for source, page in PAGES.items()}
LANGUAGES = {".py": "python", ".cff": "yaml", ".toml": "toml", ".yaml": "yaml"}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s:]+)(#[^)\s]*)?\)")
BAR = re.compile(r"`[^`\n]*\\\|[^`\n]*`")  # escaped bar, needed by other Markdown readers
SHORT = re.compile(r"(?<!</span>)<code>(?=[^<]{1,26}</code>)")  # not in a block
OPERATORS = r"(?:^|\s+)[*+\-:^~]+(?=\s+|$)"  # that the worker of the search removes from a query
ELSEWHERE = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"?(?:https?:)?//[^>]*>")


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages."""
    made: dict[str, str | bytes] = {
        page: (ROOT / source).read_text() for source, page in PAGES.items()
    }
    made["reference.md"] = reference.page()
    made["llms.txt"] = _index((ROOT / "llms.txt").read_text())
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        made |= notebooks.pages(path)
    for source in sorted(set(_linked(files))):
        made[_source_page(source)] = _source(source)
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrite links for the site and highlight examples as Python prompts."""
    here = page.file.src_uri
    if here.startswith("source/"):
        return markdown
    markdown = markdown.replace("```python\n>>>", "```pycon\n>>>")
    markdown = BAR.sub(lambda found: found.group().replace(r"\|", "|"), markdown)
    return LINK.sub(lambda found: _link(here, *found.groups(default="")), markdown)


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Mark short code, such as options, so that it does not break at hyphens."""
    return SHORT.sub('<code class="short">', html)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Reject pages that load anything from another host; the site must work offline."""
    found = ELSEWHERE.search(output)
    if found:
        raise PluginError(f"{page.file.src_uri} loads from another host: {found.group()}")
    return output


def on_post_build(config: Any) -> None:
    """Let the search find options."""
    workers = [*Path(config.site_dir).glob("assets/javascripts/workers/search.*.min.js")]
    if len(workers) != 1:
        raise PluginError(f"expected one worker of the search (got {len(workers)})")
    workers[0].write_text(find_options(workers[0].read_text()))


def find_options(script: str) -> str:
    """Return the worker of the search without the dashes of options such as --keep in queries.

    Two dashes are a syntax error of its language of queries, which finds nothing.
    """
    if script.count(OPERATORS) != 1:
        raise PluginError("the worker of the search has changed; adapt find_options")
    return script.replace(OPERATORS, rf"\B--(?=\w)|{OPERATORS}")


def _index(text: str) -> str:
    """Return the index for language models with links to pages of the site."""

    def page(path: str) -> str:
        return PAGES.get(path, path.removeprefix("docs/")).removesuffix(".md") + ".html"

    return LINK.sub(lambda found: f"[{found[2]}]({page(found[3])})", text)


def _linked(files: Any) -> Iterator[str]:
    """Yield the repository paths of linked files outside docs/."""
    written = {file.src_uri: file.content_string for file in files.documentation_pages()}
    for source, page in PAGES.items():
        written[page] = (ROOT / source).read_text()
    for page, text in written.items():
        for _, _, target, _ in LINK.findall(text):
            path = _in_repository(page, target)
            if not path.startswith("docs/") and path not in PAGES and (ROOT / path).is_file():
                yield path


def _in_repository(page: str, target: str) -> str:
    source = SOURCES.get(page, f"docs/{page}")
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), target))


def _link(page: str, image: str, text: str, target: str, anchor: str) -> str:
    """Return a link from a page to its target on the site, or plain text for a folder."""
    path = _in_repository(page, target)
    if (ROOT / path).is_dir():
        return text
    if path.startswith("docs/"):
        place = path.removeprefix("docs/")
        if place.endswith(".ipynb") and not page.startswith("notebooks/"):
            place = place.removesuffix(".ipynb") + ".md"
    else:
        place = PAGES.get(path) or _source_page(path)
    relative = posixpath.relpath(place, posixpath.dirname(page) or ".")
    return f"{image}[{text}]({relative}{anchor})"


def _source_page(path: str) -> str:
    return f"source/{path}.md"


def _source(path: str) -> str:
    language = LANGUAGES.get(Path(path).suffix, "text")
    head = f"---\ntitle: {path}\nsearch:\n  exclude: true\nhide: [toc]\n---\n"
    return f"{head}\n# {path}\n\n~~~~{language}\n{(ROOT / path).read_text()}\n~~~~\n"
