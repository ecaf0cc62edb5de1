"""Helper processes compile at the same time as this one; results and errors stay the same."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from spanboost.compiling import helpers
from spanboost.compiling.helpers import SETTING, CompileQueue, process_count
from spanboost.compiling.jobs import Job

LEARN = """
import numpy as np
from spanboost import LinearSGD, SpanBoost
X, y = np.linspace(-0.5, 0.5, 80).reshape(40, 2), np.sin(np.arange(40))
model = SpanBoost(LinearSGD(), n=4)
print(np.append(model.learn_many(X, y), model.predict_many(X)).tobytes().hex())
"""


def job(name):
    return Job(Path(f"{name}.nbc"), "module", name, False, b"")


class Office:
    """Stands for helper processes and for this one: notes who does which job."""

    def __init__(self, monkeypatch, processes=2, fails=False):
        self.by_helpers, self.here, self.fails = [], [], fails
        self.go, self.started = threading.Event(), threading.Event()
        monkeypatch.setenv(SETTING, str(processes))
        monkeypatch.setattr(helpers, "_helper", threading.Lock)
        monkeypatch.setattr(helpers, "_pass_on", self.pass_on)
        monkeypatch.setattr(helpers, "run_job", lambda one: self.here.append(one.name))

    def pass_on(self, _, one):
        self.started.set()
        assert self.go.wait(10)
        if self.fails:
            raise BrokenPipeError
        self.by_helpers.append(one.name)


def test_a_caller_does_other_jobs_while_a_helper_does_its_own(monkeypatch):
    office, queue = Office(monkeypatch), CompileQueue()
    queue.add(map(job, "abc"), map(job, "xy"))
    assert office.started.wait(10)  # a helper does job a
    monkeypatch.setattr(
        helpers, "run_job", lambda one: (office.here.append(one.name), one.name == "c" and go())
    )

    def go():
        office.go.set()

    queue.settle(job("a"))
    assert office.here == ["b", "c"]  # but nothing that can wait
    assert office.by_helpers[0] == "a"
    for name in "bcxy":
        queue.settle(job(name))
    assert sorted(office.by_helpers + office.here) <= list("abcxy")


def test_a_job_that_waits_is_left_to_the_caller(monkeypatch):
    office, queue = Office(monkeypatch), CompileQueue()
    queue.add(map(job, "abc"))
    assert office.started.wait(10)
    queue.settle(job("c"))
    assert office.here == []
    office.go.set()
    queue.settle(job("a"))
    queue.settle(job("b"))
    assert "c" not in office.by_helpers + office.here


def test_a_helper_that_fails_leaves_its_jobs_to_the_caller(monkeypatch):
    office, queue = Office(monkeypatch, fails=True), CompileQueue()
    office.go.set()
    queue.add(map(job, "abc"))
    for name in "abc":
        queue.settle(job(name))  # returns: the caller compiles
    assert office.by_helpers == []


def test_one_process_has_no_helpers(monkeypatch):
    office, queue = Office(monkeypatch, processes=1), CompileQueue()
    queue.add(map(job, "abc"))
    queue.settle(job("a"))
    assert office.here == office.by_helpers == []


@pytest.mark.parametrize(("setting", "expected"), [("3", 3), ("0", 1), ("1", 1)])
def test_the_setting_limits_the_processes(monkeypatch, setting, expected):
    monkeypatch.setenv(SETTING, setting)
    assert process_count() == expected


def test_an_application_that_embeds_python_starts_no_helpers(monkeypatch):
    monkeypatch.delenv(SETTING, raising=False)
    monkeypatch.setattr(sys, "executable", "/opt/editor")
    assert process_count() == 1


def cold(folder, script=LEARN, **environment):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder), **environment}
    return subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )


@pytest.mark.process
@pytest.mark.slow
def test_helpers_compile_the_same_code(tmp_path):
    alone = cold(tmp_path / "alone", **{SETTING: "1"})
    helped = cold(tmp_path / "helped", **{SETTING: "2"})
    assert helped.stdout == alone.stdout
    assert helped.stderr == alone.stderr  # announced once
    names = [
        sorted(path.name for path in (tmp_path / folder).rglob("*.nbc"))
        for folder in ("alone", "helped")
    ]
    assert names[0] == names[1]
    again = cold(tmp_path / "helped", **{SETTING: "2"})
    assert (again.stdout, again.stderr) == (alone.stdout, "")


@pytest.mark.process
@pytest.mark.slow
def test_a_helper_that_cannot_start_is_not_needed(tmp_path):
    broken = "import sys; sys.executable = '/nowhere/python3'\n"
    assert cold(tmp_path, broken + LEARN, **{SETTING: "2"}).stdout


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_does_not_wait_for_the_helpers_of_its_parent():
    script = """
import os
from pathlib import Path
from spanboost.compiling.helpers import queue
from spanboost.compiling.jobs import Job
job = Job(Path("a"), "module", "name", False, b"")
queue._running.add(job)
child = os.fork()
if child == 0:
    queue.settle(job)
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "7\n"
