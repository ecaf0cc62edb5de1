"""A headless Chromium, spoken to through a pair of pipes in its DevTools protocol."""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

FOUND = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)

_BEGIN = """import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])"""


class Browser:
    """One page of it."""

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
        """What a method of the protocol answers."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next(60)
            if told.get("id") == self._number:
                assert "error" not in told, told
                return told["result"]
            self.events.append(told)

    def _next(self, seconds):
        end = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._receive], [], [], max(0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            self._buffer += os.read(self._receive, 1 << 16)
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(self, address, scheme="light", width=1000, height=1400):
        """Go to a page."""
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=media)
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)
        self.call("Page.navigate", url=address)

    def run(self, script):
        """What a script comes to."""
        told = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def until(self, script, seconds=30):
        """Wait until a script comes to something true."""
        end, safe = (
            time.monotonic() + seconds,
            f"(() => {{ try {{ return {script} }} catch {{}} }})()",
        )
        while not (found := self.run(safe)):
            assert time.monotonic() < end, f"{script} did not come true"
            time.sleep(0.05)
        return found

    def press(self, key, code, text=""):
        """A key."""
        for kind in ("keyDown", "keyUp"):
            told = {"text": text} if text and kind == "keyDown" else {}
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **told
            )

    def picture(self):
        """The page as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def asked(self):
        """Every address it has asked for."""
        sent = [e for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def complaints(self):
        """What it has to say against the page."""
        said = [e["params"]["entry"] for e in self.events if e.get("method") == "Log.entryAdded"]
        thrown = [e for e in self.events if e.get("method") == "Runtime.exceptionThrown"]
        return [entry["text"] for entry in said if entry["level"] == "error"] + thrown


@contextlib.contextmanager
def browser():
    """A browser that ends with the test."""
    ours, theirs = os.pipe()  # from it to us
    reads, writes = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [FOUND, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        command += ["--disable-dev-shm-usage", f"--user-data-dir={profile}"]
        command += ["--remote-debugging-pipe", "about:blank"]
        process = subprocess.Popen(
            [sys.executable, "-c", _BEGIN, str(reads), str(theirs), *command],
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
