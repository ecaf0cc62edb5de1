"""The public names of the modules that users import."""

import importlib

import pytest


@pytest.mark.parametrize("name", ["client", "river", "sklearn"])
def test_modules_list_their_public_classes(name):
    module = importlib.import_module(f"spanboost.{name}")
    own = {
        key
        for key, one in vars(module).items()
        if isinstance(one, type) and one.__module__ == module.__name__ and key[0] != "_"
    }
    assert set(module.__all__) == own - {"Asked"}
