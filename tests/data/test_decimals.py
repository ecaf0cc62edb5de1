"""Numbers parsed in compiled code, compared with Python's float()."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from text_formats import NUMBER, RecordedProblems, read, read_as_plain_python, schema

from spanboost.compiling.kernels import jit
from spanboost.data.formats.decimals import parse_number, powers_of_ten
from spanboost.data.formats.lines import Chunk
from spanboost.data.formats.svmlight import SvmlightReader


@jit
def compiled_parse(data, powers):
    return parse_number(data, 0, powers)


def parse(text):
    data = np.frombuffer(text + b"\n", np.uint8)
    found = compiled_parse(data, powers_of_ten())
    np.testing.assert_equal(parse_number(data, 0, powers_of_ten()), found)  # without compilation
    return found


def is_certain(text):
    """Check the bounds of a number; return whether they are equal."""
    low, high, end = parse(text)
    assert end == len(text)
    assert low <= float(text) <= high
    return low == high


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_output_of_python_is_read_back(x):
    certain = is_certain(repr(x).encode())
    assert certain or not 1e-60 < abs(x) < 1e60


@given(
    st.sampled_from(["", "+", "-"]),
    st.text("0123456789", max_size=30),
    st.sampled_from(["", "."]),
    st.text("0123456789", max_size=30),
    st.sampled_from(["", "e", "E", "e+", "e-"]),
    st.text("0123456789", max_size=4),
)
@example("", "9007199254740993", ".", "0", "", "")
@example("", "1", "", "", "e", "23")
@example("", "0", ".", "000000000000000000000000000001", "", "")
@example("", "179769313486231580793728971405301", ".", "", "e", "276")
def test_any_digits(sign, whole, point, fraction, e, exponent):
    text = (sign + whole + point + fraction + e + exponent).encode()
    found = NUMBER.match(text)
    low, high, end = parse(text)
    assert end == (found.end() if found else 0)
    if found:
        assert low <= float(found.group()) <= high


@given(st.integers(2**53, 2**54 - 1), st.integers(-30, 30))
def test_halfway_between_two_doubles(odd, shift):
    """Numbers at or near the middle between two doubles are never rounded wrongly."""
    halfway = 2 * odd + 1
    exact = halfway << shift if shift >= 0 else halfway * 5**-shift
    for near in (exact - 1, exact, exact + 1):
        is_certain(f"{near}e{min(shift, 0)}".encode())


@given(st.integers(10**15, 10**18 - 1), st.integers(-60, 40))
def test_eighteen_digits_are_certain_unless_halfway(w, k):
    text = f"{w}e{k}"
    x, near = Fraction(text), float(text)
    halfway = [(Fraction(near) + Fraction(math.nextafter(near, to))) / 2 for to in (0, math.inf)]
    assert is_certain(text.encode()) or x in halfway


def test_powers_of_ten():
    table = powers_of_ten()
    assert table[80 - 22 : 80 + 23, 0].tolist() == [float(f"1e{k}") for k in range(-22, 23)]
    assert abs(table[:, 1] / table[:, 0]).max() <= 2**-53


@pytest.mark.parametrize("word", ["nan", "NaN", "inf", "Infinity", "-inf", "+nan", "-INFINITY"])
def test_words(word):
    low, _, end = parse(word.encode())
    assert end == len(word)
    np.testing.assert_equal(low, float(word))


@pytest.mark.parametrize("text", ["", "-", ".", "+.", "e5", ".e5", "na", "in", "x", ".nan", "--1"])
def test_text_that_is_not_a_number(text):
    assert parse(text.encode())[2] == 0


@pytest.mark.parametrize(
    ("text", "end"), [("1e", 1), ("1e+", 1), ("1.5x", 3), ("0x10", 1), ("1_0", 1), ("infinit", 3)]
)
def test_where_numbers_end(text, end):
    assert parse(text.encode())[2] == end


HARD = "9007199254740993.0000"


def test_uncertain_numbers_are_resolved():
    """Uncertain numbers can be in labels and features, and there can be many on a line."""
    hard = [
        "1e-250",
        "16777217.0000000000000000000000000001",
        "1e23",
        "2e-46",
        "0.1e-300",
        "-1e-99",
    ]
    text = ""
    for n in (1, 7, 8, 9, 40, 3):
        text += f"{HARD} " + " ".join(f"{i}:{hard[i % 6]}" for i in range(n)) + "\n1 2:1\n"
    for rows, bad in (
        read(SvmlightReader, text.encode()),
        read_as_plain_python(SvmlightReader, text.encode()),
    ):
        assert not bad
        for line, (_, label, _, features) in zip(text.splitlines(), rows, strict=True):
            words = line.split()
            assert label == float(words[0])
            values = [float(np.float32(float(w.partition(":")[2]))) for w in words[1:]]
            assert [value for _, value in features] == values


def test_uncertain_numbers_that_are_infinite():
    rows, bad = read(
        SvmlightReader, b"1 1:1e100\n1e999 1:1\n1 1:340282356779733661637539395458142568448\n"
    )
    assert not rows
    assert [*bad] == [1, 2, 3]
    assert "infinite" in bad[1]
    assert "infinite" in bad[2]
    reader = SvmlightReader(schema(), RecordedProblems(), labelled=True)
    assert reader.batch(Chunk(b"1 1:3.4028235e38\n", 1), "file").rows == 1
