"""Kernels: plain Python functions and classes that can also run as compiled code.

``@kernel`` marks a function, or a ``NamedTuple`` class with methods, as usable from compiled code;
nothing is compiled, and Numba is not even imported, until a function marked ``@jit``, or one run
by a ``Caller``, is called on arrays. A method call ``loss.gradient(...)`` on a ``NamedTuple`` is
compiled as the method of that class, so the same source runs plain and compiled.
"""

import functools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, overload

from spanboost.compiling.dispatchers import find_machine_code, get_dispatcher
from spanboost.compiling.jobs import new_job, paused_collection
from spanboost.compiling.registration import add_kernels
from spanboost.compiling.rehearsal import is_recording, obtain, record

T = TypeVar("T", bound=Callable[..., Any] | type)

_PACKAGE = __name__.partition(".")[0]
_LONGEST_REASON = 200  # characters of a message of Numba
_counted: set[Any] = set()  # classes that need references to be counted
_plain = False


@overload
def kernel(item: T) -> T: ...


@overload
def kernel(*, counted: bool) -> Callable[[T], T]: ...


def kernel(item: Any = None, *, counted: bool = False) -> Any:
    """Mark a function or NamedTuple class as usable from compiled code; it stays plain Python.

    Loops with a `counted` class among their arguments count references, as in `jit`.
    """
    if item is None:
        return functools.partial(kernel, counted=counted)
    add_kernels([item])
    if counted:
        _counted.add(item)
    return item


def jit(function: Any = None, *, counted: bool = False) -> Any:
    """Run `function` compiled when every argument is an array, a number or a NamedTuple of those.

    With any other argument (an object bank, a loss that is an ordinary class) the same source runs
    as plain Python. Set `counted` if the function creates arrays: references to them must then be
    counted, which costs several times what most kernels do.
    """
    if function is None:
        return functools.partial(jit, counted=counted)

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        version = _find_version(function, args, counted)
        if is_recording():
            _record(version, args)
            return function(*args)
        return version(*args)

    return call


class Caller:
    """Runs functions as `jit` does (not `counted`), with arguments whose types never change.

    Looking at the types of a model's many arrays takes longer than learning a row. A Caller does it
    once for each function. Types are dtypes, dimensions and layouts; compiled code does not check
    them again.
    """

    def __init__(self) -> None:
        self._found: dict[Any, Callable[..., Any]] = {}

    def __call__(self, function: Callable[..., Any], *args: Any) -> None:
        """Run function(*args)."""
        self.find(function, *args)(*args)

    def find(self, function: Callable[..., Any], *args: Any) -> Callable[..., Any]:
        """Return what runs a function with such arguments: compiled code, if they are arrays.

        It can be kept while `runs_plainly` returns the same.
        """
        if is_recording():
            _record(_find_version(function, args, False), args)
            return function
        found = None if _plain else self._found.get(function)
        if found is None:
            found = _find_version(function, args, False)
            if hasattr(found, "overloads"):
                _obtain(found, args)
                with paused_collection():
                    found = find_machine_code(found, args)
            if not _plain:
                self._found[function] = found
        return found

    def __reduce__(self) -> Any:
        return Caller, ()  # copies and pickles find the functions again


@contextmanager
def plain() -> Iterator[None]:
    """Run everything as plain Python inside this block, to check or debug compiled code."""
    global _plain  # noqa: PLW0603
    before, _plain = _plain, True
    try:
        yield
    finally:
        _plain = before


def runs_plainly() -> bool:
    """Return whether functions run as plain Python: inside `plain`, or in a rehearsal."""
    return _plain or is_recording()


def _find_version(
    function: Callable[..., Any], args: tuple[Any, ...], counted: bool
) -> Callable[..., Any]:
    """Return Numba's version of a function for such arguments, or the plain one."""
    classes = set[type]()
    if _plain or not all(_is_compilable(arg, classes) for arg in args):
        return function
    add_kernels(classes)
    foreign = [cls for cls in classes if cls.__module__.partition(".")[0] != _PACKAGE]
    if not foreign:
        counted = counted or not classes.isdisjoint(_counted)
        return get_dispatcher(function, keep=True, counted=counted)
    # not kept on disk: the stamp of our source says nothing about the source of these classes
    dispatcher = get_dispatcher(function, keep=False, counted=True)
    return functools.partial(_run_foreign, foreign, dispatcher)


def _is_compilable(value: Any, classes: set[type]) -> bool:
    """Tell whether compiled code can take a value; adds the NamedTuple classes in it."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        classes.add(type(value))
        return all(_is_compilable(item, classes) for item in value)
    return hasattr(value, "dtype") or isinstance(value, int | float)


def _record(version: Callable[..., Any], args: tuple[Any, ...]) -> None:
    job = new_job(version, args) if hasattr(version, "overloads") else None
    if job is not None:
        record(job)


def _obtain(dispatcher: Any, args: tuple[Any, ...]) -> None:
    """Let helpers compile at the same time if the code for such arguments is not on disk."""
    job = new_job(dispatcher, args)
    if job is not None and not job.is_done:
        obtain(job)


def _run_foreign(foreign: list[type], dispatcher: Callable[..., Any], *args: Any) -> Any:
    from numba.core.errors import NumbaError

    try:
        return dispatcher(*args)
    except NumbaError as error:
        names = ", ".join(cls.__name__ for cls in foreign)
        raise TypeError(
            f"{names} cannot be compiled: {_innermost_reason(str(error))}; as an ordinary class "
            "instead of a NamedTuple it would run as plain Python"
        ) from error


def _innermost_reason(message: str) -> str:
    """Return the last reason in a message of Numba, which nests one in the other, and its place."""
    plain = re.sub("\x1b\\[[0-9;]*m", "", message)
    inner = plain.rpartition("nopython frontend)")[2].partition("raised from")[0]
    first, *others = [line.strip() for line in inner.splitlines() if line.strip()] or ["unknown"]
    call = next((f" {line}" for line in others[:1] if line.startswith(">>>")), "")
    place = re.search(r"\bat (\S+) \((\d+)\)", inner)
    where = "" if place is None else f" ({place[1]}:{place[2]})"
    return f"{first}{call}"[:_LONGEST_REASON] + where
