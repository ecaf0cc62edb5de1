import os

from hypothesis import settings

# Compiling takes longer than any deadline; a run that gates a change must not depend on luck.
settings.register_profile("default", deadline=None)
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable" if os.environ.get("CI") else "default")


def pytest_collection_modifyitems(items):
    """A name with an address in it differs between processes, and parallel runs refuse it."""
    assert not [item.nodeid for item in items if " at 0x" in item.nodeid]
