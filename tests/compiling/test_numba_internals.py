"""Without a private name of Numba, models compile with its public names and learn the same."""

import os
import subprocess
import sys

import pytest

from spanboost.compiling.numba_internals import ATTRIBUTES, LOW_LEVEL_NAMES, NAMES, missing_name

pytestmark = pytest.mark.process

# Import Numba from source in which one name is another one, as in a version that renamed it.
RENAME = """
import importlib.machinery
import re
import sys

WORD = re.compile({pattern!r})


class Renaming(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        source = self.get_data(self.path).decode()
        lines = source.splitlines(keepends=True)
        changed = "".join(x if "import" in x else WORD.sub("renamed_{name}", x) for x in lines)
        if changed == source:
            return super().get_code(fullname)
        return compile(changed, self.path, "exec", dont_inherit=True)


class Finder(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        spec = super().find_spec(fullname, path, target)
        if fullname.startswith("numba.") and spec and str(spec.origin).endswith(".py"):
            spec.loader = Renaming(spec.loader.name, spec.loader.path)
        return spec


sys.meta_path.insert(0, Finder)
"""

LEARN = """
import numpy as np
from spanboost import LinearBall, SpanBoost
X, y = np.linspace(-0.5, 0.5, 80).reshape(40, 2), np.sin(np.arange(40))
model = SpanBoost(LinearBall(), n=4)
print(np.append(model.learn_many(X, y / 2), model.predict_many(X)).tobytes().hex())
"""

LOSSES = """
import numpy as np
from spanboost.losses import Squared, on_vectors, values_of
Y, labels = np.sin(np.arange(80.0).reshape(40, 2)), np.cos(np.arange(80.0).reshape(40, 2))
print(values_of(on_vectors(Squared()), labels, Y).tobytes().hex())
"""

PATTERNS = {  # names that mean something else elsewhere
    "compiler.targetctx": r"(?<=state\.)targetctx\b|(?<=states\.)targetctx\b",
    "codegen": r"(?<!core)(?<=\.)codegen\b|(?<=def )codegen\b",
    "_nrt": r"\b_nrt(?= = _mapping)|(?<=\")_nrt(?=\")|\b_nrt(?==)",
    "initialize": r"(?<=rtsys\.)initialize\b|(?<=def )initialize(?=\(self, ctx)",
}


def run(script, **environment):
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )


@pytest.fixture(scope="module")
def expected():
    return {script: run(script).stdout for script in (LEARN, LOSSES)}


def private_names():
    names = [(name, name.replace(":", ".").rpartition(".")[2]) for name in NAMES]
    return names + [(f"{kind}.{name}", name) for kind, of in ATTRIBUTES.items() for name in of]


def assert_same_without(full, name, script, expected):
    pattern = PATTERNS.get(full) or PATTERNS.get(name, rf"\b{name}\b")
    rename = RENAME.format(pattern=pattern, name=name)
    done = run(rename + script)
    assert done.stdout == expected[script]
    assert done.stderr.count("Warning: ") == 1
    assert f"does not have {full}: every process compiles" in done.stderr


def test_this_numba_has_every_name():
    assert missing_name() is None


@pytest.mark.parametrize("name", LOW_LEVEL_NAMES)
def test_names_that_other_modules_of_numba_import_are_looked_for(monkeypatch, name):
    monkeypatch.delattr(name.replace(":", "."))
    assert missing_name() == name


def test_without_a_private_name_a_model_learns_the_same(expected):
    assert_same_without("numba.core.cpu:CPUTargetOptions._nrt", "_nrt", LEARN, expected)


@pytest.mark.slow
@pytest.mark.parametrize(("full", "name"), private_names())
def test_without_any_private_name_the_results_are_the_same(expected, full, name):
    assert_same_without(full, name, LOSSES, expected)


def test_the_switch_turns_private_names_off_without_a_warning(expected):
    done = run(LEARN, SPANBOOST_PLAIN_NUMBA="1")
    assert done.stdout == expected[LEARN]
    assert done.stderr == ""
