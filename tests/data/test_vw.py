"""VW text, compared with an oracle and with VW itself, on valid and random text."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from text_formats import (
    RecordedProblems,
    as_float32,
    assert_same_rows,
    expected,
    parse_float,
    read,
    read_as_plain_python,
    require_finite,
    row_tuples,
    schema,
)

from spanboost.compiling.kernels import jit
from spanboost.data.formats.lines import Chunk
from spanboost.data.formats.vw import VwReader
from spanboost.data.formats.vw_hashing import hash_name
from spanboost.data.problems import Problems, StreamError
from spanboost.data.source import find_sources
from spanboost.data.target import BinaryTarget

DATA = Path(os.environ.get("SPANBOOST_DATA", "no such folder"))


def naive_murmur(key, seed):
    def scramble(k):
        k = k * 0xCC9E2D51 % 2**32
        k = (k << 15 | k >> 17) % 2**32
        return k * 0x1B873593 % 2**32

    h = seed
    for i in range(0, len(key), 4):
        h ^= scramble(int.from_bytes(key[i : i + 4], "little"))
        if len(key) - i >= 4:
            h = (h << 13 | h >> 19) % 2**32
            h = (h * 5 + 0xE6546B64) % 2**32
    h ^= len(key)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = (h ^ h >> shift) * factor % 2**32
    return h ^ h >> 16


def naive_hash(name, seed):
    if not name.strip(b"0123456789"):
        return (int(name or b"0") + seed) % 2**32
    return naive_murmur(name, seed)


def oracle(line, labelled):
    if not line.strip(b" \t"):
        return None
    head, bar, rest = line.partition(b"|")
    if not bar or b"\t" in head or re.search(rb"[\0-\x08\x0a-\x1f]", line):
        raise ValueError(line)
    words = [word for word in head.split(b" ") if word]
    if words and (not head.endswith(b" ") or words[-1].startswith(b"'")):
        words.pop()
    if len(words) > 3 or (labelled and not words):
        raise ValueError(words)
    label, weight = None, 1.0
    if labelled:
        label = require_finite(parse_float(words[0]))
        weight = parse_float(words[1]) if len(words) > 1 else 1.0
        if not 0 <= weight <= 1e19:
            raise ValueError(weight)
    if len(words) > 2 and parse_float(words[2]) != 0:
        raise ValueError(words)
    return label, weight, [f for space in rest.split(b"|") for f in features_of(space)]


def features_of(space):
    first, *words = re.split(rb"[ \t]", space)
    name, colon, weight = first.partition(b":")
    if colon and not name:
        raise ValueError(space)
    seed, scale = (
        naive_hash(name, 0),
        require_finite(as_float32(parse_float(weight))) if colon else 1.0,
    )
    unnamed = 0
    for word in words:
        name, colon, value = word.partition(b":")
        if word:
            x = as_float32(scale * as_float32(parse_float(value))) if colon else scale
            if x and not np.isnan(x):
                yield naive_hash(name, seed) if name else (seed + unnamed) % 2**32, x
            unnamed += not name


pieces = st.sampled_from(
    (
        " ~ ~ ~\n~\n~\r\n~\t~:~|~|~ |~|f~|f:2~|12:.5~1~0~-1.5~1e3~nan~inf~'tag~name~name:3~"
        " a~ 7:~ :4~\n1 |f a:2 ~\n-1 2 'x| ~\n1 1 0 |~\x00~né~1e39~2e19~\r~\x0b~"
        "99999999999999999999~1.23456789012345678901e-5~\n1 |f b:1e20~|f:1e20~abcdefgh"
    )
    .encode()
    .split(b"~")
)
texts = st.lists(pieces, max_size=30).map(b"".join) | st.binary(max_size=60)


@settings(max_examples=300)
@given(texts, st.booleans())
@example(b"1 |f a\r", True)
@example(b"1 |\n|\n1 |f\n", True)
@example(b"1 |f:0 a b:2 |g c:0 d:nan", True)
@example(b"x y 0 |f a\nx y 1 |f a\n|a\n \t\n1 2 3 4 5| a", False)
def test_rows_are_those_of_the_oracle(text, labelled):
    assert_same_rows(read(VwReader, text, labelled), expected(oracle, text, labelled))


@settings(max_examples=60)
@given(texts, st.booleans())
def test_plain_python_with_index_checks_gives_the_same(text, labelled):
    assert_same_rows(
        read_as_plain_python(VwReader, text, labelled), expected(oracle, text, labelled)
    )


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("1 f a", "the line has no '|'"),
        ("|f a", "the label is missing"),
        ("'tag |f a", "the label is missing (\"'tag\" next to '|' is a tag)"),
        ("1|f a", "the label is missing ('1' next to '|' is a tag)"),
        ("nan |f a", "the label is missing"),
        ("a |f a", "'a' is not a number"),
        ("1 'a b|f a", '"\'a" is not a number'),
        ("1 -2 |f a", "the weight must be between 0 and 1e19 (got '-2')"),
        ("1 nan |f a", "the weight must be between 0 and 1e19 (got 'nan')"),
        ("1 2 0.5 |f a", "initial predictions are not supported (got '0.5')"),
        ("1 2 0 4 |f a", "unexpected '4' before '|'"),
        ("1\t|f a", "unexpected character '\\t'"),
        ("1 |f a\x01b", "unexpected character '\\x01'"),
        ("1 |f a\rb", "unexpected character '\\r'"),
        ("1 |:2 a", "the namespace ':2' has a weight but no name"),
        ("1 |f:x a", "the weight of a namespace must be a finite number (got 'x')"),
        ("1 |f: a", "the weight of a namespace must be a finite number (got '')"),
        ("1 |f:inf a", "the weight of a namespace must be a finite number (got 'inf')"),
        ("1 |f a:b", "'b' is not a number"),
        ("1 |f a: b", "'' is not a number"),
        ("1 |f a:1:2", "'1:2' is not a number"),
        ("1 |f:1e30 a:1e9", "the value '1e9' is infinite or too large"),
    ],
)
def test_error_messages(line, what):
    text = f"1 |f a\n\n{line}\nx\n".encode()
    assert read(VwReader, text)[1][3] == what


@jit
def compiled_hash(data, seed):
    return hash_name(data, 0, seed)


@pytest.mark.parametrize(
    ("key", "seed", "value"),  # from the reference implementation
    [
        (b"", 0, 0),
        (b"", 1, 0x514E28B7),
        (b"", 0xFFFFFFFF, 0x81F16F39),
        (b"\0\0\0\0", 0, 0x2362F9DE),
        (b"\xff\xff\xff\xff", 0, 0x76293B50),
        (b"!Ce\x87", 0, 0xF55B516B),
        (b"!Ce\x87", 0x5082EDEE, 0x2362F9DE),
        (b"!Ce", 0, 0x7E4A8634),
        (b"!C", 0, 0xA0F7B07A),
        (b"!", 0, 0x72661CF4),
        (b"aaaa", 0x9747B28C, 0x5A97808A),
        (b"Hello, world!", 0x9747B28C, 0x24884CBA),
        (b"The quick brown fox jumps over the lazy dog", 0x9747B28C, 0x2FA826CD),
    ],
)
def test_murmur(key, seed, value):
    assert naive_murmur(key, seed) == value
    if key and not re.search(rb"[\0- :|]", key):  # the key is a valid name
        for ending in (b"\n", b" and so on\n", b":1\n"):
            data = np.frombuffer(key + ending, np.uint8)
            assert compiled_hash(data, np.uint64(seed)) == (value, len(key))
            assert hash_name(data, 0, np.uint64(seed)) == (value, len(key))


@given(
    st.binary(max_size=20) | st.text("0123456789", max_size=25).map(str.encode),
    st.integers(0, 2**32 - 1),
)
def test_names_are_hashed(text, seed):
    data = np.frombuffer(text + b"\n", np.uint8)
    name = re.match(rb"[^\0- :|]*", text).group()
    assert compiled_hash(data, np.uint64(seed)) == (naive_hash(name, seed), len(name))
    assert hash_name(data, 0, np.uint64(seed)) == (naive_hash(name, seed), len(name))


@given(texts, st.integers(1, 40), st.booleans())
def test_the_size_of_chunks_does_not_change_the_result(tmp_path_factory, text, size, labelled):
    file = tmp_path_factory.mktemp("vw") / "data"
    file.write_bytes(b"\n" + text)  # so that it does not look compressed
    found = []
    for blocks in (size, 1 << 20):
        problems = RecordedProblems()
        reader = VwReader(schema(), problems, labelled=labelled, size=blocks)
        found.append((row_tuples(reader.batches(find_sources([str(file)])[0])), problems.messages))
    np.testing.assert_equal(*found)


def test_the_target_encodes_labels():
    """The target sees only labels of good rows, and the first bad row is the one reported."""
    text = b"7 |f a:x\n0 |f a\n2 |f a\n1 2 |f b\n3 |f c:x\n"
    two_classes = schema()
    two_classes.target = BinaryTarget()
    problems = RecordedProblems()
    batch = VwReader(two_classes, problems, labelled=True).batch(Chunk(text, 11), "file")
    assert batch.y.tolist() == [-1, 1]
    assert batch.lines.tolist() == [12, 14]
    assert batch.weights.tolist() == [1, 2]
    assert two_classes.target.values == ["0", "1"]
    assert [*problems.messages] == [11, 13, 15]
    two_classes.target = BinaryTarget()
    with pytest.raises(
        StreamError, match=r"file:2: the label '2' cannot be used together with '0'"
    ):
        VwReader(two_classes, Problems(), labelled=True).batch(
            Chunk(text[text.index(b"0") :], 1), "file"
        )


class Wabbit:
    """Reads lines with VW itself."""

    BITS = 24

    def __init__(self):
        module = pytest.importorskip("vowpalwabbit", reason="needs vowpalwabbit")
        self.namespace = module.pyvw.ExampleNamespace
        self.workspace = module.Workspace(f"--quiet --noconstant -b {self.BITS}")

    def read(self, line):
        parsed = self.workspace.parse(line)
        (found,) = parsed if isinstance(parsed, list) else [parsed]
        features = [
            feature
            for i in range(found.num_namespaces())
            for feature in self.namespace(found, found.get_ns(i)).iter_features()
        ]
        label, weight = found.get_simplelabel_label(), found.get_simplelabel_weight()
        self.workspace.finish_example(found)
        return label, weight, features

    def assert_agrees(self, text, labelled=True):
        """Check that VW reads every good line the same; return the row count and bad lines.

        Values may differ slightly, because VW does not always round them correctly.
        """
        lines = text.decode().split("\n")
        rows, bad = read(VwReader, text, labelled)
        for number, label, weight, features in rows:
            line = lines[number - 1].removesuffix("\r")
            vw_label, vw_weight, vw_features = self.read(line)
            if labelled:
                with np.errstate(over="ignore"):
                    ours = np.float32([label, weight])  # the precision of VW
                np.testing.assert_allclose([vw_label, vw_weight], ours, rtol=1e-5, err_msg=line)
            mask = 2**self.BITS - 1
            ours = sorted((index & mask, value) for index, value in features)
            theirs = sorted((index & mask, value) for index, value in vw_features)
            assert [index for index, _ in ours] == [index for index, _ in theirs], line
            np.testing.assert_allclose(
                [v for _, v in ours], [v for _, v in theirs], rtol=1e-5, err_msg=line
            )
        return len(rows), bad


@pytest.fixture(scope="module")
def wabbit():
    return Wabbit()


def test_agrees_with_vw(wabbit):
    lines = [
        "1 | a b:2 12 12:3",
        "1 |f a f12:2.5",
        "1 1.0 'tag| f",
        "1 tag|f x",
        "-1.5 2 0 'tag|f:2 x:3 y",
        "1 'tag |f x",
        "1 2 3tag|f x",
        " 1   2   | x",
        "1 |f :2 :3 a :4",
        "1 |12 3 a 007",
        "1 |f \ta  b\tc\t",
        "1 |f x:1e3 y:-1.5E-2 z:+3 u:.5 v:5. w:0 n:nan",
        "1 |f x:1|g y| z",
        "1 |f a a a:2 |f a",
        "1 |f:0 a |g:-.5 b c:3",
        "1 |",
        "1 |f |g",
        "1 | 4294967296 99999999999999999999 4294967295 18446744073709551616",
        "1 |4294967297 5 a",
        "1 |ünï cödé:2 日本語 a=b c^d;e,f",
        "1 |f x-y:1 1a a1 -1 1.5 0x10",
        "1e2 1e-1 |f x\r",
        "1 |a_long_namespace_indeed and_a_long_name_of_a_feature:0.25",
    ]
    assert wabbit.assert_agrees("\n".join(lines).encode()) == (len(lines), {})


# VW computes powers of ten in float32 and reads 2e191 as 0; pieces such as 2e19 and 1 give it
LARGE_EXPONENT = re.compile(rb"[eE][+-]?(\d{3}|[4-9]\d)")


@given(st.lists(pieces, max_size=30).map(b"".join))
@example(b"1 |f a:2e19")
def test_agrees_with_vw_on_random_text(wabbit, text):
    assume(not LARGE_EXPONENT.search(text))
    wabbit.assert_agrees(text)
    wabbit.assert_agrees(text, labelled=False)


@pytest.mark.skipif(not DATA.is_dir(), reason="SPANBOOST_DATA is not a folder with the data sets")
@pytest.mark.parametrize("name", ["covtype", "adult", "cal_housing"])
def test_agrees_with_vw_on_real_data(wabbit, name):
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    table = parquet.read_table(DATA / f"{name}.parquet").slice(0, 2000)
    lines = []
    for t, row in enumerate(table.to_pylist()):
        label = row.pop("label")
        label = label if isinstance(label, int | float) else len(label)
        words = [
            f"{key}={value.replace(' ', '_')}" if isinstance(value, str) else f"{key}:{value}"
            for key, value in row.items()
            if value is not None
        ]
        words.insert(len(words) // 2, "|2:0.5")
        lines.append(f"{label} {1 + t % 3} 'row{t}|first {' '.join(words)}")
    assert wabbit.assert_agrees("\n".join(lines).encode()) == (2000, {})
