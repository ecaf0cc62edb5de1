"""Pending rows wait until their labels arrive or their time is over, and no longer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state_folders import add_pending

from spanboost.rows.column_rows import ColumnRows
from spanboost.service.limits import StateLimits
from spanboost.service.storage.layout_cache import LayoutCache
from spanboost.service.storage.pending_rows import MAX_FILES, PendingFullError, PendingRows
from spanboost.service.storage.row_codec import Layout


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def open_rows(folder, rows=100, seconds=100.0, size=1 << 20, clock=None, learned=()):
    limits = StateLimits(pending_rows=rows, pending_seconds=seconds, pending_bytes=size)
    pending = PendingRows(folder, limits, clock or Clock())
    pending.open(lambda id: id in learned)
    return pending


def test_new_rows_are_refused_while_too_many_wait(tmp_path):
    clock = Clock()
    pending = open_rows(tmp_path, 80, clock=clock)
    for k in range(80):
        add_pending(pending, {str(k): {"k": k}})
        clock.now += 0.1
    for rows in ({"new": {"k": 1}}, {f"new {k}": {} for k in range(1000)}):
        with pytest.raises(PendingFullError, match="--pending"):
            add_pending(pending, rows)
    assert all(pending.get(str(k)) == {"k": k} for k in range(80))
    pending.remove(["5"])
    add_pending(pending, {"new": {"k": 1}})
    with pytest.raises(PendingFullError):
        add_pending(pending, {"another": {"k": 1}})
    assert pending.dropped == 0


def test_rows_expire(tmp_path):
    clock = Clock()
    pending = open_rows(tmp_path, 10, 100.0, clock=clock)
    add_pending(pending, {str(k): {"k": k} for k in range(10)})
    clock.now += 99
    assert pending.get("1") == {"k": 1}
    clock.now += 2
    assert pending.get("1") is None
    add_pending(pending, {f"new {k}": {"k": k} for k in range(10)})
    assert (len(pending), pending.dropped) == (10, 10)


def test_rows_are_limited_in_bytes(tmp_path):
    pending = open_rows(tmp_path, 1000, size=100_000)
    text = "x" * 9000
    for k in range(10):
        add_pending(pending, {str(k): {"text": text, "k": k}})
    with pytest.raises(PendingFullError, match="--pending-bytes"):
        add_pending(pending, {"a": {"text": text}, "b": {"text": text}})
    assert 9000 < pending.row_bytes("0") < 9200
    assert pending.waiting_bytes <= 100_000
    pending.remove(["0"])
    add_pending(pending, {"again": {"text": text}})
    assert (pending.row_bytes("0"), pending.row_bytes("unknown")) == (0, 0)


def test_missing_labels_do_not_keep_many_files_and_no_row_is_lost(tmp_path):
    pending = open_rows(tmp_path, 800)
    for k in range(200):
        ids = [f"{k} {j}" for j in range(100)]
        add_pending(pending, {id: {"k": float(k), "of": id} for id in ids})
        pending.remove(ids[1:])
        assert len(list(tmp_path.iterdir())) <= MAX_FILES
    for rows in (pending, open_rows(tmp_path, 800)):
        assert len(rows) == 200
        assert all(rows.get(f"{k} 0") == {"k": float(k), "of": f"{k} 0"} for k in range(200))
    assert pending.dropped == 0


def test_files_stay_small_while_rows_come_and_go(tmp_path):
    size = 200_000
    pending = open_rows(tmp_path, 10_000, size=size)
    for k in range(1000):
        add_pending(pending, {f"{k}": {"text": "x" * 5000}})
        if k >= 10:
            pending.remove([f"{k - 10}"])
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 2.5 * size


def test_a_row_that_waits_is_not_replaced(tmp_path):
    pending = open_rows(tmp_path)
    add_pending(pending, {"a": {"k": 1}})
    add_pending(pending, {"a": {"k": 2}, "b": {"k": 3}})
    assert (pending.get("a"), pending.get("b"), len(pending)) == ({"k": 1}, {"k": 3}, 2)


def test_a_restart_restores_only_rows_without_labels(tmp_path):
    pending = open_rows(tmp_path)
    for k in range(40):
        add_pending(pending, {str(k): {"k": float(k), "name": "ü"}})
    pending.remove(["3", "unknown", "39"])
    again = open_rows(tmp_path, learned={"7"})
    assert len(again) == 37
    assert again.get("8") == {"k": 8.0, "name": "ü"}
    assert [again.get(id) for id in ("3", "7", "39")] == [None] * 3
    add_pending(again, {"more": {"k": 1}})
    assert again.get("more") == {"k": 1}


def test_pending_rows_survive_an_interrupted_write(tmp_path):
    pending = open_rows(tmp_path)
    add_pending(pending, {"a": {"k": 1}})
    add_pending(pending, {"b": {"k": 2}})
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    again = open_rows(tmp_path)
    assert again.get("a") == {"k": 1}
    assert again.get("b") is None


def test_names_that_change_all_the_time_are_not_held_in_memory(tmp_path):
    pending = open_rows(tmp_path, 1000, size=1 << 24)
    for k in range(100):
        add_pending(pending, {str(k): {f"{'name' * 100} {k} {j}": float(j) for j in range(100)}})
    for k in (0, 99, 50, 0):
        assert pending.get(str(k)) == {f"{'name' * 100} {k} {j}": float(j) for j in range(100)}


def test_a_layout_is_forgotten_when_others_need_its_space():
    cache = LayoutCache(100)  # bytes: two of these layouts
    one, two, three = (Layout([letter * 35], []) for letter in "abc")
    first, second = cache.add(one), cache.add(two)
    assert (cache.get(second), cache.get(first)) == (two, one)
    third = cache.add(three)  # in the place of the one that was not used for the longest time
    assert [cache.get(number) for number in (first, second, third)] == [one, None, three]
    cache.restore(second, two)
    assert [cache.get(number) for number in (first, second, third)] == [None, two, three]
    assert cache.add(two) == second
    assert len({first, second, third, cache.add(one)}) == 4


STEPS = st.one_of(
    st.tuples(st.just("add"), st.lists(st.integers(0, 30), min_size=1, max_size=8, unique=True)),
    st.tuples(st.just("remove"), st.lists(st.integers(0, 30), max_size=6)),
    st.tuples(st.just("wait"), st.integers(1, 40)),
    st.tuples(st.just("restart"), st.just(0)),
)


@given(st.lists(STEPS, max_size=60))
@settings(max_examples=60, deadline=None)
def test_pending_rows_are_a_dictionary_with_times(tmp_path_factory, steps):
    folder, clock = tmp_path_factory.mktemp("pending"), Clock()
    pending = open_rows(folder, 20, 100.0, clock=clock)
    expected = dict[str, tuple[float, dict]]()
    for count, (action, argument) in enumerate(steps):
        expected = {id: it for id, it in expected.items() if clock.now - it[0] <= 100}
        if action == "add":
            rows = {str(k): {"k": float(k), f"other {k % 3}": count} for k in argument}
            new = {id: (clock.now, row) for id, row in rows.items() if id not in expected}
            if len(expected) + len(new) > 20:
                with pytest.raises(PendingFullError):
                    add_pending(pending, rows)
            else:
                add_pending(pending, rows)
                expected |= new
        elif action == "remove":
            pending.remove(map(str, argument))
            expected = {id: it for id, it in expected.items() if int(id) not in argument}
        elif action == "wait":
            clock.now += argument
        else:
            pending.close()
            pending = open_rows(folder, 20, 100.0, clock=clock)
        alive = {id: row for id, (time, row) in expected.items() if clock.now - time <= 100}
        assert {str(k): pending.get(str(k)) for k in range(31)} == {
            str(k): alive.get(str(k)) for k in range(31)
        }
        assert len(list(folder.iterdir())) <= MAX_FILES


def test_many_rows_are_read_as_one_by_one(tmp_path):
    pending = PendingRows(tmp_path)
    uniform = {f"a{k}": {"x": k / 3, "name": "ü" * k} for k in range(20)}
    mixed = {f"b{k}": {"x": k / 3} if k % 2 else {"y": "text", "z": None} for k in range(20)}
    for rows in (uniform, mixed):
        add_pending(pending, rows)
    pending.remove(["a4"])
    for ids in (["a7"], ["a9", "a2"], ["a3", "b1", "b2"], [*uniform], [*reversed(uniform), *mixed]):
        places, rows = pending.get_rows([*ids, "unknown"])
        assert {id: rows[k] for id, k in places.items()} == {
            id: pending.get(id) for id in ids if id != "a4"
        }
    places, rows = pending.get_rows(uniform)
    assert isinstance(rows, ColumnRows)
    assert [*places.values()] == [*range(19)]
    assert pending.get_rows(["unknown"]) == ({}, [])
    pending.close()
