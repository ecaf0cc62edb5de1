"""Chunks of complete lines, compared with a reader of the whole file."""

import gzip
import io
import os
import tracemalloc
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spanboost.data.formats import lines
from spanboost.data.formats.lines import Chunk
from spanboost.data.problems import Problems, StreamError
from spanboost.data.source import Source


class AllProblems(Problems):
    """Skips bad rows and keeps their line numbers."""

    def __init__(self):
        super().__init__(skip=True)
        self.lines = []

    def report(self, file, line, what):
        super().report(file, line, what)
        self.lines.append(line)


def source_of(data):
    return Source("some.data", len(data), lambda: io.BytesIO(data))


def copy_chunks(*args, **options):
    """Yield copies of chunks, which stay valid."""
    for chunk in lines.read_chunks(*args, **options):
        yield Chunk(bytes(chunk.data), chunk.first)


def read(data, limit=lines.LIMIT, **options):
    """Return the numbered lines, the line numbers of bad rows, and the chunks."""
    problems = AllProblems()
    with mock.patch.object(lines, "LIMIT", limit):
        found = list(copy_chunks(source_of(data), problems, **options))
    numbered = [item for c in found for item in enumerate(split(c.data), c.first)]
    return numbered, problems.lines, found


def split(data):
    return [line + b"\n" for line in data.split(b"\n")[:-1]] + [data.split(b"\n")[-1]][
        : not data.endswith(b"\n") and data != b""
    ]


def oracle(data, limit, quoted):
    """Return the numbered good lines of a whole file, and the lines where bad rows begin."""
    all_lines = split(data[3:] if data.startswith(b"\xef\xbb\xbf") else data)
    good, bad, first = [], [], 0
    while first < len(all_lines):
        end = first + 1
        while quoted and end < len(all_lines) and quotes(all_lines[first:end]) % 2:
            end += 1
        record = all_lines[first:end]
        if len(b"".join(record).removesuffix(b"\n")) > limit or (quoted and quotes(record) % 2):
            bad.append(first + 1)
            first += 1
            continue
        try:
            b"".join(record).decode()
            good += enumerate(record, first + 1)
        except UnicodeDecodeError:
            bad.append(first + 1)
        first = end
    return good, bad


def quotes(record):
    return b"".join(record).count(b'"')


PIECES = st.sampled_from(
    [
        *(b"\n", b"\n", b"\r\n", b'"', b'"\n', b'""', b"a", b"b,c", b"0123456789", b"\0"),
        *(b"\xff", b"\xc3", "é".encode(), b"\xef\xbb\xbf"),
    ]
)
PACKED = b"\x1f\x8b", b"\x28\xb5", b"BZh", b"\xfd7", b"PK\x03", b"\xd0\xcf"  # other kinds of files
TEXTS = st.one_of(st.binary(max_size=200), st.lists(PIECES, max_size=60).map(b"".join)).filter(
    lambda data: not data.startswith(PACKED) and data[1:3] != b"\x2a\x4d"
)


@given(TEXTS, st.integers(1, 40), st.integers(1, 30), st.booleans())
@example(b"", 1, 5, True)
@example(b'"' + b"\n" * 40, 3, 5, True)
@example(b'a"\nb\nc"\nd"', 2, 100, True)
@example(b"\xef\xbb", 1, 5, False)
def test_chunks_are_what_reading_the_whole_file_gives(data, size, limit, quoted):
    numbered, bad, found = read(data, limit, size=size, quoted=quoted)
    assert (numbered, bad) == oracle(data, limit, quoted)
    for chunk in found:
        assert chunk.data
        chunk.data.decode()
        assert not quoted or chunk.data.count(b'"') % 2 == 0
    assert all(chunk.data.endswith(b"\n") for chunk in found[:-1])


@given(TEXTS, st.integers(1, 40), st.booleans())
def test_the_first_bad_row_is_the_one_reported(data, size, quoted):
    good, bad = oracle(data, 20, quoted)
    found, message = [], None
    with mock.patch.object(lines, "LIMIT", 20):
        try:
            found.extend(copy_chunks(source_of(data), Problems(), quoted=quoted, size=size))
        except StreamError as error:
            message = str(error)
    handed_on = sum(len(split(chunk.data)) for chunk in found)
    assert handed_on == (bad[0] - 1 if bad else len(good))
    assert message is None if not bad else message.startswith(f"some.data:{bad[0]}: ")


@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("size", [1 << 20, 1 << 25])
def test_the_limit_is_16_mib(quoted, size):
    fits, too_long = b"x" * (1 << 24), b"y" * ((1 << 24) + 1)
    data = b"\n".join([b"a", fits, too_long, b"b", too_long])
    numbered, bad, _ = read(data, quoted=quoted, size=size)
    assert [(n, line[:2]) for n, line in numbered] == [(1, b"a\n"), (2, b"xx"), (4, b"b\n")]
    assert bad == [3, 5]


def test_a_line_of_100_mb_is_not_held_in_memory():
    long = b"x" * (1 << 20)
    packed = b"".join([gzip.compress(b"1\n"), gzip.compress(long) * 100, gzip.compress(b"\n2\n")])
    problems = AllProblems()
    tracemalloc.start()
    found = list(copy_chunks(source_of(packed), problems, quoted=True))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [tuple(chunk) for chunk in found] == [(b"1\n", 1), (b"2\n", 3)]
    assert problems.first == ["some.data:2: the line is longer than 16 MiB"]
    assert peak < 3 * lines.LIMIT


def test_an_unclosed_quote_costs_one_line():
    row = b"1,2,3" + b" " * 1000 + b"\n"
    count = (1 << 25) // len(row)
    numbered, bad, found = read(row * 10 + b'1,2" long,3\n' + row * count, quoted=True)
    assert bad == [11]
    assert [n for n, _ in numbered] == [*range(1, 11), *range(12, count + 12)]
    assert max(len(chunk.data) for chunk in found) <= lines.LIMIT + (1 << 20)


@pytest.mark.parametrize(
    "part",
    [
        b'"' + b"\n" * 999,
        b'"\n' * 600,
        b'"\n"""\n' + b"a\n" * 299,
        b'""\n' * 50 + b'"' * 301 + b"\n",
    ],
)
def test_unclosed_quotes_are_not_scanned_repeatedly(part):
    data = part * 100
    scanned = 0
    find = lines._unquoted_newlines

    def count(marks, *rest):
        nonlocal scanned
        scanned += len(marks)
        return find(marks, *rest)

    with mock.patch.object(lines, "_unquoted_newlines", count):
        numbered, bad, _ = read(data, limit=500, size=100, quoted=True)
    assert (numbered, bad) == oracle(data, 500, quoted=True)
    assert scanned < 4 * len(data)


def test_chunks_of_many_empty_lines_are_skipped():
    empty = b"\n" * (1 << 22)
    numbered, bad, found = read(b"a\n" + empty + b"b\n", quoted=True)
    assert (b"b\n", bad) == (numbered[-1][1], [])
    assert numbered[-1][0] == len(empty) + 2
    assert sum(len(chunk.data) for chunk in found) <= 1 << 21
    for similar in (b" \n", b"\r\n", b"\0\n"):  # some formats read these as rows
        chunks = read(similar * (1 << 17))[2]
        assert b"".join(chunk.data for chunk in chunks) == similar * (1 << 17)


def test_many_lines_that_are_not_utf8():
    data = b"\xff\n" * 200_000 + b"a\n"
    numbered, bad, _ = read(data)
    assert numbered == [(200_001, b"a\n")]
    assert len(bad) == 200_000


def test_unusual_text_is_unchanged():
    for data in (b"a\r\nb\r\n", b"\0\n\0", b"\n\n", b"\r", "ä\u2028ö\n".encode()):
        for size in (1, 2, 100):
            assert b"".join(chunk.data for chunk in read(data, size=size)[2]) == data
    assert read(b"\xef\xbb\xbf\xef\xbb\xbfa")[0] == [(1, b"\xef\xbb\xbfa")]  # only one mark
    assert read(b"")[2] == read(b"\xef\xbb\xbf")[2] == read(gzip.compress(b""))[2] == []


LATIN = "; if the file is in Latin-1, convert it with iconv -f LATIN1 -t UTF-8"


def test_error_messages():
    for data, what in (
        (b"ab\xff\xfecd\n", r"b'\xff\xfecd\n' is not UTF-8" + LATIN),
        (b'a"b\nc', "unclosed double quote (records are limited to 16 MiB)"),
    ):
        with pytest.raises(StreamError) as stop:
            list(copy_chunks(source_of(data), Problems(), quoted=True))
        assert str(stop.value) == f"some.data:1: {what}"


def test_a_truncated_compressed_file():
    found = []
    packed = gzip.compress(b"1\n" * 100_000, 0)
    with pytest.raises(StreamError, match=r"some.data: cannot read the file: .*ended before"):
        found.extend(copy_chunks(source_of(packed[:-9]), Problems(skip=True), size=1000))
    assert found  # what came before was good


def test_a_pipe_gives_the_lines_that_are_available():
    reading, writing = os.pipe()
    source = Source("pipe", None, lambda: io.FileIO(reading), seekable=False, once=True)
    found = copy_chunks(source, Problems())
    os.write(writing, b"1\n2\n3")
    assert next(found) == (b"1\n2\n", 1)
    os.write(writing, b"4\n")
    assert next(found) == (b"34\n", 3)
    os.write(writing, b"5")
    os.close(writing)
    assert list(found) == [(b"5", 4)]
