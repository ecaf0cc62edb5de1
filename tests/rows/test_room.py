"""Room for entries: zeros, of the kind that NumPy makes, that take memory when they are written."""

import pickle
import sys

import numpy as np
import pytest

from spanboost.rows.room import new_room


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("shape", [0, 5, (0, 3), (7, 0, 2), (1000, 3, 64), 2**20])
def test_room_is_an_array_of_zeros(shape, dtype):
    room, plain = new_room(shape, dtype), np.zeros(shape, dtype)
    np.testing.assert_array_equal(room, plain)
    assert room.dtype == plain.dtype
    assert room.flags.c_contiguous
    assert room.flags.aligned
    room[...] = 1
    assert (pickle.loads(pickle.dumps(room)) == 1).all()


def test_rooms_are_apart():
    first, second = new_room(2**20, np.float32), new_room(2**20, np.float32)
    first[...] = 1
    assert not second.any()


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_only_what_is_written_takes_memory():
    size = 2**28
    before = resident()
    room = new_room(size, np.uint8)
    room[: size // 256] = 1
    assert resident() - before < size // 16
