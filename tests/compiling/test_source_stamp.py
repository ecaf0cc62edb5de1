"""The stamp of the disk cache covers everything that compiled code can contain."""

import ast
import importlib
import inspect
import os
import pkgutil
import types
from collections import namedtuple
from pathlib import Path

import spanboost
from spanboost.compiling.source_stamp import kernel_files, source_stamp

PACKAGE = Path(spanboost.__file__).parent
STAMPED = {os.path.relpath(path, PACKAGE) for path, _ in kernel_files(PACKAGE)}


def module_files():
    return {os.path.relpath(path, PACKAGE): path for path in PACKAGE.rglob("*.py")}


def file_of(module):
    return os.path.relpath(inspect.getfile(module), PACKAGE)


def test_files_without_kernels_are_not_stamped():
    unstamped = module_files().keys() - STAMPED
    assert {"__init__.py", "cli/main.py", "service/http/server.py", "models/files.py"} <= unstamped
    assert {"core/loop.py", "learners/tree_bank.py", "data/formats/decimals.py"} <= STAMPED
    assert {name for name in module_files() if name.startswith("compiling/")} <= STAMPED


def test_every_use_of_the_decorators_is_stamped():
    for name, path in module_files().items():
        tree = ast.parse(path.read_text())
        decorators = [
            item.func if isinstance(item, ast.Call) else item
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
            for item in node.decorator_list
        ]
        if any(isinstance(item, ast.Name) and item.id in {"kernel", "jit"} for item in decorators):
            assert name in STAMPED, name


def test_constants_that_kernels_import_are_stamped():
    for name in STAMPED:
        module = "spanboost." + name.removesuffix(".py").replace("/", ".")
        for node in ast.walk(ast.parse((PACKAGE / name).read_text())):
            if not isinstance(node, ast.ImportFrom) or "spanboost" not in (node.module or ""):
                continue
            source = importlib.import_module(node.module)
            for alias in node.names:
                value = getattr(source, alias.name, None)
                constant = isinstance(value, int | float | tuple) or hasattr(value, "dtype")
                assert not constant or file_of(source) in STAMPED, (module, alias.name)


def test_named_tuples_that_hold_arrays_are_stamped():
    """A class may reach compiled code as an argument, without a decorator."""
    for name in ("core", "learners", "losses", "rows", "models", "tuning"):
        package = importlib.import_module(f"spanboost.{name}")
        for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            module = importlib.import_module(info.name)
            for value in vars(module).values():
                if is_state(value) and value.__module__ == module.__name__:
                    assert file_of(module) in STAMPED, value


def is_state(value):
    """Return whether a class is a named tuple with arrays and with methods of its own."""
    if not (isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields")):
        return False
    own = vars(value).keys() - vars(namedtuple("Plain", value._fields)).keys()
    methods = [name for name in own if isinstance(vars(value)[name], types.FunctionType)]
    kinds = map(str, value.__annotations__.values())  # as written, or as Python shows the type
    return bool(methods) and any("Array" in kind or "ndarray" in kind for kind in kinds)


def test_the_file_of_the_compiled_function_is_stamped(tmp_path):
    """A function can be compiled without a decorator, in a file without kernels."""
    file = tmp_path / "loop.py"
    file.write_text("a = 1\n")
    before = source_stamp(str(file))
    file.write_text("a = 2\n")
    assert source_stamp(str(file)) != before
