"""Missing, emptied and damaged journal files, and errors at the beginning of one, are handled."""

import errno
import os
import struct
from itertools import pairwise

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

from spanboost.models.files import to_bytes
from spanboost.service.limits import StateLimits
from spanboost.service.storage.entry import Entry
from spanboost.service.storage.record_files import StateError, encode_record
from spanboost.service.storage.state import State

DATA = some_rows(600)


def assert_learned(folder, rows):
    """Check that a start restores the model and the ids of the first rows."""
    state = State(folder, new_model)
    assert to_bytes(state.model) == trained_model(DATA, rows)
    assert all(f"row {k}" in state.ids for k in range(rows))
    state.close()


def fail_for_folder(monkeypatch, folder):
    """Let syncs of a folder fail."""
    inode, sync = folder.stat().st_ino, os.fsync

    def fail(file):
        if os.fstat(file).st_ino == inode:
            raise OSError(errno.EIO, "Input/output error")
        sync(file)

    monkeypatch.setattr(os, "fsync", fail)


@pytest.mark.parametrize("keep", [False, True])
def test_an_error_at_the_beginning_of_a_file_does_not_spoil_the_folder(tmp_path, monkeypatch, keep):
    state = State(tmp_path, new_model)
    commit_and_learn(state, 0, 50, DATA)
    with monkeypatch.context() as patch:
        fail_for_folder(patch, tmp_path / "journal")
        if keep:  # the file cannot be deleted either

            def fail(*_, **__):
                raise OSError(errno.EIO, "Input/output error")

            patch.setattr(os, "unlink", fail)
        with pytest.raises(OSError, match="Input/output"):
            state.save()
    assert len(journal_files(tmp_path)) == 1 + keep
    commit_and_learn(state, 50, 100, DATA)
    state.save()
    commit_and_learn(state, 100, 150, DATA)
    state.close()
    assert_learned(tmp_path, 150)
    assert [path.name.lstrip("0") for path in journal_files(tmp_path)] == ["1.v2.log", "3.v2.log"]


def test_an_empty_file_out_of_sequence_is_ignored(tmp_path):
    rows = write_folder(tmp_path, [3], DATA)
    for name in (f"{2:020}.v2.log", f"{3:020}.log"):
        (tmp_path / "journal" / name).touch()
    assert_learned(tmp_path, rows)
    assert len(journal_files(tmp_path)) == 1


def test_files_that_were_to_be_deleted_need_not_be_complete(tmp_path):
    """After a power failure, only some of the deletions of old files may be on the disk."""
    limits = StateLimits(remembered_ids=50)
    state = State(tmp_path, new_model, limits)
    for first in range(0, 200, 25):
        commit_and_learn(state, first, first + 25, DATA)
        if first == 50:
            saved = {path: path.read_bytes() for path in journal_files(tmp_path)}
        state.save()
    state.close()
    kept = journal_files(tmp_path)
    deleted = [path for path in saved if path not in kept]
    assert len(deleted) > 1
    deleted[0].write_bytes(saved[deleted[0]])
    state = State(tmp_path, new_model, limits)
    assert to_bytes(state.model) == trained_model(DATA, 200)
    state.close()
    assert journal_files(tmp_path) == kept


def test_versions_without_headers_refuse_the_names_of_the_files(tmp_path):
    """They would take the last file for an interrupted write, and empty it."""
    write_folder(tmp_path, [1], DATA)
    (path,) = journal_files(tmp_path)
    with pytest.raises(ValueError, match="invalid literal"):
        int(path.stem)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_missing_and_damaged_files_are_refused_and_nothing_is_changed(tmp_path, damage):
    write_folder(tmp_path, [4, 4, 8], DATA, rows=5)
    damage(journal_files(tmp_path))
    before = {path: path.read_bytes() for path in journal_files(tmp_path)}
    with pytest.raises(StateError, match=r"restore the folder from a backup, or see what `spanb"):
        State(tmp_path, new_model)
    assert {path: path.read_bytes() for path in journal_files(tmp_path)} == before


def test_the_only_file_of_a_new_folder_is_missed(tmp_path):
    write_folder(tmp_path, [2], DATA)
    journal_files(tmp_path)[0].unlink()
    with pytest.raises(StateError, match="file that the last snapshot names is missing"):
        State(tmp_path, new_model)


def test_files_of_another_folder_are_refused(tmp_path):
    for name in ("one", "other"):
        write_folder(tmp_path / name, [2, 2], DATA)
    path = journal_files(tmp_path / "one")[-1]
    path.write_bytes(journal_files(tmp_path / "other")[-1].read_bytes())
    with pytest.raises(StateError, match="from another folder"):
        State(tmp_path / "one", new_model)


def test_rows_cannot_contain_a_record(tmp_path):
    """The floats of a row are stored in binary, so a client chooses the bytes of its record."""
    forged = encode_record(7, b"").ljust(24, b"\0")
    floats = struct.unpack("<3d", forged)
    row = dict(zip("abc", floats, strict=True))
    state = State(tmp_path, new_model)
    commit_and_learn(state, 0, 25, DATA)
    state.commit(Entry([None], [row], [1.0], None))
    state.close()
    path = journal_files(tmp_path)[-1]
    assert forged in path.read_bytes()
    path.write_bytes(path.read_bytes()[:-1])  # the write was interrupted
    assert_learned(tmp_path, 25)


def last_record(folder):
    """Return the last journal file, its content, and where its last record begins."""
    (path,) = journal_files(folder)
    whole = path.read_bytes()
    state = State(folder, new_model)
    state.commit(build_entry(25, 50, DATA))
    state.close()
    return path, path.read_bytes(), len(whole)


@pytest.mark.parametrize("sector", [512, 4096])
def test_a_write_that_reached_the_disk_in_part_is_removed(tmp_path, sector):
    """After a power failure, any of the sectors of the last write can be missing."""
    write_folder(tmp_path, [1], DATA)
    path, whole, start = last_record(tmp_path)
    edges = [start, *range(start - start % sector + sector, len(whole), sector), len(whole)]
    for first, last in pairwise(edges):
        missing = whole[:first] + bytes(last - first) + whole[last:]
        for torn in (missing, missing[: last + 10], whole[:first] + bytes(len(whole) - first)):
            path.write_bytes(torn)
            assert_learned(tmp_path, 25)
            assert path.read_bytes() == whole[:start]


def test_a_changed_byte_in_the_last_record_is_not_an_interrupted_write(tmp_path):
    write_folder(tmp_path, [1], DATA)
    path, whole, start = last_record(tmp_path)
    middle = (start + len(whole)) // 2
    for place in (start, middle, len(whole) - 1):
        damaged = bytearray(whole)
        damaged[place] ^= 0x55
        path.write_bytes(damaged)
        with pytest.raises(StateError, match=f"damaged at byte {start}"):
            State(tmp_path, new_model)
        assert path.read_bytes() == damaged


def test_more_bytes_than_one_record_are_not_an_interrupted_write(tmp_path):
    write_folder(tmp_path, [1], DATA)
    path, whole, start = last_record(tmp_path)
    for damaged in (
        whole[: start + 60] + bytes(len(whole)),
        whole[: start + 20] + bytes(len(whole) - start - 20) + whole[start:],
        whole[:start] + b"other bytes",
    ):
        path.write_bytes(damaged)
        with pytest.raises(StateError, match=f"damaged at byte {start}"):
            State(tmp_path, new_model)
        assert path.read_bytes() == damaged
