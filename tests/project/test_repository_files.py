"""Files for other programs: the package's metadata, the container and the workflow."""

import json
import re
import tomllib
from pathlib import Path

from spanboost.cli.parser import parser
from spanboost.errors import install_hint
from spanboost.service.http.middleware import HEALTH_PATHS, SCOPES
from spanboost.service.http.server import token_variable

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE = (ROOT / "compose.yaml").read_text()
WORKFLOW = (ROOT / ".github/workflows/checks.yml").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def array(text, key):
    """Return the JSON array that follows a key."""
    return json.loads(re.search(rf"{key}[: ]+(\[.*\])", text).group(1))


def test_the_container_runs_a_valid_command():
    program, *words = array(DOCKERFILE, "ENTRYPOINT")
    assert program in PROJECT["scripts"]
    args = parser().parse_args([*words, *array(COMPOSE, "command")])
    volumes = set(re.findall(r"^VOLUME (\S+)", DOCKERFILE, re.MULTILINE))
    assert volumes == {str(args.dir)} == {one.split(":")[1] for one in array(COMPOSE, "volumes")}
    assert f"EXPOSE {args.port}\n" in DOCKERFILE
    assert array(COMPOSE, "ports") == [f"127.0.0.1:{args.port}:{args.port}"]
    address = re.search(r"127\.0\.0\.1:(\d+)(/\w+)", DOCKERFILE)
    assert int(address.group(1)) == args.port
    assert address.group(2) in HEALTH_PATHS


def test_the_container_copies_every_file_that_the_build_reads():
    copied = re.findall(r"^COPY (.*) \S+$", DOCKERFILE, re.MULTILINE)
    copied = {name for names in copied for name in names.split()}
    needed = {"pyproject.toml", PROJECT["readme"], *PROJECT["license-files"], "src"}
    assert copied == needed
    assert "\nUSER " in DOCKERFILE


def test_the_page_sets_the_tokens_of_the_container():
    page = (ROOT / "docs" / "service.md").read_text()
    scopes = re.search(r"for scope in (.*?); do", page).group(1).split()
    pattern = re.search(r'echo "(\S+)=', page).group(1)
    set_there = {pattern.replace("${scope}", scope) for scope in scopes}
    assert set_there == {token_variable(scope) for scope in SCOPES}


def test_the_workflow_runs_the_gate_on_all_supported_versions():
    assert "run: .ci/run\n" in WORKFLOW
    tested = array(WORKFLOW, "python")
    lowest = PROJECT["requires-python"].removeprefix(">=")
    assert tested[0] == lowest
    assert f"| Python | {tested[0]} to {tested[-1]} |" in (ROOT / "docs/support.md").read_text()
    matrix = re.search(r"os: \[(.*)\]", WORKFLOW).group(1).split(", ")
    alone = re.findall(r"- \{os: (\S+), python: \"(\S+)\", dependencies: lowest\}", WORKFLOW)
    assert alone == [(system, lowest) for system in matrix]


def test_nothing_installs_spanboost_from_the_index_yet():
    """The release checklist names this text; it is the only page that may."""
    index = re.compile(r"pip install (-\S+ )*[\"']?spanboost\b")
    folders = ("src", "docs", "website", "benchmarks")
    files = [path for name in folders for path in (ROOT / name).rglob("*.*") if path.is_file()]
    texts = [path for path in files if path.suffix in {".py", ".md", ".ipynb", ".html", ".txt"}]
    texts += [*ROOT.glob("*.md"), *ROOT.glob("*.txt")]
    assert len(texts) > 300
    found = {path.name for path in texts if index.search(path.read_text())}
    assert found == {"releasing.md"}
    assert index.search("pip install -U 'spanboost[river]'")


def test_extras_that_messages_name_exist():
    call = re.compile(r"install_hint\([\"'](\w+)[\"']\)")
    modules = (ROOT / "src").rglob("*.py")
    named = {extra for path in modules for extra in call.findall(path.read_text())}
    assert {"http", "plot", "ray", "river", "serve"} <= named
    assert named <= set(PROJECT["optional-dependencies"])
    assert install_hint("plot") == "run pip install '.[plot]' in a clone of spanboost"


def test_classifiers_are_versions_that_the_workflow_tests():
    prefix = "Programming Language :: Python :: 3."
    minors = [one.removeprefix(prefix) for one in PROJECT["classifiers"] if one.startswith(prefix)]
    assert minors
    assert {f"3.{minor}" for minor in minors} <= set(array(WORKFLOW, "python"))
