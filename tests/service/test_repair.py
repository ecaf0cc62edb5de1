"""`spanboost check` and `spanboost repair` find what is damaged and keep what can be read."""

import errno
import re
from datetime import datetime

import orjson
import pytest
from journal_damage import DAMAGES
from state_folders import (
    build_entry,
    commit_and_learn,
    journal_files,
    new_model,
    some_rows,
    trained_model,
    write_folder,
)

from spanboost.models.files import load, to_bytes
from spanboost.service.limits import StateLimits
from spanboost.service.storage import repair
from spanboost.service.storage.folder_check import check_folder
from spanboost.service.storage.journal_rewrite import write_journal
from spanboost.service.storage.record_files import StateError
from spanboost.service.storage.state import State
from spanboost.service.storage.versions import pin_version
from spanboost.service.storage.wording import name_records

DATA, ROWS = some_rows(300), 5
STEPS, RECORDS = [4, 4, 8], 16  # snapshots after records 4 and 8
LOST = {
    "delete_first": range(1, 5),
    "delete_middle": range(5, 9),
    "delete_last": range(9, 17),
    "delete_all": range(1, 17),
    "empty_first": range(1, 5),
    "empty_middle": range(5, 9),
    "empty_last": range(9, 17),
    "zero_header": [],
    "swap": [],
}  # the others lose the last records of a file


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def known_records(state):
    """Return the numbers of the records whose ids an open folder knows."""
    known = {k // ROWS + 1 for k in range(RECORDS * ROWS) if f"row {k}" in state.ids}
    assert all(f"row {k}" in state.ids for n in known for k in range(ROWS * (n - 1), ROWS * n))
    return known


def printed_losses(text):
    """Return the numbers of lost records that `repair` prints."""
    ranges = re.findall(r"Lost: the (?:labels|ids) in records? ([^.]*)\.", text)
    numbers = [[*map(int, re.findall(r"\d+", part))] for one in ranges for part in one.split(",")]
    (rest,) = re.findall(r"Lost: all records after (\d+), if", text)
    return {n for part in numbers for n in range(part[0], part[-1] + 1)} | {
        *range(int(rest) + 1, RECORDS + 1)
    }


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_repair_keeps_all_records_that_can_be_read(tmp_path, damage, run):
    folder = tmp_path / "state"
    write_folder(folder, STEPS, DATA, ROWS)
    assert run("check", folder)[0] == 0
    assert run("repair", folder) == (0, f"{folder}: nothing to repair\n")
    damage(journal_files(folder))
    before = content(folder)
    status, text = run("check", folder)
    assert status == 1
    assert "The service cannot start." in text
    status, text = run("repair", folder)
    assert status == 1
    assert "Nothing was changed." in text
    assert content(folder) == before
    status, text = run("repair", folder, "--yes")
    assert status == 0
    check_repaired(folder, damage, printed_losses(text))
    (old,) = folder.glob("journal.before-repair-*")
    journal = {path.name: data for path, data in before.items() if path.parent.name == "journal"}
    assert {path.name: path.read_bytes() for path in old.iterdir()} == journal
    assert run("check", folder)[0] == 0


def check_repaired(folder, damage, lost):
    """Check that a repaired folder has learned all but the lost records, and can be continued."""
    model = load(max((folder / "snapshots").iterdir()))  # after record 8
    state = State(folder, new_model)
    known = known_records(state)
    assert lost == {*range(1, RECORDS + 1)} - known
    if damage.__name__ in LOST:
        assert lost == {*LOST[damage.__name__]}
    else:
        assert 1 <= len(lost) <= 6
    for number in sorted(known - {*range(9)}):
        rows = slice(ROWS * (number - 1), ROWS * number)
        model.learn_many(DATA[0][rows], DATA[1][rows])
    for first in range(100, 200, 25):
        commit_and_learn(state, first, first + 25, DATA)
        state.save()
        state.close()
        state = State(folder, new_model)
    state.close()
    model.learn_many(DATA[0][100:200], DATA[1][100:200])
    assert to_bytes(state.model) == to_bytes(model)


def test_an_interrupted_repair_is_finished_by_the_next_start(tmp_path, monkeypatch, run):
    write_folder(tmp_path, STEPS, DATA, ROWS)
    journal_files(tmp_path)[1].unlink()
    rename = repair.Path.rename
    calls = []

    def fail(path, target):
        calls.append(path.name)
        if len(calls) in (1, 3):
            raise OSError(errno.EIO, "Input/output error")
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(repair.Path, "rename", fail)
        assert run("repair", tmp_path, "--yes")[0] == 1
        with pytest.raises(StateError):
            State(tmp_path, new_model)
        assert run("repair", tmp_path, "--yes")[0] == 1
    assert calls == ["journal", "journal", "journal.repaired"]
    state = State(tmp_path, new_model)
    assert known_records(state) == {*range(1, 5), *range(9, 17)}
    state.close()


def test_an_incomplete_write_is_left_to_the_next_start(tmp_path, run):
    write_folder(tmp_path, STEPS, DATA, ROWS)
    path = journal_files(tmp_path)[-1]
    path.write_bytes(path.read_bytes()[:-1])
    before = content(tmp_path)
    status, text = run("check", tmp_path)
    assert status == 0
    assert re.search(r"interrupted write of \d+ bytes", text)
    assert content(tmp_path) == before


def test_a_record_that_cannot_be_learned_is_put_into_quarantine(tmp_path, run, monkeypatch):
    write_folder(tmp_path, STEPS, DATA, ROWS)
    learn = State.learn

    def learn_or_fail(state, entry, first, last):
        if "row 50" in entry.ids:
            raise MemoryError
        learn(state, entry, first, last)

    monkeypatch.setattr(State, "learn", learn_or_fail)
    with pytest.raises(StateError, match=r"not enough memory to learn record 11; .* 11`"):
        State(tmp_path, new_model)
    before = content(tmp_path)
    status, text = run("repair", tmp_path, "--quarantine", 11)
    assert status == 1
    assert "Quarantine: record 11 (" in text
    assert str(datetime.now().year) in text
    assert content(tmp_path) == before
    assert run("repair", tmp_path, "--quarantine", 11, "--yes")[0] == 0
    state = State(tmp_path, new_model)
    assert known_records(state) == {*range(1, 11), *range(12, 17)}
    state.close()
    model, _ = new_model()
    kept = [k for k in range(80) if not 50 <= k < 55]
    model.learn_many([DATA[0][k] for k in kept], [DATA[1][k] for k in kept])
    assert to_bytes(state.model) == to_bytes(model)
    lines = (tmp_path / "quarantine" / f"{11:020}.jsonl").read_bytes().splitlines()
    assert list(map(orjson.loads, lines)) == [
        {"id": f"row {k}", "label": DATA[1][k], "weight": 1.0, "row": DATA[0][k]}
        for k in range(50, 55)
    ]


def test_snapshots_that_learned_a_record_in_quarantine_are_set_aside(tmp_path, run):
    write_folder(tmp_path, STEPS, DATA, ROWS)
    status, text = run("repair", tmp_path, "--quarantine", 6, "--yes")
    assert status == 0
    assert "The snapshot at record 8 has learned it" in text
    assert (tmp_path / "quarantine" / f"{8:020}.sb").exists()
    state = State(tmp_path, new_model)
    assert known_records(state) == {*range(1, 6), *range(7, 17)}
    state.close()
    model, _ = new_model()
    kept = [k for k in range(80) if not 25 <= k < 30]
    model.learn_many([DATA[0][k] for k in kept], [DATA[1][k] for k in kept])
    assert to_bytes(state.model) == to_bytes(model)


def test_records_that_cannot_be_put_into_quarantine_are_refused(tmp_path, run):
    write_folder(tmp_path, STEPS, DATA, ROWS)
    before = content(tmp_path)
    status, text = run("repair", tmp_path, "--quarantine", 4, "--yes")
    assert status == 2
    assert "the model of every snapshot has learned it" in text
    status, text = run("repair", tmp_path, "--quarantine", 17, "--yes")
    assert status == 2
    assert "no readable record 17" in text
    assert content(tmp_path) == before


def test_folders_in_use_and_other_folders_are_refused(tmp_path, run):
    state = State(tmp_path / "state", new_model)
    state.commit(build_entry(0, 5, DATA))
    for command in ("check", "repair"):
        status, text = run(command, tmp_path / "state")
        assert status == 2
        assert "in use by another server" in text
        status, text = run(command, tmp_path)
        assert status == 2
        assert "is not a state folder" in text
    state.close()
    (snapshot,) = (tmp_path / "state" / "snapshots").iterdir()
    snapshot.write_bytes(b"not a model")
    status, text = run("check", tmp_path / "state")
    assert status == 1
    assert "there is no snapshot that can be read" in text
    status, text = run("repair", tmp_path / "state", "--yes")
    assert status == 2
    assert "restore the folder from a backup" in text


def test_check_names_the_largest_records_that_are_not_learned_yet(tmp_path, run):
    state = State(tmp_path, new_model)
    for first, last in ((0, 3), (3, 50), (50, 55)):
        state.commit(build_entry(first, last, DATA))
    state.close()
    _, text = run("check", tmp_path)
    assert re.findall(r"record (\d+): \d+ bytes, not in a snapshot", text) == ["2", "3", "1"]
    state = State(tmp_path, new_model)
    assert to_bytes(state.model) == trained_model(DATA, 55)
    state.close()


def change_records(folder, change):
    """Write the journal again with other payloads; the snapshots stay as they are."""
    report = check_folder(folder)
    write_journal(report, folder / "new", report.last, change)
    for path in journal_files(folder):
        path.unlink()
    for path in (folder / "new").iterdir():
        path.rename(folder / "journal" / path.name)
    (folder / "new").rmdir()


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b'{"control":"dance"}\n', "record 12 is a control ('dance') that this version does not"),
        (b"[no JSON", "JSONDecodeError"),
    ],
)
def test_a_repair_after_which_the_service_could_not_start_changes_nothing(
    tmp_path, run, payload, why
):
    write_folder(tmp_path, STEPS, DATA, ROWS)
    change_records(tmp_path, lambda number, old: payload if number == 12 else old)
    path = journal_files(tmp_path)[0]
    path.write_bytes(path.read_bytes().replace(b"row 27", b"row xx"))  # in record 6
    before = content(tmp_path)
    status, text = run("repair", tmp_path, "--yes")
    assert status == 2
    assert "could not start with the repaired journal, so nothing was changed" in text
    assert why in text
    assert "Repaired" not in text
    assert str(tmp_path / "repair.trial") not in text
    assert content(tmp_path) == before
    assert {path.name for path in tmp_path.iterdir()} == {"journal", "lock", "pending", "snapshots"}


def test_several_records_are_put_into_quarantine(tmp_path, run, monkeypatch):
    write_folder(tmp_path, STEPS, DATA, ROWS)
    learn = State.learn

    def learn_or_fail(state, entry, first, last):
        if {"row 50", "row 60"} & {*entry.ids}:
            raise MemoryError
        return learn(state, entry, first, last)

    monkeypatch.setattr(State, "learn", learn_or_fail)
    before = content(tmp_path)
    status, text = run("repair", tmp_path, "--quarantine", 11, "--yes")
    assert status == 2
    assert "not enough memory to learn record 13" in text
    assert content(tmp_path) == before
    assert not (tmp_path / "quarantine").exists()
    assert run("repair", tmp_path, "--quarantine", 11, "--quarantine", 13, "--yes")[0] == 0
    state = State(tmp_path, new_model)
    assert known_records(state) == {*range(1, 17)} - {11, 13}
    state.close()
    assert len([*(tmp_path / "quarantine").iterdir()]) == 2


def test_a_missing_journal_folder_is_repaired(tmp_path, run):
    write_folder(tmp_path, STEPS, DATA, ROWS)
    for path in journal_files(tmp_path):
        path.unlink()
    (tmp_path / "journal").rmdir()
    assert run("check", tmp_path)[0] == 1
    assert run("repair", tmp_path, "--yes")[0] == 0
    state = State(tmp_path, new_model)
    assert to_bytes(state.model) == trained_model(DATA, 40)
    state.close()


def test_swapped_files_are_named(tmp_path, run):
    write_folder(tmp_path, STEPS, DATA, ROWS)
    first, second, _ = journal_files(tmp_path)
    first.rename(tmp_path / "aside")
    second.rename(first)
    (tmp_path / "aside").rename(second)
    status, text = run("check", tmp_path)
    assert status == 1
    assert f"{first.name} begins with record 5, {second.name} begins with record 1;" in text
    assert "missing" not in text


def test_check_describes_single_things_and_snapshots_in_plain_words(tmp_path, run):
    state = State(tmp_path, new_model)
    commit_and_learn(state, 0, 5, DATA)
    state.save()
    state.close()
    assert "journal: 1 record, the last is 1\n" in run("check", tmp_path)[1]
    newest = max((tmp_path / "snapshots").iterdir())
    newest.write_bytes(bytes(newest.stat().st_size))
    status, text = run("check", tmp_path)
    assert status == 1
    assert f"snapshot at record 1: {newest}: not a model file, or a damaged one\n" in text
    assert f"can start from the snapshot at record 0. It does not use {newest.name}, which" in text
    (oldest, _) = sorted((tmp_path / "snapshots").iterdir())
    oldest.write_bytes(b"")
    status, text = run("check", tmp_path)
    assert status == 1
    assert "there is no snapshot that can be read; restore the folder from a backup\n" in text


def test_records_between_an_old_snapshot_and_the_journal_are_lost(tmp_path, run):
    state = State(tmp_path, new_model, StateLimits(remembered_ids=5))
    for k in range(8):
        commit_and_learn(state, ROWS * k, ROWS * (k + 1), DATA)
        if k == 1:
            state.save()
            pin_version(state.snapshots, 2)
        elif k in (3, 5):
            state.save()
    state.close()
    for path in (tmp_path / "snapshots").glob("*.sb"):
        if int(path.stem) > 2:
            path.write_bytes(b"")
    first = int(journal_files(tmp_path)[0].name.partition(".")[0])
    assert first > 3
    _, text = run("repair", tmp_path, "--yes")
    assert f"Lost: the labels in {name_records(range(3, first))}." in text
    state = State(tmp_path, new_model)
    model, _ = new_model()
    kept = [*range(10), *range(ROWS * (first - 1), 40)]
    model.learn_many([DATA[0][k] for k in kept], [DATA[1][k] for k in kept])
    assert to_bytes(state.model) == to_bytes(model)
    state.close()
