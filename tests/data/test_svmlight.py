"""svmlight text, compared with an oracle and with scikit-learn, on valid and random text."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
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

from spanboost.data.formats.svmlight import SvmlightReader
from spanboost.data.problems import LEAVE_OUT, Problems, StreamError
from spanboost.data.source import find_sources

DATA = Path(os.environ.get("SPANBOOST_DATA", "no such folder"))


def oracle(line, labelled):
    words = line.partition(b"#")[0].replace(b"\t", b" ").split(b" ")
    words = [word for word in words if word]
    if not words:
        return None
    label = None
    if labelled:
        label = require_finite(parse_float(words[0])) or 0.0
    if labelled or b":" not in words[0]:
        del words[0]
    if words and words[0].startswith(b"qid:"):
        if words[0][4:].strip(b"0123456789"):
            raise ValueError(words[0])
        del words[0]
    features, before = [], -1
    for word in words:
        index, _, value = word.partition(b":")
        if not index.isdigit() or int(index) <= before or int(index) >= 2**22:
            raise ValueError(word)
        before = int(index)
        features.append((before, as_float32(parse_float(value))))
    return label, 1.0, features


pieces = st.sampled_from(
    (
        " ~ ~\n~\n~\r\n~\t~:~:~#~1~2:~3:4~ 5:0.5~-1~qid:~qid:7~nan~inf~,~4194303:~4194304:~"
        "1e5~1e39~x~\r~\n1 1:2 ~\n-1.5 ~9:1.2345678901234567891~\x00~é~"
        "99999999999999999999:1"
    )
    .encode()
    .split(b"~")
)
texts = st.lists(pieces, max_size=30).map(b"".join) | st.binary(max_size=60)


@settings(max_examples=300)
@given(texts, st.booleans())
@example(b"1 1:2#\r", True)
@example(b"# only\n\n1#\n", True)
@example(b"1:2\n1 1:2\nqid:1 2:3\n1 qid:2 2:3", False)
def test_rows_are_those_of_the_oracle(text, labelled):
    assert_same_rows(read(SvmlightReader, text, labelled), expected(oracle, text, labelled))


@settings(max_examples=60)
@given(texts, st.booleans())
def test_plain_python_with_index_checks_gives_the_same(text, labelled):
    assert_same_rows(
        read_as_plain_python(SvmlightReader, text, labelled), expected(oracle, text, labelled)
    )


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("1,2 1:1", "'1,2' is not a number"),
        ("1:1 2:1", "the label is missing"),
        ("nan 1:1", "the label is missing"),
        ("1 1:1 1:2", "the indices must increase, but do not at '1:2'"),
        ("1 1", "expected INDEX:VALUE, got '1'"),
        ("1 -1:1", "expected INDEX:VALUE, got '-1:1'"),
        ("1 1:a", "'a' is not a number"),
        ("1 1:1e99", "the value '1e99' is infinite or too large"),
        ("1 1:-inf", "the value '-inf' is infinite or too large"),
        ("1 4194304:1", "the index of '4194304:1' is too large; use -b BITS to hash indices"),
        ("1 1:" + "x" * 100, f"'{'x' * 39} is not a number"),
    ],
)
def test_error_messages(line, what):
    text = f"# first\n1 2:3\n{line}\nx\n".encode()
    assert read(SvmlightReader, text)[1][3] == what


def test_hashed_indices_can_be_larger():
    text = b"1 1:1 4194304:2 1099511627775:3\n1 1099511627776:1\n"
    rows, bad = read(SvmlightReader, text, bits=18)
    assert rows[0][3] == [(1, 1.0), (4194304, 2.0), (2**40 - 1, 3.0)]
    assert bad == {2: "the index of '1099511627776:1' is too large"}


@given(texts, st.integers(1, 40))
def test_the_size_of_chunks_does_not_change_the_result(tmp_path_factory, text, size):
    file = tmp_path_factory.mktemp("svmlight") / "data"
    file.write_bytes(b"\n" + text)  # so that it does not look compressed
    found = []
    for blocks in (size, 1 << 20):
        problems = RecordedProblems()
        reader = SvmlightReader(schema("svmlight"), problems, labelled=True, size=blocks)
        found.append((row_tuples(reader.batches(find_sources([str(file)])[0])), problems.messages))
    np.testing.assert_equal(*found)


@given(texts)
def test_the_first_bad_row_is_an_error(tmp_path_factory, text):
    file = tmp_path_factory.mktemp("svmlight") / "data"
    file.write_bytes(b"\n" + text)  # so that it does not look compressed
    (source,) = find_sources([str(file)])
    problems = RecordedProblems()
    rows = row_tuples(SvmlightReader(schema(), problems, labelled=True, size=16).batches(source))
    strict = SvmlightReader(schema(), Problems(), labelled=True, size=16).batches(source)
    if not problems.messages:
        np.testing.assert_equal(row_tuples(strict), rows)
        return
    line, what = next(iter(problems.messages.items()))
    with pytest.raises(StreamError) as raised:
        row_tuples(strict)
    advice = LEAVE_OUT if "the label " in what else ""
    assert str(raised.value) == f"{file}:{line}: {what}{advice}"


def assert_agrees_with_scikit_learn(path):
    datasets = pytest.importorskip("sklearn.datasets", reason="needs scikit-learn")
    X, y = datasets.load_svmlight_file(str(path), dtype=np.float32, zero_based=True)
    reader = SvmlightReader(schema("svmlight"), Problems(), labelled=True)
    batches = [*reader.batches(find_sources([str(path)])[0])]
    np.testing.assert_array_equal(np.concatenate([b.y for b in batches]), y)
    np.testing.assert_array_equal(np.concatenate([b.X.indices for b in batches]), X.indices)
    np.testing.assert_array_equal(np.concatenate([b.X.data for b in batches]), X.data)
    counts = np.concatenate([np.diff(b.X.indptr) for b in batches])
    np.testing.assert_array_equal(counts, np.diff(X.indptr))


def test_agrees_with_scikit_learn(tmp_path):
    rng = np.random.default_rng(0)
    ways = ["{}", "{:.3g}", "{:.20f}", "{:.5e}", "{:+.0f}", "{:.12g}"]
    with open(tmp_path / "data", "w", newline="") as file:
        for t in range(3000):
            x = rng.standard_normal(12) * 10.0 ** rng.integers(-30, 30, 12)
            columns = np.flatnonzero(rng.random(12) < 0.5)
            words = [f"{j}:{ways[(t + j) % 6].format(float(x[j]))}" for j in columns]
            query = [f"qid:{t // 10}"] if t % 2 else []
            file.write("\t ".join([repr(float(x[0])), *query, *words]))
            file.write([" # note\r\n", "\n", "#1:2\n\n", "\n# 1 1:1\n"][t % 4])
    assert_agrees_with_scikit_learn(tmp_path / "data")


@pytest.mark.skipif(not DATA.is_dir(), reason="SPANBOOST_DATA is not a folder with the data sets")
@pytest.mark.parametrize("name", ["covtype", "a9a", "cal_housing"])
def test_agrees_with_scikit_learn_on_real_data(name, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    table = parquet.read_table(DATA / f"{name}.parquet").slice(0, 20_000)
    y = table["label"].to_pylist()
    columns = [table[c].to_pylist() for c in table.column_names if c != "label"]
    with open(tmp_path / "data", "w") as file:
        for label, *x in zip(y, *columns, strict=True):
            words = [f"{j}:{v}" for j, v in enumerate(x, 1) if v]
            file.write(" ".join([str(label), *words]) + "\n")
    assert_agrees_with_scikit_learn(tmp_path / "data")
