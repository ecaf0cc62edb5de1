"""Single rows that reuse the block of an earlier one are read as blocks are."""

import datetime
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanboost import AutoBoost, LinearSGD, Refitted, SpanBoost, Trees
from spanboost.compiling.kernels import plain
from spanboost.rows.single_row import are_plain

NAMES = ["x", "size", "city", "when", "a=b", "late"]
NUMBERS = st.floats(-9, 9, width=32) | st.integers(-3, 3) | st.booleans()
TEXTS = st.sampled_from(["Ulm", "Bonn", "", "2024-02-30", "2024-02-29", "2024-03-01 12:30"])
OTHERS = st.none() | st.just(math.nan) | st.just(datetime.date(2025, 1, 1))
ROWS = st.dictionaries(st.sampled_from(NAMES), NUMBERS | TEXTS | OTHERS, min_size=1)


def entries(reading):
    """Return the entries of the only row of a block."""
    block = reading.encoded
    end = block.indptr[1]
    return block.indices[:end].tolist(), block.data[:end].tolist()


@settings(max_examples=150, deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=12), st.sampled_from([None, 5]))
def test_a_single_row_has_the_entries_of_a_block(rows, bits):
    with plain():
        model = SpanBoost(LinearSGD(bits=bits), 1)
        model.learn_one({"x": 0.5, "city": "Ulm", "size": 3, "when": "2024-01-01"}, 0.5)
        encoder = model.encoder
        for row in rows:
            single = encoder.single(row)
            if single is not None:
                np.testing.assert_equal(entries(single), entries(encoder.read([row])))
                assert single.number == 1
            model.predict_one(row)
            if all(isinstance(value, float | str) for value in row.values()):
                model.learn_one(row, 0.1)


def make_rows(number):
    """Return rows with numbers, texts, times, missing values, and names that appear late."""
    rng = np.random.default_rng(0)
    rows = []
    for t in range(number):
        row = {"x": float(np.float32(rng.normal())), "city": f"c{rng.integers(0, 4)}"}
        row |= {"n": int(rng.integers(0, 5)), "when": f"2024-01-{1 + t % 28:02d}"}
        if rng.random() < 0.3:
            row["x"] = None
        if rng.random() < 0.3:
            del row["n"]
        if t > number // 2:
            row["late"] = "uvw"[t % 3]
        rows.append(row)
    y = [(row["x"] or 0.0) + (row["city"] == "c1") + 0.1 * row.get("n", 0) for row in rows]
    return rows, y


@pytest.mark.parametrize(
    "make",
    [
        lambda: SpanBoost(Trees(), 3, label_range="auto"),
        lambda: SpanBoost(Trees(bits=6), 3, label_range="auto", replay=1),
        lambda: AutoBoost(budget="fast"),
        AutoBoost,
        lambda: AutoBoost(loss="logistic"),
    ],
    ids=["trees", "hashed, replayed", "fast", "default", "logistic"],
)
def test_rows_of_all_kinds_give_the_bits_of_blocks(make):
    rows, y = make_rows(300)
    single, block = make(), make()
    if getattr(single, "loss", "") == "logistic":
        y = [value > 0.5 for value in y]
    expected = block.learn_many(rows, y)
    found = [single.learn_one(row, label) for row, label in zip(rows, y, strict=True)]
    np.testing.assert_array_equal(found, expected)
    ahead = [single.predict_one(row) for row in rows[-50:]]
    np.testing.assert_array_equal(ahead, block.predict_many(rows[-50:]))


def test_refitted_estimators_read_rows_with_fewer_entries():
    pytest.importorskip("lightgbm")
    rows, y = make_rows(300)
    single, block = Refitted(first=100), Refitted(first=100)
    expected = block.learn_many(rows, y)
    found = [single.learn_one(row, label) for row, label in zip(rows, y, strict=True)]
    np.testing.assert_array_equal(found, expected)
    ahead = [single.predict_one(row) for row in rows[:40]]
    np.testing.assert_array_equal(ahead, block.predict_many(rows[:40]))


def test_rows_of_other_kinds_reuse_the_block():
    """Texts, times, missing values and absent names do not need a block of their own."""
    model = SpanBoost(LinearSGD(), 1)
    full = {"a": 1.0, "b": "u", "c": "2024-01-01"}
    model.learn_many([full, full | {"b": "v"}], [0.1, 0.2])
    first = model.encoder.single(full)
    changed = {"b": "v"}, {"a": None}, {"a": math.nan}, {"c": "2025-01-01T12:00"}
    for other in (full | one for one in changed):
        assert model.encoder.single(other) is first
    for name in full:
        rest = {key: value for key, value in full.items() if key != name}
        assert model.encoder.single(rest) is first
    unknown = model.encoder.single(full | {"b": "w"})
    assert unknown is not first
    assert unknown.new


def test_plain_values_are_numbers_of_python():
    assert are_plain([1, 2.0, True])
    assert not are_plain([1, np.float64(2)])
