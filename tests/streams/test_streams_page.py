"""The commands in docs/streams.md do what the page says.

The tour runs with a real Redis server. The commands for Kafka run with a mock cluster.
"""

import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tours import blocks, run_tour

pytestmark = [pytest.mark.process, pytest.mark.slow]
PAGE = Path(__file__).parents[2] / "docs" / "streams.md"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return str(free.getsockname()[1])


@pytest.mark.skipif(shutil.which("redis-cli") is None, reason="redis-server is not installed")
def test_tour_prints_what_the_page_shows(tmp_path):
    pytest.importorskip("redis", reason="needs redis")
    port = free_port()
    replacements = {
        "6379": port,
        "redis-cli ": f"redis-cli -p {port} ",
        "--drain": f"--drain --port {free_port()}",
    }
    last = ""
    try:
        last = run_tour(PAGE, tmp_path, replacements)
    finally:
        if "SHUTDOWN" not in last:
            subprocess.run(["redis-cli", "-p", port, "SHUTDOWN", "NOSAVE"], check=False)
    assert "SHUTDOWN" in last


def test_commands_for_kafka(kafka, tmp_path):
    kafka.create("predictions", "bad")
    kafka.send("rows", [{"id": "late", "size": 7}])
    kafka.send("rows", [{"id": f"{k}", "size": k, "label": 2 * k} for k in range(100)])
    kafka.send("labels", [{"id": "late", "label": 14}])
    text = "".join(blocks(PAGE, "sh")).replace("\\\n", "")
    lines = [line for line in text.splitlines() if "kafka://" in line]
    assert len(lines) == 4
    for line in lines:
        words = shlex.split(line.replace("broker:9092", kafka.address), comments=True)
        if words[1] == "work":
            words += ["--drain", "--port", "0", "--learner", "linear"]
        elif "-i" not in words:
            words += ["--learner", "linear", "--on-error", "skip"]
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert [payload for payload, _ in kafka.read("predictions")] == [
        b'{"id":"late","prediction":0.0}'
    ]
