"""Backups of running and stopped services are consistent, and restore everything."""

import io
import tarfile
import threading
from contextlib import contextmanager

import pytest
from serving import serving_app, wait_until
from state_folders import (
    add_pending,
    build_entry,
    commit_and_learn,
    journal_files,
    new_model,
    some_rows,
    trained_model,
    write_folder,
)

from spanboost.client import Client
from spanboost.models.files import to_bytes
from spanboost.service.http.app import build_app
from spanboost.service.learning.engine import Engine
from spanboost.service.learning.jobs import LearnJob
from spanboost.service.limits import StateLimits
from spanboost.service.request_rows import Example, collect_examples
from spanboost.service.storage import backup as backups
from spanboost.service.storage.state import State

DATA, ROWS = some_rows(600), 5
STEPS, RECORDS = [4, 4, 8], 16  # snapshots after records 4 and 8
TOKENS = dict.fromkeys(("predict", "learn", "admin"), "a token of 16 characters")


@contextmanager
def start_service(folder, limits=None, tokens=None):
    state = State(folder, new_model, limits or StateLimits())
    engine = Engine(state)
    app = build_app(engine, tokens)
    with serving_app(app) as client:
        client.engine, client.handler = engine, app
        yield client


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check_folder(folder, rows, pending):
    """Check that a folder has learned some rows and others wait, and that it can be continued."""
    for _ in range(2):
        state = State(folder, new_model)
        assert to_bytes(state.model) == trained_model(DATA, rows)
        assert {f"row {k}": DATA[0][k] for k in pending} == {
            f"row {k}": state.pending.get(f"row {k}") for k in pending
        }
        assert len(state.pending) == len(pending)
        commit_and_learn(state, rows, rows + 5, DATA)
        rows += 5
        state.save()
        state.close()


def write_stopped_folder(folder):
    write_folder(folder, STEPS, DATA, ROWS)
    state = State(folder, new_model)
    add_pending(state.pending, {f"row {k}": DATA[0][k] for k in range(100, 110)})
    state.pending.remove(["row 103"])
    state.close()


def test_a_backup_of_a_folder_restores_everything(tmp_path, run):
    old, file, new = tmp_path / "old", tmp_path / "backup.tar", tmp_path / "a" / "new"
    write_stopped_folder(old)
    before = content(old)
    status, text = run("backup", old, file)
    assert (status, text) == (0, f"{file}: {file.stat().st_size:,} bytes\n")
    assert file.stat().st_mode & 0o777 == 0o600
    assert content(old) == before
    with tarfile.open(file) as tar:
        names = {member.name for member in tar}
    inside = {path.relative_to(old).as_posix() for path in before if path.name != "lock"}
    assert names == inside | {"backup.json"}
    status, text = run("restore", file, "--dir", new)
    assert status == 0
    assert f"{new} ends at record 16, written 20" in text
    assert [path.name for path in new.parent.iterdir()] == ["new"]
    check_folder(new, 80, [k for k in range(100, 110) if k != 103])


@pytest.mark.parametrize("source", ["folder", "file"])
@pytest.mark.parametrize("record", [4, 7, 8, 13, None])
def test_earlier_records_are_restored_from_backups_and_folders(tmp_path, run, source, record):
    old, file, new = tmp_path / "old", tmp_path / "backup.tar", tmp_path / "new"
    write_stopped_folder(old)
    if source == "file":
        assert run("backup", old, file)[0] == 0
    point = () if record is None else ("--to", record)
    status, text = run("restore", file if source == "file" else old, *point, "--dir", new)
    assert status == 0
    assert f"ends at record {record or RECORDS}, written" in text
    waiting = [k for k in range(100, 110) if k != 103] if record is None else []
    check_folder(new, ROWS * (record or RECORDS), waiting)


def test_a_running_service_is_backed_up_while_it_learns(tmp_path, run):
    file, new, stop = tmp_path / "backup.tar", tmp_path / "new", threading.Event()
    limits = StateLimits(snapshot_rows=10, remembered_ids=10)  # files are deleted all the time
    with start_service(tmp_path / "state", limits) as client:
        engine, learned = client.engine, []

        def learn():
            while not stop.is_set() and len(learned) < 500:
                k = len(learned)
                add_pending(engine.state.pending, {f"row {k}": DATA[0][k]})
                job = LearnJob(
                    collect_examples({0: Example(f"row {k}", None, DATA[1][k], 1.0)}), False
                )
                engine.writer.submit(job)
                assert job.result().learned == 1
                learned.append(k)

        thread = threading.Thread(target=learn)
        thread.start()
        try:
            for _ in range(3):
                least = len(learned)
                assert run("backup", client.base_url, file)[0] == 0
                most = len(learned) + 1
        finally:
            stop.set()
            thread.join()
        assert run("restore", file, "--dir", new)[0] == 0
    state = State(new, new_model)
    rows = state.progress.rows
    assert least <= rows <= most
    assert to_bytes(state.model) == trained_model(DATA, rows)
    assert {*map(state.ids.__contains__, (f"row {k}" for k in range(rows - 5, rows)))} == {True}
    # a row waits, if its label was not learned at the moment of the backup
    assert len(state.pending) <= 1
    assert len(state.pending) == (state.pending.get(f"row {rows}") is not None)
    state.close()


def test_files_that_are_deleted_or_grow_are_sent_as_they_were(tmp_path):
    state = State(tmp_path / "state", new_model, StateLimits(remembered_ids=1))
    commit_and_learn(state, 0, 5, DATA)
    add_pending(state.pending, {"row 7": DATA[0][7]})
    before = content(tmp_path / "state")
    opened = state.open_backup()
    add_pending(state.pending, {"row 8": DATA[0][8]})
    for k in range(1, 5):
        commit_and_learn(state, 5 * k, 5 * k + 5, DATA)
        state.save()
    archive = b"".join(opened.chunks())
    opened.close()
    state.close()
    assert len(archive) == opened.size
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        found = {member.name: tar.extractfile(member).read() for member in tar}
    del found["backup.json"]
    del before[tmp_path / "state" / "lock"]
    assert {tmp_path / "state" / name: data for name, data in found.items()} == before
    assert not all(path.exists() for path in before)


@pytest.mark.parametrize("cut", [0, 100, 600, 5000, -1500])
def test_incomplete_and_other_files_are_refused(tmp_path, run, cut):
    old, file, new = tmp_path / "old", tmp_path / "backup.tar", tmp_path / "new"
    write_folder(old, STEPS, DATA, ROWS)
    assert run("backup", old, file)[0] == 0
    file.write_bytes(file.read_bytes()[:cut])
    before = content(tmp_path)
    status, text = run("restore", file, "--dir", new)
    assert status == 2
    assert text.endswith(
        "backup.tar: not a backup, or an incomplete one; expected a file written by `spanboost "
        "backup`\n"
    )
    assert content(tmp_path) == before


@pytest.mark.parametrize("name", ["../evil", "/evil", "journal/../../evil", "journal/.evil"])
def test_no_file_leaves_the_new_folder(tmp_path, run, name):
    file, inner = tmp_path / "a" / "backup.tar", tmp_path / "a" / "inner"
    inner.mkdir(parents=True)
    with tarfile.open(file, "w") as tar:
        for member, data in (
            ("backup.json", b'{"files": {"%b": 1}}' % name.encode()),
            (name, b"x"),
        ):
            info = tarfile.TarInfo(member)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    before = content(tmp_path)
    assert run("restore", file, "--dir", inner / "new")[0] == 2
    assert content(tmp_path) == before


def test_damage_inside_a_backup_is_noticed(tmp_path, run):
    old, file, new = tmp_path / "old", tmp_path / "backup.tar", tmp_path / "new"
    write_folder(old, STEPS, DATA, ROWS)
    assert run("backup", old, file)[0] == 0
    file.write_bytes(file.read_bytes().replace(b"row 27", b"row xx"))  # in record 6
    status, text = run("restore", file, "--dir", new)
    assert status == 2
    assert f"{file}: record 6 cannot be read" in text
    assert not new.exists()


def test_folders_that_cannot_be_backed_up_are_refused(tmp_path, run):
    old, file = tmp_path / "old", tmp_path / "backup.tar"
    state = State(old, new_model)
    state.commit(build_entry(0, 5, DATA))
    advice = "give the address of the server instead of the folder, such as http://127.0.0.1:8000"
    for words in (["backup", old, file], ["versions", old, "pin", 1], ["challenge", old, "show"]):
        status, text = run(*words)
        assert status == 2
        assert f"{old} is in use by a server; {advice}, or stop it" in text
    state.close()
    status, text = run("backup", old, file, "--certificate", "x")
    assert status == 2
    assert "--certificate is only for the address" in text
    journal_files(old)[0].unlink()
    status, text = run("backup", old, file)
    assert status == 2
    assert text.endswith("; repair the folder before the backup\n")
    assert run("backup", tmp_path, file)[0] == 2
    assert run("backup", old, tmp_path)[0] == 2
    assert not file.exists()


def test_a_backup_needs_the_admin_token(tmp_path, run, monkeypatch):
    file = tmp_path / "backup.tar"
    with start_service(
        tmp_path / "state", tokens=TOKENS | {"admin": "another 16 characters"}
    ) as one:
        for token in (None, TOKENS["learn"]):
            if token is not None:
                monkeypatch.setenv("SPANBOOST_ADMIN_TOKEN", token)
            status, text = run("backup", one.base_url, file)
            assert status == 2
            assert "this path needs the admin token" in text
            assert not file.exists()
        monkeypatch.setenv("SPANBOOST_ADMIN_TOKEN", "another 16 characters")
        assert run("backup", one.base_url, file)[0] == 0
        assert one.post("/backup").status_code == 401
    assert run("restore", file, "--dir", tmp_path / "new")[0] == 0


def test_one_backup_is_sent_at_a_time(tmp_path, monkeypatch):
    sending, proceed = threading.Event(), threading.Event()
    chunks = backups.Backup.chunks

    def slow(self):
        for chunk in chunks(self):
            sending.set()
            assert proceed.wait(60)
            yield chunk

    monkeypatch.setattr(backups.Backup, "chunks", slow)
    with start_service(tmp_path / "state") as client:
        assert client.head("/backup").status_code == 200
        path = tmp_path / "backup.tar"

        def save():
            with Client(str(client.base_url)) as other:
                other.backup(path)

        thread = threading.Thread(target=save)
        thread.start()
        assert sending.wait(60)
        response = client.get("/backup")
        assert response.status_code == 503
        assert response.headers["Retry-After"] == "10"
        assert "another backup is being sent" in response.json()["error"]
        proceed.set()
        thread.join()
        assert path.exists()
        wait_until(lambda: client.get("/backup").status_code == 200)


def test_a_backup_that_is_cut_off_is_not_kept(tmp_path, run, monkeypatch):
    chunks = backups.Backup.chunks

    def failing(self):
        yield next(chunks(self))
        raise OSError(5, "Input/output error")

    file = tmp_path / "backup.tar"
    with start_service(tmp_path / "state") as client:
        with monkeypatch.context() as patch:
            patch.setattr(backups.Backup, "chunks", failing)
            status, text = run("backup", client.base_url, file)
        assert status != 0
        assert "cannot reach the service" in text
        assert not file.exists()
        wait_until(lambda: run("backup", client.base_url, file)[0] == 0)


def test_files_that_cannot_be_opened_are_reported(tmp_path, monkeypatch):
    def fail(self):
        raise OSError(24, "Too many open files")

    with start_service(tmp_path / "state") as client:
        with monkeypatch.context() as patch:
            patch.setattr("spanboost.service.storage.pending_rows.PendingRows.open_files", fail)
            response = client.get("/backup")
            assert response.status_code == 503
            assert "Too many open files" in response.json()["error"]
        assert client.get("/backup").status_code == 200
