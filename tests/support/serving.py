"""Servers for tests of the service: in another process, or in a thread."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

OPTIONS = ("--learner", "linear", "-n", "4")


class Server:
    """`spanboost serve`, or `work`, in another process; `log` has the lines that it wrote."""

    def __init__(
        self,
        folder,
        *options,
        tokens=None,
        port=0,
        program=("-m", "spanboost"),
        command="serve",
    ):
        command = [sys.executable, *program, command, "--port", str(port)]
        command += [] if folder is None else ["--dir", str(folder)]
        environment = os.environ | {
            f"SPANBOOST_{scope.upper()}_TOKEN": token for scope, token in (tokens or {}).items()
        }
        self.process = subprocess.Popen(
            [*command, *options], stderr=subprocess.PIPE, text=True, env=environment
        )
        self.log = []
        self.address = None
        while self.address is None:
            line = self.process.stderr.readline()
            if not line:
                raise RuntimeError("".join(self.log))
            self.log.append(line)
            match = re.search(r" on (https?://\S+),", line)
            self.address = match and match[1]
        self.port = urlsplit(self.address).port
        self._log_reader = threading.Thread(target=self._read_log, daemon=True)
        self._log_reader.start()

    def _read_log(self):
        self.log.extend(self.process.stderr)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.wait()
        return self.process.returncode

    def wait(self):
        self.process.wait(60)
        self._log_reader.join(60)
        self.process.stderr.close()

    def memory(self):
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def serving(folder, *options, tokens=None, **process):
    """Run a server; stop it at the end and check that it exits with status 0."""
    server = Server(folder, *(options or OPTIONS), tokens=tokens, **process)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            status = server.stop()
            assert status == 0, "".join(server.log)
    assert "Traceback" not in "".join(server.log)


@contextlib.contextmanager
def serving_app(app):
    """Serve an application in a thread, and return a client of it."""
    import httpx

    from spanboost.service.http.server import bind_socket, build_server

    sock, server = bind_socket("127.0.0.1", 0), build_server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{sock.getsockname()[1]}"
    try:
        with httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
            client.server = server
            yield client
    finally:
        server.stop()
        thread.join(60)
        sock.close()
        app.close()


def wait_until(condition, seconds=30):
    """Wait until the condition is true; fail after some seconds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition did not become true"
        time.sleep(0.01)
