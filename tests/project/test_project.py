"""The repository as a whole: commands in the README, imports and public names."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import spanboost

ROOT = Path(__file__).parents[2]


def shell_blocks(text):
    return re.findall(r"```sh\n(.*?)```", text, re.DOTALL)


def test_the_readme_leads_to_every_guide():
    sections = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2].split("\n  - ")
    guides = {
        page
        for section in sections
        if section.strip(" -").startswith(("Getting started:", "Learners:"))
        for page in re.findall(r": ([\w-]+\.md)$", section, re.MULTILINE)
    }
    linked = re.findall(r"\]\(docs/([\w-]+\.md)", (ROOT / "README.md").read_text())
    assert len(guides) > 15
    assert guides <= {*linked}
    for page in ("quickstart.md", "python.md"):
        assert "(scikit-learn.md)" in (ROOT / "docs" / page).read_text()


def test_ci_runs_the_test_command_of_the_readme():
    install_and_demo, install_and_test = map(
        str.strip, shell_blocks((ROOT / "README.md").read_text())
    )
    assert install_and_demo.endswith("spanboost demo")
    assert install_and_test in (ROOT / ".ci" / "run").read_text().splitlines()


def test_the_command_for_peers_runs_every_test_that_skips_without_them():
    lines = "".join(shell_blocks((ROOT / "CONTRIBUTING.md").read_text())).splitlines()
    command = next(line for line in lines if "[test,peers]" in line).split(".venv/bin/pytest ")[1]
    run = {path for word in command.split() for path in ((ROOT / word), *(ROOT / word).rglob("*"))}
    skip = re.compile(r"""importorskip\("(torch|vowpalwabbit)""")
    places = [*ROOT.glob("tests/**/*.py"), *ROOT.glob("docs/*.md"), *ROOT.glob("src/**/*.py")]
    skipped = {path for path in places if skip.search(path.read_text())}
    assert len(skipped) > 3
    assert skipped <= run


def test_the_extra_for_the_website_brings_what_its_reference_imports():
    names = "".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.md"))
    documented = {*re.findall(r"^::: spanboost\.([a-z]+)", names, re.MULTILINE)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    (own,) = (one for one in extras["docs"] if one.startswith("spanboost["))
    needed = documented & extras.keys() - {"client", "mlflow"}  # their libraries load when called
    assert needed == {"river", "sklearn"}
    assert {*own.removeprefix("spanboost[").removesuffix("]").split(",")} == needed


def test_the_algorithms_are_short():
    lines = (ROOT / "src/spanboost/core/algorithms.py").read_text().splitlines()
    assert f"{len(lines)} lines" in (ROOT / "README.md").read_text()
    assert len(lines) <= 130


@pytest.mark.process
def test_importing_spanboost_loads_no_large_library():
    code = "import spanboost, spanboost.cli.main, sys; print({'numpy', 'numba'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.process
def test_using_plain_objects_never_imports_numba():
    code = """
import sys
from spanboost import SpanBoost
class Zero:
    def predict(self, x): return 0.0
    def update(self, x, loss): loss.slope(0.0)
SpanBoost(Zero(), n=2).learn_one([1.0], 0.5)
print("numba" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("name", spanboost.__all__)
def test_public_names_exist(name):
    assert getattr(spanboost, name).__doc__


def test_tab_completion_lists_public_names():
    assert set(spanboost.__all__) <= set(dir(spanboost))


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="NoSuchBoost"):
        spanboost.NoSuchBoost  # noqa: B018
