"""The structure of the source: few modules, short files, layers, and no access to private state."""

import ast
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "spanboost"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Private attributes of other objects that the source may use: {(package, attribute): reason}.
ALLOWED_PRIVATE = {
    ("compiling", "_cache"): "Numba has no public way to set the cache of a function",
    ("compiling", "_cache_file"): "Numba's cache has no public index file",
    ("compiling", "_impl"): "Numba's cache has no public file name",
    ("parallel", "_worker_logs_enabled"): "Ray has no public way to turn off this log",
}
DOCUMENTED = {"os._exit", "sys._getframe"}  # private by name only
NAMED_TUPLE_METHODS = {"_asdict", "_field_defaults", "_fields", "_make", "_replace"}
MODEL_CLASSES = {"AutoBoost", "Booster", "Committee", "HullBoost", "SpanBoost"}


def relative(path):
    return path.relative_to(PACKAGE).as_posix()


def nodes(path):
    return list(ast.walk(ast.parse(path.read_text())))


def test_few_modules_and_packages_at_the_top():
    modules = sorted(path.stem for path in PACKAGE.glob("*.py"))
    packages = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
    assert len(modules) <= 8, f"put new modules into a package: src/spanboost has {modules}"
    assert len(packages) <= 14, f"extend an existing package: src/spanboost has {packages}"


def test_files_have_at_most_400_lines():
    sources = [
        path for ending in ("py", "js", "css", "html") for path in PACKAGE.rglob(f"*.{ending}")
    ]
    lengths = {relative(path): len(path.read_text().splitlines()) for path in sources}
    long = {name: lines for name, lines in lengths.items() if lines > 400}
    assert not long, f"split these files, which have more than 400 lines: {long}"


def test_every_package_has_a_place_in_at_most_8_layers():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (contract,) = (one for one in settings["contracts"] if one["containers"] == ["spanboost"])
    layers = contract["layers"]
    assert contract["type"] == "layers"
    assert len(layers) <= 8, f"the import contract has {len(layers)} layers, more than 8"
    placed = [name for layer in layers for name in layer.replace("|", ":").split(":")]
    placed = sorted(name.strip() for name in placed)
    ignored = {"__init__", *contract["exhaustive_ignores"]}
    top = {path.stem for path in PACKAGE.glob("*.py")} - ignored
    top |= {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert ignored == {"__init__", "__main__"}, "only __main__ may be outside the import contract"
    assert placed == sorted(top), "the layers in pyproject.toml and the packages differ"


def test_test_modules_have_different_names():
    """Pytest imports them by name, without their folder."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, number in names.items() if number > 1] == []


def defined_names(tree):
    """Return the functions, classes and attributes that a module defines itself."""
    names = set()
    for node in tree:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), ctx=ast.Store()):
                names.add(node.attr)
        if isinstance(node, ast.ClassDef):
            targets = [
                target
                for part in node.body
                if isinstance(part, ast.Assign | ast.AnnAssign)
                for target in (part.targets if isinstance(part, ast.Assign) else [part.target])
            ]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def private_accesses(tree):
    """Yield the accesses to private attributes of objects that another module defines."""
    defined = defined_names(tree) | NAMED_TUPLE_METHODS
    for node in tree:
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_"):
            continue
        match node.value:
            case ast.Name(id="self" | "cls") | ast.Call(func=ast.Name(id="super")):
                continue
        allowed = node.attr in defined or ast.unparse(node) in DOCUMENTED
        if not node.attr.startswith("__") and not allowed:
            yield node


def test_private_attributes_stay_private():
    found = [(relative(path), node) for path in MODULES for node in private_accesses(nodes(path))]
    other = [
        f"{file}:{node.lineno}: {ast.unparse(node)}"
        for file, node in found
        if (file.split("/")[0], node.attr) not in ALLOWED_PRIVATE
    ]
    assert not other, f"use or add a public method instead of these private attributes: {other}"
    assert len(found) <= 10, f"{len(found)} accesses to private attributes, more than 10"
    unused = ALLOWED_PRIVATE.keys() - {(file.split("/")[0], node.attr) for file, node in found}
    assert not unused, f"remove these from ALLOWED_PRIVATE, nothing uses them: {unused}"


def test_private_attributes_are_recognised():
    source = """
class Own:
    _shared = 1
    def method(self, other):
        self._state = other._state
        return super()._base, other._replace(a=1), other._shared, other.__class__, other._foreign
"""
    tree = list(ast.walk(ast.parse(source)))
    assert [ast.unparse(node) for node in private_accesses(tree)] == ["other._foreign"]


def checked_classes(node):
    """Return the model classes that a call of isinstance or issubclass checks for."""
    match node:
        case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, classes]):
            names = {part.id for part in ast.walk(classes) if isinstance(part, ast.Name)}
            return names & MODEL_CLASSES
        case ast.MatchClass(cls=ast.Name(id=name)):
            return {name} & MODEL_CLASSES
    return set()


def test_few_files_distinguish_kinds_of_models():
    files = [
        relative(path)
        for path in MODULES
        if PACKAGE / "models" not in path.parents and any(map(checked_classes, nodes(path)))
    ]
    assert len(files) <= 3, f"add a method to Model instead of checks with isinstance: {files}"
