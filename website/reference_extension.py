"""Griffe extension: docstrings and constructors of the package as mkdocstrings shows them.

Constructors that models and estimators inherit from a specification are read from the running
package, because their defaults are computed.
"""

import inspect
from importlib import import_module
from typing import Any

import docstrings  # MkDocs has imported it with its hooks
import griffe


class Docstrings(griffe.Extension):
    """Rewrites docstrings, and gives the listed classes the constructors that they have."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of an object."""
        if obj.docstring:
            obj.docstring.value = docstrings.markdown(obj.docstring.value)

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Add constructors when every base class is known."""
        for name in docstrings.names():
            found = pkg[name.removeprefix(f"{pkg.name}.")]
            found = found.final_target if found.is_alias else found
            if (
                found.is_class
                and not _has_source(found)
                and "Protocol" not in map(str, found.bases)
            ):
                _add_constructor(found)


def _has_source(found: griffe.Object) -> bool:
    """Return whether the source defines the constructor; a protocol has none."""
    made = found.all_members.get("__init__")
    return "Protocol" in map(str, found.bases) or (made is not None and made.is_function)


def _add_constructor(found: griffe.Object) -> None:
    running = getattr(import_module(found.module.path), found.name)
    if found.docstring and running.__doc__:  # a decorator may have completed it
        found.docstring.value = docstrings.markdown(running.__doc__)
    try:
        signature = inspect.signature(running)
    except ValueError:  # an exception with the constructor of Python
        return
    made = griffe.Parameters(_parameter("self", "positional_or_keyword"))
    for one in signature.parameters.values():
        default = None if one.default is one.empty else _text(one.default)
        made.add(_parameter(one.name, one.kind.name.lower(), _annotation(found, one), default))
    found.set_member("__init__", griffe.Function("__init__", parameters=made, parent=found))


def _parameter(name: str, kind: str, annotation: Any = None, default: Any = None) -> Any:
    kinds = griffe.ParameterKind
    return griffe.Parameter(name, kind=kinds[kind], annotation=annotation, default=default)


def _annotation(found: Any, one: inspect.Parameter) -> Any:
    """Return a type as the source spells it."""
    members = [cls.members.get(one.name) for cls in (found, *found.mro())]
    typed = [member for member in members if getattr(member, "annotation", None)]
    # an attribute without a value can have another type than the parameter of the same name
    typed.sort(key=lambda member: member.value is None)
    if typed:
        spelled = typed[0].annotation
        return spelled.slice if str(spelled).startswith("InitVar[") else spelled
    return None if one.annotation is one.empty else inspect.formatannotation(one.annotation)


def _text(default: Any) -> str:
    return default.__name__ if isinstance(default, type) else repr(default)
