"""Sources: files, globs, standard input, pipes and URLs, compressed or not."""

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import threading
import zlib
from contextlib import suppress

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanboost.data import source as module
from spanboost.data.problems import StreamError
from spanboost.data.source import Source, find_sources, suffix
from spanboost.data.stream import Stream
from spanboost.errors import install_hint

TEXT = b"".join(b"%d,%d\n" % (i, i * i) for i in range(20_000))


def zstd(data):
    return pyarrow.compress(data, "zstd", asbytes=True)


SKIPPABLE = b"\x5a\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"note"
PACKED = {
    "plain": TEXT,
    "gzip": gzip.compress(TEXT),
    "gzip in two members": gzip.compress(TEXT[:999]) + gzip.compress(TEXT[999:]),
    "bzip2": bz2.compress(TEXT),
    "bzip2 in two streams": bz2.compress(TEXT[:999], 1) + bz2.compress(TEXT[999:]),
    "xz": lzma.compress(TEXT),
    "xz in two streams": lzma.compress(TEXT[:999]) + lzma.compress(TEXT[999:]),
    "zstd": zstd(TEXT),
    "zstd in two frames": zstd(TEXT[:999]) + zstd(TEXT[999:]),
    "zstd after a skippable frame": SKIPPABLE + zstd(TEXT),
}


def source_of(data):
    return Source("some.data", len(data), lambda: io.BytesIO(data))


def everything(source):
    with source.open() as file:
        return file.read()


def error_of(*paths):
    with pytest.raises(StreamError) as stop:
        find_sources(paths)
    message = str(stop.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("how", PACKED)
def test_compression_is_detected_from_the_content(how, tmp_path):
    path = tmp_path / "x.gz"  # the first bytes matter, not the name
    path.write_bytes(PACKED[how])
    (source,) = find_sources([str(path)])
    for _ in range(2):  # a file can be read again
        with source.open() as file:
            assert source.position <= 4
            parts = list(iter(lambda: file.read(1000), b""))
        assert b"".join(parts) == TEXT
        assert source.position == source.size == len(PACKED[how])
    assert source.name == str(path)


@pytest.mark.parametrize("how", PACKED)
def test_standard_input_is_read_completely_and_once(how, standard_input):
    standard_input(PACKED[how])
    (source,) = find_sources(["-"])
    assert (source.name, source.size) == ("stdin", None)
    first = PACKED[how][: 1 << 16]
    assert source.fingerprint() == source.fingerprint() == [None, zlib.crc32(first)]
    assert everything(source) == TEXT
    assert source.position == len(PACKED[how])
    with pytest.raises(StreamError, match="stdin can be read only once"):
        source.open()


def test_standard_input_is_copied_for_random_access(standard_input):
    standard_input(TEXT)
    (source,) = find_sources(["-"])
    source.fingerprint()
    with source.random_access() as file:
        assert file.seek(-5, os.SEEK_END) == len(TEXT) - 5
        assert file.read() == TEXT[-5:]
        file.seek(0)
        assert file.read() == TEXT
    assert "more than once" in error_of("-", "-")


def test_a_named_pipe_is_opened_once(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    (source,) = find_sources([str(path)])
    writer = threading.Thread(target=path.write_bytes, args=(TEXT,))
    writer.start()
    assert source.fingerprint() == [None, zlib.crc32(TEXT[: 1 << 16])]
    assert everything(source) == TEXT
    writer.join()


def test_random_access_to_stored_bytes(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(PACKED["gzip"])
    (source,) = find_sources([str(path)])
    assert source.fingerprint() == [path.stat().st_size, zlib.crc32(PACKED["gzip"][: 1 << 16])]
    with source.random_access() as file:
        file.seek(7)
        assert file.read() == PACKED["gzip"][7:]


def test_globs_are_sorted_and_skip_folders(tmp_path):
    for name in ("b.csv", "a.csv", "c.txt", "a[1].csv", "sub/d.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "folder.csv").mkdir()
    found = {
        pattern: [
            os.path.relpath(s.name, tmp_path) for s in find_sources([f"{tmp_path}/{pattern}"])
        ]
        for pattern in ("*.csv", "[ab].csv", "a[1].csv", "**/?.csv")
    }
    assert found == {
        "*.csv": ["a.csv", "a[1].csv", "b.csv"],
        "[ab].csv": ["a.csv", "b.csv"],
        "a[1].csv": ["a[1].csv"],  # an existing file has precedence
        "**/?.csv": ["a.csv", "b.csv", "sub/d.csv"],
    }
    assert error_of(f"{tmp_path}/*.json") == f"no file matches {tmp_path}/*.json"
    assert error_of(str(tmp_path)) == f"{tmp_path} is a folder, not a file"
    assert error_of(f"{tmp_path}/a.csv", f"{tmp_path}/no") == f"{tmp_path}/no: file not found"
    assert (
        error_of(f"{tmp_path}/a.csv/b")
        == f"{tmp_path}/a.csv/b: cannot read the file: Not a directory"
    )
    assert "cannot read the file: embedded null byte" in error_of("a\0b")
    assert error_of("") == ": file not found"


def test_a_file_without_read_permission(tmp_path, monkeypatch):
    path = tmp_path / "secret"
    path.touch()
    monkeypatch.setattr(module.os, "access", lambda path, mode: mode != os.R_OK)
    assert error_of(str(path)) == f"{path}: cannot read the file: Permission denied"


def test_a_deleted_file(tmp_path):
    path = tmp_path / "x"
    path.touch()
    (source,) = find_sources([str(path)])
    path.unlink()
    for read in (source.open, source.random_access, source.fingerprint):
        with pytest.raises(StreamError, match="file not found"):
            read()


@pytest.mark.parametrize("pack", [gzip.compress, zstd, bz2.compress, lzma.compress])
def test_truncated_compressed_files_are_refused(pack):
    packed = pack(TEXT[:300])
    for end in range(4, len(packed)):
        with pytest.raises(StreamError, match=r"^some.data: cannot read the file: \w"):
            everything(source_of(packed[:end]))
    with pytest.raises(StreamError, match=r"^some.data: cannot read the file: \w"):
        everything(source_of(packed + b"garbage"))


@pytest.mark.parametrize(
    ("name", "head", "message"),
    [
        ("x.zip", b"PK\x03\x04", "the file is a zip archive; extract it first"),
        ("x.csv", b"PK\x03\x04", "the file is a zip archive; extract it first"),
        ("x.XLSX", b"PK\x03\x04", "the file is a spreadsheet; save it as CSV"),
        ("x.xls", b"\xd0\xcf\x11\xe0", "the file is a spreadsheet; save it as CSV"),
    ],
)
def test_archives_and_spreadsheets_are_refused(name, head, message, tmp_path):
    path = tmp_path / name
    path.write_bytes(head + bytes(range(200)))
    with pytest.raises(StreamError) as stop:
        everything(Stream([str(path)], "csv" if name == "x.csv" else None).sources[0])
    assert str(stop.value) == f"{path}: {message}"


@given(
    st.sampled_from(list(PACKED.values())),
    st.lists(st.tuples(st.integers(0), st.binary(max_size=9))),
)
def test_a_damaged_file_is_read_or_refused(packed, edits):
    damaged = bytearray(packed)
    for number, piece in edits:
        place = number % len(packed)
        damaged[place : place + len(piece)] = piece
    with suppress(StreamError):
        text = everything(source_of(bytes(damaged)))
        assert damaged != packed or text == TEXT


def test_urls_in_memory(memory):
    memory.pipe({"/d/b.csv": PACKED["gzip"], "/d/a.csv": TEXT, "/d/e/c.csv": b""})
    (source,) = find_sources(["memory://d/b.csv"])
    assert (source.name, source.size) == ("memory://d/b.csv", len(PACKED["gzip"]))
    assert source.fingerprint() == [source.size, zlib.crc32(PACKED["gzip"][: 1 << 16])]
    assert everything(source) == TEXT
    assert source.position == source.size
    found = find_sources(["memory://d/*.csv", "memory://d/e/c.csv"])
    assert [s.name.replace(":///", "://") for s in found] == [
        "memory://d/a.csv",
        "memory://d/b.csv",
        "memory://d/e/c.csv",
    ]
    assert everything(found[0]) == TEXT
    assert len(find_sources(["memory://d/*"])) == 2  # without the folder
    with found[0].random_access() as file:
        file.seek(7)
        assert file.read(5) == TEXT[7:12]
    assert error_of("memory://d/z.csv") == "memory://d/z.csv: file not found"
    assert error_of("memory://d/*.json") == "no file matches memory://d/*.json"
    assert error_of("memory://d") == "memory://d is a folder, not a file"


@pytest.mark.parametrize("how", PACKED)
def test_urls_on_the_web(how, web, tmp_path):
    (tmp_path / "x.csv").write_bytes(PACKED[how])
    (source,) = find_sources([f"{web}/x.csv?part=1"])
    assert (source.name, source.size) == (f"{web}/x.csv?part=1", len(PACKED[how]))
    assert everything(source) == TEXT
    assert source.position == source.size
    assert source.fingerprint() == [source.size, zlib.crc32(PACKED[how][: 1 << 16])]
    with source.random_access() as file:  # this server does not support range requests
        file.seek(7)
        assert file.read() == PACKED[how][7:]


def test_globs_and_missing_files_on_the_web(web, tmp_path):
    for name in ("b.csv", "a.csv", "c.txt"):
        (tmp_path / name).write_bytes(TEXT)
    assert [s.name for s in find_sources([f"{web}/*.csv"])] == [f"{web}/a.csv", f"{web}/b.csv"]
    assert error_of(f"{web}/no.csv").startswith(f"{web}/no.csv: cannot read the file: 404")
    assert error_of(f"{web}/*.json") == f"no file matches {web}/*.json"
    nowhere = error_of("http://127.0.0.1:1/x.csv")
    assert nowhere.startswith("http://127.0.0.1:1/x.csv: cannot read the file: ")


def test_missing_packages(monkeypatch):
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    address = "http://example.org/x.csv"
    assert error_of(address) == (
        f"reading {address} requires another package: {install_hint('http')}"
    )
    monkeypatch.setitem(sys.modules, "s3fs", None)
    assert error_of("s3://bucket/x.csv") == (
        "reading s3://bucket/x.csv requires another package: Install s3fs to access S3"
    )
    assert (
        error_of("nonsense://x")
        == "nonsense://x: cannot read the file: Protocol not known: nonsense"
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("data/x.CSV.gz", "csv"),
        ("x.tsv", "tsv"),
        ("x.vw.ZST", "vw"),
        ("x.svm.bz2", "svm"),
        ("x.svm.xz", "svm"),
        ("http://h/x.json.zstd?a=b.c#d.e", "json"),
        ("x.gz", ""),
        ("dir.csv/x", ""),
        ("-", ""),
        ("", ""),
        (".csv", ""),
    ],
)
def test_suffixes(name, expected):
    assert suffix(name) == expected


@pytest.mark.process
def test_reading_a_plain_file_imports_nothing_large(tmp_path):
    (tmp_path / "x.csv").write_bytes(TEXT)
    code = (
        "import sys; from spanboost.data.source import find_sources; "
        "find_sources(['x.csv'])[0].open().read(); "
        "print(sorted({'numba', 'numpy', 'pyarrow', 'fsspec', 'aiohttp'} & set(sys.modules)))"
    )
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
