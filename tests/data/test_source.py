import gzip
import io
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
from spanboost.data.source import Source, sources, suffix

TEXT = b"".join(b"%d,%d\n" % (i, i * i) for i in range(20_000))


def zstd(data):
    return pyarrow.compress(data, "zstd", asbytes=True)


SKIPPABLE = b"\x5a\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"note"
PACKED = {
    "plain": TEXT,
    "gzip": gzip.compress(TEXT),
    "gzip in two members": gzip.compress(TEXT[:999]) + gzip.compress(TEXT[999:]),
    "zstd": zstd(TEXT),
    "zstd in two frames": zstd(TEXT[:999]) + zstd(TEXT[999:]),
    "zstd behind a skippable frame": SKIPPABLE + zstd(TEXT),
}


def of_bytes(data):
    return Source("some.data", len(data), lambda: io.BytesIO(data))


def everything(source):
    with source.open() as file:
        return file.read()


def refused(*paths):
    with pytest.raises(StreamError) as stop:
        sources(paths)
    message = str(stop.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("how", PACKED)
def test_a_file_is_read_whole_whatever_its_name_says(how, tmp_path):
    path = tmp_path / "x.gz"  # the first bytes count, not the name
    path.write_bytes(PACKED[how])
    (source,) = sources([str(path)])
    for _ in range(2):  # as often as one likes
        with source.open() as file:
            assert source.position <= 4
            parts = list(iter(lambda: file.read(1000), b""))
        assert b"".join(parts) == TEXT
        assert source.position == source.size == len(PACKED[how])
    assert source.name == str(path)


@pytest.mark.parametrize("how", PACKED)
def test_standard_input_is_read_once_and_nothing_of_it_is_lost(how, standard_input):
    standard_input(PACKED[how])
    (source,) = sources(["-"])
    assert (source.name, source.size) == ("stdin", None)
    first = PACKED[how][: 1 << 16]
    assert source.fingerprint() == source.fingerprint() == [None, zlib.crc32(first)]
    assert everything(source) == TEXT
    assert source.position == len(PACKED[how])
    with pytest.raises(StreamError, match="stdin can be read only once"):
        source.open()


def test_standard_input_lies_in_a_temporary_file_for_random_access(standard_input):
    standard_input(TEXT)
    (source,) = sources(["-"])
    source.fingerprint()
    with source.random_access() as file:
        assert file.seek(-5, os.SEEK_END) == len(TEXT) - 5
        assert file.read() == TEXT[-5:]
        file.seek(0)
        assert file.read() == TEXT
    assert "more than once" in refused("-", "-")


def test_a_named_pipe_is_only_opened_to_be_read(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    (source,) = sources([str(path)])
    writer = threading.Thread(target=path.write_bytes, args=(TEXT,))
    writer.start()
    assert source.fingerprint() == [None, zlib.crc32(TEXT[: 1 << 16])]
    assert everything(source) == TEXT
    writer.join()


def test_files_as_they_are_stored(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(PACKED["gzip"])
    (source,) = sources([str(path)])
    assert source.fingerprint() == [path.stat().st_size, zlib.crc32(PACKED["gzip"][: 1 << 16])]
    with source.random_access() as file:
        file.seek(7)
        assert file.read() == PACKED["gzip"][7:]


def test_globs_are_sorted_and_leave_out_folders(tmp_path):
    for name in ("b.csv", "a.csv", "c.txt", "a[1].csv", "sub/d.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "folder.csv").mkdir()
    found = {
        pattern: [os.path.relpath(s.name, tmp_path) for s in sources([f"{tmp_path}/{pattern}"])]
        for pattern in ("*.csv", "[ab].csv", "a[1].csv", "**/?.csv")
    }
    assert found == {
        "*.csv": ["a.csv", "a[1].csv", "b.csv"],
        "[ab].csv": ["a.csv", "b.csv"],
        "a[1].csv": ["a[1].csv"],  # a file of that name comes first
        "**/?.csv": ["a.csv", "b.csv", "sub/d.csv"],
    }
    assert refused(f"{tmp_path}/*.json") == f"no file matches {tmp_path}/*.json"
    assert refused(str(tmp_path)) == f"{tmp_path} is a folder, not a file"
    assert refused(f"{tmp_path}/a.csv", f"{tmp_path}/no") == f"there is no file {tmp_path}/no"
    assert "cannot be read: Not a directory" in refused(f"{tmp_path}/a.csv/b")
    assert "cannot be read: embedded null byte" in refused("a\0b")
    assert refused("") == "there is no file "


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    path = tmp_path / "secret"
    path.touch()
    monkeypatch.setattr(module.os, "access", lambda path, mode: mode != os.R_OK)
    assert refused(str(path)) == f"{path} cannot be read: Permission denied"


def test_a_file_that_went_away(tmp_path):
    path = tmp_path / "x"
    path.touch()
    (source,) = sources([str(path)])
    path.unlink()
    for read in (source.open, source.random_access, source.fingerprint):
        with pytest.raises(StreamError, match="there is no file"):
            read()


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_a_packed_file_cut_off_anywhere_says_so(pack):
    packed = pack(TEXT[:300])
    for end in range(4, len(packed)):
        with pytest.raises(StreamError, match=r"^some.data cannot be read: \w"):
            everything(of_bytes(packed[:end]))
    with pytest.raises(StreamError, match=r"^some.data cannot be read: \w"):
        everything(of_bytes(packed + b"garbage"))


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
        text = everything(of_bytes(bytes(damaged)))
        assert damaged != packed or text == TEXT


def test_addresses_in_memory(memory):
    memory.pipe({"/d/b.csv": PACKED["gzip"], "/d/a.csv": TEXT, "/d/e/c.csv": b""})
    (source,) = sources(["memory://d/b.csv"])
    assert (source.name, source.size) == ("memory://d/b.csv", len(PACKED["gzip"]))
    assert source.fingerprint() == [source.size, zlib.crc32(PACKED["gzip"][: 1 << 16])]
    assert everything(source) == TEXT
    assert source.position == source.size
    found = sources(["memory://d/*.csv", "memory://d/e/c.csv"])
    assert [s.name.replace(":///", "://") for s in found] == [
        "memory://d/a.csv",
        "memory://d/b.csv",
        "memory://d/e/c.csv",
    ]
    assert everything(found[0]) == TEXT
    assert len(sources(["memory://d/*"])) == 2  # and no folder
    with found[0].random_access() as file:
        file.seek(7)
        assert file.read(5) == TEXT[7:12]
    assert refused("memory://d/z.csv") == "there is no file memory://d/z.csv"
    assert refused("memory://d/*.json") == "no file matches memory://d/*.json"
    assert refused("memory://d") == "memory://d is a folder, not a file"


@pytest.mark.parametrize("how", PACKED)
def test_addresses_on_the_web(how, web, tmp_path):
    (tmp_path / "x.csv").write_bytes(PACKED[how])
    (source,) = sources([f"{web}/x.csv?part=1"])
    assert (source.name, source.size) == (f"{web}/x.csv?part=1", len(PACKED[how]))
    assert everything(source) == TEXT
    assert source.position == source.size
    assert source.fingerprint() == [source.size, zlib.crc32(PACKED[how][: 1 << 16])]
    with source.random_access() as file:  # this server gives no parts of files
        file.seek(7)
        assert file.read() == PACKED[how][7:]


def test_globs_on_the_web_and_what_is_not_there(web, tmp_path):
    for name in ("b.csv", "a.csv", "c.txt"):
        (tmp_path / name).write_bytes(TEXT)
    assert [s.name for s in sources([f"{web}/*.csv"])] == [f"{web}/a.csv", f"{web}/b.csv"]
    assert refused(f"{web}/no.csv").startswith(f"{web}/no.csv cannot be read: 404")
    assert refused(f"{web}/*.json") == f"no file matches {web}/*.json"
    nowhere = refused("http://127.0.0.1:1/x.csv")
    assert nowhere.startswith("http://127.0.0.1:1/x.csv cannot be read: ")


def test_packages_that_are_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    address = "http://example.org/x.csv"
    assert refused(address) == (
        f"reading {address} needs another package: pip install 'spanboost[http]'"
    )
    monkeypatch.setitem(sys.modules, "s3fs", None)
    assert refused("s3://bucket/x.csv") == (
        "reading s3://bucket/x.csv needs another package: Install s3fs to access S3"
    )
    assert refused("nonsense://x") == "nonsense://x cannot be read: Protocol not known: nonsense"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("data/x.CSV.gz", "csv"),
        ("x.tsv", "tsv"),
        ("x.vw.ZST", "vw"),
        ("http://h/x.json.zstd?a=b.c#d.e", "json"),
        ("x.gz", ""),
        ("dir.csv/x", ""),
        ("-", ""),
        ("", ""),
        (".csv", ""),
    ],
)
def test_what_a_name_says(name, says):
    assert suffix(name) == says


@pytest.mark.process
def test_nothing_heavy_is_imported_for_a_plain_file(tmp_path):
    (tmp_path / "x.csv").write_bytes(TEXT)
    code = (
        "import sys; from spanboost.data.source import sources; "
        "sources(['x.csv'])[0].open().read(); "
        "print(sorted({'numba', 'numpy', 'pyarrow', 'fsspec', 'aiohttp'} & set(sys.modules)))"
    )
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
