"""Offline commands on a full disk name the file, say what to do, and leave nothing behind."""

import errno
import os
import stat
from pathlib import Path

import pytest
from state_folders import journal_files, new_model, some_rows, trained_model, write_folder

from spanboost.cli.main import main
from spanboost.models.files import to_bytes
from spanboost.service.storage import record_files, repair
from spanboost.service.storage.journal import Journal
from spanboost.service.storage.state import State

DATA, ROWS = some_rows(300), 5
STEPS = [4, 4, 8]  # snapshots after records 4 and 8


def content(folder):
    """Return all files and folders below a folder, without its lock."""
    return {
        path: path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
        if path.name != "lock"
    }


class FullDisk:
    """Lets the writes to files fail after some of them; counts them."""

    def __init__(self, patch, allowed):
        self.allowed, self.writes = allowed, 0
        patch.setattr(os, "pwrite", self._wrap(os.pwrite))
        patch.setattr(os, "fsync", self._wrap(os.fsync))
        patch.setattr(record_files, "_sync", self._wrap(record_files._sync))

    def _wrap(self, call):
        def wrapped(file, *arguments):
            if stat.S_ISDIR(os.fstat(file).st_mode):  # it was renamed or deleted already
                return call(file, *arguments)
            self.writes += 1
            if self.writes > self.allowed:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return call(file, *arguments)

        return wrapped


def damage(folder):
    journal_files(folder)[1].unlink()


COMMANDS = {
    "repair": (lambda old, new: ["repair", old, "--yes"], damage),
    "quarantine": (lambda old, new: ["repair", old, "--quarantine", 6, "--yes"], None),
    "erase": (lambda old, new: ["erase", old, "row 50", "--yes"], None),
    "restore": (lambda old, new: ["restore", old, "--to", 12, "--dir", new], None),
    "backup": (lambda old, new: ["backup", old, new, "--quiet"], None),
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("allowed", [0, 1, 5, 18, 19, 20])
def test_a_full_disk_changes_nothing(tmp_path, run, monkeypatch, name, allowed):
    words, prepare = COMMANDS[name]
    old, new = tmp_path / "old", tmp_path / "new"
    write_folder(old, STEPS, DATA, ROWS)
    if prepare is not None:
        prepare(old)
    before = content(tmp_path)
    with monkeypatch.context() as patch:
        disk = FullDisk(patch, allowed)
        status, text = run(*words(old, new))
    if disk.writes <= allowed:
        assert status == 0
        return
    assert status == 1
    line = text.splitlines()[-1]
    assert line.startswith(f"spanboost: {tmp_path}{os.sep}")
    assert "No space left on device; " in line
    assert line.endswith("; free some space, then run the command again")
    assert content(tmp_path) == before
    assert run(*words(old, new))[0] == 0


def test_an_interrupted_repair_leaves_files_that_the_next_one_deletes(tmp_path, run, monkeypatch):
    write_folder(tmp_path, STEPS, DATA, ROWS)
    damage(tmp_path)
    monkeypatch.setattr(repair, "_check_start", lambda report: os._exit(9))
    pid = os.fork()
    if not pid:
        main(["repair", str(tmp_path), "--yes"])
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    monkeypatch.undo()
    left = tmp_path / "journal.repaired"
    assert left.exists()
    assert (
        f"{left}: left by a repair or an erasure that was interrupted" in run("check", tmp_path)[1]
    )
    assert run("repair", tmp_path, "--yes")[0] == 0
    assert not left.exists()


def test_leftovers_of_a_sound_folder_are_deleted(tmp_path, run):
    write_folder(tmp_path, STEPS, DATA, ROWS)
    left = tmp_path / "journal.repaired"
    journal = Journal(left)
    list(journal.read())
    journal.close()
    status, text = run("check", tmp_path)
    assert status == 0
    assert f"`spanboost repair {tmp_path} --yes` deletes it" in text
    assert run("repair", tmp_path)[0] == 1
    assert left.exists()
    status, text = run("repair", tmp_path, "--yes")
    assert (status, text) == (
        0,
        f"Deleted: {left}, left by a repair or an erasure that was interrupted.\nRepaired.\n",
    )
    assert not left.exists()
    assert run("repair", tmp_path) == (0, f"{tmp_path}: nothing to repair\n")
    state = State(tmp_path, new_model)
    assert to_bytes(state.model) == trained_model(DATA, 80)
    state.close()


def test_a_restored_folder_that_was_there_stays(tmp_path, run, monkeypatch):
    old, new = tmp_path / "old", tmp_path / "new"
    write_folder(old, STEPS, DATA, ROWS)
    new.mkdir()
    with monkeypatch.context() as patch:
        FullDisk(patch, 4)
        assert run("restore", old, "--dir", new)[0] == 1
    assert new.is_dir()
    assert not any(new.iterdir())


def test_a_backup_cannot_be_extracted_on_a_full_disk(tmp_path, run, monkeypatch):
    old, backup = tmp_path / "old", tmp_path / "backup.tar"
    write_folder(old, STEPS, DATA, ROWS)
    assert run("backup", old, backup, "--quiet")[0] == 0
    before = content(tmp_path)
    open_file = Path.open

    def fail(path, mode="r", *rest):
        if mode == "wb":
            path = Path("/dev/full")
        return open_file(path, mode, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", fail)
        status, text = run("restore", backup, "--dir", tmp_path / "new")
    assert status == 1
    assert "snapshots" in text
    assert f"No space left on device; {tmp_path / 'new'} was not written" in text
    assert content(tmp_path) == before


def test_a_full_disk_can_be_checked(tmp_path, run, monkeypatch):
    write_folder(tmp_path, STEPS, DATA, ROWS)
    with monkeypatch.context() as patch:
        FullDisk(patch, 0)

        def fail(file, data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patch.setattr(os, "write", fail)
        status = main(["check", str(tmp_path)])
    assert (status, "The service can start." in run("check", tmp_path)[1]) == (0, True)
