"""Text in UTF-16, as Excel writes it, is read like the same text in UTF-8."""

import codecs
import gzip
import io
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanboost.data.problems import StreamError
from spanboost.data.schema import Schema
from spanboost.data.source import Source
from spanboost.data.stream import Stream
from spanboost.data.target import NumberTarget
from spanboost.data.utf16 import Utf8Bytes

EXCEL = codecs.BOM_UTF16_LE + "größe\tstadt\tmiete\r\n40,5\tUlm\t310\r\n45\tKöln\t390\r\n".encode(
    "utf-16-le"
)


class Trickle(io.BytesIO):
    """A file that returns few bytes at a time, as a pipe can."""

    def readinto(self, target):
        return super().readinto(memoryview(target)[:3])


def convert(data):
    return Utf8Bytes("x", Trickle(data)).read()


@given(st.text(), st.sampled_from(["utf-16-le", "utf-16-be"]))
def test_text_is_converted(text, encoding):
    assert convert(("\ufeff" + text).encode(encoding)) == text.encode()


@given(st.binary())
def test_other_bytes_are_not_changed(data):
    if data[:2] not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) and b"\0" not in data[:2]:
        assert convert(data) == data


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("name", ["x.txt", "x.csv", "x.tsv"])
def test_the_unicode_text_of_excel_is_read(pack, name, tmp_path):
    path = tmp_path / name
    path.write_bytes(pack(EXCEL))
    schema = Schema("table", NumberTarget())
    (batch,) = Stream([str(path)]).batches(schema, labelled=True)
    assert batch.X.numbers.tolist() == [[40.5], [45]]
    assert batch.y.tolist() == [310, 390]
    assert [column.name for column in schema.columns] == ["größe", "stadt"]
    assert [*schema.columns[1].codes] == ["Ulm", "Köln"]


def test_a_pipe_is_read(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(EXCEL,))
    writer.start()
    (batch,) = Stream([str(path)]).batches(Schema("table", NumberTarget()), labelled=True)
    writer.join()
    assert batch.y.tolist() == [310, 390]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("a\n".encode("utf-16-le"), "convert it with iconv -f UTF-16LE -t UTF-8"),
        ("a\n".encode("utf-16-be"), "convert it with iconv -f UTF-16BE -t UTF-8"),
        (EXCEL[:-1], "x: the file is damaged: invalid UTF-16"),
        (codecs.BOM_UTF16_LE + b"\x00\xdca\0", "x: the file is damaged: invalid UTF-16"),
    ],
)
def test_other_utf_16_is_refused(data, message):
    source = Source("x", len(data), lambda: io.BytesIO(data))
    with pytest.raises(StreamError) as caught:
        source.open().read()
    assert message in str(caught.value)
