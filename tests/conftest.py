import os

from hypothesis import settings

# Compiling takes longer than any deadline; a run that gates a change must not depend on luck.
settings.register_profile("default", deadline=None)
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable" if os.environ.get("CI") else "default")
