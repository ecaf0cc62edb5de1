"""The journal holds the positions in streams, together with what was learned."""

import pytest
from state_folders import add_pending, build_entry, new_model, some_rows

from spanboost.cli.main import main
from spanboost.models.files import read_run
from spanboost.service.limits import StateLimits
from spanboost.service.storage.entry import Entry, decode_entry, decode_ids
from spanboost.service.storage.journal import Journal
from spanboost.service.storage.pending_rows import PendingRows
from spanboost.service.storage.state import State

DATA = some_rows(100)


def commit(state, first, last, **positions):
    entry = build_entry(first, last, DATA) if last > first else Entry([], [], [], None)
    entry = entry._replace(positions=positions)
    state.commit(entry)
    state.learn(entry, 0, len(entry.rows))


@pytest.mark.parametrize("rows", [0, 3])
@pytest.mark.parametrize("positions", [{}, {"a": 1, "b": "2-0", "c": {"date": "2026-01-31"}}])
def test_an_entry_is_read_as_it_was_written(rows, positions):
    entry = build_entry(0, rows, DATA)._replace(positions=positions)
    payload = memoryview(entry.encode())
    assert decode_entry(payload) == entry
    assert decode_ids(payload) == entry.ids
    assert (len(payload) == 0) == (not rows and not positions)


def test_an_entry_without_positions_has_the_bytes_of_earlier_versions():
    assert b"null]\n" in build_entry(0, 2, DATA).encode()


def test_a_start_restores_the_last_positions(tmp_path):
    state = State(tmp_path, new_model)
    commit(state, 0, 10, a=1)
    commit(state, 10, 20, a=2, b="x")
    state.save()
    assert read_run(state.snapshot_path)["positions"] == {"a": 2, "b": "x"}
    commit(state, 0, 0, a=3)  # a batch without labels
    state.close()
    again = State(tmp_path, new_model)
    assert again.positions == {"a": 3, "b": "x"}
    assert again.progress.rows == 20
    again.close()


def test_batches_without_labels_do_not_make_the_journal_grow_forever(tmp_path):
    state = State(tmp_path, new_model, StateLimits(snapshot_rows=5))
    for k in range(5):
        assert not state.snapshot_due
        commit(state, 0, 0, a=k)
    assert state.snapshot_due
    state.close()


def positions_after(tmp_path, *words):
    """Return the positions of a folder after a command, and the ids in its journal."""
    state = State(tmp_path, new_model)
    commit(state, 0, 10, a=1)
    commit(state, 10, 20, a=2)
    state.close()
    assert main([words[0], str(tmp_path), *words[1:], "--yes"]) == 0
    again = State(tmp_path, new_model)
    positions = again.positions
    again.close()
    ids = [id for r in Journal(tmp_path / "journal").read() for id in decode_ids(r.payload)]
    return positions, ids


def test_erased_and_quarantined_rows_are_not_read_again(tmp_path, capsys):
    ids = [f"row {k}" for k in range(20)]
    found = positions_after(tmp_path / "erase", "erase", *ids[10:])
    assert found == ({"a": 2}, ids[:10])
    found = positions_after(tmp_path / "repair", "repair", "--quarantine", "2")
    assert found == ({"a": 2}, ids[:10])
    capsys.readouterr()


def test_pending_rows_are_synced_before_the_position_after_them(tmp_path, monkeypatch):
    state, order = State(tmp_path, new_model), []
    sync, append = PendingRows.sync, Journal.append
    monkeypatch.setattr(PendingRows, "sync", lambda self: (order.append("rows"), sync(self)))
    monkeypatch.setattr(
        Journal, "append", lambda *words: (order.append("position"), append(*words))[1]
    )
    add_pending(state.pending, {"row": {"x": 1.0}}, 1)
    commit(state, 0, 0, a=1)
    assert order == ["rows", "position"]
    commit(state, 0, 5)  # a request, not a stream
    assert order == ["rows", "position", "position"]
    state.close()


def test_rows_whose_position_is_not_in_the_journal_do_not_wait(tmp_path):
    """They are read again, and a label that came before them must not find them."""
    state = State(tmp_path, new_model)
    add_pending(state.pending, {"request": {"x": 1.0}})
    add_pending(state.pending, {"first": {"x": 1.0}}, state.journal.last + 1)
    commit(state, 0, 0, a=1)
    add_pending(state.pending, {"second": {"x": 1.0}}, state.journal.last + 1)
    state.close()
    again = State(tmp_path, new_model)
    assert again.pending.get("request") == again.pending.get("first") == {"x": 1.0}
    assert again.pending.get("second") is None
    add_pending(again.pending, {"second": {"x": 1.0}}, again.journal.last + 1)
    commit(again, 0, 0, a=2)
    again.close()
    last = State(tmp_path, new_model)
    assert last.pending.get("second") == {"x": 1.0}
    assert len(last.pending) == 3
    last.close()


def test_moved_rows_are_synced_before_their_old_file_is_deleted(tmp_path, monkeypatch):
    pending = PendingRows(tmp_path, StateLimits(pending_rows=16))
    add_pending(pending, {"old": {"x": 1.0}})
    calls = []
    monkeypatch.setattr("spanboost.service.storage.record_files._sync", calls.append)
    for k in range(200):
        add_pending(pending, {f"{k}": {"x": 1.0}})
        pending.remove([f"{k}"])
        if calls:
            break
    assert calls
    assert pending.get("old") == {"x": 1.0}
    pending.close()
