"""Compiling: the disk cache, classes from elsewhere, clear refusals."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import spanboost
from spanboost import LinearBall, SpanBoost
from spanboost.compiling.kernels import Caller, jit, kernel, plain, runs_plainly

SCRIPT = """
import numpy as np
from spanboost import LinearBall, SpanBoost
model = SpanBoost(LinearBall(), n=4)
print(repr(float(model.learn_many(np.eye(2).repeat(20, axis=0), np.full(40, 0.5))[-1])))
"""


def in_new_process(folder, script=SCRIPT):
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    environment.pop("NUMBA_CACHE_DIR", None)
    return subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )


@pytest.fixture
def package(tmp_path):
    source = Path(spanboost.__file__).parent
    shutil.copytree(source, tmp_path / "spanboost", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def edit(path, before, after):
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


@pytest.mark.process
def test_machine_code_is_kept_and_follows_every_edit_of_a_kernel(package):
    both = SCRIPT + "model.predict_many(np.eye(2))\n"  # compiled apart
    first = in_new_process(package, both)
    assert first.stderr.count("compiling") == 1
    second = in_new_process(package, both)
    assert second.stderr == ""  # nothing was compiled
    assert second.stdout == first.stdout
    # files without kernels
    for name in ("cli/main.py", "service/http/server.py", "models/files.py"):
        edit(package / "spanboost" / name, '"""', '"""Edited. ')
    assert in_new_process(package, both).stderr == ""
    # a file that the compiled loop calls into, far from the loop's own file
    ball = package / "spanboost" / "learners" / "ball.py"
    text = ball.read_text()
    ball.write_text(text.replace("w[i] -= self.step[i]", "w[i] -= 0.5 * self.step[i]"))
    third = in_new_process(package)
    assert "compiling" in third.stderr
    assert third.stdout != first.stdout
    ball.write_text(text)
    assert in_new_process(package).stdout == first.stdout


@pytest.mark.process
def test_a_cache_with_classes_that_no_longer_exist_is_ignored(package):
    in_new_process(package)
    ball = package / "spanboost" / "learners" / "ball.py"
    ball.write_text(ball.read_text().replace("BallScratch", "RenamedScratch"))
    assert "compiling" in in_new_process(package).stderr


def double_values(values, out, times):
    for i in range(len(values)):
        out[i] = 2 * times * values[i]


def test_a_caller_finds_what_repeated_calls_run():
    caller, values, out = Caller(), np.arange(3.0), np.zeros(3)
    run = caller.find(double_values, values, out, 1.0)
    assert run is not double_values
    assert run is caller.find(double_values, values, out, 5.0)
    run(values, out, 5.0)
    assert out.tolist() == [0.0, 10.0, 20.0]
    assert not runs_plainly()
    with plain():
        assert runs_plainly()
        assert caller.find(double_values, values, out, 1.0) is double_values


class Cosh(NamedTuple):
    """A loss of a user's own: not of this package, so compiled but not kept on disk."""

    sharpness: float = 2.0

    def value(self, label, y):
        return np.log(np.cosh(self.sharpness * (y - label)))

    def gradient(self, label, y):
        return self.sharpness * np.tanh(self.sharpness * (y - label))

    def L(self, b):
        return self.sharpness

    def beta(self, b):
        return self.sharpness**2

    def eps(self, b):
        return self.sharpness if b < 1 else 0.0


class PlainCosh:
    def __init__(self):
        self.inner = Cosh()

    def __getattr__(self, name):
        return getattr(self.inner, name)


def test_a_loss_of_ones_own_runs_compiled_and_as_an_ordinary_class():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.5, 0.5, (50, 3)), rng.uniform(-1, 1, 50)
    compiled = SpanBoost(LinearBall(), n=3, loss=Cosh()).learn_many(X, y)
    ordinary = SpanBoost(LinearBall(), n=3, loss=PlainCosh()).learn_many(X, y)
    with plain():
        oracle = SpanBoost(LinearBall(), n=3, loss=Cosh()).learn_many(X, y)
    np.testing.assert_array_equal(ordinary, oracle)
    np.testing.assert_allclose(compiled, oracle, rtol=1e-12, atol=1e-14)


class Broken(NamedTuple):
    def value(self, label, y):
        return 0.0

    def gradient(self, label, y):
        return sorted({label: y}.items(), key=print)  # nothing Numba knows

    def L(self, b):
        return 1.0

    def beta(self, b):
        return 1.0

    def eps(self, b):
        return 0.0


def test_a_class_that_cannot_be_compiled_gets_a_short_error():
    model = SpanBoost(LinearBall(), n=2, loss=Broken())
    with pytest.raises(TypeError, match=r"Broken.*cannot be compiled.*ordinary class"):
        model.learn_one([0.1], 0.5)


class Misspelt(Broken):
    def gradient(self, label, y):
        return self.unknown


def test_an_error_of_the_compiler_names_the_reason_and_the_line():
    model = SpanBoost(LinearBall(), n=2, loss=Misspelt())
    line = r"Unknown attribute 'unknown' of type .* \(.*test_kernels\.py:\d+\); as an ordinary"
    with pytest.raises(TypeError, match=line):
        model.learn_one([0.1], 0.5)


class Line(NamedTuple):
    slope: float

    def height(self, x, above=1.0):
        return self.slope * x + above


class Plane(NamedTuple):
    line: Line
    height: float  # a field with the name of a method of another class

    def sum_heights(self, x):
        return self.height + self.line.height(x) + self.line.height(above=x, x=2.0)


class Tilted(Plane):
    """Inherits the method."""


def test_methods_have_defaults_and_keywords_and_are_inherited_and_fields_win():
    @jit
    def sum_heights(plane, x):
        return plane.sum_heights(x)

    for kind in (Plane, Tilted):
        surface = kind(Line(3.0), 100.0)
        assert sum_heights(surface, 2.0) == surface.sum_heights(2.0) == 100 + 7 + 8


def test_methods_of_one_name_take_one_number_of_arguments():
    class Odd(NamedTuple):
        x: float

        def slopes(self):
            return self.x

    @jit
    def ask(odd):
        return odd.slopes()

    for _ in range(2):
        with pytest.raises(TypeError, match=r"Odd\.slopes takes 1 arguments"):
            ask(Odd(1.0))


def test_a_field_may_have_the_name_of_a_method_elsewhere():
    class Both(NamedTuple):
        predict: float

        def weight(self):
            return 2 * self.predict

    @jit
    def get(both):
        return both.weight()

    assert get(Both(1.5)) == 3.0
    # `weight` is a method now; the fields of that name, inside the package, are untouched
    assert SpanBoost(LinearBall(), n=2, feedback="linear").learn_one([0.5], 0.5, weight=0.5) == 0


def test_kernels_stay_plain_python():
    @kernel
    def double(x):
        return 2 * x

    assert double("ab") == "abab"


@pytest.mark.process
def test_without_a_folder_to_write_to_it_still_runs(package):
    folder = package / "spanboost"
    for sub in [*folder.rglob("*/")]:
        if sub.is_dir():
            (sub / "__pycache__").touch()  # a file where Numba would make its folder
    home = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null"}
    environment = {**os.environ, **home, "PYTHONPATH": str(package)}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
    )
    assert "every process compiles" in done.stderr
    assert float(done.stdout) == float(in_new_process(Path(spanboost.__file__).parents[1]).stdout)


@pytest.mark.process
def test_damaged_files_are_as_good_as_none(package):
    first = in_new_process(package)
    kept = [*(package / "spanboost").rglob("*.nbc")]
    assert kept
    for damage in (b"", b"garbage", None):
        for path in kept:
            path.write_bytes(path.read_bytes()[:100] if damage is None else damage)
        again = in_new_process(package)
        assert "compiling" in again.stderr
        assert again.stdout == first.stdout
        assert in_new_process(package).stderr == ""  # and mended


@pytest.mark.process
def test_a_full_disk_costs_no_more_than_the_compiled_code(package):
    full = """
from numba.core.caching import IndexDataCacheFile
def save(self, name, data):
    raise OSError(28, "No space left on device")
IndexDataCacheFile._save_data = save
"""
    first = in_new_process(package, full + SCRIPT)
    assert "not kept: [Errno 28]" in first.stderr
    assert first.stdout == in_new_process(package).stdout
