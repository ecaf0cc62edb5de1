"""An error of any system call of the journal and of snapshots loses no acknowledged label."""

import contextlib
import errno
import functools
import os
import shutil

import pytest
from faulty_disk import KILLED, FaultyDisk
from state_folders import (
    add_pending,
    build_entry,
    new_model,
    some_rows,
    trained_model,
    write_folder,
)

from spanboost.models.files import to_bytes
from spanboost.service.storage import record_files
from spanboost.service.storage.journal import Journal
from spanboost.service.storage.record_files import StateError
from spanboost.service.storage.state import State

DATA, BLOCK = some_rows(300), 10
ERRORS = (errno.EIO, errno.ENOSPC, errno.EMFILE)
ATTEMPTS = 5
STEP = 1 if os.environ.get("SPANBOOST_FAULTS") == "all" else 3  # otherwise a third for each error
expected_model = functools.cache(lambda rows: trained_model(DATA, rows))


@pytest.fixture(autouse=True)
def fast_syncs(monkeypatch):
    """Skip what syncs do, which takes most of the time; these tests lose no power."""
    monkeypatch.setattr(os, "fsync", lambda file: None)
    monkeypatch.setattr(record_files, "_sync", lambda file: None)


def serve(folder, first, on_acknowledged=lambda rows: None):
    """Run a service: learn blocks from row `first`, with retries, and stop.

    Returns the number of the first row that is not acknowledged. An error that ends the process
    ends the function.
    """
    n = first
    try:
        state = State(folder, new_model)
    except (OSError, StateError):  # the process ends with this message
        return n
    for attempt in range(ATTEMPTS):
        try:
            add_pending(state.pending, {f"pending {n} {attempt}": {"x": 1.0}})
            entry = build_entry(n, n + BLOCK, DATA)
            state.commit(entry)
            n += BLOCK
            on_acknowledged(n)
            state.learn(entry, 0, BLOCK)
        except OSError:
            if state.journal.failure is not None:
                break
        if attempt % 2:
            save(state)
    if state.journal.failure is None:
        save(state)
    state.close()
    return n


def save(state):
    with contextlib.suppress(OSError):
        state.save()


def check_restart(folder, acknowledged):
    """Check that a folder opens, with all acknowledged rows and at most one more block."""
    for _ in range(2):
        state = State(folder, new_model)
        rows = state.progress.rows
        assert rows in (acknowledged, acknowledged + BLOCK)
        assert not rows or to_bytes(state.model) == expected_model(rows)
        assert all(f"row {k}" in state.ids for k in range(rows))
        state.close()
    return rows


def run_with_faults(monkeypatch, folder, failing, code, first):
    """Serve while calls fail; return the disk and the number of acknowledged rows."""
    with monkeypatch.context() as patch:
        disk = FaultyDisk(patch, folder, failing, code)
        acknowledged = serve(folder, first)
    return disk, acknowledged


@pytest.mark.parametrize("code", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
@pytest.mark.parametrize("steps", [[], [2, 1]], ids=["new", "existing"])
@pytest.mark.slow
def test_no_error_of_a_system_call_loses_a_label(tmp_path, monkeypatch, steps, lasting, code):
    start, folder, names = tmp_path / "start", tmp_path / "state", set()
    k = ERRORS.index(code) % STEP
    rows = write_folder(start, steps, DATA, BLOCK) if steps else 0
    while True:
        shutil.rmtree(folder, ignore_errors=True)
        if steps:
            shutil.copytree(start, folder)
        failing = range(k, 10**9 if lasting else k + 1)
        disk, acknowledged = run_with_faults(monkeypatch, folder, failing, code, rows)
        if not disk.failed:
            break
        names.add(disk.calls[k])
        learned = check_restart(folder, acknowledged)
        assert serve(folder, learned) == learned + ATTEMPTS * BLOCK
        check_restart(folder, learned + ATTEMPTS * BLOCK)
        k += STEP
    assert k > 100
    assert STEP > 1 or names >= {"open", "_sync", "fsync", "pwrite", "write", "replace", "flock"}


def serve_until_killed(monkeypatch, folder, k, first):
    """Serve in another process, which ends at call k; return its status and acknowledged rows."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            with monkeypatch.context() as patch:
                FaultyDisk(patch, folder, range(k, k + 1), None)
                serve(folder, first, lambda rows: os.write(writer, f" {rows}".encode()))
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader) as file:
        acknowledged = file.read().split()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), int(acknowledged[-1]) if acknowledged else first


@pytest.mark.parametrize("steps", [[], [2, 1]], ids=["new", "existing"])
@pytest.mark.process
def test_a_kill_at_any_system_call_loses_no_label(tmp_path, monkeypatch, steps):
    start, folder = tmp_path / "start", tmp_path / "state"
    rows = write_folder(start, steps, DATA, BLOCK) if steps else 0
    for k in range(0, 10**9, STEP):
        shutil.rmtree(folder, ignore_errors=True)
        if steps:
            shutil.copytree(start, folder)
        status, acknowledged = serve_until_killed(monkeypatch, folder, k, rows)
        if status == 0:
            break
        assert status == KILLED
        learned = check_restart(folder, acknowledged)
        assert serve(folder, learned) == learned + ATTEMPTS * BLOCK
    assert k > 100


@pytest.mark.parametrize("code", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
def test_no_error_of_a_system_call_spoils_a_journal(tmp_path, monkeypatch, lasting, code):
    """The same for a journal of small files, most of whose appends begin a new file."""
    k, disk = 0, None
    while disk is None or disk.failed:
        folder = tmp_path / str(k)
        acknowledged = []
        with monkeypatch.context() as patch:
            disk = FaultyDisk(patch, folder, range(k, 10**9 if lasting else k + 1), code)
            append_records(folder, acknowledged)
        journal = Journal(folder, 50)
        records = [bytes(record.payload) for record in journal.read()]
        assert records[: len(acknowledged)] == acknowledged
        assert len(records) <= len(acknowledged) + 1
        journal.append(b"more")
        journal.close()
        assert [bytes(record.payload) for record in Journal(folder).read()] == [*records, b"more"]
        shutil.rmtree(folder)
        k += 1
    assert k > 60


def append_records(folder, acknowledged):
    try:
        journal = Journal(folder, 50)
        assert not list(journal.read())
    except OSError:
        return
    for k in range(10):
        try:
            journal.append(f"payload {k}".encode() * 3)
            acknowledged.append(f"payload {k}".encode() * 3)
            if k % 4 == 3:
                journal.rotate()
        except OSError:
            if journal.failure is not None:
                break
    journal.close()
