"""A headless Chromium, controlled through two pipes with the DevTools protocol."""

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)

_START_WITH_PIPES = """import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])"""


class Browser:
    """One page of the browser."""

    def __init__(self, send, receive):
        self._send, self._receive = send, receive
        self._number, self._buffer = 0, b""
        self.events = []
        self._session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        """Call a method of the protocol and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._next_message(60)
            if reply.get("id") == self._number:
                assert "error" not in reply, reply
                return reply["result"]
            self.events.append(reply)

    def _next_message(self, seconds):
        end = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            # poll: unlike select, it accepts descriptors above 1,024
            waiting = select.poll()
            waiting.register(self._receive, select.POLLIN)
            ready = waiting.poll(max(0, end - time.monotonic()) * 1000)
            assert ready, "the browser does not respond"
            self._buffer += os.read(self._receive, 1 << 16)
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(self, address, scheme="light", width=1000, height=1400):
        """Open a page, and wait until its scripts have run."""
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=media)
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)
        self.call("Page.navigate", url=address)
        loaded = "location.href !== 'about:blank' && document.readyState === 'complete'"
        self.wait_until(loaded)

    def run(self, script):
        """Run a script and return its value."""
        reply = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    def wait_until(self, script, seconds=30):
        """Wait until the value of a script is true, and return it."""
        end, safe = (
            time.monotonic() + seconds,
            f"(() => {{ try {{ return {script} }} catch {{}} }})()",
        )
        while not (value := self.run(safe)):
            assert time.monotonic() < end, f"{script} did not become true"
            time.sleep(0.05)
        return value

    def press(self, key, code, text=""):
        """Press and release a key."""
        for kind in ("keyDown", "keyUp"):
            extra = {"text": text} if text and kind == "keyDown" else {}
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **extra
            )

    def requested_urls(self):
        """Return all addresses that the page has requested."""
        sent = [e for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def errors(self):
        """Return the errors that the page has logged or thrown."""
        entries = [e["params"]["entry"] for e in self.events if e.get("method") == "Log.entryAdded"]
        thrown = [e for e in self.events if e.get("method") == "Runtime.exceptionThrown"]
        return [entry["text"] for entry in entries if entry["level"] == "error"] + thrown


@contextlib.contextmanager
def browser():
    """Start a browser, and end it after the test."""
    ours, theirs = os.pipe()  # from the browser to this process
    reads, writes = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        command += ["--disable-dev-shm-usage", f"--user-data-dir={profile}"]
        command += ["--remote-debugging-pipe", "about:blank"]
        process = subprocess.Popen(
            [sys.executable, "-c", _START_WITH_PIPES, str(reads), str(theirs), *command],
            pass_fds=(reads, theirs),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(reads)
        os.close(theirs)
        try:
            yield Browser(writes, ours)
        finally:
            os.close(writes)
            os.close(ours)
            process.terminate()
            process.wait(30)
