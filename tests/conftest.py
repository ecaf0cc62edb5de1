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

# Compiling takes longer than any deadline; a run that gates a change must not depend on luck.
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
    """Gives bytes to whoever reads standard input."""

    def give(data):
        monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(data)))

    return give


COMPILING = "spanboost: compiling for this kind of model"  # said once, by whoever comes first


@pytest.fixture
def shell(capsys):
    """Runs a command; what it wrote on standard output and standard error."""

    def run(*words, status=0):
        from spanboost.cli.main import main

        capsys.readouterr()
        try:
            found = main([str(word) for word in words])
        except SystemExit as stop:
            found = stop.code
        said = capsys.readouterr()
        assert found == status, said.err
        assert "Traceback" not in said.err
        lines = said.err.splitlines(keepends=True)
        return said._replace(err="".join(line for line in lines if COMPILING not in line))

    return run


@pytest.fixture
def memory():
    """The files of memory:// addresses."""
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def web(tmp_path):
    """The address at which tmp_path is served."""
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
