"""The paper's data sets: reading published files, downloads, and feature counts."""

import gzip
import hashlib
import io
import json
import os
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from spanboost.errors import UserError
from spanboost.paper import dataset_folder, lzw, published
from spanboost.paper.datasets import SETS
from spanboost.paper.raw_files import Raw, table_of, unpack_file
from spanboost.paper.table_content import count_features, digest, examples_of

DATA = Path(os.environ.get("SPANBOOST_DATA", "no such folder"))
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="SPANBOOST_DATA is not a folder with the data sets"
)
HERE = [name for name, one in SETS.items() if one.content is not None]


def compress(data: bytes, widest: int) -> bytes:
    """Compress as `compress -b widest` does, but never clear the table."""
    table = {bytes([value]): value for value in range(256)}
    groups, codes, width, used = [], [], 9, 257
    last = b""

    def flush(void: int) -> None:
        bits = sum(code << (k * width) for k, code in enumerate(codes))
        size = width if void else -(-len(codes) * width // 8)
        groups.append(bits.to_bytes(size, "little"))
        codes.clear()

    for value in [*data, None]:
        more = last + bytes([value]) if value is not None else None
        if more in table:
            last = more
            continue
        if last:
            codes.append(table[last])
            if len(codes) == 8:
                flush(0)
        if value is None:
            break
        if used < 1 << widest:
            if last:
                table[more] = used
                used += 1
            if used > 1 << width and width < widest:
                if codes:
                    flush(1)
                width += 1
        last = bytes([value])
    if codes:
        flush(0)
    return lzw.MAGIC + bytes([0x80 | widest]) + b"".join(groups)


@given(st.lists(st.integers(0, 3), max_size=4000).map(bytes), st.sampled_from([9, 10, 12, 16]))
def test_compressed_data_is_decompressed(data, widest):
    assert lzw.unpack(compress(data, widest)) == data


def test_wide_codes_are_decompressed():
    data = np.random.default_rng(0).integers(0, 256, 20_000).astype(np.uint8).tobytes()
    assert lzw.unpack(compress(data, 16)) == data


def test_a_cleared_table_begins_again():
    codes = [65, 66, 256]  # A B CLEAR, then a group of its own
    first = sum(code << (9 * k) for k, code in enumerate(codes)).to_bytes(9, "little")
    second = (67 | 257 << 9).to_bytes(9, "little")[:3]  # C, then CC: an entry not yet complete
    assert lzw.unpack(lzw.MAGIC + b"\x90" + first + second) == b"ABCCC"


def test_a_damaged_file_is_refused():
    with pytest.raises(UserError, match="damaged"):
        lzw.unpack(lzw.MAGIC + b"\x90" + (65 | 400 << 9).to_bytes(9, "little")[:3])


def test_the_tables_of_the_paper_are_complete():
    assert set(SETS) == set(published.DESCRIPTIONS) == set(published.TABLE_2)
    assert len(SETS) == 14
    for learner in published.LEARNERS:
        for algorithm in published.ALGORITHMS:
            gains = [published.TABLE_2[name][learner].improvement(algorithm) for name in SETS]
            for take, name in ((np.mean, "average"), (np.median, "median")):
                printed = published.TABLE_1[learner][name][algorithm]
                # losses have four decimals, of which two are significant for slice and year
                assert take(gains) == pytest.approx(printed, abs=0.006), (learner, algorithm)


def test_labels_lie_where_the_paper_says():
    assert list(SETS["activity"].label(np.array(["sitting", "walking"]))) == [1, -1]
    assert list(SETS["letter"].label(np.array(["A", "M", "N", "Z"]))) == [1, 1, -1, -1]
    assert list(SETS["cal_housing"].label(np.array([14_999, 500_001]))) == [0, 1]
    assert list(SETS["covtype"].label(np.array([1, 2, 3]))) == [-1, 1, -1]


def zip_file(name: str, data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, data)
    return file.getvalue()


def tar_file(name: str, data: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "member"),
    [
        (b"a,b", None),
        (gzip.compress(b"a,b", mtime=0), None),
        (compress(b"a,b", 16), None),
        (zip_file("x/wanted.csv", b"a,b"), "wanted.csv"),
        (tar_file("wanted.csv", b"a,b"), "wanted.csv"),
    ],
    ids=["plain", "gzip", "compress", "zip", "tar"],  # the bytes of archives contain the time
)
def test_files_are_unpacked_by_their_content(data, member):
    assert unpack_file(data, member) == b"a,b"


def test_an_archive_without_the_file_is_refused():
    with pytest.raises(UserError, match=r"the archive does not contain wanted\.csv"):
        unpack_file(zip_file("other.csv", b""), "wanted.csv")


def test_a_published_table_is_read_as_described():
    raw = Raw(
        ("",),
        delimiter=";",
        decimal=",",
        header=True,
        label=0,
        comment="|",
        broken="oops",
        ending=".",
        missing=("999",),
        ignored=(2,),
    )
    text = b"l;a;b;c\n|note\n yes.;1,5; x;7\nno;oops;y;8\nno;999;y;9\n"
    table = table_of(raw, [text, b"l;a;b;c\nyes;2;z;1\n"])
    assert table.column_names == ["f1", "f2", "label"]
    assert table.column("f1").to_pylist() == [1.5, None, 2.0]
    assert table.column("f2").to_pylist() == [7, 9, 1]
    assert table.column("label").to_pylist() == ["yes", "no", "yes"]


def test_a_digest_depends_on_values_not_on_types():
    text = pa.array(["b", "a", "b"])
    one = pa.table({"x": pa.array([1, 2, 3], pa.int8()), "label": text})
    two = pa.table({"x": pa.array([1.0, 2.0, 3.0]), "label": text.dictionary_encode()})
    assert digest(one) == digest(two)
    assert digest(one) != digest(one.slice(0, 2))
    assert digest(one) != digest(one.set_column(1, "label", pa.array(["b", "b", "a"])))


@needs_data
@pytest.mark.parametrize("name", HERE)
def test_encodings_have_the_counts_of_the_paper(name):
    one = SETS[name]
    table = dataset_folder.read(one, DATA)
    assert digest(table) == one.content
    examples = examples_of(one, table)
    features, active = count_features(examples)
    assert (features, round(active, 2)) == (one.features, one.active)
    assert abs(len(examples.y) - one.paper.rows) <= 1  # three sets lack a row in the paper
    if name not in ("bank", "activity"):  # see their remarks
        assert one.paper.features - features in (0, 1)  # 1: the paper counts a constant
        assert abs(one.paper.active - active) < 0.51 or abs(one.paper.active - active - 1) < 0.06
    assert (examples.y.min(), examples.y.max()) == (one.paper.low, one.paper.high)
    assert np.abs(examples.y).max() == one.largest


def write_published_files(one, table) -> list[bytes]:
    """Return files in the published format with the content of a table."""
    raw, count = one.raw, table.num_columns
    if raw.svmlight:
        X = np.column_stack([column.to_numpy() for column in table.columns])
        lines = (
            f"{row[-1]:+d} " + " ".join(f"{j + 1}:1" for j in np.flatnonzero(row[:-1])) for row in X
        )
        return ["\n".join(lines).encode()]
    columns = [column.to_pylist() for column in table.columns]
    at = raw.label % count
    columns.insert(at, columns.pop())
    texts = [
        [
            str(value).replace(".", raw.decimal) if isinstance(value, float) else str(value)
            for value in column
        ]
        for column in columns
    ]
    gap = raw.delimiter + (" " if one.name in ("adult", "census") else "")
    lines = [gap.join(row) for row in zip(*texts, strict=True)]
    head = [gap.join(f"c{j}" for j in range(count))] if raw.header else []
    if raw.comment:
        head = [f"{raw.comment}1x3 Cross validator"]
    data = "\n".join([*head, *lines, ""]).encode()
    return [zip_file(raw.member, data) if raw.member else data]


@needs_data
@pytest.mark.parametrize("name", [name for name in HERE if name not in ("census", "covtype")])
def test_published_files_are_read_as_the_folder_has_them(name):
    one = SETS[name]
    assert (
        digest(table_of(one.raw, write_published_files(one, dataset_folder.read(one, DATA))))
        == one.content
    )


ABALONE = b"M,0.455,0.365,0.095,0.514,0.2245,0.101,0.15,15\nF,0.35,0.265,0.09,0.2,0.1,0.05,0.07,7\n"


@pytest.fixture
def archive():
    """A local web server, and the dict of its files."""
    files = {"/abalone.data": ABALONE}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            data = files.get(self.path)
            self.send_response(200 if data is not None else 404)
            self.send_header("Content-Length", str(len(data or b"") + (self.path == "/short")))
            self.end_headers()
            self.wfile.write(data or b"")

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", files
    server.shutdown()
    thread.join()
    server.server_close()


def small(address: str, **changes):
    """Return abalone with this address."""
    one = SETS["abalone"]
    raw = one.raw._replace(addresses=(address,))
    return one._replace(raw=raw, content=None)._replace(**changes)


def test_a_download_is_kept_as_a_table(archive, tmp_path):
    address, files = archive
    sizes = []
    one = small(f"{address}/abalone.data")
    dataset_folder.download(one, tmp_path, lambda *size: sizes.append(size))
    assert sizes[-1] == (len(ABALONE), len(ABALONE))
    examples = examples_of(one, dataset_folder.read(one, tmp_path))
    assert list(examples.y) == [15, 7]
    assert examples.X.numbers.shape == (2, 7)
    assert examples.X.codes.tolist() == [[0], [1]]
    noted = json.loads((tmp_path / "downloads" / "checksums.json").read_text())
    assert noted == {"abalone.0.abalone.data": f"sha256:{hashlib.sha256(ABALONE).hexdigest()}"}
    files.clear()  # existing files are not downloaded again
    dataset_folder.download(one, tmp_path, lambda *_: None)


def test_a_later_download_must_match_the_first(archive, tmp_path):
    address, files = archive
    one = small(f"{address}/abalone.data")
    dataset_folder.download(one, tmp_path, lambda *_: None)
    (tmp_path / "downloads" / "abalone.0.abalone.data").unlink()
    files["/abalone.data"] = ABALONE.replace(b"0.455", b"0.456")
    with pytest.raises(UserError, match="does not match the checksum sha256:"):
        dataset_folder.download(one, tmp_path, lambda *_: None)


@pytest.mark.parametrize(
    ("path", "changes", "message"),
    [
        ("/nothing", {}, "is not available: Not Found"),
        ("/short", {}, "the download ended after"),
        ("/abalone.data", {"content": "0" * 64}, "values differ from those published"),
        ("/torn", {}, "cannot read the downloaded files"),
    ],
)
def test_a_bad_download_is_one_sentence(archive, tmp_path, path, changes, message):
    address, files = archive
    files |= {"/short": ABALONE, "/torn": b"M,1,2\nF,1\n"}
    with pytest.raises(UserError, match=message):
        dataset_folder.download(small(address + path, **changes), tmp_path, lambda *_: None)
    assert not (tmp_path / "abalone.parquet").exists()


def test_an_unreachable_archive_is_one_sentence(tmp_path):
    with pytest.raises(UserError, match="is not available"):
        dataset_folder.download(small("http://127.0.0.1:9/abalone.data"), tmp_path, lambda *_: None)


def test_a_recorded_checksum_must_match(archive, tmp_path):
    address, _ = archive
    one = small(f"{address}/abalone.data")
    good = one.raw._replace(checksums=(f"md5:{hashlib.md5(ABALONE).hexdigest()}",))
    dataset_folder.download(one._replace(raw=good), tmp_path, lambda *_: None)
    bad = one.raw._replace(checksums=("md5:" + "0" * 32,))
    with pytest.raises(UserError, match="does not match the checksum md5:000"):
        dataset_folder.download(one._replace(raw=bad), tmp_path, lambda *_: None)


@pytest.mark.parametrize("labels", [[1, 30], ["a", "b"], [1.0, None]])
def test_labels_of_other_data_are_refused(labels):
    with pytest.raises(UserError, match="abalone: the labels are not the published ones"):
        examples_of(SETS["abalone"], pa.table({"x": [1.0, 2.0], "label": labels}))


def test_a_table_without_labels_is_refused(tmp_path):
    parquet.write_table(pa.table({"a": [1, 2]}), tmp_path / "letter.parquet")
    with pytest.raises(UserError, match="last column must be `label`"):
        dataset_folder.read(SETS["letter"], tmp_path)
    (tmp_path / "letter.parquet").write_bytes(b"no Parquet at all")
    with pytest.raises(UserError, match="is not a Parquet file"):
        dataset_folder.read(SETS["letter"], tmp_path)
