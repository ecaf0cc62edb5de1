"""Tell Numba about kernels: functions as they are, classes by the names of their methods."""

import inspect
import threading
from collections.abc import Callable, Iterable
from typing import Any

Options = dict[str, Any]
AddMethod = Callable[[str, Callable[..., Any], Options], None]

_waiting: list[Any] = []  # kernels not registered with Numba yet
_known: set[Any] = set()  # kernels that are registered or waiting
_compiled: dict[Any, Callable[[Options], None]] = {}  # functions with compiled code of their own
_methods: dict[str, int] = {}  # number of arguments of every registered method name
_overloaded: set[str] = set()  # method names known to `overload_name`
_fieldless: set[type] = set()  # registered NamedTuple classes without fields
_lock = threading.RLock()


def add_kernels(items: Iterable[Any]) -> None:
    """Remember functions and NamedTuple classes until something is compiled."""
    with _lock:
        for item in items:
            if item not in _known:
                _known.add(item)
                _waiting.append(item)


def add_compiled(function: Any, register: Callable[[Options], None]) -> None:
    """Remember a kernel whose compiled form differs from its source.

    register: tells Numba about that form.
    """
    _compiled[function] = register
    add_kernels([function])


def register_kernels(options: Options, add_method: AddMethod) -> None:
    """Register all remembered kernels with Numba, to be compiled with these options.

    add_method: takes the name of a method, the method, and the options.

    The lock lets a second thread compile only when all kernels are registered. Nothing inside it
    waits for Numba's own lock, which a caller may hold.
    """
    with _lock:
        while _waiting:
            item = _waiting.pop(0)
            try:
                _register(item, options, add_method)
            except TypeError:
                _known.discard(item)  # the next call with it fails as well
                raise


def _register(item: Any, options: Options, add_method: AddMethod) -> None:
    from numba.extending import register_jitable

    if item in _compiled:
        _compiled[item](options)
    elif inspect.isfunction(item):
        register_jitable(**options)(item)
    else:
        _register_class(item, options, add_method)


def _register_class(item: Any, options: Options, add_method: AddMethod) -> None:
    from numba import types

    if not item._fields:
        _fieldless.add(item)
        types.NamedTuple.__bool__ = _has_receiver
    for name, method in inspect.getmembers(item, inspect.isfunction):
        if name.startswith("_"):
            continue
        arguments = method.__code__.co_argcount
        if _methods.setdefault(name, arguments) != arguments:
            raise TypeError(
                f"{item.__name__}.{name} takes {arguments} arguments, but in compiled code "
                f"every method called {name!r} takes {_methods[name]}"
            )
        add_method(name, method, options)


def _has_receiver(self: Any) -> bool:
    """Return the truth value of a NamedTuple type, which is its length except for our classes.

    Numba leaves out `self` in a method call when the type of `self` is false, and a tuple type
    without elements is. No public interface changes that, so the types of registered classes
    without fields are true. All other types, those of other people's code included, keep the
    truth value they have without this function.
    """
    return len(self) > 0 or self.instance_class in _fieldless


def overload_name(name: str, example: Callable[..., Any], options: Options) -> None:
    """Let compiled code find methods of this name, with Numba's public names."""
    from numba import types
    from numba.extending import overload_method

    if name in _overloaded:
        return
    _overloaded.add(name)

    def resolve(self: Any, *_: Any) -> Any:
        return find_method(self, name)

    resolve.__signature__ = inspect.signature(example)  # type: ignore[attr-defined]
    # looked up after BaseNamedTuple's own attributes, so that a field of this name wins
    overload_method(types.BaseTuple, name, strict=False, jit_options=options)(resolve)


def find_method(kind: Any, name: str) -> Callable[..., Any] | None:
    """Return the method of a NamedTuple type, or None."""
    method = getattr(getattr(kind, "instance_class", None), name, None)
    return method if inspect.isfunction(method) else None
