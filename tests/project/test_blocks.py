"""Every block of code on the pages is run or parsed by some test.

Python prompts are doctests, test_console.py runs `console` blocks, and tests/service/test_tour.py
and tests/streams/test_streams_page.py run the tours. tests/service/test_service_config.py reads
the configuration file of several models, and tests/models/test_c_export.py compiles C. This file
covers the rest.
"""

import re
import shlex
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

import spanboost
from spanboost.cli.parser import parser

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```([\w-]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TOURS = {
    "docs/service.md": {"python", "shell-session"},
    "docs/streams.md": {"shell-session"},
    "docs/export.md": {"c"},
}
SHOWN = {"text", "ini"}  # not code of this project


def blocks(page):
    return BLOCK.findall(page.read_text())


def commands():
    """Yield the spanboost commands of `sh` blocks, which need other programs or machines to run."""
    for page in PAGES:
        for kind, text in blocks(page):
            for line in text.replace("\\\n", "").splitlines() if kind == "sh" else ():
                words = shlex.split(line, comments=True)
                if words[:1] == ["spanboost"]:
                    yield " ".join(words), words[1:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_is_of_a_kind_that_a_test_runs(page):
    name = str(page.relative_to(ROOT))
    for kind, text in blocks(page):
        run_here = kind in {"console", "sh"} or (kind == "python" and text.startswith(">>> "))
        run_elsewhere = kind in TOURS.get(name, ())
        run_elsewhere |= (name, kind) == ("docs/service-models.md", "toml")
        assert run_here or run_elsewhere or kind in SHOWN or name == "docs/cluster.md", text
    assert page.read_text().count("```") % 2 == 0


@pytest.mark.slow
def test_the_cluster_example_runs_on_this_machine(monkeypatch):
    found = Counter(kind for kind, _ in blocks(ROOT / "docs" / "cluster.md"))
    assert found == {"python": 1, "sh": 2}
    (code,) = (text for kind, text in blocks(ROOT / "docs" / "cluster.md") if kind == "python")
    monkeypatch.setattr(spanboost, "Cluster", lambda address: nullcontext(None))
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    space = {"X": X, "y": 0.5 * X[:, 0]}
    exec(code, space)
    assert space["model"].n == 64
    assert space["auto"].labels.rows == 200
    assert len(space["predictions"]) == 200
    assert space["tuned"].best().loss_rest < np.mean(space["y"] ** 2)


@pytest.mark.parametrize(
    "words", [words for _, words in commands()], ids=[c for c, _ in commands()]
)
def test_commands_that_are_not_run_can_be_parsed(words):
    assert parser().parse_args(words).command
