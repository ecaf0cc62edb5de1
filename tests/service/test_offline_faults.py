"""An error at any system call of a repair or an erasure leaves a folder that can be used.

SPANBOOST_FAULTS=all pytest -n0 tests/service/test_offline_faults.py   # every system call
"""

import errno
import os
import shutil

import pytest
from faulty_disk import KILLED, FaultyDisk
from state_folders import journal_files, new_model, some_rows, write_folder

from spanboost.cli.main import main
from spanboost.models.files import to_bytes
from spanboost.service.storage import record_files
from spanboost.service.storage.state import State

pytestmark = pytest.mark.slow  # the file as a whole

DATA, ROWS = some_rows(100), 5
STEPS = [2, 2, 2]  # snapshots after records 2 and 4
STEP = 1 if os.environ.get("SPANBOOST_FAULTS") == "all" else 7
COMMANDS = {  # what to run, and the records whose rows are gone after it
    "repair": (["repair", "--yes"], [5]),
    "quarantine": (["repair", "--quarantine", "4", "--yes"], [4]),
    "erase": (["erase", "row 15", "row 16", "row 17", "row 18", "row 19", "--yes"], [4]),
}


@pytest.fixture(autouse=True)
def fast_syncs(monkeypatch):
    """Skip what syncs do, which takes most of the time; these tests lose no power."""
    monkeypatch.setattr(os, "fsync", lambda file: None)
    monkeypatch.setattr(record_files, "_sync", lambda file: None)


def content(folder):
    return {
        path.relative_to(folder): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
        if path.name != "lock"
    }


def prepare(folder, name):
    write_folder(folder, STEPS, DATA, ROWS)
    if name == "repair":
        path = journal_files(folder)[-1]
        path.write_bytes(path.read_bytes().replace(b"row 20", b"row xx"))  # in record 5


def model_without(records):
    model, _ = new_model()
    for number in range(1, 7):
        if number not in records:
            rows = slice(ROWS * (number - 1), ROWS * number)
            model.learn_many(DATA[0][rows], DATA[1][rows])
    return to_bytes(model)


def run(folder, name):
    (command, *rest), _ = COMMANDS[name]
    return main([command, str(folder), *rest])


def finish(folder, name):
    """Run the command again if that is possible, and check the result."""
    status = run(folder, name)
    assert status in (0, 2)  # 2: the rows are gone already
    lost = COMMANDS[name][1]
    for _ in range(2):
        state = State(folder, new_model)
        assert to_bytes(state.model) == model_without(lost)
        assert {k for k in range(30) if f"row {k}" not in state.ids} == {
            k for n in lost for k in range(ROWS * (n - 1), ROWS * n)
        }
        state.save()
        state.close()
    assert {"journal.repaired", "journal.erased", "repair.trial"}.isdisjoint(os.listdir(folder))


def calls_of_check(folder, monkeypatch):
    """Return how many system calls come before the first one that changes the folder."""
    with monkeypatch.context() as patch:
        disk = FaultyDisk(patch, folder)
        main(["check", str(folder)])
        return len(disk.calls)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EMFILE, errno.EIO], ids=errno.errorcode.get)
@pytest.mark.parametrize("name", COMMANDS)
def test_an_error_at_any_call_changes_nothing_or_can_be_repeated(
    tmp_path, monkeypatch, capsys, name, code
):
    prepare(tmp_path / "state", name)
    k, failed = list(COMMANDS).index(name), True
    if code == errno.EIO:  # a file that cannot be read is damaged, so only writes fail here
        k += calls_of_check(tmp_path / "state", monkeypatch)
    while failed:
        folder = tmp_path / f"copy {k}"
        shutil.copytree(tmp_path / "state", folder)
        before = content(folder)
        capsys.readouterr()
        with monkeypatch.context() as patch:
            disk = FaultyDisk(patch, folder, range(k, k + 1), code)
            status = run(folder, name)
            failed = disk.failed
        text = "".join(capsys.readouterr())
        assert "Traceback" not in text
        if not status or "Repaired" in text:
            State(folder, new_model).close()
        if "nothing was changed" in text:
            assert content(folder) == before
        finish(folder, name)
        k += STEP


@pytest.mark.parametrize("name", COMMANDS)
def test_a_kill_at_any_call_can_be_repeated(tmp_path, monkeypatch, name):
    prepare(tmp_path / "state", name)
    k, killed = list(COMMANDS).index(name), True
    while killed:
        folder = tmp_path / f"copy {k}"
        shutil.copytree(tmp_path / "state", folder)
        child = os.fork()
        if not child:
            FaultyDisk(monkeypatch, folder, range(k, k + 1), None)
            os._exit(run(folder, name))
        killed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == KILLED
        finish(folder, name)
        k += STEP
