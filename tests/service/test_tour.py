"""The commands in docs/service.md print what the page shows."""

import os
import shutil
import socket
from pathlib import Path

import pytest
from serving import serving
from tours import blocks, run_tour

pytestmark = pytest.mark.process
PAGE = Path(__file__).parents[2] / "docs" / "service.md"


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_tour_prints_what_the_page_shows(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    lock, last = tmp_path / "state" / "lock", ""
    try:
        last = run_tour(PAGE, tmp_path, {"8000": port})
    finally:
        if not last.startswith("kill") and lock.exists():
            os.kill(int(lock.read_text()), 15)
    assert last.startswith("kill")


def test_python_example_of_the_page(tmp_path, capsys):
    (code,) = blocks(PAGE, "python")
    with serving(tmp_path) as server:
        exec(code.replace("http://127.0.0.1:8000", server.address))
    assert capsys.readouterr().out == "0.0\n"
