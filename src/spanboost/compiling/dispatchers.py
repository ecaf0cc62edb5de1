"""Numba's version of a function, made with its private names or with public ones only.

The public ones are enough where Numba has changed, or where the environment variable
SPANBOOST_PLAIN_NUMBA is 1: results are identical, but every process compiles, and compiles longer.
"""

import functools
import math
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

from spanboost.compiling import numba_internals
from spanboost.compiling.compile_time import compiling, is_announced, measure_compiling
from spanboost.compiling.registration import overload_name, register_kernels
from spanboost.compiling.source_stamp import source_stamp

SWITCH = "SPANBOOST_PLAIN_NUMBA"

_dispatchers: dict[Any, Any] = {}
_kept: set[Any] = set()  # dispatchers whose code goes to disk
_lock = threading.RLock()
_announced = [-math.inf]  # the time of the last announcement
_announcing = threading.Lock()


def get_dispatcher(function: Callable[..., Any], keep: bool, counted: bool) -> Any:
    """Return Numba's version of a function, the same one every time.

    keep: whether compiled code goes to the disk cache.
    counted: whether references to arrays are counted.
    """
    key = function, keep, counted
    if key not in _dispatchers:
        with _lock:
            if key not in _dispatchers:
                _dispatchers[key] = _make_dispatcher(*key)
    dispatcher = _dispatchers[key]
    if not has_disk_cache(dispatcher):  # which registers kernels when it does not find the code
        register_waiting()
    return dispatcher


def has_disk_cache(dispatcher: Any) -> bool:
    """Return whether the compiled code of a dispatcher goes to disk."""
    return dispatcher in _kept


def find_machine_code(dispatcher: Any, args: tuple[Any, ...]) -> Callable[..., Any]:
    """Return what runs such arguments fastest: compiled code, or else the dispatcher."""
    if _uses_internals():
        return numba_internals.find_machine_code(dispatcher, args)
    return dispatcher


def register_waiting() -> None:
    """Register all kernels that are not registered with Numba yet."""
    if _uses_internals():
        register_kernels(numba_internals.kernel_options(), numba_internals.add_method)
    else:
        register_kernels({"error_model": "numpy"}, overload_name)


def _make_dispatcher(function: Callable[..., Any], keep: bool, counted: bool) -> Any:
    import numba

    measure_compiling()
    if not _uses_internals():
        # Numba's public disk cache would run old code after an edit of another file
        return numba.njit(error_model="numpy", nogil=True)(function)
    dispatcher = numba_internals.make_dispatcher(function, counted)
    if not keep:
        return dispatcher
    try:
        stamp = source_stamp(function.__code__.co_filename)
        numba_internals.add_disk_cache(dispatcher, stamp, _before_compiling)
    except RuntimeError:
        print(
            "spanboost: there is no folder for compiled code, so every process compiles; "
            "set NUMBA_CACHE_DIR to a folder",
            file=sys.stderr,
        )
        return dispatcher
    _kept.add(dispatcher)
    return dispatcher


@functools.cache
def _uses_internals() -> bool:
    if os.environ.get(SWITCH, "0") not in {"", "0"}:
        return False
    import numba

    if numba.config.DISABLE_JIT:  # NUMBA_DISABLE_JIT=1: nothing is compiled
        return False
    missing = numba_internals.missing_name()
    if missing is None:
        return True

    warnings.warn(
        f"Numba {numba.__version__} does not have {missing}: every process compiles its models, "
        f"which takes longer; results are the same. Set {SWITCH}=1 to hide this warning.",
        RuntimeWarning,
        stacklevel=2,
    )
    return False


def _before_compiling() -> None:
    register_waiting()
    with _announcing:
        if not is_announced(compiling, _announced[0]):
            _announce_compiling()
            _announced[0] = time.perf_counter()


def _announce_compiling() -> None:
    print(
        "spanboost: compiling for this kind of model and task, which takes up to a minute or two "
        "on two cores; each new loss, learner and task does it once in this environment, and "
        "`spanboost warmup` does it ahead",
        file=sys.stderr,
    )
