"""Databases for tests: SQLite and DuckDB in files, and a real PostgreSQL server."""

import contextlib
import glob
import os
import shutil
import socket
import subprocess
import tempfile
import time

import pytest


def postgres_program(name):
    """Return the path of a program of PostgreSQL; None if it is not installed."""
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    return shutil.which(name, path=os.pathsep.join([*folders, os.environ["PATH"]]))


@contextlib.contextmanager
def postgres_server():
    """Run a PostgreSQL server with the password `s3cret`, and yield its address.

    Skip the test if there is no such server, or if it cannot be run by this user.
    """
    pytest.importorskip("psycopg", reason="needs psycopg")
    if postgres_program("initdb") is None:
        pytest.skip("PostgreSQL is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        # the server refuses to run as root
        owner = ["setpriv", "--reuid=nobody", "--clear-groups"] if os.getuid() == 0 else []
        if owner:
            if shutil.which("setpriv") is None:
                pytest.skip("PostgreSQL cannot be run as root")
            shutil.chown(folder, "nobody")
        secret = os.path.join(folder, "secret")
        with open(secret, "w") as file:
            file.write("s3cret")
        os.chmod(secret, 0o644)
        data = os.path.join(folder, "data")
        create = ["initdb", "-U", "me", "-A", "md5", "--pwfile", secret, "--no-sync"]
        serve = ["postgres", "-p", str(port), "-k", folder, "-h", "127.0.0.1", "-F"]
        first, second = (
            [*owner, postgres_program(name), "-D", data, *options]
            for name, *options in (create, serve)
        )
        subprocess.run(first, check=True, capture_output=True)
        process = subprocess.Popen(second, stderr=subprocess.DEVNULL)
        try:
            address = f"postgresql://me:s3cret@127.0.0.1:{port}/postgres"
            wait_for(address)
            yield address
        finally:
            process.terminate()
            process.wait(20)


def wait_for(address):
    """Wait until a server accepts connections."""
    import psycopg

    end = time.monotonic() + 20
    while True:
        try:
            psycopg.connect(address).close()
            return
        except psycopg.OperationalError:
            assert time.monotonic() < end
            time.sleep(0.05)
