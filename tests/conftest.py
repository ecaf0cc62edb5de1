import io
import os
import sys
import threading
import types
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import fsspec
import pytest
from hypothesis import settings
from streams import EVERY, HOUSES, as_csv, put

# No deadlines, because compiling takes long. On CI, examples are not random.
settings.register_profile("default", deadline=None)
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable" if os.environ.get("CI") else "default")


def pytest_collection_modifyitems(items):
    """Mark the pages as slow, and refuse test names that contain an address in memory.

    Such a name differs from process to process, and parallel runs need equal names.
    """
    assert not [item.nodeid for item in items if " at 0x" in item.nodeid]
    for item in items:
        if item.path.suffix == ".md":
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def standard_input(monkeypatch):
    """A function that sets the bytes of standard input."""

    def give(data):
        monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(data)))

    return give


COMPILING = "spanboost: compiling for this kind of model"  # ignored by tests


@pytest.fixture
def shell(capsys):
    """A function that runs a command and returns its standard output and standard error."""

    def run(*words, status=0):
        from spanboost.cli.main import main

        capsys.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as stop:
            code = stop.code
        printed = capsys.readouterr()
        assert code == status, printed.err
        assert "Traceback" not in printed.err
        lines = printed.err.splitlines(keepends=True)
        return printed._replace(err="".join(line for line in lines if COMPILING not in line))

    return run


@pytest.fixture
def memory():
    """The file system of memory:// addresses, empty again after the test."""
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def web(tmp_path):
    """The address of an HTTP server for the files in tmp_path."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def data(tmp_path):
    return put(tmp_path, "houses.csv", as_csv(HOUSES))


@pytest.fixture
def model(data, shell, tmp_path):
    shell("train", data, "-o", tmp_path / "houses.sb", *EVERY)
    return tmp_path / "houses.sb"
