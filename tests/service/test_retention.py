"""Snapshots and the journal are kept for the time and the rows that the options name."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from state_folders import commit_and_learn, new_model, some_rows, trained_model

from spanboost.cli.main import main
from spanboost.errors import ModelFileError
from spanboost.models.files import read_run, to_bytes
from spanboost.service.limits import DAY, StateLimits
from spanboost.service.storage.retention import SnapshotAge, oldest_kept
from spanboost.service.storage.state import State

DATA = some_rows(300)
NOW = 1000.0


@given(
    st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)), min_size=1, max_size=9),
    st.integers(0, 200),
    st.integers(0, 200),
)
def test_the_kept_snapshots_reach_back_far_enough(steps, seconds, rows):
    ages, when, learned = [], NOW - sum(step for step, _ in steps), 0
    for record, (pause, more) in enumerate(steps):
        when, learned = when + pause, learned + more
        ages.append(SnapshotAge(record, when, learned))
    limits = StateLimits(keep_seconds=float(seconds), keep_rows=rows)
    oldest = oldest_kept(ages, limits, NOW)

    def reaches(first):
        """Whether the rule allows to delete all snapshots before this one."""
        one = ages[first]
        return first == 0 or (
            first <= len(ages) - 2 and one.time <= NOW - seconds and one.rows <= learned - rows
        )

    assert reaches(oldest)
    assert not any(map(reaches, range(oldest + 1, len(ages))))


def write_snapshots(folder, limits, blocks=8):
    """Write a folder with a snapshot after every record of 5 rows."""
    state = State(folder, new_model, limits)
    for k in range(blocks):
        commit_and_learn(state, 5 * k, 5 * k + 5, DATA)
        state.save()
    return state


def snapshot_records(folder):
    return sorted(int(path.stem) for path in (folder / "snapshots").glob("*.sb"))


@pytest.mark.parametrize(
    ("limits", "first"),
    [
        (StateLimits(remembered_ids=1), 7),
        (StateLimits(remembered_ids=1, keep_rows=5), 7),
        (StateLimits(remembered_ids=1, keep_rows=13), 5),
        (StateLimits(remembered_ids=1, keep_rows=1000), 0),
        (StateLimits(remembered_ids=1, keep_seconds=DAY), 0),
    ],
)
def test_every_record_that_is_kept_can_be_restored(tmp_path, limits, first, capsys):
    old = tmp_path / "old"
    write_snapshots(old, limits).close()
    assert snapshot_records(old) == [*range(first, 9)]
    for record in range(9):
        new = tmp_path / str(record)
        status = main(["restore", str(old), "--to", str(record), "--dir", str(new)])
        assert status == (0 if record >= first else 2)
        if status == 0:
            state = State(new, new_model)
            assert state.progress.rows == 5 * record
            assert not record or to_bytes(state.model) == trained_model(DATA, 5 * record)
            state.close()


@pytest.mark.parametrize("record", [3, 38])
def test_a_journal_replaces_that_of_many_snapshots(tmp_path, record):
    old, new = tmp_path / "old", tmp_path / "new"
    write_snapshots(old, StateLimits(keep_rows=1000), blocks=40).close()
    assert main(["restore", str(old), "--to", str(record), "--dir", str(new)]) == 0
    state = State(new, new_model)
    assert to_bytes(state.model) == trained_model(DATA, 5 * record)
    state.close()


def test_old_snapshots_and_journal_files_are_deleted_when_their_time_is_over(tmp_path):
    state = write_snapshots(tmp_path, StateLimits(remembered_ids=1, keep_seconds=DAY))
    for record in range(6):
        path = tmp_path / "snapshots" / f"{record:020}.sb"
        os.utime(path, (path.stat().st_mtime - 2 * DAY,) * 2)
    commit_and_learn(state, 40, 45, DATA)
    state.save()
    assert snapshot_records(tmp_path) == [5, 6, 7, 8, 9]
    assert state.journal.first_numbers() == [6, 7, 8, 9, 10]
    state.close()


def test_a_damaged_snapshot_is_not_what_is_kept_to_restore_from(tmp_path):
    state = write_snapshots(tmp_path, StateLimits(remembered_ids=1, keep_rows=13), blocks=4)
    damaged = tmp_path / "snapshots" / f"{2:020}.sb"
    damaged.write_bytes(b"not a model")
    with pytest.raises(ModelFileError, match="not a checkpoint"):
        read_run(damaged)
    commit_and_learn(state, 20, 25, DATA)
    state.save()
    assert snapshot_records(tmp_path) == [1, 2, 3, 4, 5]
    state.close()
