"""Reading a journal that is being written: the same records, and no records of another journal."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanboost.service.storage import journal_tail
from spanboost.service.storage.journal import Journal
from spanboost.service.storage.journal_tail import (
    Cursor,
    DivergedError,
    JournalTail,
    decode_records,
    encode_records,
)
from spanboost.service.storage.record_files import StateError


def open_journal(folder, **options):
    journal = Journal(folder, **options)
    list(journal.read())
    return journal


def write_journal(folder, payloads, **options):
    journal = open_journal(folder, **options)
    for payload in payloads:
        journal.append(payload, 7.5)
    journal.close()
    return journal


def read_all(tail, cursor=None):
    """Return all records after a cursor, shipment by shipment."""
    records = []
    while more := tail.read(cursor).records:
        records += more
        cursor = more[-1].cursor()
    return records


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(
        st.one_of(st.binary(max_size=40), st.sampled_from(["rotate", "read", "restart"])),
        max_size=40,
    ),
    shipment=st.sampled_from([1, 50, 10_000]),
    segment=st.sampled_from([1, 100, 10_000]),
)
def test_a_tail_reads_what_was_appended(tmp_path_factory, steps, shipment, segment):
    folder = tmp_path_factory.mktemp("journal")
    journal = open_journal(folder, segment_bytes=segment)
    written, read, cursor = [], [], None
    tail = JournalTail(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal_tail, "SHIPMENT_BYTES", shipment)
        patch.setattr(journal_tail, "BLOCK_BYTES", 16)
        for step in [*steps, "read"]:
            if step == "rotate":
                journal.rotate()
            elif step == "restart":
                journal.close()
                journal = open_journal(folder, segment_bytes=segment)
            elif step == "read":
                read += read_all(tail, cursor)
                cursor = read[-1].cursor() if read else None
            else:
                journal.append(step, float(len(written)))
                written.append(step)
        again = read_all(JournalTail(folder))
    journal.close()
    assert [(one.number, one.payload, one.time) for one in read] == [
        (k + 1, payload, float(k)) for k, payload in enumerate(written)
    ]
    assert again == read
    assert decode_records(encode_records(read)) == read


def test_only_records_up_to_the_last_one_are_read(tmp_path):
    write_journal(tmp_path, [b"a", b"b", b"c"])
    tail = JournalTail(tmp_path)
    assert [one.payload for one in tail.read(None, 2).records] == [b"a", b"b"]
    assert tail.read(None, 2).last == 2
    assert tail.read(None).last == 3


def test_an_incomplete_record_is_not_read(tmp_path):
    journal = write_journal(tmp_path, [b"a", b"b" * 100])
    (path,) = tmp_path.glob("*.log")
    path.write_bytes(path.read_bytes()[:-1])
    tail = JournalTail(tmp_path)
    assert [one.payload for one in tail.read(None).records] == [b"a"]
    with pytest.raises(StateError, match="record 2 cannot be read"):
        tail.read(tail.read(None).records[-1].cursor(), journal.last)


def test_a_damaged_shipment_is_noticed(tmp_path):
    write_journal(tmp_path, [b"a", b"b"])
    data = encode_records(JournalTail(tmp_path).read(None).records)
    with pytest.raises(ValueError, match="damaged"):
        decode_records(data[:-1])
    with pytest.raises(ValueError, match="damaged"):
        decode_records(data[:-1] + b"x")


def last_cursor(folder):
    return read_all(JournalTail(folder))[-1].cursor()


def test_a_replaced_journal_is_noticed(tmp_path):
    write_journal(tmp_path / "old", [b"a", b"b"])
    cursor = last_cursor(tmp_path / "old")
    write_journal(tmp_path / "new", [b"a", b"b", b"c"], replaces=[cursor.mark])
    with pytest.raises(DivergedError, match="the journal was replaced after record 2"):
        JournalTail(tmp_path / "new").read(cursor)


def test_a_shortened_journal_is_noticed(tmp_path):
    write_journal(tmp_path, [b"a", b"b"])
    cursor = last_cursor(tmp_path)
    (path,) = tmp_path.glob("*.log")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DivergedError, match="ends before record 2"):
        JournalTail(tmp_path).read(cursor)
    write_journal(tmp_path, [b"x", b"y"])  # continues after the interrupted write
    with pytest.raises(DivergedError, match="record 2 is not the one that the copy has"):
        JournalTail(tmp_path).read(cursor)


def test_deleted_records_are_noticed(tmp_path):
    journal = open_journal(tmp_path)
    journal.append(b"a")
    old = JournalTail(tmp_path).read(None).records[-1].cursor()
    journal.append(b"b")
    journal.rotate(needed=3)
    journal.append(b"c")
    journal.rotate(needed=3)
    journal.close()
    tail = JournalTail(tmp_path)
    with pytest.raises(DivergedError, match="record 2 is no longer in the journal"):
        tail.read(old)
    at_the_edge = Cursor(2, old.mark, 12345)  # its record is deleted, but not its successor
    assert [one.payload for one in tail.read(at_the_edge).records] == [b"c"]


def test_an_empty_file_out_of_sequence_is_ignored(tmp_path):
    journal = write_journal(tmp_path / "a", [b"a", b"b", b"c"])
    write_journal(tmp_path / "b", [], first=2)
    (stray,) = (tmp_path / "b").glob("*.log")
    stray.rename(journal.folder / stray.name)
    cursor = JournalTail(tmp_path / "a").read(None, 2).records[-1].cursor()
    assert [one.payload for one in JournalTail(tmp_path / "a").read(cursor).records] == [b"c"]


def test_a_folder_without_a_journal_is_an_error(tmp_path):
    with pytest.raises(StateError, match="there is no journal"):
        JournalTail(tmp_path).read(None)
