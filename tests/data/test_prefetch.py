"""Items produced in a background thread."""

import gc
import weakref

import pytest

from spanboost.data.prefetch import prefetch


class File:
    """Stands for a file that a generator keeps open."""


def test_an_error_leaves_no_cycle_that_keeps_files_open():
    files = []

    def read():
        file = File()
        files.append(weakref.ref(file))
        yield 1
        raise ValueError("a bad row")

    gc.disable()
    try:
        with pytest.raises(ValueError, match="a bad row") as failure:
            list(prefetch(read(), 2))
        del failure
        assert files[0]() is None
    finally:
        gc.enable()
