"""Files that commands write: complete, or an error; a different kind of file is not replaced."""

import errno
import io
import os
import sys

import pyarrow as pa
import pytest

from spanboost.cli.output.predictions import open_writer


class SmallDisk(io.RawIOBase):
    """An unbuffered file on a disk with room for a few bytes."""

    def __init__(self, room):
        self.room, self.content = room, b""

    def writable(self):
        return True

    def write(self, data):
        taken = bytes(data)[: self.room - len(self.content)]
        if not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.content += taken
        return len(taken)


def test_a_disk_that_is_full_in_the_last_block_is_an_error(monkeypatch):
    """With PYTHONUNBUFFERED, standard output takes a part of the bytes without an error."""
    table = pa.table({"prediction": [*range(1000)]})
    text = "\n".join(["prediction", *map(str, range(1000)), ""]).encode()
    for room in (len(text) - 1, len(text)):
        disk = SmallDisk(room)
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(disk))
        if room < len(text):
            with pytest.raises(OSError, match="No space") as error, open_writer("-") as output:
                output.write(table)
            assert error.value.filename == "standard output"
        else:
            with open_writer("-") as output:
                output.write(table)
        assert disk.content == text[:room]
