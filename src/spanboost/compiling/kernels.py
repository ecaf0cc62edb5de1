"""The one place that touches Numba: compile a loop, find methods, keep the disk cache honest.

Kernels are plain Python. ``@kernel`` marks a function, or a ``NamedTuple`` class with methods, as
usable from compiled code; nothing is compiled, and Numba is not even imported, until a function
marked ``@jit``, or one run by a ``Caller``, is called on arrays. A method call
``loss.gradient(...)`` on a ``NamedTuple`` is compiled as the method of that class, so the same
source runs plain and compiled.
"""

import functools
import hashlib
import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, overload

T = TypeVar("T", bound=Callable[..., Any] | type)

_PACKAGE = __name__.partition(".")[0]
_waiting: list[Any] = []  # kernels Numba has not been told about yet
_known: set[Any] = set()  # classes met as arguments, and kernels it has been told about
_methods: dict[str, int] = {}  # method names Numba can already resolve, and how many arguments
_counted: set[Any] = set()  # those that need references to be counted
_plain = False
_compiling = threading.RLock()  # Numba's own lock does not cover what is told to it before


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
    _waiting.append(item)
    if counted:
        _counted.add(item)
    return item


def jit(function: Any = None, *, counted: bool = False) -> Any:
    """Run `function` compiled when every argument is an array, a number or a NamedTuple of those.

    Anything else among the arguments (an object bank, a loss that is an ordinary class) runs the
    same source as plain Python. `counted` says that it makes arrays, references to which must then
    be counted: that costs several times what most kernels do, and the loop makes none.
    """
    if function is None:
        return functools.partial(jit, counted=counted)

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        return _compiled(function, args, counted)(*args)

    return call


class Caller:
    """Runs functions as `jit` does (not `counted`), with arguments whose types never change.

    To look at the types of a model's many arrays takes longer than to learn a row; here it is done
    once for each function. Types are dtypes, dimensions and layouts: machine code does not look.
    """

    def __init__(self) -> None:
        self._found: dict[Any, Callable[..., Any]] = {}

    def __call__(self, function: Callable[..., Any], *args: Any) -> None:
        """As function(*args)."""
        found = None if _plain else self._found.get(function)
        if found is None:
            with _compiling:  # and no longer: other threads have rows to learn
                found = _machine_code(_compiled(function, args, False), args)
            if not _plain:
                self._found[function] = found
        found(*args)

    def __reduce__(self) -> Any:
        return Caller, ()  # copies and pickles find it again


def _compiled(
    function: Callable[..., Any], args: tuple[Any, ...], counted: bool
) -> Callable[..., Any]:
    """Numba's function for such arguments, or the plain one."""
    states = set[type]()
    if _plain or not all(_compilable(arg, states) for arg in args):
        return function
    _waiting.extend(states - _known)
    _known.update(states)
    foreign = [cls for cls in states if cls.__module__.partition(".")[0] != _PACKAGE]
    if not foreign:
        counted = counted or not states.isdisjoint(_counted)
        return _dispatcher(function, keep=True, counted=counted)
    # not kept on disk: the source of these classes is not in our stamp
    _register()
    return functools.partial(_run_foreign, foreign, _dispatcher(function, False, True))


def _run_foreign(foreign: list[type], dispatcher: Callable[..., Any], *args: Any) -> Any:
    from numba.core.errors import NumbaError

    try:
        return dispatcher(*args)
    except NumbaError as error:
        names = ", ".join(cls.__name__ for cls in foreign)
        raise TypeError(
            f"{names} cannot be compiled; as an ordinary class instead of a NamedTuple it "
            "would run as plain Python"
        ) from error


def _machine_code(found: Any, args: tuple[Any, ...]) -> Callable[..., Any]:
    """What a compiled function runs for such arguments, without another look at their types."""
    if not hasattr(found, "overloads"):
        return found
    types = tuple(map(found.typeof_pyval, args))
    found.compile(types)
    return found.overloads[types].entry_point


@contextmanager
def plain() -> Iterator[None]:
    """Run everything as plain Python inside this block: the oracle of the compiled loop."""
    global _plain  # noqa: PLW0603
    before, _plain = _plain, True
    try:
        yield
    finally:
        _plain = before


def _compilable(value: Any, states: set[type]) -> bool:
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        states.add(type(value))
        return all(_compilable(item, states) for item in value)
    return hasattr(value, "dtype") or isinstance(value, int | float)


def _register() -> None:
    """Tell Numba about kernels: functions as they are, classes by the names of their methods."""
    items = [*_waiting]
    _waiting.clear()
    _known.update(items)
    if not items:
        return
    from numba import types
    from numba.extending import overload_method, register_jitable

    inside = {
        "no_cpython_wrapper": True,  # never called from outside
        "no_cfunc_wrapper": True,
        "error_model": "numpy",  # a check of every division would keep it from vectorising
        "forceinline": True,  # handing an array to a function costs more than most kernels do
    }
    # Numba drops the receiver of a method when `bool(type)` is false, as it is for no fields
    types.NamedTuple.__bool__ = lambda self: True

    for item in items:
        if inspect.isfunction(item):
            register_jitable(**inside)(item)
            continue
        for name, method in inspect.getmembers(item, inspect.isfunction):
            if name.startswith("_"):
                continue
            arguments = method.__code__.co_argcount
            if name not in _methods:
                _methods[name] = arguments
                # looked up after BaseNamedTuple's own attributes, so that a field of this name wins
                overload_method(types.BaseTuple, name, strict=False, jit_options=inside)(
                    _resolver(name, method)
                )
            elif _methods[name] != arguments:
                raise TypeError(
                    f"{item.__name__}.{name} takes {arguments} arguments, but in compiled code "
                    f"every method called {name!r} takes {_methods[name]}"
                )


def _resolver(name: str, example: Callable[..., Any]) -> Callable[..., Any]:
    def resolve(self: Any, *_: Any) -> Any:
        return getattr(getattr(self, "instance_class", None), name, None)

    resolve.__signature__ = inspect.signature(example)  # type: ignore[attr-defined]
    return resolve


@functools.cache
def _loops() -> set[Any]:
    """Compiled functions whose kernels are not optimised, nor made machine code of, on their own.

    All of them are inlined, and then optimised where they are: that saves a third of the time.
    """
    from numba.core import event
    from numba.core.codegen import JITCodeLibrary, JITCPUCodegen

    class Compiling(event.Listener):  # type: ignore[misc]
        def __init__(self) -> None:
            self.stack: list[Any] = []

        def on_start(self, event: Any) -> None:
            self.stack.append(event.data["dispatcher"])

        def on_end(self, event: Any) -> None:
            self.stack.pop()

    loops, compiling = set[Any](), Compiling()
    if not hasattr(JITCodeLibrary, "_finalize_final_module"):
        return loops  # a Numba of another make: it compiles as it sees fit
    event.register("numba:compile", compiling)

    def unless_inlined(cls: Any, name: str, instead: Callable[..., None]) -> None:
        usual = getattr(cls, name)

        def method(self: Any, *args: Any) -> None:
            stack = compiling.stack
            inlined = len(stack) > 1 and stack[0] in loops
            (instead if inlined else usual)(self, *args)

        setattr(cls, name, method)

    def finalised(library: Any) -> None:
        library._finalized = True

    unless_inlined(JITCodeLibrary, "_optimize_final_module", lambda library: None)
    unless_inlined(JITCodeLibrary, "_finalize_final_module", finalised)
    unless_inlined(JITCPUCodegen, "set_env", lambda codegen, name, environment: None)
    return loops


@functools.cache
def _dispatcher(function: Callable[..., Any], keep: bool, counted: bool) -> Any:
    import numba

    compiled = numba.njit(error_model="numpy", nogil=True, _nrt=counted)(function)
    _loops().add(compiled)
    if keep:
        try:
            compiled._cache = _stamped_cache(function)
        except RuntimeError:
            _register()
            print(
                "spanboost: no folder to keep compiled code in, so that every process compiles; "
                "NUMBA_CACHE_DIR can name one",
                file=sys.stderr,
            )
    return compiled


def _stamped_cache(function: Callable[..., Any]) -> Any:
    """Numba's disk cache, valid only for this very source of the whole package.

    Numba itself looks at the file of the outermost function alone, so it would go on running old
    machine code after an edit, or an upgrade, of anything that function calls.
    """
    from numba.core.caching import FunctionCache, IndexDataCacheFile
    from numba.core.runtime import rtsys

    class StampedFile(IndexDataCacheFile):  # type: ignore[misc]
        def save(self, key: Any, data: Any) -> None:
            # Named by key: numbered in turn, two processes could give two kernels one name.
            number = int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:6], "big")
            index = self._index()
            if not index:  # of other source: what it named is of no use any more
                for old in Path(self._cache_path).glob(f"{cache._impl.filename_base}*.nbc"):
                    old.unlink(missing_ok=True)
            self._save_data(self._data_name(number), data)
            self._save_index(index | {key: self._data_name(number)})

        def _index(self) -> Any:
            try:
                return self._load_index()
            except Exception:  # pickles break in many ways
                return {}

    class StampedCache(FunctionCache):  # type: ignore[misc]
        def load_overload(self, sig: Any, target_context: Any) -> Any:
            # Numba would first get ready to compile, which takes longer than all the rest
            rtsys.initialize(target_context)
            with suppress(Exception):  # a file cut short or written over: as if there were none
                found = self._load_overload(sig, target_context)
                if found is not None:
                    return found
            target_context.refresh()
            _register()
            _say_it_compiles()
            return None

        def save_overload(self, sig: Any, data: Any) -> None:
            try:
                super().save_overload(sig, data)
            except OSError as error:  # a full disk, say: the code is there, and runs
                print(f"spanboost: compiled code is not kept: {error}", file=sys.stderr)

    cache = StampedCache(function)
    stamp = _source_stamp()
    cache._cache_file = StampedFile(cache.cache_path, cache._impl.filename_base, stamp)
    cache._cache_file._version += stamp  # compared before anything is unpickled
    return cache


@functools.cache  # in one process it is said once
def _say_it_compiles() -> None:
    print("spanboost: compiling for this kind of model (once; kept on disk)", file=sys.stderr)


@functools.cache
def _source_stamp() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
