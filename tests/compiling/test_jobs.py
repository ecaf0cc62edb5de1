"""While code is compiled, the garbage collector pauses; afterwards it works as before."""

import gc

import pytest

from spanboost.compiling.jobs import paused_collection


@pytest.fixture(autouse=True)
def collecting():
    gc.unfreeze()
    gc.enable()
    yield
    gc.unfreeze()
    gc.enable()


def is_in(item, objects):
    return any(item is other for other in objects)


def test_objects_of_a_pause_are_old_afterwards_and_still_collected():
    with paused_collection():
        assert not gc.isenabled()
        item = []
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
    assert not is_in(item, gc.get_objects(generation=0))
    assert is_in(item, gc.get_objects())


def test_what_the_program_has_frozen_stays_frozen():
    gc.freeze()
    frozen = gc.get_freeze_count()
    with paused_collection():
        item = []
    assert gc.isenabled()
    assert gc.get_freeze_count() <= frozen
    assert gc.get_freeze_count() > 0
    assert is_in(item, gc.get_objects())  # these are not frozen


def test_a_collector_that_the_program_has_turned_off_stays_off():
    gc.disable()
    with paused_collection(), paused_collection():
        pass
    assert not gc.isenabled()


def test_an_inner_pause_does_not_end_the_outer_one():
    with paused_collection():
        with paused_collection():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
