"""The commands in docs/service.md print what the page shows."""

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from golden import lines_match, printed_lines
from serving import serving

pytestmark = pytest.mark.process
PAGE = (Path(__file__).parents[2] / "docs" / "service.md").read_text()


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def examples():
    for block in blocks("shell-session"):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, printed = example.split("\n", 1)
            while command.endswith("\\"):
                more, printed = printed.split("\n", 1)
                command = command[:-1] + more
            yield command, printed.rstrip("\n")


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_tour_prints_what_the_page_shows(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    (tmp_path / "spanboost").write_text(f'#!/bin/sh\nexec {sys.executable} -m spanboost "$@"\n')
    (tmp_path / "spanboost").chmod(0o755)
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    lock = tmp_path / "state" / "lock"
    try:
        for command, shown in examples():
            # a background command must not keep the pipe of its output open
            behind = " > /dev/null" if command.endswith("&") else ""
            done = subprocess.run(
                f"{command.removesuffix('&')}{behind}{'&' if behind else ''}".replace("8000", port),
                shell=True,
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert lines_match(printed_lines(shown), printed_lines(done.stdout)), (
                f"$ {command}\n{done.stdout}"
            )
    finally:
        if "kill" not in command and lock.exists():
            os.kill(int(lock.read_text()), 15)
    assert command.startswith("kill")


def test_python_example_of_the_page(tmp_path, capsys):
    (code,) = blocks("python")
    with serving(tmp_path) as server:
        exec(code.replace("http://127.0.0.1:8000", server.address))
    assert capsys.readouterr().out == "0.0\n"
