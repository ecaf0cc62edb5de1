"""Everything that depends on private names of Numba, to compile faster and start sooner.

- Kernels are not optimised on their own, since all of them are inlined into a loop and optimised
  there. That saves a third of the compile time.
- Numba finds methods of NamedTuples and items of arrays at once. It would try hundreds of other
  possibilities first, in a tenth of the compile time.
- Loops do not count references to arrays. Counting costs more than most kernels do.
- Compiled code stays on disk as long as the source of all kernels is the same. Numba itself
  compares only the file of the outermost function, and would run old machine code after an edit
  of anything that function calls.
- Code from disk runs without setting up the compiler, and without looking at the types of the
  arguments again.

Either all of this is used or none of it: `missing_name` tells whether this version of Numba has
every name. Nothing in Numba is replaced, so code of other people compiles as it always does.
"""

import functools
import hashlib
import importlib
import inspect
import operator
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from spanboost.compiling.registration import find_method

NAMES = (
    "numba.core.caching:FunctionCache._load_overload",
    "numba.core.caching:FunctionCache.load_overload",
    "numba.core.caching:FunctionCache.save_overload",
    "numba.core.caching:FunctionCache.cache_path",
    "numba.core.caching:FunctionCache._index_key",
    "numba.core.caching:IndexDataCacheFile._load_data",
    "numba.core.caching:IndexDataCacheFile._save_data",
    "numba.core.caching:CompileResultCacheImpl.filename_base",
    "numba.core.codegen:JITCPUCodegen.set_env",
    "numba.core.codegen:JITCodeLibrary._finalize_final_module",
    "numba.core.codegen:JITCodeLibrary._optimize_final_module",
    "numba.core.codegen:JITCodeLibrary.add_llvm_module",
    "numba.core.codegen:JITCodeLibrary.codegen",
    "numba.core.codegen:JITCodeLibrary.enable_object_caching",
    "numba.core.codegen:JITCodeLibrary._finalized",
    "numba.core.compiler:Compiler.define_pipelines",
    "numba.core.cpu:CPUTargetOptions._nrt",
    "numba.core.cpu:CPUTargetOptions.forceinline",
    "numba.core.cpu:CPUTargetOptions.no_cfunc_wrapper",
    "numba.core.cpu:CPUTargetOptions.no_cpython_wrapper",
    "numba.core.runtime:rtsys.initialize",
    "numba.core.typing.arraydecl:GetItemBuffer",
    "numba.core.typing.arraydecl:SetItemBuffer",
)
# names in Numba's guide to extensions that `numba.extending` does not have
LOW_LEVEL_NAMES = (
    "numba.core.typing.templates:AbstractTemplate",
    "numba.core.typing.templates:AttributeTemplate",
    "numba.core.typing.templates:infer_global",
)
# attributes of objects, which their classes do not show
ATTRIBUTES = {
    "dispatcher": ("_cache", "targetctx", "targetoptions"),
    "cache": ("_cache_file", "_impl"),
    "file": ("_cache_path", "_source_stamp", "_version"),
    "compiler": ("library", "state", "targetctx"),
    "compiler state": ("func_id",),
}
_methods: dict[Any, type] = {}  # templates of the types of methods


def missing_name() -> str | None:
    """Return a name that this version of Numba does not have, or None."""
    for name in NAMES + LOW_LEVEL_NAMES:
        module, _, path = name.partition(":")
        try:
            functools.reduce(getattr, path.split("."), importlib.import_module(module))
        except (ImportError, AttributeError):
            return name
    return next((f"{kind}.{name}" for kind, name in _missing_attributes()), None)


def _missing_attributes() -> list[tuple[str, str]]:
    import numba
    from numba.core.caching import FunctionCache, IndexDataCacheFile
    from numba.core.compiler import Compiler

    known = {
        "dispatcher": dir(numba.njit(_missing_attributes)),
        "file": dir(IndexDataCacheFile("", "", "")),
        # the names a method assigns or reads: its objects need a folder, or a compilation
        "cache": FunctionCache.__init__.__code__.co_names,
        "compiler": Compiler.__init__.__code__.co_names,
        "compiler state": Compiler.compile_extra.__code__.co_names,
    }
    return [
        (kind, name)
        for kind, names in ATTRIBUTES.items()
        for name in names
        if name not in known[kind]
    ]


@functools.cache
def kernel_options() -> dict[str, Any]:
    """Return the options with which kernels are compiled."""
    return {
        "no_cpython_wrapper": True,  # never called from Python
        "no_cfunc_wrapper": True,
        "error_model": "numpy",  # a check of every division would prevent vectorisation
        "forceinline": True,  # passing an array to a function costs more than most kernels do
        "pipeline_class": _inlined_compiler(),
    }


@functools.cache
def _inlined_compiler() -> type:
    """Return the compiler of kernels: it leaves the optimisation to the loop they end up in."""
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler

    class InlinedLibrary(JITCodeLibrary):  # type: ignore[misc]
        """Code that is linked into other code, and never run on its own.

        Code with an environment (it prints, for example) is finished as usual: only then can
        Numba set the environment.
        """

        _has_environment = False

        def add_llvm_module(self, module: Any) -> None:
            # every function declares its environment; a line that is not a declaration uses it
            self._has_environment |= re.search(r"^[^@\n].*NumbaEnv", str(module), re.M) is not None
            super().add_llvm_module(module)

        def _optimize_final_module(self) -> None:
            if self._has_environment:
                super()._optimize_final_module()

        def _finalize_final_module(self) -> None:
            if self._has_environment:
                super()._finalize_final_module()
            self._finalized = True

        @property
        def codegen(self) -> Any:
            codegen = super().codegen
            return codegen if self._has_environment else WithoutEnvironment(codegen)

    class WithoutEnvironment:
        """A code generator that sets no environment: machine code to hold it does not exist."""

        def __init__(self, codegen: Any) -> None:
            self._codegen = codegen

        def __getattr__(self, name: str) -> Any:
            return getattr(self._codegen, name)

        def set_env(self, name: str, environment: Any) -> None:
            pass

    class InlinedCompiler(Compiler):  # type: ignore[misc]
        def define_pipelines(self) -> Any:
            state = self.state
            if state.library is None:
                codegen = state.targetctx.codegen()
                state.library = InlinedLibrary(codegen, state.func_id.func_qualname)
                state.library.enable_object_caching()
            return super().define_pipelines()

    return InlinedCompiler


def add_method(name: str, method: Callable[..., Any], options: dict[str, Any]) -> None:
    """Let compiled code call a method of a NamedTuple class, by whatever name the class has it."""
    from numba import types
    from numba.extending import lower_builtin, register_jitable

    _add_templates()
    if method in _methods:  # of a base class
        return
    _methods[method] = _make_method_template(method)
    register_jitable(**options)(method)

    @lower_builtin(method, types.BaseTuple, types.VarArg(types.Any))  # type: ignore[untyped-decorator]
    def call_method(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = context.typing_context.resolve_value_type(method)
        signature = function.get_call_type(context.typing_context, signature.args, {})
        call = context.get_function(function, signature)
        context.add_linking_libs(getattr(call, "libs", ()))
        return call(builder, args)


def _make_method_template(method: Callable[..., Any]) -> type:
    """Return what tells the type of a method: that of the function, without `self`."""
    from numba.core.typing.templates import AbstractTemplate

    class Method(AbstractTemplate):  # type: ignore[misc]
        key = method

        def generic(self, args: Any, kws: Any) -> Any:
            function = self.context.resolve_value_type(method)
            signature = function.get_call_type(self.context, (self.this, *args), kws)
            return signature.replace(pysig=inspect.signature(method)).as_method()

    return Method


@functools.cache
def _add_templates() -> None:
    """Add the templates that Numba tries for methods of NamedTuples and for items of arrays.

    Numba tries the templates of a type or a function one after the other. There would be one for
    each name of a method, and those of lists, strings and more come before those of arrays.
    """
    from numba import types
    from numba.core.typing.arraydecl import GetItemBuffer, SetItemBuffer
    from numba.core.typing.templates import AttributeTemplate, infer_global
    from numba.extending import infer_getattr

    @infer_getattr
    class Methods(AttributeTemplate):  # type: ignore[misc]
        key = types.BaseTuple  # tried after BaseNamedTuple, so that a field of this name wins

        def generic_resolve(self, kind: Any, name: str) -> Any:
            template = _methods.get(find_method(kind, name))
            return template and types.BoundFunction(template, kind)

    infer_global(operator.getitem)(_limit_to_arrays(GetItemBuffer))
    infer_global(operator.setitem)(_limit_to_arrays(SetItemBuffer))


def _limit_to_arrays(template: Any) -> type:
    """Return a template that does the same for arrays only, and is tried before all others."""
    from numba import types

    def generic(self: Any, args: Any, kws: Any) -> Any:
        return template.generic(self, args, kws) if isinstance(args[0], types.Array) else None

    # the target of the others is "generic", which is less specific
    return type(template.__name__, (template,), {"metadata": {"target": "cpu"}, "generic": generic})


def make_dispatcher(function: Callable[..., Any], counted: bool) -> Any:
    """Return Numba's version of a loop, which has no disk cache yet."""
    import numba

    options = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True, "_nrt": counted}
    return numba.njit(**options)(function)


def find_machine_code(dispatcher: Any, args: tuple[Any, ...]) -> Callable[..., Any]:
    """Return the compiled function for such arguments, which does not look at their types."""
    return dispatcher.compile(signature_of(args))


def signature_of(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the types of arguments."""
    import numba

    return tuple(map(numba.typeof, args))


def classes_in(signature: tuple[Any, ...]) -> set[type]:
    """Return the NamedTuple classes in types of arguments."""
    found = set()
    for kind in signature:
        if hasattr(kind, "instance_class"):
            found |= {kind.instance_class, *classes_in(kind.types)}
    return found


def counts_references(dispatcher: Any) -> bool:
    """Return whether `make_dispatcher` got `counted`."""
    return bool(dispatcher.targetoptions["_nrt"])


def code_file(dispatcher: Any, signature: tuple[Any, ...]) -> Path:
    """Return where the disk cache keeps the code for arguments of these types."""
    path: Path = dispatcher._cache.code_file(signature, dispatcher.targetctx.codegen())
    return path


def add_disk_cache(dispatcher: Any, stamp: str, before_compiling: Callable[[], None]) -> None:
    """Keep compiled code on disk, for source with this stamp.

    Raises
    ------
    RuntimeError
        if there is no folder to write to
    """
    from numba.core.caching import FunctionCache, IndexDataCacheFile
    from numba.core.runtime import rtsys

    class StampedFile(IndexDataCacheFile):  # type: ignore[misc]
        """Files named by what they contain, without an index: processes can save at any time."""

        def save(self, key: Any, data: Any) -> None:
            path, base = self.path_of(key), cache._impl.filename_base
            current = path.stem.rpartition(".")[0]
            for old in path.parent.glob(f"{base}.*"):
                if old.suffix in {".nbc", ".nbi"} and not old.name.startswith(f"{current}."):
                    old.unlink(missing_ok=True)  # of other source
            self._save_data(path.name, (key, data))

        def load(self, key: Any) -> Any:
            path = self.path_of(key)
            saved, data = self._load_data(path.name) if path.exists() else (None, None)
            return data if saved == key else None

        def path_of(self, key: Any) -> Path:
            version = _digest(f"{self._version} {self._source_stamp}")
            name = f"{cache._impl.filename_base}.{version}.{_digest(repr(key))}.nbc"
            return Path(self._cache_path, name)

    class StampedCache(FunctionCache):  # type: ignore[misc]
        def code_file(self, sig: Any, codegen: Any) -> Path:
            path: Path = self._cache_file.path_of(self._index_key(sig, codegen))
            return path

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            # Numba would set up the compiler first, which takes longer than all the rest
            rtsys.initialize(target_context)
            with suppress(Exception):  # a damaged file counts as missing
                found = self._load_overload(sig, target_context)
                if found is not None:
                    return found
            target_context.refresh()
            before_compiling()
            return None

        def save_overload(self, sig: Any, data: Any) -> None:
            try:
                super().save_overload(sig, data)
            except OSError as error:  # for example a full disk; the code runs all the same
                print(f"spanboost: compiled code is not kept: {error}", file=sys.stderr)

    cache = StampedCache(dispatcher.py_func)
    cache._cache_file = StampedFile(cache.cache_path, cache._impl.filename_base, stamp)
    dispatcher._cache = cache


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]
