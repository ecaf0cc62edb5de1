"""A server in a process of its own, for tests of the service."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time

OPTIONS = ("--learner", "linear", "-n", "4")


class Server:
    """`spanboost serve` on a free port; `said` is what it wrote."""

    def __init__(self, folder, *options, tokens=None, port=0):
        command = [sys.executable, "-m", "spanboost", "serve", "--dir", str(folder)]
        command += ["--port", str(port)]
        environment = os.environ | {
            f"SPANBOOST_{scope.upper()}_TOKEN": token for scope, token in (tokens or {}).items()
        }
        self.process = subprocess.Popen(
            [*command, *options], stderr=subprocess.PIPE, text=True, env=environment
        )
        self.said = []
        self.address = None
        while self.address is None:
            line = self.process.stderr.readline()
            if not line:
                raise RuntimeError("".join(self.said))
            self.said.append(line)
            found = re.search(r" on (http://\S+),", line)
            self.address = found and found[1]
        self.port = int(self.address.rpartition(":")[2])
        self._listen = threading.Thread(target=self._read, daemon=True)
        self._listen.start()

    def _read(self):
        self.said.extend(self.process.stderr)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self._end()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self._end()
        return self.process.returncode

    def _end(self):
        self.process.wait(60)
        self._listen.join(60)
        self.process.stderr.close()

    def memory(self):
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def serving(folder, *options, tokens=None):
    """A server that is stopped, and must end well, however the test does."""
    server = Server(folder, *(options or OPTIONS), tokens=tokens)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            status = server.stop()
            assert status == 0, "".join(server.said)
    assert "Traceback" not in "".join(server.said)


@contextlib.contextmanager
def answering(app):
    """A client of an application that is served by a thread of this process."""
    import httpx

    from spanboost.service.server import bind_socket, server_of

    sock, server = bind_socket("127.0.0.1", 0), server_of(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{sock.getsockname()[1]}"
    try:
        with httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
            client.server = server
            yield client
    finally:
        server.should_exit = True
        thread.join(60)
        sock.close()


def until(condition, seconds=30):
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)
