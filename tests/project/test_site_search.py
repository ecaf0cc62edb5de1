"""The search of the website, which needs the extra `docs`."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
@pytest.mark.process
def test_the_search_finds_options():
    material = pytest.importorskip("material", reason="needs pip install -e '.[docs]'")
    import hooks
    from mkdocs.exceptions import PluginError

    theme = Path(material.__file__).parent / "templates/assets/javascripts/workers"
    (worker,) = theme.glob("search.*.min.js")
    script = hooks.find_options(worker.read_text())
    function = re.search(
        r"function (\w+)\(\w,\w=\w=>\w\)\{return \w\.trim\(\).*?\}(?=function)", script
    )
    queries = ["--keep", "predict --keep", "--on-error", "rate -decay", "a--b", '"model file"']
    command = f"{function[0]}; console.log(JSON.stringify({queries}.map(q => {function[1]}(q))))"
    found = json.loads(subprocess.check_output(["node", "-e", command]))
    assert found == ["keep*", "predict* keep*", "on-error*", "rate* -decay", "a--b*", found[-1]]
    with pytest.raises(PluginError, match="the worker of the search has changed"):
        hooks.find_options("")
